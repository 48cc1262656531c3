"""GET /v1/runs/{run}/report: every number again from the rows (report_check.py), and its pages through a parser."""
import base64
import hashlib
import html.parser
import json
import random
import re
import sqlite3
import subprocess

import pytest

from harness import BINARY, eventually
from material import close, make_batch, make_group, rollouts, sampling
from report_check import check, differences


def get_json(service):
    def get(path):
        reply = service.get(path)
        assert reply.status == 200, reply
        return reply.json
    return get


def checked(service, run, first=None, last=None, **more):
    report, found = check(get_json(service), run, first, last, **more)
    assert not found, found
    return report


def score(service, run, revision, groups, **more):
    """groups: [(task, [reward or code of a failure])]; the held-out verifier `correct` finds a reward of 1 right."""
    body = {"run": run, "policy_revision": revision, "verifiers": [{"name": "exact", "id": "correct", "heldout": True}], "objective": {"preset": "grpo", "beta": 0.01},
            "groups": [{"task": task, "draw": draw, "reference": "yes", "completions": [completion(value, draw + index) for index, value in enumerate(members)]}
                       for draw, (task, members) in enumerate(groups)], **more}
    reply = service.post("/v1/score", body)
    assert reply.status == 200, reply
    return reply.json


def completion(value, number):
    if isinstance(value, str):
        return {"failure": {"code": value, "message": "as the test says"}}
    ids = list(range(1, 4 + number % 5))
    return {"text": "yes" if value == 1 else f"no {number}", "completion_ids": ids, "logprobs": [-0.5 - 0.1 * place for place in range(len(ids))],
            "finish_reason": "length" if number % 4 == 3 else "stop", "engine": f"e{number % 2}", "rewards": {"answer": {"score": value, "weight": 1}}}


def step(service, batch, number, shift=0.25, epoch=0):
    """An optimizer step over a batch, with log-probabilities beside those of the engine."""
    sequences = [{"rollout": one["id"], **{name: [-1.5 - 0.1 * place - shift * weight for place in range(len(one["completion_ids"]))]
                                           for name, weight in (("logprobs", 1), ("old_logprobs", 0.5), ("ref_logprobs", -1))}}
                 for one in rollouts(batch) if one["reward"] is not None]
    if not sequences:
        return
    reply = service.post("/v1/objective", {"sequences": sequences, "optimizer_step": number, "ppo_epoch": epoch, "part": 0})
    assert reply.status == 200, reply


def drawn(seed, tasks, members=4):
    chance = random.Random(seed)
    return [(f"t{task}", [chance.choice([0, 0, 1, 1, 0.5, "engine_error", "engine_timeout"]) for _ in range(members)]) for task in range(tasks)]


def limits(report):
    return {one["code"]: one["count"] for one in report["limitations"]}


# -- numbers -----------------------------------------------------------------------------------------------------------------------

def test_each_number_follows_from_the_rows(plain):
    """Failures, truncation, zero variance, objective calls of several epochs, evaluations, the trainer's own numbers."""
    for revision in range(5):
        batch = score(plain, "whole", revision, drawn(revision, 5) + [("same", [1, 1, 1, 1]), ("lost", ["invalid_reply"] * 4)])
        step(plain, batch, revision, 0.1 * (revision + 1))
        step(plain, batch, revision, 0.3 * (revision + 1), epoch=1)
        assert plain.post("/v1/runs/whole/metrics", {"optimizer_step": revision, "revision": revision // 2, "values": {"loss": revision, "grad_norm": 1.5}}).status == 200
    score(plain, "whole", 2, drawn(31, 3, 6) + [("t1", [1, 0, 0, 1, 0, 0])], purpose="eval", pass_at=[2, 4])
    score(plain, "whole", 2, [("held", [1, 0.5, 0, 1, 1, "engine_error"])], purpose="eval")
    report = checked(plain, "whole")
    assert [row["revision"] for row in report["revisions"]] == [0, 1, 2, 3, 4] and all(row["failures"]["invalid_reply"] == 4 for row in report["revisions"])
    assert {"unscored", "truncated", "heldout_in_training", "few_tasks"} == set(limits(report))
    assert report["revisions"][0]["trainer"] == {"loss": 0.5, "grad_norm": 1.5} and report["revisions"][4]["trainer"] == {}
    assert [list(item["pass_at"]) for item in report["evaluation"]] == [["1", "2", "4"]]
    checked(plain, "whole", 1, 3)
    assert [row["revision"] for row in checked(plain, "whole", first=3)["revisions"]] == [3, 4]
    assert [row["revision"] for row in checked(plain, "whole", last=1)["revisions"]] == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_runs_at_random(plain, seed):
    chance = random.Random(seed)
    for revision in range(4):
        for _ in range(chance.randrange(1, 3)):
            batch = score(plain, f"drawn-{seed}", revision, drawn(chance.random(), chance.randrange(1, 6), chance.randrange(1, 6)))
            if chance.random() < 0.7:
                step(plain, batch, chance.randrange(4), chance.random())
        score(plain, f"drawn-{seed}", revision, drawn(chance.random(), 4, 5), purpose="eval", pass_at=[chance.randrange(1, 6)])
    checked(plain, f"drawn-{seed}")


def test_a_revision_is_that_of_its_latest_incarnation_and_all_was_spent(plain):
    for revision in range(4):
        score(plain, "rewound", revision, drawn(revision, 3))
    assert plain.put("/v1/runs/rewound/policy", {"revision": 2, "rewind_to_step": 2}).status == 200
    for revision in (2, 3):
        score(plain, "rewound", revision, drawn(10 + revision, 3))
    report = checked(plain, "rewound")
    assert [(row["incarnation"], row["revision"]) for row in report["revisions"]] == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert report["totals"]["n"] == 48 and report["spent"]["rollouts"] == 72 and report["inputs"]["requests"] == 6


def test_answers_of_a_sampled_run_are_evaluated(service, engine):
    """maj@k needs the answer, which a verdict of math has."""
    engine.rules({"in": "P0", "text": "\\boxed{42}"}, {"in": "P1", "text": "\\boxed{41}"}, {"in": "P2", "raw": "null"})
    body = make_batch(make_group("a", "P0"), make_group("b", "P1"), make_group("c", "P2"), run="sampled", sampling=sampling(4), purpose="eval", pass_at=[1, 3],
                      verifiers=[{"name": "math", "id": "correct", "heldout": True}, {"name": "format", "options": {"template": "boxed_once"}}])
    assert service.post("/v1/batches", body).status == 200
    assert service.post("/v1/batches", {name: value for name, value in body.items() if name not in ("pass_at", "purpose")}).status == 200
    item, = checked(service, "sampled")["evaluation"]
    assert (item["verifier"], item["groups"], item["judged"]) == ("correct", 3, 8)
    assert item["maj_at"]["3"]["mean"] == item["pass_at"]["3"]["mean"] == 0.5


def test_the_verifier_that_a_batch_names_decides_its_evaluation(plain):
    body = {"run": "named", "policy_revision": 0, "purpose": "eval", "pass_at": [1, 2], "verifiers": [{"name": "exact"}, {"name": "regex", "id": "held", "heldout": True, "options": {"pattern": "b"}}],
            "groups": [{"task": f"t{index}", "reference": "a", "completions": [{"text": text} for text in texts]} for index, texts in enumerate(("aab", "abb", "aaa"))]}
    assert plain.post("/v1/score", body).status == 200
    reply = plain.post("/v1/score", {**body, "pass_verifier": "exact"})
    assert reply.status == 200, reply
    own = plain.read(f"/v1/batches/{reply.json['id']}")["summary"]["pass_at_k"]
    items = {item["verifier"]: item for item in checked(plain, "named")["evaluation"]}
    assert set(items) == {"exact", "held"}
    for k in ("1", "2"):
        assert close(items["exact"]["pass_at"][k]["mean"], own[k]["mean"])
    assert close(items["exact"]["pass_at"]["1"]["se"], (2 / 9) ** 0.5 / 3) and close(items["held"]["pass_at"]["1"]["mean"], 1 / 3)


def test_a_score_is_correct_from_the_threshold_of_its_batch(plain):
    """Rewards of 0, 0.5 and 1, with thresholds of 0.5, 1 (none is given) and 0: rows of their own, each as its batch's summary says."""
    given = [("a", [0, 0.5, 1]), ("b", [0.5, 0.5, 0]), ("c", [0, 0, 1])]
    body = {"run": "from", "policy_revision": 0, "purpose": "eval", "pass_at": [1, 2], "verifiers": [],
            "groups": [{"task": task, "completions": [{"text": "x", "rewards": {"part": {"score": value, "weight": 1}}} for value in values]} for task, values in given]}
    summaries = {}
    for threshold in (0.5, None, 0):
        reply = plain.post("/v1/score", {**body, **({"pass_threshold": threshold} if threshold is not None else {})})
        assert reply.status == 200, reply
        summaries[1 if threshold is None else threshold] = plain.read(f"/v1/batches/{reply.json['id']}")["summary"]["pass_at_k"]
    items = {item["threshold"]: item for item in checked(plain, "from")["evaluation"]}
    assert set(items) == set(summaries) and close(items[0.5]["pass_at"]["1"]["mean"], (2 / 3 + 2 / 3 + 1 / 3) / 3) and items[0]["pass_at"]["1"]["mean"] == 1
    for threshold, item in items.items():
        assert close(item["pass_at"]["1"]["mean"], summaries[threshold]["1"]["mean"]) and close(item["pass_at"]["2"]["se"], summaries[threshold]["2"]["se"])
    page = plain.request("GET", "/v1/runs/from/report", headers={"Accept": "text/html"}).body.decode()
    assert page.count("</bdi>, from 0.5<") == 2 and page.count("</bdi>, from 0<") == 2 and page.count("the reward</bdi><") == 2


def test_a_batch_from_before_thresholds_were_on_record_counts_with_1(start):
    service = start()
    body = {"run": "before", "policy_revision": 0, "purpose": "eval", "pass_at": [1], "pass_threshold": 0.5, "verifiers": [],
            "groups": [{"task": "a", "completions": [{"text": "x", "rewards": {"part": {"score": 0.5, "weight": 1}}}]}]}
    assert service.post("/v1/score", body).status == 200
    service.terminate()
    with sqlite3.connect(service.database) as link:
        link.execute("UPDATE batches SET pass_threshold = NULL")
    item, = start(database=service.database).read("/v1/runs/before/report")["evaluation"]
    assert (item["threshold"], item["pass_at"]["1"]["mean"]) == (1, 0)


def put_set(service, name, splits):
    """splits: {task: its split}; the prompt of a task is its name."""
    lines = "".join(json.dumps({"task": task, "split": split, "prompt": f"what is {task}", "reference": "yes"}) + "\n" for task, split in splits.items())
    reply = service.put(f"/v1/tasksets/{name}", lines.encode(), {"Content-Type": "application/x-ndjson"})
    assert reply.status in (200, 201), reply


def test_an_evaluation_is_of_one_set(plain):
    """Two sets and tasks of no set, in one batch and in another of the revision."""
    put_set(plain, "easy", {"e1": "test", "e2": "test"})
    put_set(plain, "hard", {"h1": "test"})
    members = {"e1": [1, 1, 1], "e2": [1, 0, 1], "h1": [0, 0, 1], "own": [0, 1, 0]}
    names = {"e1": {"set": "easy"}, "e2": {"set": "easy"}, "h1": {"set": "hard"}, "own": {"reference": "yes"}}

    def evaluate(*tasks):
        groups = [{"task": task, **names[task], "completions": [completion(value, index) for index, value in enumerate(members[task])]} for task in tasks]
        reply = plain.post("/v1/score", {"run": "sets", "policy_revision": 0, "purpose": "eval", "pass_at": [2], "verifiers": [{"name": "exact", "id": "correct", "heldout": True}], "groups": groups})
        assert reply.status == 200, reply
    evaluate("h1", "e1", "own")
    evaluate("e2")
    items = checked(plain, "sets")["evaluation"]
    assert {item["set"]: (item["batches"], item["groups"], item["judged"]) for item in items} == {None: (1, 1, 3), "easy": (2, 2, 6), "hard": (1, 1, 3)}
    assert {item["set"]: round(item["pass_at"]["1"]["mean"], 9) for item in items} == {None: round(1 / 3, 9), "easy": round(5 / 6, 9), "hard": round(1 / 3, 9)}
    assert {"easy", "hard", "–"} <= set(Page(page_of(plain, "sets")[1]).texts)
    assert re.search(r"^\| 0 \| correct \| easy \| 2 \| 1 \|", page_of(plain, "sets", "text/markdown")[1], re.M)


def mixture(service, run):
    """Two sources and groups of none, trained at three revisions and evaluated at one; objective calls and the trainer's numbers beside them."""
    chance = random.Random(17)
    verifiers = [{"name": "exact", "id": "correct", "heldout": True}]
    for revision, purpose in ((0, "train"), (1, "train"), (1, "eval"), (2, "train")):
        groups = [{"task": f"t{number % 5}", "draw": number, "reference": "yes", "completions": [completion(value, number + index) for index, value in enumerate(members)],
                   **({"tags": {"source": source, "level": str(number % 2)}} if source is not None else {})}
                  for number, source in enumerate(("gsm8k", "gsm8k", "math", None, "math", "gsm8k", "<b>|"))
                  if purpose == "train" or source != "gsm8k" for members in [[chance.choice([0, 1, 1, 0.5, "engine_error"]) for _ in range(4)]]]
        if purpose == "eval":
            groups.append({"task": "only", "reference": "yes", "tags": {"source": "held"}, "completions": [completion(value, value) for value in (0, 1, 1)]})
        reply = service.post("/v1/score", {"run": run, "policy_revision": revision, "purpose": purpose, "verifiers": verifiers, "groups": groups,
                                           "objective": {"preset": "grpo", "beta": 0.01}, **({"pass_at": [2]} if purpose == "eval" else {})})
        assert reply.status == 200, reply
        if purpose == "train":
            step(service, reply.json, revision)
    assert service.post(f"/v1/runs/{run}/metrics", {"optimizer_step": 1, "revision": 1, "values": {"loss": 0.5}}).status == 200


def test_a_mixture_is_split_by_a_tag(plain):
    mixture(plain, "mixture")
    report = checked(plain, "mixture", by="tag.source")
    assert [part["key"]["tag.source"] for part in report["parts"]] == [None, "<b>|", "gsm8k", "held", "math"]
    assert [part["totals"]["n"] for part in report["parts"]] == [12, 12, 36, 0, 24] and report["totals"]["n"] == 84
    assert [[row["revision"] for row in part["revisions"]] for part in report["parts"]] == [[0, 1, 2]] * 3 + [[], [0, 1, 2]]
    assert [len(part["evaluation"]) for part in report["parts"]] == [1, 1, 0, 1, 1] and report["evaluation"][0]["groups"] == 5
    assert report["totals"]["kl"] is not None and report["parts"][2]["totals"]["kl"] is None and report["revisions"][1]["trainer"] == {"loss": 0.5}
    whole = checked(plain, "mixture")
    assert "parts" not in whole and "by" not in whole
    assert_same(whole, {name: report[name] for name in whole})
    assert [part["key"] for part in checked(plain, "mixture", 2, by="tag.level", tags={"source": "math"})["parts"]] == [{"tag.level": "0"}]


def test_a_tag_picks_the_groups_of_a_report(plain):
    mixture(plain, "picked")
    report = checked(plain, "picked", tags={"source": "gsm8k"})
    assert report["tags"] == {"source": "gsm8k"} and report["totals"]["n"] == report["spent"]["rollouts"] == 36 and report["evaluation"] == []
    assert report["totals"]["batches"] == 3 and report["totals"]["loss"] is None and report["revisions"][1]["trainer"] == {}
    assert checked(plain, "picked", tags={"source": "gsm8k", "level": "1"})["totals"]["groups"] == 6
    assert checked(plain, "picked", tags={"source": "held"})["evaluation"][0]["groups"] == 1
    nothing = checked(plain, "picked", tags={"source": "nothing"})
    assert nothing["totals"]["n"] == 0 and nothing["revisions"] == nothing["evaluation"] == []


@pytest.mark.parametrize("values, status", ((100, 200), (101, 422)))
def test_a_report_has_at_most_100_parts(plain, values, status):
    groups = [{"task": f"t{number}", "reference": "yes", "tags": {"number": str(number)}, "completions": [{"text": "yes"}]} for number in range(values)]
    assert plain.post("/v1/score", {"run": f"parts-{values}", "policy_revision": 0, "verifiers": [{"name": "exact"}], "groups": groups}).status == 200
    reply = plain.get(f"/v1/runs/parts-{values}/report?by=tag.number")
    assert reply.status == status and (len(reply.json["parts"]) == 100 if status == 200 else (reply.error["code"], reply.error["path"]) == ("too_many_rollouts", "by")), reply


def test_pages_show_the_parts_as_text(plain):
    mixture(plain, "shown")
    page = plain.request("GET", "/v1/runs/shown/report?by=tag.source&tag.level=0", headers={"Accept": "text/html"}).body.decode()
    assert page.count("<h3>") == 3 and "&lt;b&gt;|" in page and "<b>|" not in page and "only groups whose tag <bdi>level</bdi> is <bdi>0</bdi>" in page
    text = plain.request("GET", "/v1/runs/shown/report?by=tag.source", headers={"Accept": "text/markdown"}).body.decode()
    assert [line for line in text.splitlines() if line.startswith("### ")] == ["### groups without this tag", "### \\<b\\>\\|", "### gsm8k", "### held", "### math"]


def test_a_held_out_prompt_that_was_trained_on_is_named(plain):
    """By its prompt, under another name; not a task of the split train, of an evaluation, or of another run."""
    put_set(plain, "leaky", {"a": "train", "b": "test", "c": "validation"})

    def post(run, revision, prompts, purpose="train"):
        groups = [{"task": f"own-{prompt}", "prompt": f"what is {prompt}", "reference": "yes", "completions": [completion(0, 0), completion(1, 1)]} for prompt in prompts]
        assert plain.post("/v1/score", {"run": run, "policy_revision": revision, "purpose": purpose, "verifiers": [{"name": "exact"}], "groups": groups}).status == 200
    post("clean", 0, ["a", "d"])
    post("clean", 0, ["b"], "eval")
    post("leaked", 0, ["a", "b"])
    post("leaked", 1, ["b", "c"])
    assert "heldout_in_training" not in limits(checked(plain, "clean"))
    assert [limits(checked(plain, "leaked", first, last))["heldout_in_training"] for first, last in ((None, None), (None, 0), (1, None))] == [2, 1, 2]


def test_a_held_out_conversation_that_was_trained_on_is_named(plain):
    lines = [{"task": task, "split": "test", "messages": [{"role": "user", "content": text}], "reference": "yes"} for task, text in (("x", "said"), ("y", "unsaid"))]
    assert plain.put("/v1/tasksets/talks", "".join(json.dumps(line) + "\n" for line in lines).encode(), {"Content-Type": "application/x-ndjson"}).status == 201
    groups = [{"task": name, "messages": [{"role": "user", "content": text}], "reference": "yes", "completions": [completion(0, 0), completion(1, 1)]}
              for name, text in (("mine", "said"), ("other", "something else"))]
    groups.append({"task": "as a text", "prompt": "said", "reference": "yes", "completions": [completion(1, 1)]})
    reply = plain.post("/v1/score", {"run": "talked", "policy_revision": 0, "verifiers": [{"name": "exact"}], "groups": groups})
    assert reply.status == 200, reply
    assert limits(checked(plain, "talked"))["heldout_in_training"] == 1


def test_a_run_in_which_everything_failed_has_no_mean(service, engine):
    """R78: 0.0 would look like a perfect step."""
    engine.rules({"raw": "null"})
    for seed in range(3):
        assert service.post("/v1/batches", make_batch(run="rep", seed=seed)).status == 200
    report = checked(service, "rep")
    row, = report["revisions"]
    assert row["failed"] == 6 and row["reward"] == {"mean": None, "se": None} and row["zero_variance_share"] is None and row["loss"] is None
    assert limits(report)["unscored"] == 6
    engine.rules({"text": "no"})
    for seed in range(3):
        assert service.post("/v1/batches", make_batch(run="same", seed=seed)).status == 200
    assert checked(service, "same")["revisions"][0]["zero_variance_share"] == 1


def test_a_run_without_rollouts(plain):
    assert plain.put("/v1/runs/empty/policy", {"revision": 0}).status == 200
    report = checked(plain, "empty")
    assert report["revisions"] == [] and report["totals"]["n"] == 0 and report["inputs"]["sha256"] == hashlib.sha256(b"").hexdigest()
    for kind in ("text/html", "text/markdown"):
        assert plain.get("/v1/runs/empty/report", headers={"Accept": kind}).status == 200


def test_each_limitation_counts_its_rollouts(plain):
    score(plain, "limited", 0, [("t", [0, 1, 1, "engine_error"])], objective={"preset": "grpo"})
    score(plain, "limited", 1, [("t", [0, 1])], objective={"preset": "rloo"}, verifiers=[])
    found = limits(checked(plain, "limited"))
    assert found == {"unscored": 1, "mixed_settings": 1, "few_tasks": 1}
    score(plain, "blind", 0, [("t", [0, 1, 1])], verifiers=[])
    assert limits(checked(plain, "blind"))["no_heldout_metric"] == 3


def test_kl_of_samples_of_another_revision_is_named(plain):
    old, new = score(plain, "behind", 0, [("t", [0, 1])]), score(plain, "behind", 1, [("u", [0, 1])])
    step(plain, {"groups": old["groups"] + new["groups"]}, 7)
    assert limits(checked(plain, "behind"))["kl_of_old_samples"] == 2  # one for each engine


def test_the_hash_is_over_every_request(plain):
    batches = [score(plain, "hashed", revision, [("t", [0, 1])], purpose=purpose) for revision, purpose in ((0, "train"), (0, "eval"), (1, "train"))]
    report = checked(plain, "hashed")
    texts = sorted(plain.get(f"/v1/batches/{batch['id']}?arrays=none").json["request_sha256"] for batch in batches)
    assert report["inputs"] == {"requests": 3, "sha256": hashlib.sha256("".join(text + "\n" for text in texts).encode()).hexdigest()}


def test_a_report_says_how_many_notes_it_leaves_out(plain):
    score(plain, "noisy", 0, [("t", [0, 1])])
    for number in range(40):
        text = "x" * 65535
        assert plain.put("/v1/runs/noisy/notes", {"prediction": text, "result": text, "explanation": text, "limitation": f"{number}"}).status == 200
    report = plain.read("/v1/runs/noisy/report")
    told = [note["limitation"] for note in report["notes"]]
    assert 0 < len(told) < 40 and told == [f"{number}" for number in range(len(told))]
    assert limits(report)["notes_left_out"] == 40 - len(told)


def test_notes_stand_in_the_report(plain):
    score(plain, "noted", 0, [("t", [0, 1])])
    said = {"prediction": "It rises.", "result": "It fell.", "explanation": "The sign.", "limitation": "One seed."}
    assert plain.put("/v1/runs/noted/notes", said).status in (200, 201)
    note, = checked(plain, "noted")["notes"]
    assert {name: note[name] for name in said} == said


@pytest.mark.parametrize("path, status, code, place", [
    ("nobody/report", 404, "not_found", "run"), ("asked/report?from=x", 400, "invalid_field", "from"), ("asked/report?to=-1", 400, "invalid_field", "to"),
    ("asked/report?from=3&to=2", 400, "invalid_field", "to"), ("asked/report?revision=1", 400, "unknown_field", "revision"),
    ("asked/report?by=revision", 400, "invalid_field", "by"), ("asked/report?by=tag.a,tag.b", 400, "invalid_field", "by"), ("asked/report?tag.a%20b=1", 400, "invalid_field", "tag.a b")])
def test_an_invalid_query_is_refused_with_its_path(plain, path, status, code, place):
    score(plain, "asked", 0, [("t", [0, 1])])
    reply = plain.get(f"/v1/runs/{path}")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, place), reply


# -- roll-ups ---------------------------------------------------------------------------------------------------------------------

def without_roll_ups(service):
    """As a record from before there were roll-ups: its rollouts are read one by one."""
    assert service.terminate() == 0
    database = sqlite3.connect(service.database)
    database.execute("UPDATE rollup_start SET last_batch = (SELECT max(seq) FROM batches)")
    database.commit()
    database.close()
    service.start()


def assert_same(left, right):
    left, right = ({name: value for name, value in one.items() if name != "generated_at"} for one in (left, right))
    left["configuration"]["engines"], right["configuration"]["engines"] = (sorted(one["configuration"]["engines"], key=str) for one in (left, right))
    assert not list(differences(left, right)), list(differences(left, right))


def test_a_report_from_rollouts_equals_that_from_roll_ups(start, engine):
    """Failures, evaluations, a rewind, a batch that still runs; then the same without roll-ups."""
    service = start(engine)
    for revision in range(3):
        step(service, score(service, "rolled", revision, drawn(revision, 4)), revision)
    score(service, "rolled", 1, drawn(9, 3), purpose="eval")
    assert service.put("/v1/runs/rolled/policy", {"revision": 1, "rewind_to_step": 1}).status == 200
    score(service, "rolled", 1, drawn(8, 4))
    engine.rules({"in": "HELD", "hold": True}, {"text": "\\boxed{42}", "finish": "length"})
    body = make_batch(make_group("a", "fine"), make_group("b", "HELD"), run="rolled", sampling=sampling(3), policy_revision=None, verifiers=[{"name": "math"}, {"name": "exact", "id": "correct", "heldout": True}])
    identity = service.post("/v1/batches", body, {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: service.get(f"/v1/batches/{identity}/groups?arrays=none").json["items"][0]["state"] == "complete", "the first group is closed")
    checked(service, "rolled")
    engine.release()
    service.settled(identity)
    report = checked(service, "rolled")
    assert subprocess.run([BINARY, "verify-database", service.database], check=False, capture_output=True, timeout=120).returncode == 0
    without_roll_ups(service)
    assert_same(checked(service, "rolled"), report)
    assert_same(checked(service, "rolled", 1, 1), service.get("/v1/runs/rolled/report?from=1&to=1").json)


# -- pages -------------------------------------------------------------------------------------------------------------------------

VOID = {"meta", "line", "path", "circle", "rect", "br"}


class Page(html.parser.HTMLParser):
    """The elements of a page; an element closed out of order is a fault."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts, self.faults = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    def find(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(service, run, kind="text/html"):
    reply = service.get(f"/v1/runs/{run}/report", headers={"Accept": kind})
    assert reply.status == 200 and reply.headers["content-type"] == f"{kind}; charset=utf-8" and reply.headers["x-content-type-options"] == "nosniff", reply
    return reply, reply.body.decode()


def a_run(service, run, revisions):
    for revision in range(revisions):
        step(service, score(service, run, revision, drawn(revision, 4)), revision)
    score(service, run, 0, drawn(77, 3), purpose="eval")


@pytest.mark.parametrize("revisions", [1, 3])
def test_the_page_is_whole_and_describes_its_figures_in_words(plain, revisions):
    a_run(plain, f"page-{revisions}", revisions)
    page = Page(page_of(plain, f"page-{revisions}")[1])
    assert page.open == ["html"] or page.open == [] and not page.faults, (page.open, page.faults)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    pictures = [svg for svg in page.find("svg") if svg.get("role") == "img"]
    assert len(pictures) == len(page.find("figure")) == 8
    for svg in pictures:
        assert all(name in ids for name in svg["aria-labelledby"].split())
    assert all(svg.get("aria-hidden") == "true" for svg in page.find("svg") if svg.get("role") != "img")
    report = plain.get(f"/v1/runs/page-{revisions}/report").json
    text = " ".join(page.texts)
    for row in report["revisions"]:
        assert f"{row['reward']['mean']:.4g}" in text
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "object", "embed", "link", "img", "form", "base"), tag
        assert not any(name.startswith("on") or name in ("style", "href", "src", "srcset", "xlink:href") for name in attributes), (tag, attributes)


def test_the_page_may_do_nothing_but_look_as_it_does(plain):
    a_run(plain, "policed", 1)
    reply, text = page_of(plain, "policed")
    style, = re.findall(r"<style>(.*?)</style>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert reply.headers["content-security-policy"] == f"default-src 'none'; style-src 'sha256-{digest}'; sandbox"
    assert "prefers-color-scheme: dark" in style and "url(" not in style and "@import" not in style
    assert plain.get("/v1/runs/policed/report").headers["content-security-policy"] == "default-src 'none'"


HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title></style><b>", "{{figures}} {{run}}", "a|b\n# c\n```\n<b>`d`", "' onmouseover='x", "&lt;b&gt; &amp;", "\u202eevil\u0007"]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_texts_from_outside_are_text_and_no_markup(plain, number):
    """Names of verifiers, codes of failures, engines, notes, options in the configuration."""
    text, run = HOSTILE[number], f"hostile-{number}"
    name = text.replace("\n", " ")[:60]
    body = {"run": run, "policy_revision": 0, "verifiers": [{"name": "exact", "reference": text, "heldout": True}],
            "groups": [{"task": name, "completions": [{"text": "no", "engine": name, "rewards": {name: {"score": 1, "weight": 1}}}, {"failure": {"code": "engine_error", "message": name}}]}]}
    reply = plain.post("/v1/score", body)
    if reply.status == 400 and "rewards" in reply.error["path"]:
        body["groups"][0]["completions"][0].pop("rewards")
        reply = plain.post("/v1/score", body)
    assert reply.status == 200, reply
    assert plain.put(f"/v1/runs/{run}/notes", {"prediction": text, "limitation": text * 3}).status in (200, 201)
    page = Page(page_of(plain, run)[1])
    allowed = {"html", "head", "meta", "title", "style", "body", "header", "h1", "bdi", "p", "code", "main", "ul", "li", "b", "span", "section", "h2", "dl", "dt", "dd", "div", "figure",
               "figcaption", "svg", "path", "circle", "rect", "line", "text", "desc", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
    assert {tag for tag, _ in page.elements} <= allowed
    assert not any(attribute.startswith("on") for _, attributes in page.elements for attribute in attributes)
    assert len(page.find("figure")) == 8 and len(page.find("title")) == 1 + sum(svg.get("role") == "img" for svg in page.find("svg"))
    shown = text.replace("\u0007", "\ufffd")
    assert shown in page.texts and shown * 3 in "".join(page.texts)
    markdown = re.sub(r"^(`{3,})json\n[^\n]*\n\1$", "", page_of(plain, run, "text/markdown")[1], flags=re.M)
    assert not re.search(r"^# c|(?<!\\)<|(?<!\\)`[^`\n]*(?<!\\)<|^```", markdown, re.M) and "\u0007" not in markdown, markdown


def test_held_out_scores_stand_beside_the_reward(plain):
    score(plain, "beside", 0, [("t", [0, 1]), ("u", [1, 1])])
    row = next(line for line in page_of(plain, "beside", "text/markdown")[1].splitlines() if line.startswith("| 0 |"))
    assert row.split(" | ")[4:6] == ["0.75 ± 0.18", "0.75 ± 0.18"]  # sqrt(0.5^2 + 0.5^2) / 4
    assert "| reward | correct | zero variance |" in page_of(plain, "beside", "text/markdown")[1]
    assert '<th scope="col">reward</th><th scope="col"><bdi>correct</bdi></th>' in page_of(plain, "beside")[1]


def test_an_axis_of_counts_has_whole_marks(plain):
    score(plain, "counts", 0, [("t", [0, "engine_error"])])
    figure = next(part for part in re.findall("<figure.*?</figure>", page_of(plain, "counts")[1], re.S) if "Failures by code" in part)
    assert re.findall(r'<text class="mark"[^>]*>([^<]*)</text>', figure)[:2] == ["0", "1"]


def test_a_table_of_markdown_has_as_many_columns_in_each_row(plain):
    a_run(plain, "tabled", 2)
    lines = page_of(plain, "tabled", "text/markdown")[1].splitlines()
    tables = [index for index, line in enumerate(lines) if re.fullmatch(r"\|(---\|)+", line)]
    assert len(tables) == 3
    for index in tables:
        width = len(re.findall(r"(?<!\\)\|", lines[index]))
        assert len(re.findall(r"(?<!\\)\|", lines[index - 1])) == width
        for line in lines[index + 1:]:
            if not line.startswith("|"):
                break
            assert len(re.findall(r"(?<!\\)\|", line)) == width, line


def test_the_alarms_of_a_report_are_those_that_are_raised(start):
    """Also for revisions that were well, and after a start."""
    service = start()
    for revision, members in enumerate(([0, 1], [1, 1])):
        score(service, "flat", revision, [(f"t{task}", members * 4) for task in range(5)])
    raised = eventually(lambda: service.get("/v1/pending?run=flat").json["alarms"], "an alarm of the run")
    assert [item["alarm"] for item in raised] == ["zero_variance"]
    want = [{name: value for name, value in item.items() if name not in ("run", "since")} for item in raised]
    assert checked(service, "flat")["alarms"] == checked(service, "flat", last=0)["alarms"] == want
    evidence = want[0]["evidence"]
    assert all(row["zero_variance_groups"] == 1 for row in service.get(evidence).json["items"])
    assert "`zero_variance`), revision 1: `" + evidence + "`" in page_of(service, "flat", "text/markdown")[1]
    assert {"zero_variance", evidence} <= set(Page(page_of(service, "flat")[1]).texts)
    assert service.terminate() == 0
    service.start()
    assert checked(service, "flat")["alarms"] == want


def test_an_alarm_names_its_engine_as_text(plain):
    """A gap between log-probabilities, of an engine with a name that is markup."""
    name = "<b>`e`|*"
    groups = [{"task": "t", "reference": "yes", "completions": [{"text": "yes", "engine": name, "completion_ids": [1, 2], "logprobs": [-0.5, -0.5]}, {"text": "no", "engine": name, "completion_ids": [1, 3], "logprobs": [-0.5, -0.5]}]}]
    reply = plain.post("/v1/score", {"run": "gap", "policy_revision": 0, "verifiers": [{"name": "exact"}], "groups": groups})
    assert reply.status == 200, reply
    step(plain, reply.json, 1)
    alarm, = checked(plain, "gap")["alarms"]
    assert (alarm["alarm"], alarm["engine"], alarm["revision"]) == ("logprob_gap", name, 0)
    page = Page(page_of(plain, "gap")[1])
    assert name in page.texts and not page.faults
    assert "engine \\<b\\>\\`e\\`\\|\\*: `/v1/stats" in page_of(plain, "gap", "text/markdown")[1]


@pytest.mark.parametrize("accept, kind", [(None, "application/json"), ("*/*", "application/json"), ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
                                          ("application/json, text/html", "application/json"), ("text/markdown", "text/markdown; charset=utf-8"), ("TEXT/HTML", "text/html; charset=utf-8"), ("image/png", "application/json"),
                                          ("text/html;q=0", "application/json"), ("text/html; Q=0.000, */*", "application/json"), ("text/html;level=1;q=0.5, application/json;q=0.75", "application/json"),
                                          ("text/html;q=0.5,text/markdown ; q=0.501", "text/markdown; charset=utf-8"), ("application/json;q=0, text/html;q=0.001", "text/html; charset=utf-8"),
                                          ("text/html5", "application/json"), ("application/json;q=0.5;x=y, text/html", "text/html; charset=utf-8"), (",,;q=1, text/html", "text/html; charset=utf-8")])
def test_the_form_that_is_wanted_most_is_sent(plain, accept, kind):
    score(plain, "formed", 0, [("t", [0, 1])])
    reply = plain.get("/v1/runs/formed/report", headers={"Accept": accept} if accept else {})
    assert (reply.status, reply.headers["content-type"]) == (200, kind)
