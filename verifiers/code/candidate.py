

# Runs in the sandbox, together with the program, and answers what the test's process asks over descriptor 4.
OPERATIONS = {"len": len, "iter": iter, "next": next, "str": str, "repr": repr, "bool": bool, "hash": hash, "isinstance": isinstance}
OPERATORS = ("eq", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "getitem", "setitem",
             "delitem", "contains")


def continued(code, entry):
    """The text behind a prompt that ends with the head of a function: the function once more, or its body."""
    try:
        whole = entry in compile(code, "program.py", "exec", dont_inherit=True).co_names
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        whole = False
    return b"    pass\n" + code if whole else b"".join(b"    " + line for line in code.splitlines(True))


class Candidate:
    def __init__(self):
        import collections
        import operator
        self.changeable = (list, dict, set, bytearray, collections.deque)
        self.handles, self.numbers, self.functions = [], {}, {}
        self.operations = dict(OPERATIONS, **{name: getattr(operator, name) for name in OPERATORS})
        self.module = type(sys)("solution")
        sys.modules["solution"] = self.module
        self.names = vars(self.module)
        self.encoder = Encoder(self.keep)
        self.decoder = Decoder({b"h": self.handles.__getitem__, b"k": self.function, b"j": self.iterator})
        self.link = Link(self.encoder, self.decoder)

    def keep(self, value):
        """Objects of the program stay here: the other side gets a number for each."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.handles)
            self.handles.append(value)
        return b"h%d;" % self.numbers[id(value)]

    def function(self, number):
        """A function of the test, called from here."""
        if number not in self.functions:
            def call(*arguments, **named):
                self.link.send(("back", number, arguments, named))
                return self.answer()
            self.functions[number] = call
        return self.functions[number]

    def iterator(self, number):
        """An iterator of the test: each step is taken there."""
        step = self.function(number)
        for one in iter(step, ()):
            yield one[0]

    def answer(self):
        """The reply of the test's side, which may ask something else first."""
        while True:
            message = self.link.receive()
            if message[0] == "value":
                return message[1]
            if message[0] == "raised":
                raise getattr(__import__("builtins"), message[1], Exception)(message[2])
            self.handle(message)

    def load(self, given):
        for part in (given["prelude"], *given["before"]):
            load(part, self.names)
        with open("program.py", "rb") as file:
            source = file.read()
        wrong, size = load(source, self.names), given["prompt_bytes"]
        if wrong and wrong[0] == "compile" and size:
            wrong = load(source[:size] + continued(source[size:], given["entry"]), self.names) and wrong
        if wrong:
            self.show(wrong[1])
        self.link.send(("loaded", wrong[0] if wrong else ""))

    def show(self, problem):
        import traceback
        try:
            traceback.print_exception(problem)
            sys.stderr.flush()
        except BaseException:
            pass

    def describe(self, name):
        """A name of the program, for the test: a value, or what kind of thing it is."""
        if name not in self.names:
            return ("missing", None)
        value = self.names[name]
        if isinstance(value, type(sys)):
            return ("module", value.__name__)
        if isinstance(value, type) and issubclass(value, BaseException):
            return ("exception", [one.__name__ for one in type.mro(value)])
        if isinstance(value, type):
            return ("class", (str(value.__module__), value, value.__name__))
        return ("value", (str(getattr(value, "__module__", "")), value, str(getattr(value, "__name__", ""))))

    def call(self, function, arguments, named):
        """The value, and the arguments as they are behind the call, for those that it changed."""
        before = [self.encoder.message(one) for one in arguments]
        value = function(*arguments, **named)
        if type(value) is function and function.__module__ == "solution" and isinstance(value, self.changeable):
            self.encoder.held.add(id(value))  # it has a state, and methods of its own
        after = [(at, one) for at, one in enumerate(arguments) if self.encoder.message(one) != before[at]]
        same = next((at for at, one in enumerate(arguments) if one is value and type(one) in (list, dict, set)), None)
        return ("value", None if same is not None else value, after, same)

    def act(self, message):
        what, *given = message
        if what == "call":
            return self.call(*given)
        if what == "get":
            return ("value", getattr(*given), [], None)
        if what == "set":
            return ("value", setattr(*given), [], None)
        if what == "name":
            return ("value", self.describe(*given), [], None)
        if what == "defined":
            return ("value", [name for name in given[0] if name in self.names], [], None)
        if what == "share":
            classes = {name: self.names[name] for name in given[0] if isinstance(self.names.get(name), type)}
            self.decoder.classes = classes
            self.encoder.shared = {value: name for name, value in classes.items()}
            return ("value", None, [], None)
        return ("value", self.operations[given[0]](*given[1]), [], None)

    def handle(self, message):
        try:
            reply = self.act(message)
        except Gone:
            raise
        except StopIteration as problem:
            reply = self.raised(problem)
        except BaseException as problem:
            self.show(problem)
            reply = self.raised(problem)
        try:
            self.link.send(reply)
        except Exception as problem:
            self.link.send(self.raised(problem))

    def raised(self, problem):
        names = [one.__name__ for one in type.mro(type(problem))]
        try:
            text = str(problem)[:1000]
        except BaseException:
            text = ""
        return ("raised", names, text)


def main():
    import json
    leave = os._exit
    with open("given", "rb") as file:
        given = json.loads(file.read())
    os.unlink("given")
    candidate = Candidate()
    try:
        candidate.load(given)
        while True:
            candidate.handle(candidate.link.receive())
    except BaseException as problem:
        if not isinstance(problem, Gone):
            candidate.show(problem)
    try:
        sys.stdout.flush()
    except BaseException:
        pass
    leave(0)


main()
