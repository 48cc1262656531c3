"""Manifests: no batch, score or objective call contradicts a frozen setting, in any order of arrival."""
import json
import sqlite3
import threading

import pytest

from harness import ROOT
from material import make_batch, make_group, rollouts, sampling
from test_records import pages
from test_tasksets import body_of, line, put

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
GRPO = {"preset": "grpo"}


def freeze(service, run, **manifest):
    return service.put(f"/v1/runs/{run}", {"manifest": manifest})


def frozen(service, run, **manifest):
    reply = freeze(service, run, **manifest)
    assert reply.status in (200, 201), reply
    return reply.json


def score_body(run, *groups, **fields):
    groups = list(groups) or [{"task": "t", "reference": "42", "completions": [{"text": "\\boxed{42}"}, {"text": "no"}]}]
    return {"run": run, "verifiers": [{"name": "math"}], "groups": groups, **fields}


def score(service, run, *groups, **fields):
    return service.post("/v1/score", score_body(run, *groups, **fields))


def tokens(count, task="t"):
    """A group of one completion of so many tokens."""
    return {"task": task, "reference": "42", "completions": [{"text": "\\boxed{42}", "completion_ids": list(range(count)), "logprobs": [-0.5] * count}]}


def conflicts(reply, path):
    assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "state_conflict", path), reply
    return reply.error["message"]


# -- the manifest itself -----------------------------------------------------------------------------------------------------

def test_a_manifest_makes_the_run_and_is_shown_as_it_was_given(plain):
    manifest = {"checkpoint": "demo-1b@3", "tokenizer_sha256": "ab", "data": {"set": "gsm", "sha256": "cd", "split": "train"}, "reference_policy": None,
                "objective": {"preset": "grpo", "beta": 0.1}, "sampling": {"temperature": 1, "top_p": 0.95}, "masks": {"truncated": False},
                "verifiers": [{"name": "math", "weight": 0.8}], "evaluation": {"set": "gsm", "k": [1, 8]}, "budget": {"completion_tokens": 1000000}}
    reply = freeze(plain, "whole", **manifest)
    assert reply.status == 201 and reply.json == {"run": "whole", "created": True, "version": 1, "manifest": manifest}
    run = plain.read("/v1/runs/whole")
    assert run["manifest"] == manifest and run["counts"]["batches"] == 0
    assert list(run["manifest"]) == list(manifest)


def test_a_run_without_a_manifest_shows_none(plain):
    assert plain.put("/v1/runs/bare/policy", {"revision": 0}).status == 200
    assert plain.read("/v1/runs/bare")["manifest"] is None


def test_a_manifest_has_no_parameters(plain):
    reply = plain.put("/v1/runs/unasked?dry_run=true", {"manifest": {}})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", "dry_run")
    assert plain.get("/v1/runs/unasked").status == 404


def test_sampling_with_a_nul_in_a_stop_text_is_frozen_like_any_other(plain):
    frozen(plain, "nul", sampling={"stop": ["\x00"], "temperature": 0.5})
    conflicts(freeze(plain, "nul", sampling={"temperature": 0.25}), "sampling.temperature")
    conflicts(freeze(plain, "nul", sampling={"stop": ["\x00\x00"]}), "sampling.stop")


def test_the_same_manifest_again_changes_nothing(plain):
    frozen(plain, "same", sampling={"temperature": 0.1})
    for _ in range(2):
        reply = freeze(plain, "same", sampling={"temperature": 0.1})
        assert reply.status == 200 and reply.json["created"] is False and reply.json["version"] == 1
    assert freeze(plain, "same").json["manifest"] == {"sampling": {"temperature": 0.1}}


def test_new_keys_are_added_at_every_depth_and_frozen_ones_stay(plain):
    frozen(plain, "grows", sampling={"temperature": 1.0}, verifiers=[{"name": "math"}, {"name": "exact", "id": "e", "heldout": True}], checkpoint="a")
    added = frozen(plain, "grows", sampling={"max_tokens": 16}, objective=GRPO, verifiers=[{"name": "exact", "id": "e"}, {"name": "math", "weight": 2}], evaluation={"k": 1})
    assert added["version"] == 2
    assert added["manifest"] == {"sampling": {"temperature": 1.0, "max_tokens": 16}, "verifiers": [{"name": "math", "weight": 2}, {"name": "exact", "id": "e", "heldout": True}],
                                 "checkpoint": "a", "objective": GRPO, "evaluation": {"k": 1}}
    conflicts(freeze(plain, "grows", sampling={"max_tokens": 17}), "sampling.max_tokens")
    assert plain.read("/v1/runs/grows")["manifest"] == added["manifest"]


@pytest.mark.parametrize("change, path", [
    ({"checkpoint": "b"}, "checkpoint"), ({"checkpoint": None}, "checkpoint"), ({"tokenizer_sha256": "cd"}, "tokenizer_sha256"), ({"data": {"split": "test"}}, "data.split"),
    ({"objective": {"loss": {"eps_high": 0.3}}}, "objective.loss.eps_high"), ({"objective": {"preset": "dr_grpo"}}, "objective.preset"),
    ({"sampling": {"temperature": 0.5}}, "sampling.temperature"), ({"masks": {"truncated": True}}, "masks.truncated"),
    ({"verifiers": [{"name": "math", "weight": 2}]}, "verifiers.math.weight"), ({"verifiers": []}, "verifiers.math"),
    ({"verifiers": [{"name": "math"}, {"name": "exact"}]}, "verifiers.exact"), ({"evaluation": {"deep": {"a": [1, {"b": 3}]}}}, "evaluation.deep.a"),
    ({"budget": {"revisions": 8}}, "budget.revisions")])
def test_a_frozen_key_is_never_changed(plain, change, path):
    frozen(plain, "solid", checkpoint="a", tokenizer_sha256="ab", data={"split": "train"}, objective=GRPO, sampling={"temperature": 1}, masks={"truncated": False},
           verifiers=[{"name": "math", "weight": 1}], evaluation={"deep": {"a": [1, {"b": 2}]}}, budget={"revisions": 7})
    conflicts(freeze(plain, "solid", **change), path)


@pytest.mark.parametrize("change", [
    {"sampling": {"temperature": 1.0}}, {"objective": {"loss": {"eps_high": 0.2}}}, {"objective": {"epsilon": 0.2}}, {"verifiers": [{"name": "math", "weight": 1.0}]},
    {"budget": {"revisions": 7.0}}, {"sampling": {"stop": "x"}}])
def test_the_same_value_in_other_words_is_no_change(plain, change):
    frozen(plain, "worded", objective=GRPO, sampling={"temperature": 1, "stop": ["x"]}, verifiers=[{"name": "math", "weight": 1}], budget={"revisions": 7})
    frozen(plain, "worded", **change)


@pytest.mark.parametrize("manifest, code, path", [
    ({"sampling": {"temprature": 1}}, "unknown_field", "manifest.sampling.temprature"), ({"objective": {"preset": "grppo"}}, "objective_options", "manifest.objective.preset"),
    ({"objective": {"loss": {"eps_hgih": 1}}}, "unknown_field", "manifest.objective.loss.eps_hgih"), ({"verifiers": [{"name": "maths"}]}, "invalid_field", "manifest.verifiers[0].name"),
    ({"verifiers": [{"name": "math"}, {"name": "math"}]}, "invalid_field", "manifest.verifiers[1].id"), ({"verifiers": {"math": 1}}, "invalid_field", "manifest.verifiers"),
    ({"budget": {"tokens": 1}}, "unknown_field", "manifest.budget.tokens"), ({"budget": {"revisions": -1}}, "invalid_field", "manifest.budget.revisions"),
    ({"budget": {"completion_tokens": 0.5}}, "invalid_field", "manifest.budget.completion_tokens"), ({"budget": 7}, "invalid_field", "manifest.budget"),
    ({"data": {"set": 1}}, "invalid_field", "manifest.data.set"), ({"data": {"sets": "a"}}, "unknown_field", "manifest.data.sets"),
    ({"seed": 1}, "unknown_field", "manifest.seed"), ({"tokenizer_sha256": 1}, "invalid_field", "manifest.tokenizer_sha256")])
def test_an_invalid_manifest_is_refused_with_its_path_and_makes_no_run(plain, manifest, code, path):
    reply = freeze(plain, "none", **manifest)
    assert reply.status in (400, 422) and (reply.error["code"], reply.error["path"]) == (code, path), reply
    assert plain.get("/v1/runs/none").status == 404


@pytest.mark.parametrize("body", [b"{}", b'{"manifest":null}', b'{"manifest":[]}', b'{"manifest":{},"more":1}', b'{"manifest":{"checkpoint":NaN}}',
                                  b'{"manifest":{"checkpoint":1e999}}', b'{"manifest":{"checkpoint":"a","checkpoint":"b"}}', b"[]", b"",
                                  b'{"manifest":{"evaluation":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}}",
                                  b'{"manifest":{"evaluation":' + b'{"a":' * 30 + b"1" + b"}" * 30 + b"}}",
                                  b'{"manifest":{"checkpoint":"' + b"x" * 262144 + b'"}}'])
def test_a_hostile_body_is_refused_and_makes_no_run(plain, body):
    reply = plain.request("PUT", "/v1/runs/hostile", body)
    assert reply.status == 400, reply
    assert plain.get("/v1/runs/hostile").status == 404


@pytest.mark.parametrize("name", ["a%2Fb", "x" * 129, "%00", "%C3%A4"])
def test_a_name_that_no_run_may_have_is_refused(plain, name):
    assert freeze(plain, name).status in (400, 404)


def test_the_largest_manifest_is_kept(plain):
    evaluation = {f"k{i}": "x" * 1000 for i in range(250)}
    frozen(plain, "huge", evaluation=evaluation)
    assert plain.read("/v1/runs/huge")["manifest"]["evaluation"] == evaluation
    conflicts(freeze(plain, "huge", evaluation={"k249": "y"}), "evaluation.k249")


def test_a_manifest_stays_after_a_kill(start):
    service = start()
    frozen(service, "kept", sampling={"temperature": 0.5}, objective=GRPO)
    service.restart()
    assert service.read("/v1/runs/kept")["manifest"] == {"sampling": {"temperature": 0.5}, "objective": GRPO}
    conflicts(freeze(service, "kept", sampling={"temperature": 1}), "sampling.temperature")
    conflicts(score(service, "kept", objective={"preset": "dr_grpo"}), "objective.preset")


# -- batches and scores ------------------------------------------------------------------------------------------------------

@pytest.fixture
def sampled(service, engine):
    engine.rules(RIGHT)
    return service


@pytest.mark.parametrize("manifest, change, path", [
    ({"sampling": {"temperature": 1}}, {"sampling": sampling(2, temperature=0.5)}, "sampling.temperature"),
    ({"sampling": {"n": 2}}, {"sampling": sampling(3)}, "sampling.n"),
    ({"sampling": {"stop": ["a"]}}, {}, "sampling.stop"),
    ({"sampling": {"max_tokens": 16}}, {"groups": [make_group("a"), make_group("b", sampling={"max_tokens": 8})]}, "sampling.max_tokens"),
    ({"sampling": {"engine_options": {"a": 1}}}, {"sampling": sampling(2, engine_options={"a": 2})}, "sampling.engine_options.a"),
    ({"objective": GRPO}, {"objective": {"preset": "dr_grpo"}}, "objective.preset"),
    ({"objective": GRPO}, {"objective": {"preset": "grpo", "loss": {"eps_high": 0.28}}}, "objective.loss.eps_high"),
    ({"objective": {"loss": {"eps_high": 0.28}}}, {}, "objective.loss.eps_high"),
    ({"masks": {"truncated": False}}, {"objective": {"mask": {"truncated": True}}}, "masks.truncated"),
    ({"verifiers": [{"name": "math"}]}, {"verifiers": [{"name": "exact"}]}, "verifiers.math"),
    ({"verifiers": [{"name": "math"}]}, {"verifiers": [{"name": "math"}, {"name": "exact", "heldout": True}]}, "verifiers.exact"),
    ({"verifiers": [{"name": "math", "weight": 1}]}, {"verifiers": [{"name": "math", "weight": 2}]}, "verifiers.math.weight"),
    ({"verifiers": [{"name": "math", "heldout": False}]}, {"groups": [make_group("a", verifiers=[{"name": "math", "heldout": True}])]}, "verifiers.math.heldout"),
    ({"verifiers": [{"name": "math", "version": "0"}]}, {}, "verifiers.math.version")])
def test_a_batch_that_contradicts_is_refused_and_one_that_keeps_to_it_is_taken(sampled, manifest, change, path):
    frozen(sampled, "test", **manifest)
    message = conflicts(sampled.post("/v1/batches", make_batch(**change)), path)
    assert "manifest" in message
    assert sampled.read("/v1/runs/test")["counts"]["batches"] == 0
    assert sampled.post("/v1/batches", make_batch(**change, run="other")).status == 200


def test_settings_outside_the_manifest_are_free(sampled):
    frozen(sampled, "test", sampling={"temperature": 1}, verifiers=[{"name": "math"}], checkpoint="a", reference_policy="b", tokenizer_sha256="c", masks={"mine": 1},
           evaluation={"sampling": {"n": 64}})
    for change in ({}, {"sampling": sampling(4, max_tokens=8)}, {"objective": {"preset": "dapo"}}, {"verifiers": [{"name": "math", "weight": 3}]}):
        sampled.batch(make_batch(**change))


def test_an_evaluation_may_differ(sampled):
    frozen(sampled, "test", sampling={"n": 2, "temperature": 1}, verifiers=[{"name": "math"}], objective=GRPO, budget={"completion_tokens": 0, "revisions": 0})
    sampled.batch(make_batch(purpose="eval", sampling=sampling(8, temperature=0), verifiers=[{"name": "exact"}]))


def test_a_key_that_made_a_batch_finds_it_whatever_was_frozen_since(sampled):
    body, head = make_batch(), {"Idempotency-Key": "k"}
    first = sampled.post("/v1/batches", body, head).json
    frozen(sampled, "test", budget={"completion_tokens": 6})
    assert sampled.post("/v1/batches", body, head).json["id"] == first["id"]
    conflicts(sampled.post("/v1/batches", body), "budget")


@pytest.mark.parametrize("store", [True, False])
def test_a_score_is_held_against_it_too_but_has_no_sampling(plain, store):
    run = f"scored-{store}"
    frozen(plain, run, sampling={"temperature": 1}, verifiers=[{"name": "math", "weight": 1}], objective=GRPO)
    assert score(plain, run, store=store).status == 200
    conflicts(score(plain, run, store=store, objective={"preset": "rloo"}), "objective.preset")
    conflicts(score(plain, run, store=store, verifiers=[{"name": "math", "weight": 0.5}]), "verifiers.math.weight")


def test_an_objective_call_on_rollouts_of_the_run_is_held_against_it(plain):
    made = [rollout["id"] for rollout in rollouts(score(plain, "called", tokens(2), tokens(2, "u"), objective=GRPO).json)]
    frozen(plain, "called", objective=GRPO)
    rows = [{"rollout": name, "logprobs": [-0.4, -0.6]} for name in made]
    for more in ({}, {"optimizer_step": 3}):
        assert plain.post("/v1/objective", {"sequences": rows, **more}).status == 200
        assert plain.post("/v1/objective", {"objective": GRPO, "sequences": rows, **more}).status == 200
        conflicts(plain.post("/v1/objective", {"objective": {"preset": "grpo", "loss": {"eps_low": 0.3}}, "sequences": rows, **more}), "objective.loss.eps_low")
    stateless = {"objective": {"preset": "dr_grpo"}, "sequences": [{"group": "a", "reward": 1, "logprobs": [-0.7]}, {"group": "a", "reward": 0, "logprobs": [-1.0]}]}
    assert plain.post("/v1/objective", stateless).status == 200


# -- data --------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def sets(plain):
    """Two sets, and their digests."""
    return {name: put(plain, name, body_of(line(f"{name}-1"), line(f"{name}-2"), line(f"{name}-test", split="test"))).json["sha256"] for name in ("mine", "other")}


def of_set(name, task="1"):
    return {"set": name, "task": f"{name}-{task}", "completions": [{"text": "\\boxed{42}"}, {"text": "no"}]}


PLAIN = {"task": "t", "reference": "42", "completions": [{"text": "\\boxed{42}"}]}


@pytest.mark.parametrize("key", ["set", "sha256", "split"])
@pytest.mark.parametrize("groups", [[PLAIN], [of_set("mine"), PLAIN], [of_set("mine"), of_set("mine", "2"), of_set("other")]], ids=["no set", "one without a set", "another set"])
def test_a_score_of_other_data_is_refused_before_the_manifest_or_after_it(plain, sets, key, groups):
    run, data = f"data-{key}-{len(groups)}", {"set": "mine", "sha256": sets["mine"], "split": "train"}
    wanted = {key: data[key]}
    contradicts = not (key == "split" and len(groups) == 3)
    frozen(plain, run, data=wanted)
    assert score(plain, run, of_set("mine"), of_set("mine", "2")).status == 200
    assert score(plain, f"{run}-before", *groups).status == 200
    if contradicts:
        said = conflicts(score(plain, run, *groups), f"data.{key}")
        assert "manifest" in said and (PLAIN not in groups or "nothing" in said)
        conflicts(freeze(plain, f"{run}-before", data=wanted), f"data.{key}")
        assert plain.read(f"/v1/runs/{run}-before")["manifest"] is None
        frozen(plain, run, data=data)
    else:
        assert score(plain, run, *groups).status == 200
        frozen(plain, f"{run}-before", data=wanted)
        conflicts(freeze(plain, run, data=data), "data.set")


def test_a_batch_of_other_data_is_refused_and_an_evaluation_is_free(sampled):
    sha256 = put(sampled, "gsm", body_of(line("gsm-1"), line("gsm-test", split="test"))).json["sha256"]
    frozen(sampled, "test", data={"set": "gsm", "sha256": sha256, "split": "train"})
    conflicts(sampled.post("/v1/batches", make_batch()), "data.set")
    conflicts(sampled.post("/v1/batches", make_batch({"set": "gsm", "task": "gsm-1"}, make_group("a"))), "data.set")
    assert sampled.read("/v1/runs/test")["counts"]["batches"] == 0
    sampled.batch(make_batch({"set": "gsm", "task": "gsm-1"}))
    sampled.batch(make_batch({"set": "gsm", "task": "gsm-test"}, purpose="eval"))
    sampled.batch(make_batch(purpose="eval"))


def test_another_set_under_the_name_is_told_by_its_digest(plain, sets):
    frozen(plain, "digest", data={"set": "mine", "sha256": sets["other"]})
    assert sets["mine"] in conflicts(score(plain, "digest", of_set("mine"), store=False), "data.sha256")


def test_a_manifest_that_names_no_data_takes_any(plain, sets):
    for data in ({}, {"data": {}}):
        frozen(plain, "any", **data)
        assert score(plain, "any", of_set("mine"), PLAIN, of_set("other")).status == 200


# -- the record --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("manifest, path", [
    ({"objective": {"preset": "dapo"}}, "objective.preset"), ({"verifiers": [{"name": "exact"}]}, "verifiers.exact"), ({"verifiers": [{"name": "math", "weight": 2}]}, "verifiers.math.weight"),
    ({"sampling": {"temperature": 0.5}}, "sampling.temperature"), ({"sampling": {"max_tokens": 16}}, "sampling.max_tokens"), ({"sampling": {"stop": ["a"]}}, "sampling.stop")])
def test_a_manifest_that_contradicts_batches_on_record_is_refused(sampled, manifest, path):
    for _ in range(3):
        sampled.batch(make_batch())
    odd = sampled.batch(make_batch(make_group("a"), make_group("b", sampling={"max_tokens": 8, "stop": "b"})))
    sampled.batch(make_batch(purpose="eval", verifiers=[{"name": "exact"}], sampling=sampling(1, top_p=0.5)))
    message = conflicts(freeze(sampled, "test", **manifest), path)
    if path == "sampling.max_tokens":
        assert odd["id"] in message
    assert sampled.read("/v1/runs/test")["manifest"] is None
    frozen(sampled, "test", objective=GRPO, verifiers=[{"name": "math", "weight": 1, "options": {}}], sampling={"temperature": 1, "n": 2, "top_p": 1})


def test_the_whole_of_a_long_record_is_looked_at(plain):
    for number in range(300):
        assert score(plain, "long", objective={"preset": "dapo"} if number == 299 else GRPO).status == 200
    conflicts(freeze(plain, "long", objective=GRPO), "objective.preset")
    frozen(plain, "long", verifiers=[{"name": "math"}])


# -- budgets -----------------------------------------------------------------------------------------------------------------

def test_beyond_the_completion_tokens_no_batch_is_taken(plain):
    frozen(plain, "tokens", budget={"completion_tokens": 10})
    assert score(plain, "tokens", tokens(6)).status == 200
    assert score(plain, "tokens", tokens(6), purpose="eval").status == 200
    assert plain.read("/v1/runs/tokens")["counts"]["train_tokens"] == 6
    assert score(plain, "tokens", tokens(4)).status == 200
    conflicts(score(plain, "tokens", tokens(1)), "budget")
    assert score(plain, "tokens", tokens(1), purpose="eval").status == 200
    assert plain.read("/v1/runs/tokens")["counts"]["train_tokens"] == 10


def test_beyond_the_revisions_no_new_one_begins_also_after_a_rewind(plain):
    frozen(plain, "revisions", budget={"revisions": 2})
    for revision in (0, 0, 4, 4, 0):
        assert score(plain, "revisions", policy_revision=revision).status == 200
    conflicts(score(plain, "revisions", policy_revision=5), "budget")
    assert plain.read("/v1/runs/revisions")["policy_revision"] == 4
    assert plain.put("/v1/runs/revisions/policy", {"revision": 4, "rewind_to_step": 4}).status == 200
    conflicts(score(plain, "revisions", policy_revision=4), "budget")


@pytest.mark.parametrize("budget, fits", [({"completion_tokens": 5}, False), ({"completion_tokens": 6}, True), ({"revisions": 1}, False), ({"revisions": 2}, True)])
def test_a_budget_that_is_spent_already_contradicts_the_record(start, budget, fits):
    service = start()
    for revision in (1, 2):
        assert score(service, "spent", tokens(3), policy_revision=revision).status == 200
    reply = freeze(service, "spent", budget=budget)
    if fits:
        assert reply.status == 200
    else:
        conflicts(reply, "budget")
        assert service.read("/v1/runs/spent")["manifest"] is None


def test_tokens_from_before_they_were_counted_are_counted_once(start):
    """45,000 rollouts of a file that was just migrated: more than two slices."""
    service = start()
    assert score(service, "old", tokens(2)).status == 200
    service.terminate()
    with sqlite3.connect(service.database) as file:
        file.execute("INSERT INTO groups (batch_seq, group_index, task_seq, draw, first_sample_index, n, state, closed_at_us, rewarded, zero_variance)"
                     " SELECT batch_seq, 1, task_seq, 0, 0, 45000, 'complete', 1, 0, 0 FROM groups")
        columns = [row[1] for row in file.execute("PRAGMA table_info(rollouts)")]
        values = {name: name for name in columns if name != "seq"} | {"group_seq": "(SELECT max(seq) FROM groups)", "sample_index": "n", "reward": "NULL", "advantage": "NULL",
                                                                      "shaped_reward": "NULL", "completion_tokens": "3"}
        file.execute("DROP TRIGGER IF EXISTS rollouts_start_without_advantage")
        file.execute(f"INSERT INTO rollouts ({', '.join(values)}) WITH RECURSIVE many (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM many WHERE n < 44999)"
                     f" SELECT {', '.join(values.values())} FROM many, (SELECT * FROM rollouts LIMIT 1)")
        file.execute("UPDATE runs SET spent_tokens = 0, spent_counted_to = 0")
    service.start()
    assert service.read("/v1/runs/old")["counts"]["train_tokens"] is None
    assert score(service, "old", tokens(5)).status == 200
    conflicts(freeze(service, "old", budget={"completion_tokens": 135006}), "budget")
    assert service.read("/v1/runs/old")["counts"]["train_tokens"] == 2 + 135000 + 5
    frozen(service, "old", budget={"completion_tokens": 135008})
    assert score(service, "old", tokens(1)).status == 200
    conflicts(score(service, "old", tokens(1)), "budget")
    service.terminate()


# -- at once -----------------------------------------------------------------------------------------------------------------

def together(*calls):
    replies = [None] * len(calls)

    def carry_out(place):
        replies[place] = calls[place]()
    threads = [threading.Thread(target=carry_out, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_of_two_manifests_at_once_one_is_frozen_and_the_other_refused(plain):
    for number in range(20):
        run = f"two-{number}"
        replies = together(*(lambda value=value: freeze(plain, run, sampling={"temperature": value}, evaluation={f"k{value}": 1}) for value in (1, 2, 3)))
        taken = [value for value, reply in zip((1, 2, 3), replies) if reply.status in (200, 201)]
        assert len(taken) == 1 and sorted(reply.status for reply in replies) == [201, 409, 409]
        assert plain.read(f"/v1/runs/{run}")["manifest"] == {"sampling": {"temperature": taken[0]}, "evaluation": {f"k{taken[0]}": 1}}


def test_of_manifests_that_agree_all_keys_are_frozen(plain):
    replies = together(*(lambda key=key: freeze(plain, "many", evaluation={f"k{key}": key}, checkpoint="a") for key in range(8)))
    assert sorted(reply.status for reply in replies) == [200] * 7 + [201]
    assert plain.read("/v1/runs/many")["manifest"] == {"checkpoint": "a", "evaluation": {f"k{key}": key for key in range(8)}}
    assert freeze(plain, "many").json["version"] == 8


def test_a_manifest_and_batches_that_contradict_it_never_stand_side_by_side(plain):
    for number in range(20):
        run = f"race-{number}"
        replies = together(lambda: freeze(plain, run, objective=GRPO), *(lambda: score(plain, run, objective={"preset": "dapo"}) for _ in range(3)))
        manifest, scores = replies[0].status, [reply.status for reply in replies[1:]]
        record = plain.read(f"/v1/runs/{run}")
        assert record["counts"]["batches"] == scores.count(200)
        assert (manifest == 409 and record["manifest"] is None and 200 in scores) or (manifest in (200, 201) and scores == [409, 409, 409])


def test_of_batches_at_once_only_those_of_the_budget_s_revisions_are_taken(plain):
    for number in range(10):
        run = f"budget-{number}"
        frozen(plain, run, budget={"revisions": 1})
        replies = together(*(lambda revision=revision: score(plain, run, policy_revision=revision) for revision in range(5)))
        assert [reply.status for reply in replies].count(200) == 1
