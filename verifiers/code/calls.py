
# Of these a program has every name without an import, as in the graders of the public sets of calls.
LIBRARY = "typing string re datetime operator random statistics json copy math itertools functools bisect heapq collections sys".split()


def library():
    """Names beneath those of a program, where Python has its builtins: so none is taken for a function of the program."""
    names = {}
    for name in LIBRARY:
        there = vars(__import__(name))
        names.update({one: there[one] for one in there.get("__all__", there) if one[0] != "_"})
    names.update((name, sys.modules[name]) for name in LIBRARY)
    return {**names, **vars(builtins)}


# Runs in the sandbox, together with the program: calls one function of it with each list of arguments in turn, and writes one
# record for each call to descriptor 3. It does not know what is expected, and nobody believes it more than the program.
def main():
    import json
    import traceback
    write, leave, loads = os.write, os._exit, json.loads
    with open("calls", "rb") as file:
        entry, *calls = file.read().split(b"\n")
    os.unlink("calls")
    entry, before = loads(entry)
    encoder = Encoder(lambda value: b"u")

    def record(kind, index, data):
        data = b"%s%d:%d:" % (kind, index, len(data)) + data + b"\n"
        while data:
            data = data[write(3, data):]

    def fail(kind, index, problem):
        traceback.print_exception(problem)
        record(kind, index, type(problem).__name__.encode("utf-8", "replace")[:100])

    module = type(sys)("solution")
    sys.modules["solution"] = module
    vars(module)["__builtins__"] = library()
    sys.setrecursionlimit(50000)  # as those graders do
    with open("program.py", "rb") as file:
        wrong = load(before, vars(module)) or load(file.read(), vars(module))
    if wrong:
        fail(b"c" if wrong[0] == "compile" else b"l", 0, wrong[1])
        calls = []

    def find():
        function = vars(module).get(entry)
        if function is None and "Solution" in vars(module):
            function = getattr(vars(module)["Solution"](), entry)
        if function is None:
            raise NameError("the program has no function of the name " + entry)
        return function

    for index, arguments in enumerate(calls):
        try:
            data = encoder.plain(find()(*loads(arguments)))
        except BaseException as problem:
            fail(b"e", index, problem)
        else:
            record(b"v", index, data)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    leave(0)


main()
