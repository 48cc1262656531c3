"""`persistent: true`: one process judges one line after the other. Its end costs the verdict under way, and no other."""
import pytest

from harness import Rolloutd, StartFailed
from rewards import entry, settings, with_programs
from rewards import judge as judge_by

ACTS = r'''
import json, os, sys, uuid
BEGAN = str(uuid.uuid4())
count = 0
kept = []
for line in sys.stdin:
    asked = json.loads(line)
    count += 1
    act, _, rest = asked["completion"].partition(" ")
    if act == "exit":
        os._exit(int(rest))
    if act == "signal":
        os.kill(os.getpid(), int(rest))
    if act == "raise":
        raise SystemError("the tables are not there")
    if act == "hang":
        while True:
            pass
    if act == "flood":
        sys.stdout.write("x" * (2 << 20))
    if act == "eat":
        kept.append(bytearray(400 << 20))
        kept[0][::4096] = b"x" * len(kept[0][::4096])
    if act == "say":
        print(rest.replace("|", "\n"), flush=True)
        continue
    if act == "part":
        print(rest, end="", flush=True)
        os._exit(0)
    reply = {"score": count, "reason": act if act.isalnum() else None, "detail": {"pid": os.getpid(), "count": count, "length": len(rest), "box": sorted(os.listdir(".")), "began": BEGAN}}
    if act == "unasked":
        os.write(1, (json.dumps(reply) + "\n").encode())
        os.write(1, rest.encode())
        continue
    print(json.dumps(reply), flush=True)
    if act == "last":
        break
'''


@pytest.fixture(scope="module")
def service(shared_factory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewards")
    entries = [entry(folder, name, ACTS, persistent="true", **more) for name, more in {
        "kept": {}, "second": {}, "third": {}, "slow": {"timeout": "500ms"}, "small": {"memory": "64MiB"}, "bare": {"sandbox": "none"}}.items()]
    lists = {**settings(*entries, entry(folder, "once", "print('{\"score\": 1}')\n"), {"name": "gone", "command": ["/usr/bin/no-such-program"], "persistent": True})}
    return with_programs(shared_factory(settings={**lists, "sandbox.slots": "1"}))


def judge(service, *completions, name="kept"):
    return judge_by(service, *completions, name=name)


def process(verdict):
    """The process that said it, and its number of lines until then."""
    assert verdict["failure"] is None, verdict
    return verdict["detail"]["said"]["began"], verdict["detail"]["said"]["count"]


@pytest.mark.parametrize("name", ["kept", "bare"])
def test_one_process_judges_many(service, name):
    first, count = process(judge(service, "first", name=name)[0])
    for verdict in judge(service, "a", "b " + "é" * 200000, "c", name=name):
        count += 1
        assert process(verdict) == (first, count)
        assert verdict["detail"]["said"]["box"] == [f"{name}.py"] and verdict["detail"]["sandbox"] == ("none" if name == "bare" else service.read("/v1/verifiers")["sandbox"]["level"])
    assert verdict["detail"]["said"]["length"] == 0 and (verdict["score"], verdict["reason"]) == (count, "c")


@pytest.mark.parametrize("completion, name, code, part", [
    ("exit 0", "kept", "verifier_crashed", "before its answer"), ("exit 3", "kept", "verifier_crashed", "code 3"), ("signal 9", "kept", "verifier_crashed", "signal 9"), ("raise", "kept", "verifier_crashed", "the tables are not there"),
    ("hang", "slow", "verifier_timeout", ""), ("eat", "small", "verifier_crashed", "memory"), ("flood", "kept", "verifier_crashed", "1 MiB"), ("part {\"score\": 1}", "kept", "verifier_crashed", "before its answer"),
    ("hang", "bare", "verifier_timeout", ""), ("exit 1", "bare", "verifier_crashed", "code 1")])
def test_an_end_costs_the_verdict_that_was_judged_alone(start, tmp_path, service, completion, name, code, part):
    if (name, completion) == ("bare", "hang"):
        service = with_programs(start(settings={**settings(entry(tmp_path, "bare", ACTS, persistent="true", sandbox="none", timeout="500ms")), "sandbox.slots": "1"}))
    before, broken, after, last = judge(service, "before", completion, "after", "last_one", name=name)
    assert (broken["score"], broken["verdict"], broken["failure"]["code"]) == (None, "unscored", code) and part in broken["failure"]["message"], broken
    assert process(before)[0] != process(after)[0]
    assert (process(after)[1], process(last)) == (1, (process(after)[0], 2))


@pytest.mark.parametrize("said", ["", "1", "[]", '{"score": 1', '{"score": NaN}', '{"score": 1, "scores": 1}', '{"score": 1}|', '{"score": 1}| ', '{"score": 1}|{"score": 1}', '|{"score": 1}', '{"score": 1, "failure": "x"}'])
def test_output_that_is_no_reply_is_a_failure_and_ends_the_process(service, said):
    before, broken, after = judge(service, "before", "say " + said, "after")
    assert (broken["score"], broken["failure"]["code"]) == (None, "external_invalid_reply"), broken
    assert process(before)[0] != process(after)[0] and process(after)[1] == 1


def test_a_failure_that_it_says_ends_nothing(service):
    before, failed, after = judge(service, "before", 'say {"failure": "the model is away"}', "after")
    assert failed["failure"]["code"] == "external_failed"
    assert process(after) == (process(before)[0], process(before)[1] + 2)


def test_a_byte_that_nobody_asked_for_ends_it(service):
    # The byte may come with its line, before the next one is asked, or after: one verdict is lost at most, and the process always.
    before, unasked, after, last = judge(service, "before", "unasked x", "after", "last_one")
    lost = [verdict["failure"]["code"] for verdict in (unasked, after) if verdict["failure"]]
    assert lost in ([], ["external_invalid_reply"])
    assert process(before)[0] != process(last)[0]


def test_one_that_ends_with_its_answer_has_answered(service):
    answered, = judge(service, "last")
    assert answered["failure"] is None


def test_a_process_judges_a_thousand(service):
    verdicts = []
    for _ in range(5):
        verdicts += judge(service, *["x"] * 250, name="third")
    counts = [process(verdict)[1] for verdict in verdicts]
    turn = counts.index(1, 1)
    assert counts[turn - 1] == 1000 and counts[turn:] == list(range(1, len(counts) - turn + 1))
    assert len({process(verdict)[0] for verdict in verdicts}) == 2


def test_two_stay_beside_each_other_and_beside_programs(service):
    listed = [{"name": "external", "options": {"name": name}, "id": name} for name in ("kept", "once", "second")]
    listed.append({"name": "code", "id": "code"})
    items = [{"id": str(index), "completion": "```sh\nexit 0\n```", "reference": {"language": "sh", "tests": [{"stdin": "", "stdout": ""}]}} for index in range(3)]
    reply = service.post("/v1/verify", {"verifiers": listed, "items": items})
    assert reply.status == 200, reply
    begun = []
    for item in reply.json["items"]:
        kept, once, second, code = item["verdicts"]
        assert (once["score"], code["score"]) == (1, 1), item
        begun.append((process(kept)[0], process(second)[0]))
    assert len(set(begun)) == 1 and begun[0][0] != begun[0][1]


def test_a_third_makes_room_by_ending_the_one_that_waited_longest(service):
    kept, second = process(judge(service, "x", name="kept")[0]), process(judge(service, "x", name="second")[0])
    judge(service, "x", name="third")
    assert process(judge(service, "x", name="second")[0]) == (second[0], second[1] + 1)
    assert process(judge(service, "x", name="kept")[0])[0] != kept[0]


def test_a_command_that_is_not_there_says_so(service):
    verdict, = judge(service, "x", name="gone")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "verifier_crashed") and "cannot be run" in verdict["failure"]["message"]


def test_the_list_says_it(service):
    shown = {external["name"]: external["persistent"] for external in service.read("/v1/verifiers")["externals"]}
    assert shown["kept"] is shown["bare"] is True and shown["once"] is False


def test_a_wrong_word_ends_the_start(tmp_path):
    with pytest.raises(StartFailed) as failed:
        Rolloutd(tmp_path, settings=settings({"name": "a", "command": ["/bin/true"], "persistent": "often"})).start()
    assert "expected true or false" in str(failed.value)
