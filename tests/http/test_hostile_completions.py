"""F09: a reference that cannot be read leaves every member unscored. F13: a degenerate completion is wrong, never a failure.
F16: a process judges for one run only; what it may map is tried in tests/unit/verifiers/test_worker.c."""
import json
import os

import pytest

from harness import ROOT
from material import rollouts
from test_incidents import text_workers
from test_metrics import metrics
from test_verify import one, verify

EXTRACTS = ("auto", "boxed", "answer_is", "gsm8k", "answer_tag", "last_number")
SAID = ("", "nothing", "\\boxed{1}", "\\boxed{", "the answer is 1.", "#### 1", "<answer>1</answer>", "<think>1", "1", "\\boxed{1} \\boxed{2}",
        "\\boxed{x=1, y=2}", "\\boxed{\\text{none}}", "\\boxed{" + "1" * 10000 + "}")


def reasons(service, verifier, reference, options=None):
    items = [{"id": str(index), "completion": text, "reference": reference} for index, text in enumerate(SAID)]
    found = verify(service, items, [{"name": verifier, "options": options or {}}])
    for item in found:
        verdict, = item["verdicts"]
        assert (verdict["score"] is None) == (verdict["failure"] is not None) == (item["reward"] is None)
    return [item["verdicts"][0]["reason"] for item in found]


def first_case(verifier):
    """A case that the verifier takes: the first one in the file of its name that has a score."""
    path = os.path.join(ROOT, "tests", "cases", "own", verifier + ".jsonl")
    with open(path, encoding="utf-8") as file:
        return next(case for case in map(json.loads, file) if case["expected"] != "unscored")


def entries(verifier):
    """The verifier as that case has it, behind those that its `of` names."""
    case = first_case(verifier)
    return [*case.get("beside", []), {"name": verifier, **{key: case[key] for key in ("options", "reference") if key in case}}]


# -- F09 ---------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("extract", EXTRACTS)
@pytest.mark.parametrize("reference", ["\\frac{1}{", "1/0", "42=43", ["1", "\\frac{1}{"], ["1", "1/0"], 0.5, "", " ", [], {}, True, "9" * 10000])
def test_a_reference_that_math_cannot_read_leaves_every_completion_unscored(plain, reference, extract):
    assert set(reasons(plain, "math", reference, {"extract": extract})) == {"reference_unreadable"}


@pytest.mark.parametrize("options", [{"join_boxes": True}, {"max_boxes": 1}, {"multiple": "refuse"}, {"fallback": "answer_is"}, {"form": "reduced"}, {"rel_tol": 0.1}])
@pytest.mark.parametrize("reference", ["\\frac{1}{", "1/0"])
def test_no_option_of_math_judges_against_a_broken_reference(plain, reference, options):
    assert set(reasons(plain, "math", reference, options)) == {"reference_unreadable"}


@pytest.mark.parametrize("options", [{}] + [{"extract": extract} for extract in EXTRACTS])
@pytest.mark.parametrize("reference", ["", " ", [], ["1", ""], ["1", None], {}, True])
def test_a_reference_that_exact_cannot_read_leaves_every_completion_unscored(plain, reference, options):
    assert set(reasons(plain, "exact", reference, options)) == {"reference_unreadable"}


@pytest.mark.parametrize("reference", [
    "86", 86, {}, {"numbers": [], "target": 1}, {"numbers": [1, -2], "target": 1}, {"numbers": [1, "2"], "target": 1}, {"numbers": [1]},
    {"numbers": [1], "target": "1/0"}, {"numbers": [1], "target": "x"}, {"numbers": [1], "target": None}, {"numbers": [1], "target": 1.5}])
def test_a_reference_that_countdown_cannot_read_leaves_every_completion_unscored(plain, reference):
    assert set(reasons(plain, "countdown", reference)) == {"reference_unreadable"}


def test_a_missing_reference_leaves_every_completion_unscored(plain):
    needing = [row["name"] for row in plain.read("/v1/verifiers")["verifiers"] if row["needs_reference"]]
    assert len(needing) >= 3
    for verifier in needing:
        assert set(reasons(plain, verifier, None, first_case(verifier).get("options"))) == {"reference_unreadable"}, verifier


def test_a_verifiers_own_broken_reference_wins_over_the_tasks(plain):
    item, = verify(plain, [{"id": "1", "completion": "", "reference": "1"}], [{"name": "math", "reference": "\\frac{1}{"}])
    assert (item["reward"], item["verdicts"][0]["reason"]) == (None, "reference_unreadable")


@pytest.mark.parametrize("reference, right, wrong", [
    (42, "42", "42.0"), (-7, "-7", "7"), (0.5, "0.5", "1/2"), (0.1, "0.1", "0.10000000000000001"), (1.0, "1.0", "1"), ([1, "two", 0.25], "0.25", "3"),
    (9223372036854775807, "9223372036854775807", "9223372036854775808")])
def test_exact_takes_a_number_as_its_json_text(plain, reference, right, wrong):
    assert one(plain, "exact", right, reference)["reward"] == 1
    assert one(plain, "exact", wrong, reference)["reward"] == 0
    assert one(plain, "exact", f"So \\boxed{{{right}}}", reference, extract="boxed")["reward"] == 1


@pytest.mark.parametrize("verifier, reference", [("math", "\\frac{1}{"), ("math", "1/0"), ("exact", " "), ("countdown", {"numbers": [1]})])
def test_a_group_with_a_broken_reference_is_unscored_as_a_whole(start, engine, verifier, reference):
    service = start(engine)
    engine.rules({"times": 2, "text": "nothing"}, {"text": "\\boxed{1}"})
    batch = service.batch({"run": "r", "policy_revision": 0, "seed": 1, "sampling": {"n": 4, "max_tokens": 8}, "verifiers": [{"name": verifier}],
                           "deadline": "30s", "groups": [{"task": "t", "prompt": "p", "reference": reference}]})
    assert batch["groups"][0]["reward_mean"] is None and batch["summary"]["scored"] == 0
    reply = service.post("/v1/score", {"run": "s", "verifiers": [{"name": verifier}], "deadline": "30s", "groups": [
        {"task": "t", "prompt": "p", "reference": reference, "completions": [{"text": text} for text in ("nothing", "\\boxed{1}")]}]})
    assert reply.status == 200, reply
    scored = reply.json
    for rollout in rollouts(batch) + rollouts(scored):
        assert (rollout["reward"], rollout["advantage"], rollout["failure"]["code"]) == (None, None, "reference_unreadable"), rollout


# -- F13 ---------------------------------------------------------------------------------------------------------------------------

MIB = 1 << 20


@pytest.fixture(scope="module")
def patient(shared_factory):
    """The work is counted, not timed: what a busy machine makes of it is another thing."""
    return shared_factory(settings={"verify_timeout": "2m"})


DEGENERATE = {"spaces": " " * MIB, "spaces and a letter": " " * MIB + "x", "open braces": "{" * MIB, "closed braces": "}" * MIB, "boxes": "\\boxed{" * (MIB // 7),
              "empty boxes": "\\boxed{}" * (MIB // 8), "digits": "1" * MIB, "letters": "a" * MIB, "think": "<think>" * (MIB // 7), "tags": "<think></think><answer></answer>" * (MIB // 32),
              "half tags": "<" * MIB, "accents": "e\u0301" * (MIB // 3), "lines": "\r\n" * (MIB // 2), "brackets": "(" * MIB, "sums": "1+" * (MIB // 2), "dollars": "$" * MIB,
              "backslashes": "\\" * MIB, "answer is": "answer is " * (MIB // 10), "hashes": "#" * MIB}
BACKTRACKING = ("\\s+$", "(a+)+$", "(.*)*x?\\d\\Z", "\\w+\\s", "[^x]*[xy]z?$", "(?s).*</?answer>.*\\d\\D", "\\X+\\d\\D", "(\\((?1)*\\))\\d?$", "(?<=.{3000})\\D\\d", "(.+)\\1\\D\\d", "(?i)[Ā-￿a-z]+\\d\\D")


@pytest.mark.parametrize("name", sorted(DEGENERATE))
def test_a_mebibyte_of_the_same_is_judged_by_every_verifier(patient, name):
    verifiers = [{"name": "math", "id": extract, "options": {"extract": extract}} for extract in EXTRACTS]
    verifiers += [{"name": "math", "id": "joined", "options": {"join_boxes": True, "fallback": "answer_is"}}, {"name": "exact"}]
    verifiers += [{"name": "exact", "id": "exact " + extract, "options": {"extract": extract}} for extract in EXTRACTS]
    verifiers += [{"name": "format", "id": template, "options": {"template": template}} for template in ("think_answer", "think_only", "tag_count", "boxed_once")]
    verifiers += [{"name": "format", "id": "fields", "options": {"template": "xml_fields", "fields": ["think", "answer"]}},
                  {"name": "countdown", "reference": {"numbers": [1, 2], "target": 3}}]
    verifiers += [{"name": "regex", "id": f"regex {index}", "options": {"pattern": pattern}} for index, pattern in enumerate(BACKTRACKING)]
    named = {verifier["name"] for verifier in verifiers}
    others = [row["name"] for row in patient.read("/v1/verifiers")["verifiers"] if row["name"] not in named and not row["asks_external"] and not row["asks_engine"]]
    verifiers += {entry.get("id", entry["name"]): entry for other in others for entry in entries(other)}.values()
    item, = verify(patient, [{"id": "1", "completion": DEGENERATE[name], "completion_tokens": 7, "reference": "42"}], verifiers)
    assert item["failure"] is None and item["reward"] is not None
    assert all(verdict["score"] is not None and verdict["failure"] is None for verdict in item["verdicts"])


@pytest.mark.parametrize("mode", ["search", "absent"])
@pytest.mark.parametrize("pattern, text", [
    ("\\s+$", " " * 32768 + "x"), ("(a+)+$", "a" * 40 + "!"), ("^(a+)+\\1$", "a" * 40 + "!"), ("\\d+\\s", "1" * MIB), ("(.*)*\\d", "a" * MIB), ("a.*b.*c.*[dx]y?", "abc" * (MIB // 3))],
    ids=["spaces", "nested", "back-reference", "digits", "stars", "letters"])
def test_a_pattern_beyond_its_work_is_wrong_in_every_mode_and_not_a_failure(patient, pattern, text, mode):
    item = one(patient, "regex", text, pattern=pattern, mode=mode)
    verdict, = item["verdicts"]
    assert (verdict["verdict"], verdict["score"], verdict["reason"], verdict["failure"]) == ("incorrect", 0, "work_limit", None)
    assert (item["reward"], item["failure"]) == (0, None)


def test_the_same_text_gets_the_same_verdict_on_both_sides_of_the_bound(patient):
    """Counted, not timed: the bound lies between two lengths, and lies there each time."""
    def reason(length):
        return one(patient, "regex", " " * length + "x", pattern="\\s+$")["verdicts"][0]["reason"]
    low, high = 100, 32768
    assert (reason(low), reason(high)) == ("no_match", "work_limit")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reason(middle) == "no_match" else (low, middle)
    for _ in range(5):
        assert (reason(low), reason(high)) == ("no_match", "work_limit")


def test_verdicts_at_their_limit_are_counted_in_the_metrics(start):
    service = start()
    score = {"run": "s", "verifiers": [{"name": "regex", "options": {"pattern": "\\s+$"}}], "deadline": "30s", "groups": [
        {"task": "t", "prompt": "p", "completions": [{"text": " " * 32768 + "x"}, {"text": " "}]}]}
    first, second = rollouts(service.post("/v1/score", score).json)
    assert (first["reward"], second["reward"]) == (0, 1) and first["failure"] is None
    assert metrics(service)[0]["rolloutd_verdicts_undecided_total", ()] == 1


# -- F16 ---------------------------------------------------------------------------------------------------------------------------

def test_each_run_is_judged_by_processes_of_its_own(start):
    service = start(settings={"text_workers": "1"})

    def pids_after(run):
        if run is None:
            assert one(service, "exact", "a", "a")["reward"] == 1
        else:
            reply = service.post("/v1/score", {"run": run, "verifiers": [{"name": "exact"}], "deadline": "30s", "groups": [
                {"task": "t", "prompt": "p", "reference": "a", "completions": [{"text": "a"}]}]})
            assert rollouts(reply.json)[0]["reward"] == 1
        return {process.pid for process in text_workers(service)}

    grown = [pids_after(run) for run in (None, "first", "second")]
    assert [len(pids) for pids in grown] == [1, 2, 3] and grown[0] < grown[1] < grown[2]
    assert all(pids_after(run) == grown[2] for run in ("first", None, "second") * 3)  # and each keeps its own
    assert metrics(service)[0]["rolloutd_text_workers_replaced_total", ()] == 0


def test_more_runs_than_places_are_all_judged_by_a_bounded_number_of_processes(start):
    service = start(settings={"text_workers": "1"})
    for index in range(30):
        reply = service.post("/v1/score", {"run": f"run{index}", "verifiers": [{"name": "exact"}], "deadline": "30s", "groups": [
            {"task": "t", "prompt": "p", "reference": "a", "completions": [{"text": "a"}, {"text": "b"}]}]})
        assert [rollout["reward"] for rollout in rollouts(reply.json)] == [1, 0]
    assert 1 <= len(text_workers(service)) <= 10
    assert metrics(service)[0]["rolloutd_text_workers_replaced_total", ()] == 0


# -- from public reports -----------------------------------------------------------------------------------------------------------

def test_r36_a_list_is_a_set_and_a_base_counts(plain):
    cases = [("-2, 1", "1,-2", 1), ("-2, 1, 1", "1,-2", 1), ("-2", "1,-2", 0), ("(1,-2)", "1,-2", 0), ("2516_8", "2516_{8}", 1), ("2516_7", "2516_8", 0)]
    items = [{"id": str(index), "completion": f"\\boxed{{{answer}}}", "reference": reference} for index, (answer, reference, _) in enumerate(cases)]
    for _ in range(3):
        found = verify(plain, items, [{"name": "math"}])
        assert [item["reward"] for item in found] == [score for *_, score in cases]


@pytest.mark.parametrize("name", ["judge", "choice", "code", "ifeval"])  # R30, R32, R33, R37, R39, R41, R42, R44, R45
def test_a_verifier_that_is_not_there_is_refused_by_its_name_and_never_scores(plain, name):
    if name in {row["name"] for row in plain.read("/v1/verifiers")["verifiers"]}:
        pytest.skip(f"there is a verifier {name}: its reports are held by its own tests")
    reply = plain.post("/v1/verify", {"verifiers": [{"name": name}], "items": [{"completion": "4", "reference": "4"}]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "verifiers[0].name") and name in reply.error["message"]
