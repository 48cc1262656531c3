

# Runs in a sandbox of its own: the code of the test, with what it expects. Names that the program defines are asked for over
# descriptor 4 and come as plain data, so that nothing of the program runs here; its objects stay there, and are equal to no
# data. One record for each test goes to descriptor 3: its index and a letter, of
#
#   p passed   w not so   e the program raised an exception   m it lacks a name   g it has ended   c it does not compile
#   l it raised while it was loaded   r the test itself is broken, or hands over what cannot be handed over
HELPERS = {name: module for module, names in {
    "math": "isclose fabs sqrt floor ceil pi e inf nan isnan isinf gcd lcm log log2 log10 exp sin cos tan factorial comb prod",
    "collections": "Counter deque defaultdict OrderedDict namedtuple",
    "itertools": "chain combinations permutations product accumulate groupby islice zip_longest",
    "functools": "reduce partial", "decimal": "Decimal", "fractions": "Fraction", "copy": "deepcopy",
    "typing": "List Dict Tuple Set Optional Any Union Callable Iterable",
}.items() for name in names.split()}

# Modules that a test may use without an import; what the program calls so is another thing.
MODULES_OF_TESTS = set("bisect cmath collections copy decimal fractions functools heapq itertools json math operator os random re "
                       "statistics string sys typing".split())


def names_of(tree):
    """[(name, names that are called in its arguments)] of every call of a name, the names that the code binds, and all that it
    reads and does not bind."""
    calls, bound, used = [], set(), set()

    def walk(node):
        inner = set()
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if isinstance(value, list) else [value]:
                if hasattr(child, "_fields"):
                    inner |= walk(child)
        kind = type(node).__name__
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            bound.add(node.name)
        elif kind == "arg":
            bound.add(node.arg)
        elif kind == "alias":
            bound.add((node.asname or node.name).split(".")[0])
        elif kind == "Name":
            (used if type(node.ctx).__name__ == "Load" else bound).add(node.id)
        elif kind == "Call" and type(node.func).__name__ == "Name":
            calls.append((node.func.id, set(inner)))
            inner.add(node.func.id)
        return inner

    walk(tree)
    return [one for one in calls if one[0] not in bound], bound, used - bound


class Remote:
    """An object of the program. It is never equal to data; what one does with it is done there."""
    __slots__ = ("_number", "_kind")

    def __init__(self, number):
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", "value")

    def __call__(self, *arguments, **named):
        value = side.ask("call", self, arguments, named, changed=arguments)
        if type(value) is Remote and self._kind == "class":
            object.__setattr__(value, "_kind", "made")
        return value

    def __getattr__(self, name):
        if name[:2] == "__" == name[-2:] and name != "__name__":
            raise AttributeError(name)
        return side.ask("get", self, name)

    def __setattr__(self, name, value):
        side.ask("set", self, name, value)

    def __eq__(self, other):
        return self is other or type(other) is Remote and side.ask("do", "eq", (self, other)) is True

    __hash__ = object.__hash__

    def made(self, name, *more):
        if self._kind != "made":
            raise TypeError("a value of the program is no plain data")
        return side.ask("do", name, (self, *more))

    def __bool__(self):
        return self.made("bool")

    def __contains__(self, value):
        return self.made("contains", value)

    def __instancecheck__(self, value):
        return type(value) is Remote and side.ask("do", "isinstance", (value, self)) is True

    def __next__(self):
        try:
            return side.ask("do", "next", (self,), stops=True)
        except Stopped:
            raise StopIteration from None


def forward(name, both=False):
    def method(self, *more):
        if both and any(type(one) is not Remote for one in more):
            return NotImplemented
        return side.ask("do", name, (self, *more))
    return method


for one in ("len", "iter", "str", "repr", "getitem", "setitem", "delitem", "neg"):
    setattr(Remote, f"__{one}__", forward(one))
for one in ("lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(Remote, f"__{one}__", forward(one, True))


class Stopped(Exception):
    """An iterator of the program is at its end."""


class Missing(NameError):
    """Neither the test nor the program has this name."""


class Side:
    """The program's side."""

    def __init__(self):
        self.functions, self.remotes, self.found, self.exceptions = [], {}, {}, {}
        self.touched = self.raised = self.gone = self.unable = self.answering = self.lacking = self.checks = False
        self.tested, self.called = set(), set()
        self.encoder = Encoder(self.other)
        self.decoder = Decoder({b"h": self.remote})
        self.link = Link(self.encoder, self.decoder)

    def other(self, value):
        if type(value) is Remote:
            return b"h%d;" % value._number
        steps = hasattr(type(value), "__next__")
        if not steps and not callable(value) and not self.answering:
            self.unable = True
            raise TypeError(f"a {type(value).__name__} cannot be handed to the program")
        self.functions.append((lambda: step(value)) if steps else value)
        return b"%s%d;" % (b"j" if steps else b"k", len(self.functions) - 1)

    def remote(self, number):
        if number not in self.remotes:
            self.remotes[number] = Remote(number)
        return self.remotes[number]

    def ask(self, *message, changed=(), stops=False):
        """Sends a message and gives the value that comes back."""
        if self.gone:
            raise Gone
        self.touched = True
        try:
            self.link.send(message)
            reply = self.reply()
        except Gone:
            self.gone = True
            raise
        return self.take(reply, changed, stops)

    def take(self, reply, changed, stops):
        try:
            if reply[0] == "value":
                what, value, after, same = reply
                for at, one in after:
                    absorb(changed[at], one)
                return value if same is None else changed[same]
            names, text = [str(name) for name in reply[1]], str(reply[2])
        except Exception:
            self.gone = True
            raise Gone
        if stops and "StopIteration" in names:
            raise Stopped
        self.raised = True
        raise self.exception(names, text)

    def reply(self):
        while True:
            message = self.link.receive()
            if type(message) is not tuple or not message or message[0] != "back":
                return message
            self.call_back(*message[1:])

    def call_back(self, number, arguments, named):
        try:
            reply = ("value", self.functions[number](*arguments, **named))
        except Exception as problem:
            reply = ("raised", type(problem).__name__, str(problem)[:1000])
        self.answering = True  # what a program asks for breaks no test
        self.link.send(reply)
        self.answering = False

    def exception(self, names, text):
        for kind in type.mro(self.kind(names)):
            try:
                return kind(text)
            except Exception:
                continue

    def kind(self, names):
        """A class for an exception of the program, of which the names of its classes are known. Only what may end a test in the
        way that a function's exception may: no end of an iteration, no exit."""
        if not names:
            return RuntimeError
        name, *more = names
        kind = self.exceptions.get(name) or getattr(builtins, name, None)
        if isinstance(kind, type):
            return kind if issubclass(kind, Exception) and not issubclass(kind, ENDS) else RuntimeError
        self.exceptions[name] = type(name, (self.kind(more),), {})
        return self.exceptions[name]


ENDS = (StopIteration, StopAsyncIteration)


def step(iterator):
    """The next element as a list of one, or an empty tuple at the end."""
    for one in iterator:
        return [one]
    return ()


def absorb(old, new):
    """Takes over the changes that a call made to an argument."""
    if type(old) is not type(new):
        return
    if isinstance(old, (list, bytearray)):
        base = list if isinstance(old, list) else bytearray
        base.__setitem__(old, slice(None), base(new))
    elif isinstance(old, (dict, set)):
        base = dict if isinstance(old, dict) else set
        base.clear(old)
        base.update(old, new)
    if type(old) in side.encoder.shared:
        vars(old).clear() if hasattr(old, "__dict__") else None
        set_attributes(old, attributes_of(new))


class Names(dict):
    """The test's names. Names that it does not define itself are looked for in the library, then in the program."""

    def __missing__(self, name):
        tested = name in side.tested
        if hasattr(builtins, name) and not tested or name == "check" and side.checks:
            raise KeyError(name)
        if name in HELPERS and not tested:
            return getattr(__import__(HELPERS[name]), name)
        if name in side.found:
            side.touched = True
            return side.found[name]
        value = self.resolve(name)
        side.found[name] = value
        return value

    def resolve(self, name):
        kind, value = side.ask("name", name)
        if name in sys.stdlib_module_names and (kind == "missing" or name in MODULES_OF_TESTS - side.called):
            kind, value = "module", name
        if kind == "module" and value.split(".")[0] in sys.stdlib_module_names:
            return __import__(value, fromlist=["_"])
        if kind == "exception":
            return side.kind(value)
        if kind not in ("class", "value"):
            raise Missing(name)
        module, value, own = value
        if type(value) is Remote and own == name and module.split(".")[0] in sys.stdlib_module_names:
            return getattr(__import__(module, fromlist=["_"]), name)
        if type(value) is Remote and kind == "class":
            object.__setattr__(value, "_kind", "class")
        return value


def tested_names(calls, used, names):
    """The name that a test asks of the program though Python has it too: where nothing else in the test may be the program's, the
    first one that it calls, the program defines, and no other such call is an argument of."""
    mine = (name for name in used if name in names and type(names[name]) is not type(sys))
    if any(mine) or any(not is_pythons(name) for name in used) or any(name in sys.stdlib_module_names for name, _ in calls):
        return set()
    defined = set(side.ask("defined", [name for name, _ in calls])) if calls else set()
    side.lacking = bool(calls) and not defined
    outer = {name for name, inner in calls if inner & defined - {name}}
    return set([name for name, _ in calls if name in defined - outer][:1])


def is_pythons(name):
    return hasattr(builtins, name) or name in HELPERS or name in sys.stdlib_module_names


def share(names):
    """Objects of classes that the test itself defines go by value: both sides have the class."""
    classes = {name: value for name, value in names.items() if isinstance(value, type) and value.__module__ == "test"}
    side.decoder.classes = classes
    side.encoder.shared = {value: name for name, value in classes.items()}
    side.exceptions.update((name, value) for name, value in classes.items() if issubclass(value, Exception))
    if classes:
        side.ask("share", list(classes))


def verdict(problem, index):
    if side.gone or isinstance(problem, Gone):
        return "g"
    if side.unable:
        return "r"
    if problem is None:
        return "p" if side.touched or not side.checks else "r"
    if side.raised:
        return "e"
    if isinstance(problem, ImportError):  # of the test: a name that the program lacks is Missing
        return "r"
    if isinstance(problem, Missing) or side.lacking and not side.touched:
        return "m"
    return "w" if side.touched else "r"


class Test:
    def __init__(self, given):
        self.given = given
        self.names = side.names = Names(__name__="test", __builtins__=builtins)
        if given["functions"]:
            offer_pytest()
            self.names["run_test"] = run_test
        self.own = set()  # names that have nothing of the program

    def record(self, index, letter):
        os.write(3, b"%d%s\n" % (index, letter.encode()))
        if letter in "gcl":
            os._exit(0)

    def compile(self, flags=0):
        try:
            return [compile(source, "test.py", "exec", flags, True) for source in self.given["tests"]]
        except (SyntaxError, ValueError):
            self.record(self.given["first"], "r")
            os._exit(0)

    def prepare(self):
        """The set-up and the prompt, which are the test's own; the entry is the program's."""
        for part in self.given["before"]:
            exec(compile(part, "test.py", "exec", dont_inherit=True), self.names)
        prompt = self.given["prompt"]
        if prompt:
            problem = load(prompt, self.names)
            if problem and problem[0] == "compile":
                load(prompt + "\n    pass\n", self.names)
        if not side.touched:
            self.own.update(self.names)
        name = self.given["entry"]
        if name:
            side.checks = True  # one test, which has to call the program
            self.names[name] = self.names.resolve(name)
            (self.own.add if type(self.names[name]) is Remote else self.own.discard)(name)  # a Remote is asked when it is used
        share(self.names)

    def attempt(self, function, *arguments):
        side.touched = side.raised = side.lacking = False
        try:
            function(*arguments)
        except BaseException as problem:
            return problem
        return None

    def run_one(self, code, tree):
        calls, _, used = names_of(tree)
        side.called = {name for name, _ in calls}
        side.tested = set() if self.given["entry"] or self.given["functions"] else tested_names(calls, used, self.names)
        side.touched = any(name in side.found or name in self.names and name not in self.own for name in used)
        exec(code, self.names)

    def run(self):
        first, codes = self.given["first"], self.compile()
        trees = self.compile(0x400)
        loaded = side.loaded()
        if loaded:
            self.record(first, loaded)
        problem = self.attempt(self.prepare)
        if problem is not None:
            for index in range(first, len(codes)):
                self.record(index, verdict(problem, index))
            return
        for index in range(first, len(codes)):
            problem = self.attempt(self.run_one, codes[index], trees[index])
            self.record(index, verdict(problem, index))


def loaded(self):
    """The fault of the program: nothing, or a letter."""
    try:
        message = self.link.receive()
        return {"": "", "compile": "c", "load": "l"}[message[1]]
    except (Gone, Exception):
        return "g"


Side.loaded = loaded
side = Side()


def main():
    import json
    sys.setrecursionlimit(5000)
    Test(json.loads(sys.stdin.buffer.read())).run()
    os._exit(0)


main()
