"""The text that a zygote runs itself, once, and the beginning of each program of Python. python.c executes it in a namespace of
its own, which no program sees.

CPython's own names are kept for what it does itself: create_stdio() of Python/pylifecycle.c, pymain_run_file() of
Modules/main.c."""
import _signal
import builtins
import gc
import io
import linecache
import os
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

# Modules that programs of contests import. Each one's own imports come with it.
PRELOADED = """abc array ast atexit bisect cmath collections collections.abc contextlib copy dataclasses datetime decimal enum fractions
functools heapq inspect io itertools json math numbers operator os.path random re site statistics string struct textwrap
threading time traceback types typing warnings weakref""".split()

# The compiler's tables, the printer of tracebacks, and the classes behind the streams are made when they are used first.
WARM = '''
import json, math, re
from collections import defaultdict
from dataclasses import dataclass
from typing import List, Optional

@dataclass
class Point:
    x: int
    y: float = 0.5

class Solution:
    def solve(self, values: List[int], limit: Optional[int] = None) -> int:
        count = defaultdict(int)
        for i, value in enumerate(values):
            if value % 2 == 0 and i < 10 or not value:
                count[value] += 1
            elif value > 3:
                continue
            else:
                break
        while False:
            pass
        try:
            a, *b = [x * 2 for x in sorted(values, key=lambda value: -value) if x]
            with open("/dev/null") as file:
                file.read()
        except (ValueError, IndexError) as error:
            print(f"{error!r:>10}", end="")
        finally:
            a = {"b": 1, **{}}
        return sum(x for x in values) if values else max(a, 0, key=None)

def outer():
    yield Solution().solve([2, 4, 6], 3)

print(*map(str, outer()), Point(1), json.dumps({"a": [1.5, None]}), math.sqrt(2), re.sub(r"\\d+", "", "a1"), sep="\\n")
for line in open("/dev/null"):
    n, m = map(int, line.split())
'''


def preload(name):
    """None if it is not there."""
    try:
        return __import__(name)
    except ImportError:
        return None


def add_site(venv):
    """Without `site`, which would run what it finds beside the packages, there is no exit(), quit() or help()."""
    import site
    site.setquit()
    site.setcopyright()
    site.sethelper()
    if venv:
        sys.path.append(venv + "/lib/python%d.%d/site-packages" % sys.version_info[:2])


def warm():
    code = compile(WARM, "/warm.py", "exec")
    stream(0).readline()
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    exec(code, {"__name__": "__main__", "__builtins__": builtins})
    try:
        try:
            [][1]
        except IndexError as error:
            raise ValueError("warm") from error
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    linecache.clearcache()


def preload_with_hooks():
    """random and threading have functions to be called after a fork. For a program's own forks begin() registers them. After the fork of the
    zygote it does what there is to do: with one thread and no lock that is little, and threading's function takes a tenth of the start."""
    found = []
    register, os.register_at_fork = os.register_at_fork, lambda **hook: found.append(hook)
    import random
    import threading
    os.register_at_fork = register
    return found, random, threading.main_thread()


codes = {}  # of our own programs, by their text


def keep(text):
    """Compiles a program of ours, a harness of the verifier code, before there is any other one. Each child executes a copy of its own."""
    codes[text.encode()] = compile(text, "/box/solution.py", "exec", dont_inherit=True)


def kept(path):
    """The compiled program, if it is one of ours; None."""
    try:
        if os.stat(path).st_size not in sizes:
            return None
        with io.FileIO(path) as file:
            return codes.get(file.read())
    except OSError:
        return None


def start(venv):
    """In the zygote, once."""
    global piped, hooks, random, main_thread, numpy, sizes
    sizes = {len(text) for text in codes}
    hooks, random, main_thread = preload_with_hooks()
    for name in PRELOADED:
        preload(name)
    add_site(venv)
    digits = os.environ.get("PYTHONINTMAXSTRDIGITS")
    if digits and hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(int(digits))
    numpy = preload("numpy") if venv else None
    warm()
    piped = piped_streams()
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None
    gc.collect()
    gc.freeze()


def stream(descriptor):
    """A standard stream as create_stdio() makes it where the locale is C.UTF-8; None for a descriptor that is closed."""
    try:
        binary = io.open(descriptor, "wb" if descriptor else "rb", closefd=False)
    except OSError:
        return None
    binary.raw.name = ("<stdin>", "<stdout>", "<stderr>")[descriptor]
    text = io.TextIOWrapper(binary, encoding="utf-8", errors="backslashreplace" if descriptor == 2 else "surrogateescape", newline="\n",
                            line_buffering=descriptor == 2 or binary.raw.isatty())
    text.mode = "w" if descriptor else "r"
    return text


def piped_streams():
    """Those of a program whose standard streams are pipes, which all of them are. A stream learns about its descriptor when it is
    made; the facts are the same for each pipe."""
    before = [os.dup(descriptor) for descriptor in range(3)]
    reads, writes = os.pipe()
    for descriptor, pipe in enumerate((reads, writes, writes)):
        os.dup2(pipe, descriptor)
    streams = [stream(descriptor) for descriptor in range(3)]
    for descriptor, old in enumerate(before):
        os.dup2(old, descriptor)
        os.close(old)
    os.close(reads)
    os.close(writes)
    return streams


def names_numpy(path):
    """New seeds for numpy cost a third of a program's start, so that they are for those who may use it."""
    try:
        with io.FileIO(path) as file:
            return b"numpy" in file.read()
    except OSError:
        return False


def begin(path, arguments, pipes, at_home, hidden):
    """In the child, before the program: gives its __main__. pipes: which of 0, 1 and 2 are one. at_home: HOME is the box. hidden: names of
    files in the box beside the program's own; a module of this name that is preloaded is not what `import` would find."""
    box, _, name = path.rpartition("/")
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    sys.stdin = sys.__stdin__ = piped[0] if pipes[0] else stream(0)
    sys.stdout = sys.__stdout__ = piped[1] if pipes[1] else stream(1)
    sys.stderr = sys.__stderr__ = piped[2] if pipes[2] else stream(2)
    sys.argv = [name, *arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path.insert(0, box)
    if not at_home:
        os.environ["HOME"] = os.environ["TMPDIR"] = box
    for file in hidden:
        sys.modules.pop(file.removesuffix(".py"), None)
    for hook in hooks:
        os.register_at_fork(**hook)
    random.seed()
    main_thread._set_native_id()
    if numpy and (hidden or names_numpy(path)):
        numpy.random.seed()
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__loader__ = SourceFileLoader("__main__", path)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__builtins__ = builtins
    main.__file__ = path
    main.__cached__ = None
    return main
