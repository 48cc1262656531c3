"""Runs inside gdb: writes a line of JSON for each function that is entered while the file WALK_FLAG exists: thread, and the stack as
[file, function] from the outermost. WALK_FUNCTIONS: the functions, WALK_OUT: where the lines go."""
import json
import os

import gdb

ROOT = os.environ["WALK_ROOT"] + "/"
FLAG = os.environ["WALK_FLAG"]
OUT = open(os.environ["WALK_OUT"], "w", encoding="utf-8")


def place(frame):
    symtab = frame.find_sal().symtab
    return symtab.fullname().removeprefix(ROOT) if symtab and symtab.fullname().startswith(ROOT) else None


class Entry(gdb.Breakpoint):
    def stop(self):
        if not os.path.exists(FLAG):
            return False
        stack = []
        frame = gdb.newest_frame()
        while frame:
            file = place(frame)
            if file:
                stack.append([file, frame.name()])
            frame = frame.older()
        OUT.write(json.dumps([gdb.selected_thread().num, stack[::-1]]) + "\n")
        OUT.flush()
        return False


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set breakpoint pending off")
gdb.execute("handle all nostop noprint pass")
for source, function in json.load(open(os.environ["WALK_FUNCTIONS"], encoding="utf-8")):
    Entry(f"-source {source} -function {function}", internal=True)
gdb.execute("run")
