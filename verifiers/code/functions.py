

# Test functions as pytest has them: `from solution import …` asks the program, and of pytest there is what such functions use.
# Anything else of pytest breaks the test, and so does a fixture that nobody defines.
class Solution(type(sys)):
    """The module that a test imports the program's names from."""

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        side.touched = True
        return side.names.resolve(name)


class Raises:
    def __init__(self, kinds, match):
        self.kinds, self.match, self.value = kinds, match, None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            raise AssertionError("it did not raise")
        if not issubclass(kind, self.kinds):
            return False
        self.type, self.value = kind, value
        if self.match is not None and not __import__("re").search(self.match, str(value)):
            raise AssertionError("it raised with another text")
        return True


def raises(kinds, *call, match=None, **named):
    context = Raises(kinds, match)
    if not call:
        return context
    with context:
        call[0](*call[1:], **named)
    return context


class approx:
    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def near(self, got, expected):
        if type(got) is Remote or isinstance(expected, (str, bytes, type(None), bool)):
            return got == expected
        if isinstance(expected, dict):
            return isinstance(got, dict) and got.keys() == expected.keys() and all(self.near(got[key], expected[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            return isinstance(got, (list, tuple)) and len(got) == len(expected) and all(map(self.near, got, expected))
        if got == expected or self.nan_ok and got != got and expected != expected:
            return True
        bound = max((1e-12 if self.abs is None and self.rel is None else 0) if self.abs is None else self.abs,
                    (1e-6 if self.abs is None else 0) * builtins.abs(expected) if self.rel is None else self.rel * builtins.abs(expected))
        return builtins.abs(got - expected) <= bound

    def __eq__(self, got):
        return self.near(got, self.expected)

    __hash__ = None


class Mark:
    """Marks mean nothing but parametrize, which has the cases."""

    def __getattr__(self, name):
        return lambda *given, **named: given[0] if len(given) == 1 and callable(given[0]) and not named else lambda function: function

    def parametrize(self, names, values, **named):
        names = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
        cases = [dict(zip(names, [value] if len(names) == 1 and type(value) is not Param else value)) for value in values]

        def decorate(function):
            before = getattr(function, "cases_of_test", [{}])
            function.cases_of_test = [{**one, **other} for one in before for other in cases]
            return function
        return decorate


class Param(tuple):
    pass


def fixture(function=None, **named):
    if function is None:
        return lambda function: fixture(function, **named)
    function.is_fixture = True
    return function


def parameters_of(function):
    code = function.__code__
    needed = code.co_argcount - len(function.__defaults__ or ())
    return code.co_varnames[:needed]


def value_of(name):
    """The value of a fixture of the test."""
    found = dict.get(side.names, name)
    if not getattr(found, "is_fixture", False):
        side.unable = True
        raise TypeError("there is no fixture " + name)
    value = found(**{one: value_of(one) for one in parameters_of(found)})
    return next(value) if type(value).__name__ == "generator" else value


def run_test(function):
    for case in getattr(function, "cases_of_test", [{}]):
        function(**case, **{name: value_of(name) for name in parameters_of(function) if name not in case})


class Pytest(type(sys)):
    def __getattr__(self, name):
        if name[:2] != "__":
            side.unable = True
        raise AttributeError(name)


def offer_pytest():
    pytest = sys.modules["pytest"] = Pytest("pytest")
    vars(pytest).update(raises=raises, approx=approx, mark=Mark(), fixture=fixture, param=lambda *values, **named: Param(values))
    sys.modules["solution"] = Solution("solution")
