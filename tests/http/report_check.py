#!/usr/bin/env python3
"""Every number of GET /v1/runs/{run}/report again, from the rows of the record alone.

    tests/http/report_check.py URL RUN [FROM [TO]] [tag.NAME=VALUE …] [by=tag.NAME]

It reads /v1/batches with their groups and requests, /v1/tasksets, /v1/runs/{run}/objective and /v1/runs/{run}/metrics, shares no code with the service, and
prints the differences."""
import collections
import hashlib
import itertools
import json
import math
import sys
import urllib.parse
import urllib.request

MEANS = ("kl", "kl_policy", "kl_engine", "entropy", "logprob_gap")


class Record:
    """get(path) gives the JSON of a path."""

    def __init__(self, get, run):
        self.get, self.run = get, run

    def pages(self, path, **query):
        cursor = None
        while True:
            text = urllib.parse.urlencode({**query, "limit": 1000, **({"cursor": cursor} if cursor else {})})
            page = self.get(f"{path}?{text}")
            yield from page["items"]
            cursor = page["next"]
            if not cursor:
                return

    def batches(self):
        return [{**self.get(f"/v1/batches/{batch['id']}?arrays=none&wait=0s"), "request": self.get(f"/v1/batches/{batch['id']}/request")} for batch in self.pages("/v1/batches", run=self.run)]

    def rollouts(self):
        """By batch and group, with the members of their group and batch."""
        for batch in self.pages("/v1/batches", run=self.run, order="asc"):
            for group in self.pages(f"/v1/batches/{batch['id']}/groups", arrays="none", fields="prompt"):
                for rollout in (one for one in group["rollouts"] if one["state"] != "pending"):  # these have no row yet
                    yield {**rollout, "purpose": batch["purpose"], "batch": batch["id"], "group": group["id"], "task": group["task"], "set": group["set"], "prompt": asked(group), "tags": group["tags"] or {}, "closed": group["state"] == "complete"}


def asked(task):
    """The prompt of a group, or of a task of a set, which names messages `messages`; to compare. None: it has none."""
    prompt = task["messages"] if task.get("messages") is not None else task.get("prompt")
    return None if prompt is None else json.dumps(prompt, sort_keys=True)


def heldout_prompts(record):
    """Of the tasks of every set on record whose split is not train."""
    sets = [one["set"] for one in record.pages("/v1/tasksets")]
    return {asked(task) for name in sets for task in record.pages(f"/v1/tasksets/{name}/tasks") if task["split"] != "train"}


def mean(values):
    return math.fsum(values) / len(values) if values else None


def clustered(pairs):
    """[(task, value)] to (mean, se): sqrt(sum over tasks of (sum of its (x - mean))^2) / n."""
    middle = mean([value for _, value in pairs])
    if len({task for task, _ in pairs}) < 2:
        return middle, None
    sums = collections.defaultdict(list)
    for task, value in pairs:
        sums[task].append(value - middle)
    return middle, math.sqrt(math.fsum(math.fsum(part) ** 2 for part in sums.values())) / len(pairs)


def share(part, whole):
    return part / whole if whole else None


def same_rewards(values):
    low, high = min(values), max(values)
    return high - low <= 1e-12 * max(abs(low), abs(high))


# -- one row -----------------------------------------------------------------------------------------------------------------------

def row_of(rollouts, groups, sums, batches):
    """groups: {id: [its rollouts, whole]}; sums: rows of /v1/runs/{run}/objective."""
    judged = [one for one in rollouts if one["reward"] is not None]
    own = {one["group"] for one in rollouts}
    judged_groups = [group for group in own if groups[group][0]["closed"] and any(one["reward"] is not None for one in groups[group])]
    zero = [group for group in judged_groups if same_rewards([one["reward"] for one in groups[group] if one["reward"] is not None])]
    reward = clustered([(one["task"], one["reward"]) for one in judged])
    tokens = clustered([(one["task"], one["completion_tokens"]) for one in judged])
    names = sorted({name for one in rollouts for name in one["heldout"] or {}})
    stale = [one["revision_at_end"] - one["policy_revision"] for one in rollouts if one["revision_at_end"] is not None]
    row = {"batches": batches, "groups": len(own), "n": len(rollouts), "scored": sum(one["state"] == "scored" for one in rollouts),
           "failed": sum(one["state"] == "failed" for one in rollouts), "cancelled": sum(one["state"] == "cancelled" for one in rollouts),
           "reward": {"mean": reward[0], "se": reward[1]}, "heldout": {}, "zero_variance_share": share(len(zero), len(judged_groups)),
           "tokens": {"mean": tokens[0], "se": tokens[1], "sum": sum(one["completion_tokens"] or 0 for one in rollouts)},
           "truncated_share": share(sum(one["finish_reason"] == "length" for one in judged), len(judged)), "staleness": mean(stale),
           "failures": dict(collections.Counter(one["failure"]["code"] for one in rollouts if one["failure"])),
           "engine_seconds": sum(one["timing"]["engine_us"] for one in rollouts) / 1e6}
    for name in names:
        scores = [(one["task"], one["heldout"][name]["score"]) for one in rollouts if name in (one["heldout"] or {}) and one["heldout"][name]["score"] is not None]
        middle, error = clustered(scores)
        row["heldout"][name] = {"mean": middle, "se": error, "scored": len(scores)}
    return {**row, **objective_of(sums)}


def objective_of(sums):
    numbers = {}
    for name in MEANS:
        parts = [one["sums"][name] for one in sums if one["sums"][name]["tokens"]]
        numbers[name] = share(math.fsum(part["sum"] for part in parts), sum(part["tokens"] for part in parts))
    numbers["clip_fraction"] = share(sum(one["clip_low"] + one["clip_high"] for one in sums), sum(one["trainable_tokens"] for one in sums))
    steps = collections.defaultdict(list)
    for one in sums:
        if one["ppo_epoch"] == 0 and one["loss"] is not None:
            steps[one["incarnation"], one["optimizer_step"]].append(one["loss"])
    numbers["loss"] = mean([math.fsum(parts) for parts in steps.values()])
    return numbers


# -- evaluations -------------------------------------------------------------------------------------------------------------------

def evaluation_of(groups, decider, threshold, k):
    """groups: [[rollouts]]: {pass_at, maj_at, best_at: (mean, se)} of one k."""
    passes, majorities, bests, answered = [], [], [], False
    for group in groups:
        votes = []
        for one in group:
            verdict = next((one for one in one["verdicts"] or [] if one["id"] == decider), None) if decider else {"score": one["reward"], "detail": None}
            if verdict and verdict["score"] is not None:
                answer = (verdict["detail"] or {}).get("extracted") if decider else None
                answered = answered or answer is not None
                votes.append((verdict["score"] >= threshold, "correct" if verdict["score"] >= threshold else None if answer is None else ("wrong", answer)))
        right = sum(correct for correct, _ in votes)
        task = group[0]["task"]
        if len(votes) >= k:
            passes.append((task, 1 - math.comb(len(votes) - right, k) / math.comb(len(votes), k)))
            cast = [vote for _, vote in votes[:k] if vote is not None]
            counts = collections.Counter(cast)
            winner = next((vote for vote in cast if counts[vote] == max(counts.values())), None)
            majorities.append((task, float(winner == "correct")))
        rewards = [one["reward"] for one in group if one["reward"] is not None]
        if len(rewards) >= k:
            bests.append((task, mean([max(chosen) for chosen in itertools.combinations(rewards, k)])))
    return {"pass_at": clustered(passes), "maj_at": clustered(majorities if answered else []), "best_at": clustered(bests)}


def decider_of(batch):
    named = batch["request"].get("pass_verifier")
    return named or next((one.get("id", one["name"]) for one in batch.get("verifiers") or [] if one.get("heldout")), None)


def evaluations_of(batches, rollouts, survives):
    found, sets = collections.defaultdict(list), collections.defaultdict(set)
    for one in rollouts:
        sets[one["batch"]].add(one["set"])
    for batch in batches:
        if batch["purpose"] == "eval" and survives(batch["incarnation"], batch["policy_revision"], "eval"):
            for name in sets[batch["id"]]:
                found[batch["policy_revision"], batch["incarnation"], decider_of(batch) or "", batch["request"].get("pass_threshold", 1), name].append(batch)
    for (revision, incarnation, decider, threshold, name), own in found.items():
        ids = {batch["id"] for batch in own}
        groups = collections.defaultdict(list)
        for one in rollouts:
            if one["batch"] in ids and one["closed"] and one["set"] == name:
                groups[one["group"]].append(one)
        ks = sorted({1} | {int(k) for batch in own for k in (batch.get("summary") or {}).get("pass_at_k") or {}})
        estimates = {k: evaluation_of(list(groups.values()), decider or None, threshold, k) for k in ks}
        item = {"incarnation": incarnation, "revision": revision, "set": name, "verifier": decider or None, "threshold": threshold, "batches": len(own), "groups": len(groups),
                "judged": sum(one["reward"] is not None for group in groups.values() for one in group)}
        for kind in ("pass_at", "maj_at", "best_at"):
            item[kind] = {str(k): dict(zip(("mean", "se"), estimates[k][kind])) for k in ks}
        yield item


# -- the whole ---------------------------------------------------------------------------------------------------------------------

def limits_of(training, evaluated, sums, judged, batches, has_heldout, prompts):
    """prompts: held-out ones."""
    tasks, heldout = {one["task"] for one in training}, {one["task"] for one in evaluated} | {one["task"] for one in training if one["prompt"] in prompts}
    newest = {}
    for one in sums:
        if one["sums"]["kl"]["tokens"]:
            key = one["incarnation"], one["optimizer_step"]
            newest[key] = max(newest.get(key, -1), one["revision"])
    makes = {(one["engine_model"], one["engine_version"], one["tokenizer_sha256"]) for one in training if one["engine"] is not None}
    settings = {json.dumps([batch.get(name) for name in ("objective", "sampling", "verifiers")], sort_keys=True) for batch in batches if batch["purpose"] == "train"}
    counts = {"unscored": len(training) - judged, "truncated": sum(one["finish_reason"] == "length" and one["reward"] is not None for one in training),
              "straddling": sum(one["straddles"] for one in training), "seeds_not_honoured": sum(one["seed_honoured"] is False for one in training),
              "processed_logprobs": sum(one["logprobs_mode"] == "processed" for one in training), "mixed_engines": len(makes) - 1, "mixed_settings": len(settings) - 1,
              "kl_of_old_samples": sum(bool(one["sums"]["kl"]["tokens"]) and one["revision"] < newest[one["incarnation"], one["optimizer_step"]] for one in sums),
              "heldout_in_training": len(tasks & heldout), "no_heldout_metric": 0 if has_heldout else judged, "few_tasks": len(tasks) if len(tasks) < 30 else 0}
    return {code: count for code, count in counts.items() if count > 0}


def read(get, run):
    record = Record(get, run)
    return {"rollouts": list(record.rollouts()), "heldout_prompts": heldout_prompts(record), "batches": record.batches(), "objective": list(record.pages(f"/v1/runs/{run}/objective")),
            "metrics": list(record.pages(f"/v1/runs/{run}/metrics"))}


def recompute(record, first=None, last=None, fits=None):
    """fits: of the tags of a group, whether it counts; None: all do."""

    def asked(revision):
        return revision is not None and (first is None or revision >= first) and (last is None or revision <= last)

    rows, lines = [one for one in record["rollouts"] if fits is None or fits(one["tags"])], {}
    for one in record["rollouts"]:
        key = one["policy_revision"], one["purpose"]
        lines[key] = max(lines.get(key, 0), one["incarnation"])

    def survives(incarnation, revision, purpose="train"):
        return incarnation >= lines.get((revision, purpose), 0)

    batches = [batch for batch in record["batches"] if asked(batch["policy_revision"])]
    everything = [one for one in rows if asked(one["policy_revision"])]
    groups = collections.defaultdict(list)
    for one in rows:
        groups[one["group"]].append(one)
    line = [one for one in everything if survives(one["incarnation"], one["policy_revision"], one["purpose"])]
    training = [one for one in line if one["purpose"] == "train"]
    sums = [one for one in record["objective"] if fits is None and asked(one["revision"]) and survives(one["sample_incarnation"], one["revision"])]
    posted = [batch for batch in batches if batch["purpose"] == "train" and survives(batch["incarnation"], batch["policy_revision"])]
    metrics = collections.defaultdict(lambda: collections.defaultdict(list))
    for one in record["metrics"] if fits is None else ():
        for name, value in one["values"].items():
            metrics[one["incarnation"], one["revision"]][name].append(value)

    revisions = []
    for revision, incarnation in sorted({(one["policy_revision"], one["incarnation"]) for one in training}):
        own = [one for one in training if (one["policy_revision"], one["incarnation"]) == (revision, incarnation)]
        row = row_of(own, groups, [one for one in sums if (one["revision"], one["sample_incarnation"]) == (revision, incarnation)],
                     sum((batch["policy_revision"], batch["incarnation"]) == (revision, incarnation) for batch in posted))
        revisions.append({"incarnation": incarnation, "revision": revision, **row, "trainer": {name: mean(values) for name, values in metrics[incarnation, revision].items()}})
    totals = row_of(training, groups, sums, len(posted))
    evaluation = list(evaluations_of(batches, [one for one in line if one["purpose"] == "eval"], survives))
    hashes = "".join(f"{text}\n" for text in sorted(batch["request_sha256"] for batch in batches))
    judged = sum(one["reward"] is not None for one in training)
    return {"revisions": revisions, "totals": {**totals, "tasks": len({one["task"] for one in training}), "trainer": {}}, "failures": totals["failures"],
            "spent": {"rollouts": len(everything), "completion_tokens": sum(one["completion_tokens"] or 0 for one in everything)}, "evaluation": evaluation,
            "inputs": {"requests": len(batches), "sha256": hashlib.sha256(hashes.encode()).hexdigest()},
            "limitations": limits_of(training, [one for one in line if one["purpose"] == "eval"], sums, judged, batches,
                                     bool(totals["heldout"]) or any(batch["purpose"] == "eval" for batch in batches), record["heldout_prompts"])}


def differences(got, want, place=""):
    """The differing values of the report; keys that are not recomputed are texts."""
    if isinstance(want, dict) and isinstance(got, dict):
        for name in want:
            yield from differences(got.get(name, "missing"), want[name], f"{place}.{name}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for index, pair in enumerate(zip(got, want)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(want, float) and isinstance(got, (int, float)) and not isinstance(got, bool):
        if not math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{place}: {got}, not {want}"
    elif got != want:
        yield f"{place}: {got}, not {want}"


def part_of(record, tag, value, tags, *revisions):
    """An item of `parts`."""
    whole = recompute(record, *revisions, lambda own: own.get(tag) == value and tags.items() <= own.items())
    for row in (*whole["revisions"], whole["totals"]):
        row["batches"] = None
    return {"key": {f"tag.{tag}": value}, **{name: whole[name] for name in ("revisions", "totals", "evaluation")}}


def parts_of(record, tag, tags, *revisions):
    values = {one["tags"].get(tag) for one in record["rollouts"] if tags.items() <= one["tags"].items()}
    parts = (part_of(record, tag, value, tags, *revisions) for value in sorted(values, key=lambda value: (value is not None, value)))
    return [part for part in parts if part["totals"]["n"] or part["evaluation"]]


def in_order(report):
    for evaluations in (report["evaluation"], *(part["evaluation"] for part in report.get("parts", ()))):
        evaluations.sort(key=lambda one: (one["revision"], one["incarnation"], one["verifier"] or "", one["threshold"], one["set"] or ""))


def check(get, run, first=None, last=None, tags=None, by=None):
    """The report, and the list of differences. tags: {name: value}; by: "tag.source"."""
    parameters = {"from": first, "to": last, "by": by, **{f"tag.{name}": value for name, value in (tags or {}).items()}}
    query = urllib.parse.urlencode({name: value for name, value in parameters.items() if value is not None})
    report = get(f"/v1/runs/{run}/report" + (f"?{query}" if query else ""))
    record = read(get, run)
    want = recompute(record, first, last, tags and (lambda own: tags.items() <= own.items()))
    if by:
        want["parts"] = parts_of(record, by.removeprefix("tag."), tags or {}, first, last)
    in_order(report)
    in_order(want)
    got = {**report, "limitations": {one["code"]: one["count"] for one in report["limitations"]}}
    found = list(differences(got, want))
    for name in ("failures", "limitations"):
        if got[name] != want[name]:
            found.append(f".{name}: {got[name]}, not {want[name]}")
    return report, found


def main(url, run, *parameters):
    named = dict(one.split("=", 1) for one in parameters if "=" in one)
    tags = {name.removeprefix("tag."): value for name, value in named.items() if name != "by"}
    def get(path):
        with urllib.request.urlopen(url.rstrip("/") + path) as reply:
            return json.load(reply)

    _, found = check(get, run, *(int(one) for one in parameters if "=" not in one), tags=tags, by=named.get("by"))
    print(*found or ["every number is the same"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
