"""POST /v1/reverify: stored rollouts are judged once more, beside their first verdicts. Refusals first; then what comes of it, and what a kill leaves."""
import json
import subprocess

import pytest

from harness import BINARY, PATIENCE, eventually
from test_incidents import ENDLESS_TEXT
from test_judge import NO, QUICK, YES, Judge, options

STRICT = {"name": "exact", "id": "answer"}
LAX = {"name": "exact", "id": "answer", "options": {"ignore_case": True}}
PAGE = 64  # rollouts whose verdicts come on record together


def score(service, run, texts, verifiers=(STRICT,), reference="yes", **more):
    """One group of given completions: a text, or a pair of a text and its given rewards."""
    completions = [{"text": text} if isinstance(text, str) else {"text": text[0], "rewards": text[1]} for text in texts]
    reply = service.post("/v1/score", {"run": run, "policy_revision": 1, "verifiers": list(verifiers),
                                       "groups": [{"task": "t", "draw": more.pop("draw", 0), "prompt": "Well?", "reference": reference, "completions": completions}], **more})
    assert reply.status == 200, reply
    return reply.json["groups"][0]["rollouts"]


def post(service, run, *verifiers, **filters):
    return service.post("/v1/reverify", {"run": run, "verifiers": list(verifiers), **filters})


def begun(service, run, *verifiers, **filters):
    reply = post(service, run, *verifiers, **filters)
    assert reply.status == 202, reply
    assert reply.headers["location"] == f"/v1/reverify/{reply.json['id']}"
    return reply.json["id"]


def ended(service, identity, state="complete"):
    got = eventually(lambda: (lambda one: one["state"] != "running" and one)(service.read(f"/v1/reverify/{identity}")), "its end")
    assert got["state"] == state and got["ended_at"] is not None, got
    return got


def reverified(service, run, *verifiers, **filters):
    return ended(service, begun(service, run, *verifiers, **filters))


def rollout(service, identity):
    return service.read(f"/v1/rollouts/{identity}")


def check_record(service):
    done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# -- refusals ---------------------------------------------------------------------------------------------------------------------

REFUSED = {
    "no body": (b"", 400, "invalid_json", None),
    "a list": (b"[]", 400, "invalid_field", None),
    "no run": ({"verifiers": [STRICT]}, 400, "missing_field", "run"),
    "an empty run": ({"run": "", "verifiers": [STRICT]}, 400, "missing_field", "run"),
    "no verifiers": ({"run": "r"}, 400, "missing_field", "verifiers"),
    "an empty list": ({"run": "r", "verifiers": []}, 400, "invalid_field", "verifiers"),
    "verifiers as an object": ({"run": "r", "verifiers": {}}, 400, "invalid_field", "verifiers"),
    "a verifier that is none": ({"run": "r", "verifiers": [{"name": "exakt"}]}, 400, "invalid_field", "verifiers[0].name"),
    "an option that is none": ({"run": "r", "verifiers": [{"name": "exact", "options": {"cased": 1}}]}, 422, "verifier_options", "verifiers[0].options.cased"),
    "two of one id": ({"run": "r", "verifiers": [STRICT, STRICT]}, 400, "invalid_field", "verifiers[1].id"),
    "a filter that is none": ({"run": "r", "verifiers": [STRICT], "revison": 1}, 400, "unknown_field", "revison"),
    "an order": ({"run": "r", "verifiers": [STRICT], "order": "desc"}, 400, "unknown_field", "order"),
    "a number as a text": ({"run": "r", "verifiers": [STRICT], "revision": "1"}, 400, "invalid_field", "revision"),
    "a fraction": ({"run": "r", "verifiers": [STRICT], "revision": 1.5}, 400, "invalid_field", "revision"),
    "a negative revision": ({"run": "r", "verifiers": [STRICT], "revision_min": -1}, 400, "invalid_field", "revision_min"),
    "two revisions": ({"run": "r", "verifiers": [STRICT], "revision": 1, "revision_max": 2}, 400, "invalid_field", "revision"),
    "a text as a number": ({"run": "r", "verifiers": [STRICT], "task": 7}, 400, "invalid_field", "task"),
    "null": ({"run": "r", "verifiers": [STRICT], "task": None}, 400, "invalid_field", "task"),
    "a flag as a number": ({"run": "r", "verifiers": [STRICT], "straddles": 1}, 400, "invalid_field", "straddles"),
    "a reward as a text": ({"run": "r", "verifiers": [STRICT], "reward_min": "0"}, 400, "invalid_field", "reward_min"),
    "a word that is none": ({"run": "r", "verifiers": [STRICT], "purpose": "test"}, 400, "invalid_field", "purpose"),
    "a time that is none": ({"run": "r", "verifiers": [STRICT], "since": "today"}, 400, "invalid_field", "since"),
    "a tag's name that is none": ({"run": "r", "verifiers": [STRICT], "tag.": "x"}, 400, "unknown_field", "tag."),
    "a tag as a list": ({"run": "r", "verifiers": [STRICT], "tag.source": ["x"]}, 400, "invalid_field", "tag.source"),
    "failed rollouts": ({"run": "r", "verifiers": [STRICT], "state": "failed"}, 400, "invalid_field", "state"),
    "a run that is none": ({"run": "nobody", "verifiers": [STRICT]}, 404, "not_found", "run"),
    "a judge in no pool": ({"run": "r", "verifiers": [{"name": "judge", "options": options()}]}, 422, "verifier_options", "verifiers[0].options.engine"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_creates_nothing(plain, name):
    body, status, code, path = REFUSED[name]
    if plain.get("/v1/runs/r").status == 404:
        score(plain, "r", ["yes"])
    reply = plain.request("POST", "/v1/reverify", body=body) if isinstance(body, bytes) else plain.post("/v1/reverify", body)
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (status, code, path), reply
    assert plain.read("/v1/reverify", run="r")["items"] == []


def test_more_rollouts_than_the_limit_are_refused(start):
    service = start(settings={"reverify_limit": 3})
    score(service, "many", ["yes"] * 4)
    reply = post(service, "many", STRICT)
    assert (reply.status, reply.json["error"]["code"]) == (422, "too_many_rollouts") and "reverify_limit" in reply.json["error"]["message"]
    assert reverified(service, "many", STRICT, reward_max=0)["rollouts"] == 0
    score(service, "few", ["yes"] * 3)
    assert reverified(service, "few", STRICT)["rollouts"] == 3


@pytest.mark.parametrize("identity", ["v_01jdwx3m8k9q2v5r7t0a1b2c3d", "b_x", "x" * 300, "%00"])
def test_an_id_that_is_none(plain, identity):
    for method in ("GET", "DELETE"):
        reply = plain.request(method, f"/v1/reverify/{identity}")
        assert reply.status in (400, 404), reply


def test_a_cursor_of_another_one_is_refused(plain):
    score(plain, "cursors", ["Yes", "YES", "yES"])
    one, other = (reverified(plain, "cursors", LAX)["id"] for _ in range(2))
    cursor = plain.read(f"/v1/reverify/{one}", limit=1)["next"]
    assert plain.get(f"/v1/reverify/{other}", cursor=cursor).status == 400
    assert plain.get(f"/v1/reverify/{one}", cursor="x").status == 400


# -- what comes of it -------------------------------------------------------------------------------------------------------------

def test_each_flip_is_listed_and_first_verdicts_stay(plain):
    first = score(plain, "flips", ["yes", "Yes", "no", "YES"])
    got = reverified(plain, "flips", LAX)
    assert (got["rollouts"], got["judged"], got["unscored"], got["flipped"], got["next"]) == (4, 4, 0, 2, None)
    version = first[0]["verdicts"][0]["version"]
    flip = {"verifier": "answer", "from": {"version": version, "score": 0}, "to": {"version": version, "score": 1}}
    assert sorted(got["flips"], key=lambda one: one["rollout"]) == [{"rollout": first[place]["id"], **flip} for place in (1, 3)]
    assert got["reward"] == {"n": 4, "from": {"mean": 0.25}, "to": {"mean": 0.75}}
    for before, expected in zip(first, (1, 1, 0, 1)):
        now = rollout(plain, before["id"])
        assert {name: now[name] for name in ("verdicts", "rewards", "reward", "advantage", "state")} == {name: before[name] for name in ("verdicts", "rewards", "reward", "advantage", "state")}
        (later,) = now["reverified"]
        assert (later["id"], later["reward"], later["verdicts"][0]["score"], later["verdicts"][0]["id"]) == (got["id"], expected, expected, "answer")
        assert later["verdicts"][0]["options_sha256"] != before["verdicts"][0]["options_sha256"] and got["created_at"] <= later["at"] <= got["ended_at"]
    exported = [json.loads(line) for line in plain.get("/v1/export", run="flips").body.splitlines()][:-1]
    assert {line["id"]: line["reverified"][0]["reward"] for line in exported} == dict(zip([one["id"] for one in first], (1, 1, 0, 1)))


def test_the_same_verifier_flips_nothing_and_moves_no_reward(plain):
    weights = [{"name": "exact", "id": "answer", "weight": 0.1}, {"name": "exact", "id": "other", "weight": 0.7}]
    score(plain, "same", [("yes", {"given": {"score": 0.3, "weight": 1}}), "no", ("Yes", {"given": {"score": 0.1, "weight": 3}})], weights)
    got = reverified(plain, "same", *weights)
    assert got["flips"] == [] and got["reward"]["from"] == got["reward"]["to"] and got["reward"]["from"]["mean"] is not None


def test_the_reward_has_the_weights_of_the_request_and_recorded_scores(plain):
    """Recorded: answer 1·0, style 2·0.5; a gate that stands open. Now: answer 3·1, so 3 + 1."""
    verifiers = [STRICT, {"name": "exact", "id": "gate", "gate": True, "reference": "Yes"}]
    (one,) = score(plain, "weights", [("Yes", {"style": {"score": 0.5, "weight": 2}})], verifiers)
    assert one["reward"] == 2  # 0 + 1 (the gate's own score) + 1
    got = reverified(plain, "weights", {**LAX, "weight": 3})
    assert got["reward"] == {"n": 1, "from": {"mean": 2}, "to": {"mean": 5}}
    shut = reverified(plain, "weights", {"name": "exact", "id": "gate", "gate": True, "reference": "never"})
    assert shut["reward"]["to"]["mean"] == 0
    held = reverified(plain, "weights", {**LAX, "heldout": True})
    assert held["reward"]["to"]["mean"] == 2 and held["flipped"] == 1  # answer no longer rewards: 1 + 1


def test_a_new_verifier_has_nothing_to_flip(plain):
    (one,) = score(plain, "new", ["Yes"])
    got = reverified(plain, "new", {**LAX, "id": "second", "weight": 0.5})
    assert got["flips"] == [] and got["reward"]["to"]["mean"] == 0.5
    assert [later["verdicts"][0]["id"] for later in rollout(plain, one["id"])["reverified"]] == ["second"]


def test_a_verdict_without_a_score_is_no_number_and_no_flip(plain):
    """No reference, so the verifier cannot judge: unscored, and the reward is null."""
    first = score(plain, "unscored", [("yes", {"given": {"score": 1, "weight": 1}}), ("no", {"given": {"score": 0, "weight": 1}})], [], reference=None)
    got = reverified(plain, "unscored", {"name": "exact", "id": "given"})
    assert (got["judged"], got["unscored"], got["flips"]) == (2, 2, []) and got["reward"] == {"n": 0, "from": {"mean": None}, "to": {"mean": None}}
    for one in first:
        (later,) = rollout(plain, one["id"])["reverified"]
        assert later["reward"] is None and later["verdicts"][0]["score"] is None and later["verdicts"][0]["failure"]["code"]
    check_record(plain)


def test_a_verifier_that_does_not_end_is_unscored(start_endless):
    service = start_endless(settings={"verify_timeout": "3s"})
    score(service, "endless", [(ENDLESS_TEXT, {"given": {"score": 1, "weight": 1}})], [])
    got = reverified(service, "endless", {"name": "endless", "id": "given"}, {"name": "exact", "reference": ENDLESS_TEXT})
    assert (got["judged"], got["unscored"], got["flips"]) == (1, 1, [])
    (one,) = service.read("/v1/rollouts", run="endless", fields="reverified")["items"]
    assert [verdict["score"] for verdict in one["reverified"][0]["verdicts"]] == [None, 1]


def test_a_rule_that_skips_missing_scores_is_that_of_the_batch(plain):
    score(plain, "skips", [("yes", {"given": {"score": 0.5, "weight": 1}})], [], reference=None, objective={"advantage": {"missing": "skip"}})
    got = reverified(plain, "skips", {"name": "exact"})
    assert got["reward"] == {"n": 1, "from": {"mean": 0.5}, "to": {"mean": 0.5}}


def test_only_rollouts_that_fit_and_are_scored(plain):
    score(plain, "filters", ["yes", "no", "Yes"])
    score(plain, "filters", ["yes"], draw=1, purpose="eval", policy_revision=2)
    score(plain, "filters", [("yes", {"given": {"score": None, "weight": 1}})], draw=2)
    for filters, expected in (({}, 3), ({"reward_min": 1}, 1), ({"purpose": "eval"}, 1), ({"text": "es"}, 2), ({"task": "nobody"}, 0), ({"revision": 1}, 3),
                              ({"verdict": "incorrect"}, 2), ({"trainable": True}, 0), ({"trainable": False}, 3), ({"state": "scored"}, 3), ({"since": "2999-01-01T00:00:00Z"}, 0), ({"tag.source": "x"}, 0)):
        got = reverified(plain, "filters", LAX, **filters)
        assert (got["rollouts"], got["judged"]) == (expected, expected), filters
        assert got["request"] == {"run": "filters", "verifiers": [LAX], **filters}


def test_a_chat_and_its_reference_are_read_as_they_were_posted(start, judge):
    """The judge is asked about the prompt, the reference and the completion on record."""
    service = start(judge, settings=QUICK)
    judge.rules({"in": "good", **YES}, NO)
    body = {"run": "chats", "policy_revision": 1, "verifiers": [], "groups": [
        {"task": "text", "prompt": "Which one?", "reference": {"any": [1, 2]}, "completions": [{"text": "good", "rewards": {"given": {"score": 0, "weight": 1}}}]},
        {"task": "chat", "messages": [{"role": "user", "content": "And now?"}], "reference": "both", "completions": [{"text": "bad", "rewards": {"given": {"score": 0, "weight": 1}}}]}]}
    assert service.post("/v1/score", body).status == 200
    got = reverified(service, "chats", {"name": "judge", "id": "given", "options": options()})
    asked = sorted(entry["messages"][-1]["content"] for entry in judge.asked)
    assert [text.split("\n")[0] for text in asked] == ['Q "And now?"', 'Q "Which one?"'] and 'R "both"' in asked[0]
    assert [(flip["from"]["score"], flip["to"]["score"]) for flip in got["flips"]] == [(0, 1)]


@pytest.fixture
def judge():
    made = Judge()
    yield made
    made.close()


def test_flips_are_paged_in_the_order_of_their_rollouts(plain):
    score(plain, "pages", ["Yes"] * 5)
    identity = reverified(plain, "pages", LAX)["id"]
    seen, cursor = [], None
    while True:
        page = plain.read(f"/v1/reverify/{identity}", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [flip["rollout"] for flip in page["flips"]]
        assert len(page["flips"]) <= 2 and page["flipped"] == 5
        cursor = page["next"]
        if not cursor:
            break
    assert seen == [one["id"] for one in plain.read("/v1/rollouts", run="pages")["items"]]
    assert [one["id"] for one in plain.read("/v1/reverify", run="pages")["items"]] == [identity] and plain.get("/v1/reverify", run="nobody").status == 404


def test_a_key_makes_one_reverification_and_a_rewind_makes_it_new(start):
    service = start()
    score(service, "keyed", ["Yes"])
    send = lambda body: service.post("/v1/reverify", body, headers={"Idempotency-Key": "once"})
    body = {"run": "keyed", "verifiers": [LAX]}
    first = send(body).json["id"]
    assert send(body).json["id"] == first
    refused = send({**body, "revision": 1})
    assert (refused.status, refused.json["error"]["code"]) == (409, "idempotency_conflict")
    ended(service, first)
    service.kill()
    service.start()
    assert send(body).json == {"id": first, "state": "complete"}
    assert len(service.read("/v1/reverify", run="keyed")["items"]) == 1


def test_later_verdicts_take_part_in_disagreements(plain):
    first = score(plain, "words", ["yes", "Yes", "no", "YES"])
    once = reverified(plain, "words", LAX)["id"]
    reverified(plain, "words", {**LAX, "id": "second"})
    read = lambda **query: plain.read("/v1/disagreements", run="words", **query)
    got = read(a="answer", b="second")  # first verdicts of the one, later ones of the other
    assert (got["n"], got["agree"]) == (4, 2) and sorted(got["items"][0]["rollouts"]) == sorted(first[place]["id"] for place in (1, 3))
    got = read(a="answer", b="answer", b_from=once)
    assert (got["n"], got["agree"], got["advantage_changes"]) == (4, 2, 4)  # [1,0,0,0] becomes [1,1,0,1]
    assert read(a="answer", b="second", a_from=once)["agree"] == 4
    refused = plain.get("/v1/disagreements", run="words", a="second", b="answer", a_from="first")  # it has no first verdict
    assert (refused.status, refused.error["path"]) == (400, "a") and "a_from names" in refused.error["message"], refused
    for same in ({}, {"a_from": once, "b_from": once}, {"a_from": "first", "b_from": "first"}):
        assert plain.get("/v1/disagreements", run="words", a="answer", b="answer", **same).status == 400


# -- while it runs ----------------------------------------------------------------------------------------------------------------

def held(service, judge, run, count=PAGE + 40):
    """A reverification whose first page is on record, and whose second one waits for the judge."""
    given = {"given": {"score": 0, "weight": 1}}
    first = score(service, run, [("a", given)] * PAGE, []) + score(service, run, [("held back", given)] * (count - PAGE), [], draw=1)
    judge.rules({"in": "held back", "hold": True, **YES}, YES)
    identity = begun(service, run, {"name": "judge", "id": "given", "options": options(timeout="30m")})
    eventually(lambda: service.read(f"/v1/reverify/{identity}")["judged"] == PAGE and judge.open > 0, "the second page")
    return identity, first


def test_a_kill_in_the_middle_loses_nothing_and_counts_nothing_twice(start, judge):
    service = start(judge, settings=QUICK)
    identity, first = held(service, judge, "killed")
    assert [one["id"] for one in service.read("/v1/pending", run="killed")["reverifications"]] == [identity]
    service.kill()
    judge.release()
    judge.rules(YES)
    service.start()
    got = ended(service, identity)
    assert (got["rollouts"], got["judged"], got["flipped"], got["unscored"]) == (len(first),) * 3 + (0,)
    assert got["reward"] == {"n": len(first), "from": {"mean": 0}, "to": {"mean": 1}}
    assert sorted(flip["rollout"] for flip in got["flips"]) == sorted(one["id"] for one in first)
    assert all(len(one["reverified"]) == 1 for one in service.read("/v1/rollouts", run="killed", fields="reverified", limit=1000)["items"])
    check_record(service)


def test_a_stop_resumes_as_a_kill_does(start, judge):
    service = start(judge, settings={**QUICK, "drain_timeout": "0s"})
    identity, first = held(service, judge, "stopped")
    assert service.terminate() == 0
    judge.release()
    judge.rules(YES)
    service.start()
    assert ended(service, identity)["judged"] == len(first)
    check_record(service)


def test_rollouts_that_come_later_are_not_judged(start, judge):
    service = start(judge, settings=QUICK)
    identity, first = held(service, judge, "grows")
    late = score(service, "grows", [("c", {"given": {"score": 0, "weight": 1}})], [], draw=2)
    judge.release()
    got = ended(service, identity)
    assert got["rollouts"] == got["judged"] == len(first) and rollout(service, late[0]["id"])["reverified"] == []


def test_a_cancelled_one_keeps_what_is_on_record(start, judge):
    service = start(judge, settings=QUICK)
    identity, first = held(service, judge, "cancelled")
    assert service.request("DELETE", f"/v1/reverify/{identity}").json == {"id": identity, "state": "cancelled"}
    assert service.request("DELETE", f"/v1/reverify/{identity}").json == {"id": identity, "state": "cancelled"}
    assert service.read("/v1/pending")["reverifications"] == []
    eventually(lambda: judge.open == 0, "its calls to be closed")
    judge.release()
    got = ended(service, identity, "cancelled")
    assert (got["judged"], got["flipped"], got["rollouts"]) == (PAGE, PAGE, len(first))
    service.kill()
    service.start()
    assert ended(service, identity, "cancelled")["judged"] == PAGE
    assert ended(service, identity, "cancelled")["reward"]["n"] == PAGE and rollout(service, first[-1]["id"])["reverified"] == []
    check_record(service)


def test_live_work_passes_a_reverification_that_waits(start, judge):
    """Its calls are held; a request of the same run for the same judge is answered meanwhile, and text verdicts, too."""
    service = start(judge, settings={**QUICK, "text_workers": 1})
    identity, _ = held(service, judge, "behind")
    assert score(service, "behind", ["yes"], draw=2)[0]["reward"] == 1
    live = score(service, "behind", ["good"], [{"name": "judge", "options": options()}], draw=3)
    assert live[0]["reward"] == 1 and service.read(f"/v1/reverify/{identity}")["state"] == "running"
    judge.release()
    ended(service, identity)


def test_a_judge_that_fails_gives_no_numbers(start, judge):
    service = start(judge, settings=QUICK)
    score(service, "fails", [("a", {"given": {"score": 1, "weight": 1}})] * 3, [])
    judge.rules({"status": 400, "json": {"error": {"message": "bad request"}}})
    got = reverified(service, "fails", {"name": "judge", "id": "given", "options": options()})
    assert (got["judged"], got["unscored"], got["flips"], got["reward"]["n"]) == (3, 3, [], 0)


def test_a_run_takes_its_reverifications_along(start, judge):
    service = start(judge, settings=QUICK)
    identity, _ = held(service, judge, "goes")
    score(service, "stays", ["Yes"])
    other = reverified(service, "stays", LAX)["id"]
    assert service.request("DELETE", "/v1/runs/goes").status == 202
    eventually(lambda: service.get("/v1/runs/goes").status == 404, "the run to be gone")
    judge.release()
    assert service.get(f"/v1/reverify/{identity}").status == 404 and service.read(f"/v1/reverify/{other}")["flipped"] == 1
    eventually(lambda: service.read("/v1/pending")["reverifications"] == [], "it to end")
    check_record(service)


def test_one_whose_verifier_is_gone_fails_and_says_why(start, judge, tmp_path):
    external = {"externals": json.dumps([{"name": "style", "url": f"{judge.url}/judge", "in_flight": 4}])}
    service = start(judge, settings={**QUICK, **external})
    score(service, "lost", [("a", {"given": {"score": 1, "weight": 1}})], [])
    judge.rules({"hold": True})
    identity = begun(service, "lost", {"name": "external", "id": "given", "options": {"name": "style"}})
    eventually(lambda: judge.open > 0, "the call")
    service.kill()
    judge.release()
    service.settings = {name: value for name, value in service.settings.items() if name != "externals"}
    service.start()
    got = ended(service, identity, "failed")
    assert got["failure"]["code"] == "request_unreadable" and "verifiers[0]" in got["failure"]["message"]
    check_record(service)
