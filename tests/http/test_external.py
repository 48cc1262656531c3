"""The verifier `external`: a reward function of the user's own. Its score is paid; any other end of it is no number."""
import hashlib
import json
import os

import pytest

from harness import ROOT, Rolloutd, StartFailed
from material import make_batch, make_group, sampling
from rewards import PYTHON, entry, judge, settings, with_programs

# The completion tells the function its behaviour: "say" prints the rest, the others are bad ends.
STYLE = r'''
import json, os, sys
asked = json.load(sys.stdin)
act, _, rest = asked["completion"].partition(" ")
if act == "exit":
    print('{"score": 1}', flush=True)
    os._exit(int(rest))
if act == "signal":
    os.kill(os.getpid(), int(rest))
if act == "hang":
    while True:
        pass
if act == "flood":
    sys.stdout.write("x" * (2 << 20))
if act == "raise":
    raise SystemError("the tables are not there")
if act == "tell":
    print(json.dumps({"score": 0.25, "reason": "told", "detail": {**asked, "reference": json.dumps(asked["reference"])}}))
elif act == "list":
    print(json.dumps({"score": 1, "detail": {"box": sorted(os.listdir(".")), "etc": os.path.exists("/etc/passwd")}}))
else:
    print(rest, end="")
'''


@pytest.fixture(scope="module")
def service(shared_factory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewards")
    service = shared_factory(settings=settings(entry(folder, source=STYLE), entry(folder, "slow", STYLE, timeout="300ms"), {"name": "gone", "command": ["/usr/bin/no-such-program"]}))
    return with_programs(service)


# -- what it is told, and what it says -------------------------------------------------------------------------------------------

def test_the_function_is_told_everything_and_its_words_are_the_verdict(service):
    verdict, = judge(service, "tell é", prompt="2+2?", reference={"big": 2 ** 70, "list": [1, None]}, metadata={"level": 3})
    assert (verdict["score"], verdict["verdict"], verdict["reason"], verdict["failure"]) == (0.25, "scored", "told", None)
    assert verdict["detail"] == {"external": "style", "sandbox": "full", "said": {
        "id": "0", "task": None, "prompt": "2+2?", "messages": None, "completion": "tell é", "completion_ids": None, "reference": json.dumps({"big": 2 ** 70, "list": [1, None]}),
        "metadata": {"level": 3}, "siblings": None}}


@pytest.mark.parametrize("said, score, reason", [('{"score": 1}', 1, "scored"), ('{"score": 0, "reason": "dull"}', 0, "dull"), ('{"score": -2.5, "failure": null}\n', -2.5, "scored"),
                                                 (' {"score": 1e-3, "reason": null, "detail": null}', 0.001, "scored")])
def test_a_score_is_paid_as_it_is_said(service, said, score, reason):
    verdict, = judge(service, "say " + said)
    assert (verdict["score"], verdict["reason"], verdict["failure"]) == (score, reason, None)


def rows_of_the_page():
    with open(os.path.join(ROOT, "docs", "verifiers", "external.md"), encoding="utf-8") as file:
        table = file.read().split("| it says | score | reason |\n")[1].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in table.splitlines()[1:]]


@pytest.mark.parametrize("said, score, reason", rows_of_the_page())
def test_an_example_of_the_page(service, said, score, reason):
    verdict, = judge(service, "say " + said)
    assert (verdict["score"], verdict["reason"]) == (None if score == "–" else float(score.replace("−", "-")), reason), verdict


@pytest.mark.parametrize("said", [
    "", "1", "null", '"1"', "[1]", "{}", '{"score": NaN}', '{"score": 1e999}', '{"score": -1.1e100}', '{"score": "1"}', '{"score": true}', '{"score": null}', '{"score": 1', '{"score": 1} {"score": 1}',
    '{"score": 1}x', '{"score": 1, "score": 0}', '{"score": 1, "failure": "no"}', '{"score": 1, "scores": []}', '{"score": 1, "reason": "Not A Code"}', '{"score": 1, "reason": 5}',
    '{"score": 1, "detail": [1]}', '{"score": 1, "detail": {"long": "' + "x" * 20000 + '"}}', "'" + '{"score": 1}' + "'", "score: 1", "[" * 100000])
def test_output_that_is_not_exactly_a_reply_is_a_failure(service, said):
    verdict, = judge(service, "say " + said)
    assert (verdict["score"], verdict["verdict"], verdict["failure"]["code"]) == (None, "unscored", "external_invalid_reply"), verdict


@pytest.mark.parametrize("said, message", [('{"failure": "the model is away"}', "the model is away"), ('{"failure": {"code": "away", "message": "for lunch"}}', "away: for lunch"),
                                           ('{"score": null, "failure": {"code": "away"}}', "away")])
def test_a_failure_that_it_says_is_no_number(service, said, message):
    verdict, = judge(service, "say " + said)
    assert (verdict["score"], verdict["failure"]["code"], verdict["failure"]["message"]) == (None, "external_failed", message)


@pytest.mark.parametrize("completion, code, part", [
    ("exit 1", "verifier_crashed", "code 1"), ("exit 137", "verifier_crashed", "code 137"), ("signal 9", "verifier_crashed", "signal 9"), ("raise", "verifier_crashed", "the tables are not there"),
    ("flood", "verifier_crashed", "1 MiB")])
def test_a_bad_end_is_no_number_whatever_was_said_before(service, completion, code, part):
    verdict, = judge(service, completion)
    assert (verdict["score"], verdict["failure"]["code"]) == (None, code) and part in verdict["failure"]["message"], verdict


def test_a_function_that_does_not_end_is_ended(service):
    verdict, = judge(service, "hang", name="slow")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "verifier_timeout")


def test_a_command_that_is_not_there_is_a_failure_that_says_so(service):
    verdict, = judge(service, "say", name="gone")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "verifier_crashed") and "cannot be run" in verdict["failure"]["message"]


def test_each_call_has_a_box_with_its_files_alone(service):
    for verdict in judge(service, "list", "list"):
        assert verdict["detail"]["said"] == {"box": ["style.py"], "etc": False}


def test_a_broken_item_spoils_no_other_and_no_other_verifier(service):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "exact"}, {"name": "external", "options": {"name": "style"}}], "items": [
        {"id": "a", "completion": "raise", "reference": "raise"}, {"id": "b", "completion": 'say {"score": 0.5}', "reference": "x"}]})
    assert [[verdict["score"] for verdict in item["verdicts"]] for item in reply.json["items"]] == [[1, None], [0, 0.5]]


# -- on record -----------------------------------------------------------------------------------------------------------------------

def test_rollouts_of_a_batch_are_judged_and_keep_the_version(start, toy, tmp_path):
    source = "import json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps({'score': 1, 'detail': {key: asked[key] for key in ('id', 'task', 'prompt', 'metadata')}}))\n"
    service = start(toy, settings=settings(entry(tmp_path, source=source)))
    group = {**make_group("sum", "2+2=", "4"), "metadata": {"level": 1}}
    batch = service.batch(make_batch(group, verifiers=[{"name": "external", "options": {"name": "style"}}], sampling=sampling(2)))
    shown, = service.read("/v1/verifiers")["externals"]
    for rollout in (rollout for group in batch["groups"] for rollout in group["rollouts"]):
        verdict, = service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"]
        if verdict["failure"] and verdict["failure"]["code"] == "sandbox_unavailable":
            pytest.skip("programs do not run here")
        assert (rollout["reward"], verdict["version"]) == (1, shown["version"])
        assert verdict["detail"]["said"] == {"id": rollout["id"], "task": "sum", "prompt": "2+2=", "metadata": {"level": 1}}


# -- the list ------------------------------------------------------------------------------------------------------------------------

def test_a_version_is_that_of_the_command_and_its_files(start, tmp_path):
    def version(source, words=()):
        one = entry(tmp_path, source=source)
        one["command"] += words
        return start(settings=settings(one)).read("/v1/verifiers")["externals"][0]["version"]

    def counted(text):
        return f"{len(text)}:{text}"

    first = version("print(1)\n")
    words = [*PYTHON, "style.py", "style.py", "print(1)\n"]
    assert first == "sha256:" + hashlib.sha256("".join(counted(word) for word in words).encode()).hexdigest()
    assert len({first, version("print(2)\n"), version("print(1)\n", ["-x"])}) == 3


def test_a_name_that_the_settings_do_not_have_is_refused_with_the_nearest(service, start):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": "stile"}}], "items": []})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].options.name")
    assert 'did you mean "style"' in reply.error["message"]
    reply = start().post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": "style"}}], "items": []})
    assert reply.status == 422 and "the settings name none" in reply.error["message"]


def test_a_request_cannot_bring_a_command(service):
    for options in ({"command": ["/bin/true"]}, {"name": "style", "command": ["/bin/true"]}, {"name": ["/bin/true"]}):
        assert service.post("/v1/verify", {"verifiers": [{"name": "external", "options": options}], "items": []}).status == 422
    reply = service.post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": "style"}, "external": {"command": ["/bin/true"]}}], "items": []})
    assert reply.status == 400


@pytest.mark.parametrize("broken, message", [
    ({"name": "a"}, "at least one word"), ({"command": ["/bin/true"]}, "name"), ({"name": "a", "command": ["true"]}, "absolute path"),
    ({"name": "a", "command": ["/bin/true"], "url": "http://h:1"}, "not both"), ({"name": "a", "command": ["/bin/true"], "files": ["/no/such/file"]}, "No such file"),
    ({"name": "a", "command": ["/bin/true"], "files": ["etc"]}, "absolute path"), ({"name": "a", "command": ["/bin/true"], "files": ["/etc"]}, "regular file"),
    ({"name": "a", "command": ["/bin/true"], "timeout": "2 apples"}, "duration"), ({"name": "a", "command": ["/bin/true"], "memory": "1KiB"}, "size"),
    ({"name": "a", "command": ["/bin/true"], "scope": "batch"}, "scope"), ({"name": "a", "command": ["/bin/true"], "sandbox": "off"}, "sandbox"),
    ({"name": "a", "command": ["/bin/true"], "comand": []}, "comand"), ({"name": "a b", "command": ["/bin/true"]}, "name")])
def test_a_wrong_entry_ends_the_start_with_a_line_that_says_why(tmp_path, broken, message):
    service = Rolloutd(tmp_path, settings=settings(broken))
    with pytest.raises(StartFailed) as failed:
        service.start()
    assert message in str(failed.value) and "--set" in str(failed.value)


def test_two_entries_of_one_name_are_refused(tmp_path):
    with pytest.raises(StartFailed) as failed:
        Rolloutd(tmp_path, settings=settings(entry(tmp_path), entry(tmp_path))).start()
    assert "a name that no other entry has" in str(failed.value)
