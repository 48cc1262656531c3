"""POST /v1/labels, GET /v1/calibration: every number is counted again here, by hand."""
import sqlite3
import subprocess

import pytest

from harness import BINARY, PATIENCE, eventually
from material import rollouts

CELLS = ("true_positive", "false_positive", "false_negative", "true_negative", "unscored")


def score(service, run, scores, revision=1, purpose="train", verifier="word", **more):
    """The ids of rollouts, one for each of these scores of the verifier; None: no score."""
    body = {"run": run, "policy_revision": revision, "purpose": purpose, "missing": "skip", "verifiers": [], "groups": [
        {"task": "t", "completions": [{"text": "x", "rewards": {verifier: {"score": value, "weight": 1}}} for value in scores]}], **more}
    reply = service.post("/v1/score", body)
    assert reply.status == 200, reply
    return [rollout["id"] for rollout in rollouts(reply.json)]


def label(service, *labels, verifier="word", by="anna"):
    """labels: (rollout, truth) or whole ones."""
    reply = service.post("/v1/labels", {"labels": [one if isinstance(one, dict) else {"rollout": one[0], "verifier": verifier, "truth": one[1], "by": by} for one in labels]})
    assert (reply.status, reply.json) == (200, {"stored": len(labels)}), reply
    return reply.json


def calibration(service, run, verifier="word", **query):
    return service.read("/v1/calibration", run=run, verifier=verifier, **query)


def cells(item):
    return tuple(item[name] for name in CELLS)


# --- refused ------------------------------------------------------------------------------------------------------

GOOD = {"rollout": "r_1", "verifier": "word", "truth": True, "by": "anna"}


@pytest.mark.parametrize("body, status, code, path", [
    ({}, 400, "missing_field", "labels"),
    ({"labels": []}, 400, "invalid_field", "labels"),
    ({"labels": {}}, 400, "invalid_field", "labels"),
    ({"labels": [GOOD] * 10001}, 400, "invalid_field", "labels"),
    ({"labels": [GOOD], "label": 1}, 400, "unknown_field", "label"),
    ({"labels": [1]}, 400, "invalid_field", "labels[0]"),
    ({"labels": [{**GOOD, "truth": 1}]}, 400, "invalid_field", "labels[0].truth"),
    ({"labels": [{**GOOD, "truth": None}]}, 400, "invalid_field", "labels[0].truth"),
    ({"labels": [{**GOOD, "turth": True}]}, 400, "unknown_field", "labels[0].turth"),
    ({"labels": [{**GOOD, "by": ""}]}, 400, "invalid_field", "labels[0].by"),
    ({"labels": [{**GOOD, "by": "x" * 129}]}, 400, "invalid_field", "labels[0].by"),
    ({"labels": [{**GOOD, "verifier": ""}]}, 400, "invalid_field", "labels[0].verifier"),
    ({"labels": [{**GOOD, "verifier": "x" * 65}]}, 400, "invalid_field", "labels[0].verifier"),
    ({"labels": [GOOD]}, 404, "not_found", "labels[0].rollout"),
    ({"labels": [{**GOOD, "rollout": ""}]}, 404, "not_found", "labels[0].rollout"),
    ({"labels": [{**GOOD, "rollout": "r_0000000000000000000000000-00000-00000"}]}, 404, "not_found", "labels[0].rollout"),
    *(({"labels": [{name: value for name, value in GOOD.items() if name != left_out}]}, 400, "missing_field", f"labels[0].{left_out}") for left_out in GOOD),
])
def test_a_body_that_is_no_label_is_refused_with_its_place(plain, body, status, code, path):
    reply = plain.post("/v1/labels", body)
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (status, code, path), reply


def test_one_unknown_rollout_refuses_all(plain):
    one, two = score(plain, "one-unknown", [1, 0])
    missing = one[:-5] + "00099"
    reply = plain.post("/v1/labels", {"labels": [{"rollout": rollout, "verifier": "word", "truth": True, "by": "anna"} for rollout in (one, two, missing)]})
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (404, "not_found", "labels[2].rollout")
    assert calibration(plain, "one-unknown")["items"][0]["n"] == 0


@pytest.mark.parametrize("query, status, code, path", [
    ("verifier=word", 400, "missing_field", "run"),
    ("run=refused", 400, "missing_field", "verifier"),
    ("run=refused&verifier=", 400, "missing_field", "verifier"),
    ("run=re fused&verifier=word", 400, "invalid_field", "run"),
    ("run=nobody&verifier=word", 404, "not_found", "run"),
    ("run=refused&verifier=word&by=task", 400, "invalid_field", "by"),
    ("run=refused&verifier=word&bye=revision", 400, "unknown_field", "bye"),
    ("run=refused&verifier=word&purpose=test", 400, "invalid_field", "purpose"),
    ("run=refused&verifier=word&revision=1&revision_min=0", 400, "invalid_field", "revision"),
    ("run=refused&verifier=word&incarnation=-1", 400, "invalid_field", "incarnation"),
])
def test_a_calibration_that_cannot_be_meant_is_refused(plain, query, status, code, path):
    score(plain, "refused", [1])
    reply = plain.get("/v1/calibration?" + query.replace(" ", "%20"))
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (status, code, path), reply


# --- counted ------------------------------------------------------------------------------------------------------

def test_each_label_is_in_the_cell_of_its_score_and_its_truth(plain):
    ids = score(plain, "cells", [1, 2.5, 1, 0.999, 0, -1, 0, None])
    label(plain, *zip(ids, [True, True, False, True, True, False, False, True]))
    got = calibration(plain, "cells")
    assert [item["key"] for item in got["items"]] == [{}] and got["alarms"] == []
    item, = got["items"]
    assert cells(item) == (2, 1, 2, 2, 1) and item["n"] == 7
    assert item["precision"] == pytest.approx(2 / 3) and item["recall"] == 0.5


def test_a_share_of_nothing_is_null(plain):
    ids = score(plain, "nothing", [0, 0])
    label(plain, (ids[0], False))
    item, = calibration(plain, "nothing")["items"]
    assert (item["n"], item["precision"], item["recall"]) == (1, None, None)
    item, = calibration(plain, "nothing", verifier="another")["items"]
    assert (item["n"], item["precision"], item["recall"]) == (0, None, None)
    assert calibration(plain, "nothing", verifier="another", by="reason")["items"] == []


def test_the_last_label_of_a_key_counts_and_each_labeller_has_one(plain):
    one, = score(plain, "keys", [1])
    label(plain, (one, False), (one, True))  # the last of one request
    assert cells(calibration(plain, "keys")["items"][0]) == (1, 0, 0, 0, 0)
    label(plain, (one, False))
    assert cells(calibration(plain, "keys")["items"][0]) == (0, 1, 0, 0, 0)
    label(plain, (one, True), by="ben")
    assert cells(calibration(plain, "keys")["items"][0]) == (1, 1, 0, 0, 0)
    label(plain, (one, True), verifier="more")  # of a verifier that gave no verdict
    assert cells(calibration(plain, "keys", verifier="more")["items"][0]) == (0, 0, 0, 0, 1)
    assert cells(calibration(plain, "keys")["items"][0]) == (1, 1, 0, 0, 0)


def test_labels_by_revision_and_by_reason(plain):
    reply = plain.post("/v1/score", {"run": "parts", "policy_revision": 1, "verifiers": [{"name": "math"}], "groups": [
        {"task": "t", "reference": "7", "completions": [{"text": text} for text in ("\\boxed{7}", "\\boxed{8}", "none", "\\boxed{7}")]}]})
    found = rollouts(reply.json)
    reasons = [rollout["verdicts"][0]["reason"] for rollout in found]
    label(plain, *zip((rollout["id"] for rollout in found), [True, False, True, False]), verifier="math")
    later = plain.post("/v1/score", {"run": "parts", "policy_revision": 3, "verifiers": [{"name": "math"}], "groups": [
        {"task": "t", "reference": "7", "completions": [{"text": "\\boxed{7}"}]}]})
    label(plain, (rollouts(later.json)[0]["id"], True), verifier="math")
    by_revision = calibration(plain, "parts", "math", by="revision")["items"]
    assert [(item["key"], cells(item)) for item in by_revision] == [({"revision": 1}, (1, 1, 1, 1, 0)), ({"revision": 3}, (1, 0, 0, 0, 0))]
    by_reason = {item["key"]["reason"]: cells(item) for item in calibration(plain, "parts", "math", by="reason", revision=1)["items"]}
    assert len(set(reasons[:3])) == 3 and reasons[3] == reasons[0]
    assert by_reason == {reasons[0]: (1, 1, 0, 0, 0), reasons[1]: (0, 0, 0, 1, 0), reasons[2]: (0, 0, 1, 0, 0)}
    assert sum(item["n"] for item in calibration(plain, "parts", "math", by="revision", revision_min=2)["items"]) == 1
    assert sum(item["n"] for item in calibration(plain, "parts", "math", by="revision", revision_max=2)["items"]) == 4


def test_training_of_the_surviving_line_counts_unless_another_is_asked_for(plain):
    evaluated = score(plain, "line", [1], purpose="eval")
    old = score(plain, "line", [0], revision=5)
    assert plain.put("/v1/runs/line/policy", {"revision": 5, "rewind_to_step": 5}).status == 200
    new = score(plain, "line", [1, 1], revision=5)
    label(plain, (evaluated[0], False), (old[0], True), (new[0], True), (new[1], True))
    assert cells(calibration(plain, "line")["items"][0]) == (2, 0, 0, 0, 0)
    assert cells(calibration(plain, "line", purpose="eval")["items"][0]) == (0, 1, 0, 0, 0)
    assert cells(calibration(plain, "line", incarnation=0)["items"][0]) == (0, 0, 1, 0, 0)


# --- alarms -------------------------------------------------------------------------------------------------------

def test_alarms_begin_at_twenty_labels_and_at_the_settings(start):
    service = start(settings={"calibration.precision_min": "0.8", "calibration.recall_min": "0.5"})
    ids = score(service, "few", [1] * 15 + [0] * 5)
    label(service, *((rollout, index >= 5) for index, rollout in enumerate(ids[:19])))
    assert calibration(service, "few")["alarms"] == [] and service.read("/v1/runs/few/report")["alarms"] == []
    label(service, (ids[19], True))
    # by hand: 10 of 15 positive ones are right, 10 of 15 right ones are positive
    alarm = {"verifier": "word", "measure": "precision", "value": pytest.approx(2 / 3), "threshold": 0.8}
    assert calibration(service, "few")["alarms"] == [alarm]
    found, = service.read("/v1/runs/few/report")["alarms"]
    assert (found["alarm"], found["verifier"], found["value"], found["threshold"], found["engine"]) == ("precision", "word", pytest.approx(2 / 3), 0.8, None)
    assert service.get(found["evidence"]).json["items"][0]["n"] == 20
    for accept in ("text/markdown", "text/html"):
        page = service.get("/v1/runs/few/report", headers={"Accept": accept}).body.decode()
        assert "(`precision`)" in page or "<code>precision</code>" in page


def test_a_verifier_that_drifted_is_an_alarm_though_it_is_right_over_all(start):
    service = start()
    early = score(service, "drift", [1] * 300, revision=1)
    label(service, *((rollout, True) for rollout in early))
    late = score(service, "drift", [1] * 20, revision=2, verifier="word")
    label(service, *((rollout, index > 5) for index, rollout in enumerate(late)))
    assert calibration(service, "drift")["alarms"] == []  # 314 of 320
    found = {item["alarm"]: item for item in service.read("/v1/runs/drift/report")["alarms"]}["precision"]
    assert (found["from_revision"], found["revision"], found["value"]) == (2, 2, 0.7)
    counted = service.get(found["evidence"]).json["items"]
    assert [(item["key"]["revision"], cells(item)) for item in counted] == [(2, (14, 6, 0, 0, 0))]


def test_ids_of_verifiers_are_escaped_in_evidence(start):
    service = start()
    name = "a&b=ü/%"
    ids = score(service, "escaped", [1] * 20, verifier=name)
    label(service, *((rollout, False) for rollout in ids), verifier=name)
    found = next(item for item in service.read("/v1/runs/escaped/report")["alarms"] if item["alarm"] == "precision")
    assert found["verifier"] == name and service.get(found["evidence"]).json["items"][0]["false_positive"] == 20


# --- kept ---------------------------------------------------------------------------------------------------------

def test_labels_outlive_a_restart_and_go_with_their_run(start):
    service = start()
    kept = score(service, "kept", [1])
    gone = score(service, "gone", [1])
    label(service, (kept[0], True), (gone[0], True))
    service.kill()
    again = start(database=service.database)
    assert calibration(again, "kept")["items"][0]["n"] == 1
    assert again.delete("/v1/runs/gone").status == 202
    eventually(lambda: again.get("/v1/runs/gone").status == 404, "the run to be gone")
    reply = again.post("/v1/labels", {"labels": [{"rollout": gone[0], "verifier": "word", "truth": True, "by": "anna"}]})
    assert (reply.status, reply.json["error"]["path"]) == (404, "labels[0].rollout")
    again.terminate()
    with sqlite3.connect(again.database) as link:
        assert link.execute("SELECT count(*) FROM labels WHERE run_seq NOT IN (SELECT seq FROM runs)").fetchone() == (0,)


def test_verify_database_finds_a_label_of_another_run(start):
    service = start()
    one, = score(service, "own", [1])
    score(service, "other", [1])
    label(service, (one, True))
    service.terminate()
    done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done
    with sqlite3.connect(service.database) as link:
        link.execute("UPDATE labels SET run_seq = (SELECT seq FROM runs WHERE name = 'other')")
    done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0 and "a label is of another run than its rollout" in done.stdout + done.stderr, done
