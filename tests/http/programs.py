"""Programs as items of POST /v1/verify, and what came of them."""
from harness import eventually

LIMITS = {"wall_ms": 20000, "cpu_ms": 10000}  # far off, for machines under load; a test that wants a limit sets it
HELLO = "print(1)\n"


def fenced(source, language="python"):
    return f"```{language}\n{source}{'' if source.endswith(chr(10)) else chr(10)}```\n"


def program(name, source, stdout="1\n", stdin="", language="python", runs=1, limits=None):
    """An item with one test, or the same one several times."""
    options = {"language": language, "limits": {**LIMITS, **(limits or {})}}
    return {"id": str(name), "completion": fenced(source, language), "reference": {"tests": [{"stdin": stdin, "stdout": stdout}] * runs},
            "verifiers": [{"name": "code", "options": options}]}


def judge(service, items, timeout=None, **fields):
    """The verdicts of code, in the order of the items."""
    reply = service.request("POST", "/v1/verify", {"verifiers": [{"name": "code"}], "items": items, **fields}, timeout=timeout)
    assert reply.status == 200, reply
    return [item["verdicts"][0] for item in reply.json["items"]]


def outcomes(service, items, timeout=None):
    """(score, reason or the failure's code) of each."""
    return [(verdict["score"], verdict["failure"]["code"] if verdict["failure"] else verdict["reason"]) for verdict in judge(service, items, timeout)]


def outcome(service, source, stdout="1\n", **options):
    return outcomes(service, [program("1", source, stdout, **options)])[0]


def family(service):
    """Processes of the service that run nothing at the moment: asked until two looks are the same."""
    def look():
        service.family = []
        service.remember_family()
        return [process.pid for process in service.family]
    last = [None]

    def quiet():
        before, last[0] = last[0], look()
        return before == last[0]
    eventually(quiet, "the processes to come to rest")
    return last[0]
