"""A change that can change any verdict raises the verifier's version: 300 verdicts say whether one did."""
import collections
import importlib.machinery
import importlib.util
import os

from harness import ROOT
from material import make_batch, make_group, rollouts, sampling


def load_tool():
    loader = importlib.machinery.SourceFileLoader("fingerprints", os.path.join(ROOT, "tests", "tools", "fingerprints"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fingerprints", loader))
    loader.exec_module(module)
    return module


fingerprints = load_tool()


def test_no_verdict_changes_under_its_version(plain):
    before = fingerprints.read()
    now = fingerprints.judge(lambda body: plain.post("/v1/verify", body).json, before)
    found = fingerprints.changes(before, now)
    assert not found, "\n".join(found[:20])


def test_every_verifier_has_fingerprints_of_each_kind_of_verdict(plain):
    lines = fingerprints.read()
    kinds = collections.defaultdict(collections.Counter)
    for line in lines:
        kinds[line["verifier"]][line["verdict"]] += 1
    assert len(lines) >= 300
    for verifier in plain.read("/v1/verifiers")["verifiers"]:
        if verifier["asks_external"] or verifier["asks_engine"]:  # its verdicts are those of whatever it asks
            continue
        seen = kinds[verifier["name"]]
        assert sum(seen.values()) >= 20 and (seen["scored"] or seen["correct"] and seen["incorrect"]), (
            f"{verifier['name']} has {dict(seen)}, and needs 20 with correct and incorrect ones, or scored ones. If it is new in your branch: add cases to tests/cases/own/{verifier['name']}.jsonl, "
            f"then git checkout origin/main -- tests/fingerprints && ninja -C build generate. Otherwise add lines to {fingerprints.FILE}")


def test_every_verdict_names_its_verifier_version_and_options_wherever_it_is_shown(start, toy):
    service = start(toy)
    verifiers = [{"name": "math", "options": {"extract": "last_number"}}, {"name": "exact", "id": "same", "heldout": True}]
    batch = service.batch(make_batch(make_group("t", "1+1=", "2"), verifiers=verifiers, sampling=sampling(2)))
    scored = service.post("/v1/score", {"run": "s", "verifiers": verifiers, "deadline": "20s", "groups": [
        {"task": "t", "prompt": "1+1=", "reference": "2", "completions": [{"text": "2"}]}]}).json
    item = service.post("/v1/verify", {"verifiers": verifiers, "items": [{"id": "1", "completion": "2", "reference": "2"}]}).json["items"][0]
    found = [item["verdicts"]] + [rollout["verdicts"] for rollout in rollouts(batch) + rollouts(scored)]
    found += [service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"] for rollout in rollouts(batch) + rollouts(scored)]
    identities = {tuple((verdict["id"], verdict["name"], verdict["version"], verdict["options_sha256"]) for verdict in verdicts) for verdicts in found}
    assert len(found) == 7 and len(identities) == 1, identities
    versions = {row["name"]: row["version"] for row in service.read("/v1/verifiers")["verifiers"]}
    for _, name, version, options in identities.pop():
        assert version == versions[name] and len(options) == 64


def test_a_changed_verdict_is_told_with_what_to_do():
    line = {"verifier": "exact", "version": "1", "options": {}, "reference": "a", "completion": "a", "verdict": "correct", "score": 1.0, "reason": "equal"}
    assert fingerprints.changes([line], [line]) == []
    sentence, = fingerprints.changes([line], [{**line, "verdict": "incorrect", "score": 0.0}])
    assert "raise the version of exact" in sentence and "--write" in sentence and "ninja -C build generate" in sentence
    sentence, = fingerprints.changes([line], [{**line, "version": "2", "verdict": "incorrect"}])
    assert "exact is at version 2" in sentence and "--write" in sentence


def test_a_new_verifier_of_any_name_is_written():
    """A name such as `line` begins its sentence as the number of a line does."""
    now = {"verifier": "line", "version": "1", "options": {}, "reference": "a", "completion": "a", "verdict": "correct", "score": 1.0, "reason": "equal"}
    case = {name: value for name, value in now.items() if name not in ("version", "verdict", "score", "reason")}
    sentence, = fingerprints.changes([case], [now])
    assert sentence.startswith("line is at version 1") and not fingerprints.breaks_its_version(case, now)
    assert fingerprints.breaks_its_version(now, {**now, "verdict": "incorrect", "score": 0.0})
