"""`code`: a reference that is too large for the memory of a code worker says so, at once, and costs no other verdict."""
import os

import pytest

from harness import eventually

RIGHT = {"id": "right", "completion": "```python\nprint(int(input()) ** 2)\n```", "reference": {"tests": [{"stdin": "3\n", "stdout": "9\n"}]}}


@pytest.fixture(scope="module")
def service(shared_factory):
    if os.environ.get("ROLLOUTD_SANITIZED"):
        pytest.skip("a sanitizer's worker has no limit of memory")
    service = shared_factory(settings={"sandbox.slots": "1", "verify_timeout": "4m"})
    shown = eventually(lambda: service.read("/v1/verifiers")["sandbox"]["level"] and service.read("/v1/verifiers"), "the trial of the sandbox")
    if not shown["sandbox"]["programs_run"]:
        pytest.skip("programs do not run here: " + shown["sandbox"]["why"])
    return service


# A value of 24 bytes and a place in a list for each two bytes of JSON; a table for each test.
@pytest.mark.parametrize("reference", [{"entry": "f", "calls": [{"args": [[1] * 14000000], "expect": 1}]}, {"entry": "f", "calls": [{"args": [1], "expect": 1}] * 800000}])
def test_it_is_a_broken_reference_and_no_crash(service, reference):
    large = {"id": "large", "completion": "```python\ndef f(*values):\n    return 1\n```", "reference": reference}
    reply = service.post("/v1/verify", {"verifiers": [{"name": "code"}], "items": [RIGHT, large, RIGHT | {"id": "last"}]})
    assert reply.status == 200, reply
    first, broken, last = (item["verdicts"][0] for item in reply.json["items"])
    assert (first["score"], last["score"]) == (1, 1)
    failure = broken["failure"]
    assert (broken["score"], failure["code"], failure["retryable"]) == (None, "reference_unreadable", False) and "memory" in failure["message"], broken
