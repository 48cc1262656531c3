"""`code`: rows of AceCode and KodCode as they are published; those of BigCodeBench are refused by name."""
import pytest

from harness import eventually

FUNCTIONS = '''import pytest
import math
from solution import mean, Stack, EmptyStack
import solution


@pytest.fixture
def numbers():
    return [1, 2, 3, 6]


def helper(values):
    return mean(values)


def test_mean(numbers):
    assert helper(numbers) == 3


def test_mean_of_none():
    with pytest.raises(ValueError, match="empty"):
        mean([])


@pytest.mark.parametrize("values, expected", [([1], 1), ([1, 2], 1.5), pytest.param([0.1, 0.2], 0.15, id="near")])
def test_each(values, expected):
    assert mean(values) == pytest.approx(expected)


@pytest.mark.slow
def test_stack():
    stack = Stack()
    stack.push(1)
    stack.push([2])
    assert stack.pop() == [2] and len(stack) == 1
    stack.pop()
    with pytest.raises(EmptyStack) as caught:
        stack.pop()
    assert "nothing" in str(caught.value)


def test_module():
    assert solution.mean([4, 4]) == 4
'''
RIGHT = '''class EmptyStack(Exception):
    pass

class Stack:
    def __init__(self):
        self.items = []
    def push(self, item):
        self.items.append(item)
    def pop(self):
        if not self.items:
            raise EmptyStack("nothing is there")
        return self.items.pop()
    def __len__(self):
        return len(self.items)

def mean(values):
    if not values:
        raise ValueError("empty")
    return sum(values) / len(values)
'''


@pytest.fixture(scope="module")
def service(shared_factory):
    service = shared_factory()
    shown = eventually(lambda: service.read("/v1/verifiers")["sandbox"]["level"] and service.read("/v1/verifiers"), "the trial of the sandbox")
    if not shown["sandbox"]["programs_run"]:
        pytest.skip("programs do not run here: " + shown["sandbox"]["why"])
    return service


def judge(service, reference, *programs, **options):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "code", "options": options}],
                                        "items": [{"id": str(index), "completion": f"```python\n{program}\n```", "reference": reference} for index, program in enumerate(programs)]})
    assert reply.status == 200, reply
    return [item["verdicts"][0] for item in reply.json["items"]]


# -- AceCode ---------------------------------------------------------------------------------------------------------------------

def test_a_list_of_asserts_under_test_cases_is_read(service):
    row = {"id": "oss_1", "source": "oss", "question": "…", "test_cases": ["assert add(1, 2) == 3", "assert add('a', 'b') == 'ab'", "assert add([1], []) == [1]"], "context_messages": None, "inferences": None}
    right, wrong = judge(service, row, "def add(a, b):\n    return a + b", "def add(a, b):\n    return a + b if a != 'a' else 0")
    assert (right["score"], right["detail"]["tests"]["passed"]) == (1, 3)
    assert (wrong["score"], wrong["reason"], wrong["detail"]["first_failed"]["index"]) == (0, "wrong_answer", 1)


def test_objects_under_test_cases_are_what_they_were(service):
    verdict, = judge(service, {"test_cases": [{"input": "3\n", "output": "9\n", "type": "stdin_stdout"}]}, "print(int(input()) ** 2)")
    assert verdict["score"] == 1


@pytest.mark.parametrize("cases", [["assert f() == 1", 5], ["assert f() == 1", " "], ["assert f( == 1"]])
def test_a_broken_list_of_asserts_is_a_broken_reference(service, cases):
    verdict, = judge(service, {"test_cases": cases}, "def f():\n    return 1")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "reference_unreadable")


# -- KodCode ---------------------------------------------------------------------------------------------------------------------

ROW = {"style": "instruct", "subset": "Leetcode", "question_id": "Leetcode_1_I", "question": "…", "solution": RIGHT, "test": FUNCTIONS,
       "test_info": [{"function_name": "mean", "parameter_list": "(values)", "function_declaration": "def mean(values):", "docstring": ""}]}


def test_each_test_function_is_a_test(service):
    verdict, = judge(service, ROW, RIGHT)
    assert (verdict["score"], verdict["reason"], verdict["detail"]["tests"]) == (1, "pass", {"chosen": 5, "run": 5, "passed": 5}), verdict


@pytest.mark.parametrize("change, index, reason", [
    (("raise ValueError", "raise KeyError"), 1, "runtime_error"), (('ValueError("empty")', 'ValueError("none")'), 1, "wrong_answer"), (("/ len(values)", "// len(values)"), 2, "wrong_answer"),
    (("self.items.pop()", "self.items.pop(0)"), 3, "wrong_answer"), (('EmptyStack("nothing is there")', "EmptyStack()"), 3, "runtime_error"), (("def mean", "def average"), 0, "runtime_error")])
def test_the_first_function_that_fails_is_named(service, change, index, reason):
    assert change[0] in RIGHT
    verdict, = judge(service, ROW, RIGHT.replace(*change))
    assert verdict["score"] == 0 and verdict["detail"]["first_failed"]["index"] == index, verdict
    assert verdict["reason"] in (reason, "wrong_answer", "runtime_error")


def test_a_fraction_counts_functions(service):
    verdict, = judge(service, ROW, RIGHT.replace("raise ValueError", "raise KeyError"), score="fraction")
    assert verdict["score"] == pytest.approx(4 / 5)


@pytest.mark.parametrize("attack", [
    "import os\nos._exit(0)", "import sys\nsys.exit(0)", "class Any:\n    def __eq__(self, other):\n        return True\n    def __len__(self):\n        return 1\nmean = lambda values: Any()",
    "import sys\nsys.modules['pytest'] = None\ndef mean(values):\n    raise ValueError('empty')", "def mean(values):\n    raise AssertionError", "def test_mean():\n    pass\ndef run_test(function):\n    pass\nmean = 3"])
def test_an_attack_of_a_program_pays_nothing(service, attack):
    verdict, = judge(service, ROW, "class EmptyStack(Exception):\n    pass\nclass Stack:\n    pass\n" + attack)
    assert verdict["score"] == 0, verdict


@pytest.mark.parametrize("test", [
    "def test_a(capsys):\n    assert add(1, 1) == 2\n", "import pytest\nfrom solution import add\ndef test_a():\n    assert add(1, 1) == 2\n    pytest.importorskip('numpy')\n",
    "from solution import add\nimport no_such_library\ndef test_a():\n    assert add(1, 1) == 2\n", "from nowhere import add\ndef test_a():\n    assert add(1, 1) == 2\n",
    "def test_a():\n    assert 1 == 2\n", "def helper():\n    pass\n", "class TestAdd:\n    def test_a(self):\n        assert True\n", "def test_a(:\n    pass\n", 5])
def test_a_test_that_cannot_be_run_is_a_broken_reference(service, test):
    verdict, = judge(service, {"test": test}, "def add(a, b):\n    return a + b")
    assert (verdict["score"], verdict["failure"] and verdict["failure"]["code"]) == (None, "reference_unreadable"), verdict


# -- BigCodeBench ----------------------------------------------------------------------------------------------------------------

def test_classes_of_unittest_are_refused_by_name(service):
    row = {"task_id": "BigCodeBench/0", "entry_point": "task_func", "libs": "['random']", "code_prompt": "def task_func(numbers):\n",
           "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_case_1(self):\n        self.assertEqual(task_func([1]), 1)\n"}
    verdict, = judge(service, row, "def task_func(numbers):\n    return 1")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "reference_unreadable") and "unittest" in verdict["failure"]["message"]
