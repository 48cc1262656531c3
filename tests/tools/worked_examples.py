#!/usr/bin/env python3
"""One worked example of every preset, in fifty decimal digits: the formulas of papers and trainers, and none of our code.

  worked_examples.py --write docs/presets.md   writes the page anew
  worked_examples.py --check docs/presets.md   says whether the page holds these numbers

Gradients follow from the scalar loss by the chain rule (Number), not from a second formula.
"""
import argparse
import json
import sys
from decimal import Decimal, getcontext

getcontext().prec = 50
ZERO, ONE = Decimal(0), Decimal(1)
D = Decimal

# The batch of every example. `right` and `form` are two rewards, R = right + form / 2.
BATCH = [
    {"group": "a", "rollout": "a-1", "right": "1", "form": "1", "mask": [1, 1],
     "logprobs": ["-0.5", "-0.78"], "old_logprobs": ["-1", "-1"], "ref_logprobs": ["-0.75", "-0.78"], "rollout_logprobs": ["-1.1", "-0.9"]},
    {"group": "a", "rollout": "a-2", "right": "0", "form": "1", "mask": [1, 1, 0],
     "logprobs": ["-1.5", "-0.2", "-3"], "old_logprobs": ["-1", "-1.5", "-1"], "ref_logprobs": ["-1", "-0.3", "-1"],
     "rollout_logprobs": ["-1", "-1.6", "-1"]},
    {"group": "a", "rollout": "a-2", "right": "0", "form": "1", "mask": [1],
     "logprobs": ["-0.9"], "old_logprobs": ["-0.7"], "ref_logprobs": ["-0.8"], "rollout_logprobs": ["-0.6"]},
    {"group": "a", "rollout": "a-3", "right": "0", "form": "0", "mask": [1],
     "logprobs": ["-0.6"], "old_logprobs": ["-0.6"], "ref_logprobs": ["-0.5"], "rollout_logprobs": ["-1.8"]},
    {"group": "b", "rollout": "b-1", "right": "0", "form": "1", "mask": [1],
     "logprobs": ["-4"], "old_logprobs": ["-3.9"], "ref_logprobs": ["-1"], "rollout_logprobs": ["-3.9"]},
    {"group": "b", "rollout": "b-2", "right": "0", "form": "1", "mask": [1, 1],
     "logprobs": ["-1", "-2"], "old_logprobs": ["-1.25", "-2"], "ref_logprobs": ["-1", "-2"], "rollout_logprobs": ["-1.25", "-2.1"]},
    {"group": "c", "rollout": "c-1", "right": "12", "form": "0", "mask": [1],
     "logprobs": ["-0.25"], "old_logprobs": ["-0.35"], "ref_logprobs": ["-0.25"], "rollout_logprobs": ["-0.4"]},
]
GREEDY_REWARD = "0.25"  # for remax


def request():
    """The batch as /v1/objective takes it."""
    fields = ("logprobs", "old_logprobs", "ref_logprobs", "rollout_logprobs")
    return [{"group": row["group"], "rollout": row["rollout"], "mask": row["mask"], "greedy_reward": float(GREEDY_REWARD), "finish_reason": "stop",
             "rewards": {"right": {"score": float(row["right"]), "weight": 1}, "form": {"score": float(row["form"]), "weight": 0.5}},
             **{name: [float(value) for value in row[name]] for name in fields}} for row in BATCH]


# -- numbers that know their derivatives --------------------------------------------------------------------------------------

class Number:
    """A value and its derivatives by the log-probabilities of the current policy, {(sequence, token): derivative}."""

    def __init__(self, value, slopes=None):
        self.value, self.slopes = D(value), slopes or {}

    def through(self, value, slope):
        return Number(value, {place: slope * own for place, own in self.slopes.items()})

    def __add__(self, other):
        other = as_number(other)
        places = set(self.slopes) | set(other.slopes)
        return Number(self.value + other.value, {p: self.slopes.get(p, ZERO) + other.slopes.get(p, ZERO) for p in places})

    def __mul__(self, other):
        other = as_number(other)
        places = set(self.slopes) | set(other.slopes)
        return Number(self.value * other.value,
                      {p: self.slopes.get(p, ZERO) * other.value + other.slopes.get(p, ZERO) * self.value for p in places})

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -as_number(other)

    def __truediv__(self, constant):
        return self * (ONE / D(constant))

    def exp(self):
        value = self.value.exp()
        return self.through(value, value)

    def held(self):
        """Stop-gradient."""
        return Number(self.value)


def as_number(value):
    return value if isinstance(value, Number) else Number(value)


def least(first, second):
    """At a tie the first: the unclipped branch of PPO keeps its gradient."""
    first, second = as_number(first), as_number(second)
    return first if first.value <= second.value else second


def clip(number, low, high):
    if low is not None and number.value < D(low):
        return Number(low)
    return Number(high) if high is not None and number.value > D(high) else number


def sigmoid(number):
    value = ONE / (ONE + (-number.value).exp())
    return number.through(value, value * (ONE - value))


# -- the batch as numbers -------------------------------------------------------------------------------------------------------

class Sequence:
    def __init__(self, index, row):
        self.index, self.group, self.rollout, self.mask = index, row["group"], row["rollout"], row["mask"]
        self.right, self.form = D(row["right"]), D(row["form"])
        self.reward = self.right + self.form / 2
        self.lp = [Number(value, {(index, token): ONE}) for token, value in enumerate(row["logprobs"])]
        self.old, self.ref, self.rollout_lp = ([D(value) for value in row[name]] for name in ("old_logprobs", "ref_logprobs", "rollout_logprobs"))
        self.tokens = [token for token, on in enumerate(self.mask) if on]  # the trainable ones
        self.kept, self.weight, self.advantage = True, ONE, [ZERO] * len(self.mask)

    def x(self, token, anchor="old"):
        return self.lp[token] - (self.old if anchor == "old" else self.rollout_lp)[token]


def groups(sequences):
    found = {}
    for sequence in sequences:
        found.setdefault(sequence.group, []).append(sequence)
    return list(found.values())


def mean(values):
    return sum(values, ZERO) / len(values)


def deviation(values, ddof):
    center = mean(values)
    return (sum(((value - center) ** 2 for value in values), ZERO) / (len(values) - ddof)).sqrt()


def equal(values):
    return max(values) == min(values)


# -- advantages: each sets sequence.advantage, one value for each token --------------------------------------------------------

def spread(sequence, value):
    sequence.advantage = [value] * len(sequence.mask)


def once(rule):
    """A rollout counts once in every statistic of rewards: its first sequence stands for it, and its advantage is that of all."""
    def apply(sequences):
        first = {}
        for sequence in sequences:
            first.setdefault(sequence.rollout, sequence)
        rule(list(first.values()))
        for sequence in sequences:
            spread(sequence, first[sequence.rollout].advantage[0])
    return apply


def normalised(values, ddof, eps, raw_singleton=False):
    if len(values) == 1:
        return [values[0] / (ONE + eps)] if raw_singleton else [ZERO]
    return [ZERO if equal(values) else (value - mean(values)) / (deviation(values, ddof) + eps) for value in values]


def group_relative(ddof, eps, raw_singleton=False, limit=None):
    @once
    def apply(sequences):
        for members in groups(sequences):
            rewards = [member.reward if limit is None else min(max(member.reward, -D(limit)), D(limit)) for member in members]
            for member, value in zip(members, normalised(rewards, ddof, D(eps), raw_singleton)):
                spread(member, value)
    return apply


@once
def centred(sequences):
    for members in groups(sequences):
        for member in members:
            spread(member, member.reward - mean([other.reward for other in members]))


def others(rule):
    """rule(reward, rewards of the others); alone: 0."""
    @once
    def apply(sequences):
        for members in groups(sequences):
            for member in members:
                rest = [other.reward for other in members if other is not member]
                spread(member, rule(member.reward, rest) if rest else ZERO)
    return apply


def leave_one_out(reward, rest):
    return reward - mean(rest)


def leave_one_out_scaled(reward, rest):
    """NeMo-RL: scaled only where the others differ."""
    sigma = deviation(rest, 1) if len(rest) > 1 else ZERO
    return (reward - mean(rest)) / (sigma + D("1e-6")) if sigma else reward - mean(rest)


@once
def max_rl(sequences):
    for members in groups(sequences):
        center = mean([member.reward for member in members])
        for member in members:
            spread(member, (member.reward - center) / center if center > 0 else ZERO)


def opo(sequences):
    """The baseline weights rewards by lengths, that of a rollout by all its sequences; alone there is none."""
    for members in groups(sequences):
        lengths = sum(len(member.tokens) for member in members)
        baseline = sum((len(member.tokens) * member.reward for member in members), ZERO) / lengths if len(members) > 1 else ZERO
        for member in members:
            spread(member, member.reward - baseline)


@once
def gpg(sequences):
    factor = D(len(sequences)) / sum(1 for sequence in sequences if sequence.reward)
    for members in groups(sequences):
        center = mean([member.reward for member in members]) if len(members) > 1 else ZERO
        for member in members:
            spread(member, factor * (member.reward - center))


def remax(sequences):
    for sequence in sequences:
        last = sequence.tokens[-1]
        sequence.advantage = [(sequence.reward if token <= last else ZERO) - D(GREEDY_REWARD) * on for token, on in enumerate(sequence.mask)]


def whiten(sequences, eps):
    """Over the trainable tokens of the request, with the population variance."""
    values = [sequence.advantage[token] for sequence in sequences for token in sequence.tokens]
    center, variance = mean(values), deviation(values, 0) ** 2
    for sequence in sequences:
        sequence.advantage = [(value - center) / max(variance, D(eps)).sqrt() for value in sequence.advantage]


def returns_whitened(beta="0", limit=None):
    """The reward, at most `limit`, stands at the last trainable token; -beta * k1 (within 10) at each. Then sums from the end."""
    def apply(sequences):
        for sequence in sequences:
            reward, total = sequence.reward if limit is None else min(max(sequence.reward, -D(limit)), D(limit)), ZERO
            for token in reversed(range(len(sequence.mask))):
                if sequence.mask[token]:
                    k1 = min(max(sequence.old[token] - sequence.ref[token], D(-10)), D(10))
                    total += -D(beta) * k1 + (reward if token == sequence.tokens[-1] else ZERO)
                sequence.advantage[token] = total
        whiten(sequences, "1e-8")
    return apply


def baseline_whitened(sequences):
    centred(sequences)
    whiten(sequences, "1e-8")


@once
def gdpo(sequences):
    sums = {sequence.index: ZERO for sequence in sequences}
    for members in groups(sequences):
        for name, weight in (("right", ONE), ("form", D("0.5"))):
            for member, value in zip(members, normalised([getattr(member, name) for member in members], 1, D("1e-4"))):
                sums[member.index] += weight * value
    values = list(sums.values())
    for sequence in sequences:
        spread(sequence, (sums[sequence.index] - mean(values)) / (deviation(values, 1) + D("1e-4")))


# -- losses of the tokens of one sequence: {token: Number} -------------------------------------------------------------------------

def ppo(low, high, dual=None):
    def apply(sequence):
        terms = {}
        for token in sequence.tokens:
            ratio, a = sequence.x(token).exp(), sequence.advantage[token]
            gain = least(ratio * a, clip(ratio, ONE - D(low), ONE + D(high)) * a)
            if dual and a < 0 and gain.value < D(dual) * a:
                gain = Number(D(dual) * a)
            terms[token] = -gain
        return terms
    return apply


def cispo(high):
    return lambda s: {t: -(clip(s.x(t).exp(), None, high).held() * s.advantage[t] * s.lp[t]) for t in s.tokens}


def reinforce(sequence):
    return {token: -(sequence.lp[token] * sequence.advantage[token]) for token in sequence.tokens}


def gspo(low, high):
    def apply(sequence):
        ratio = (sum((sequence.x(token) for token in sequence.tokens), Number(0)) / len(sequence.tokens)).exp()
        a = sequence.advantage[sequence.tokens[0]]
        term = -least(ratio * a, clip(ratio, ONE - D(low), ONE + D(high)) * a)
        return {token: term for token in sequence.tokens}
    return apply


def gmpo(bound):
    def apply(sequence):
        a, total = sequence.advantage[sequence.tokens[0]], Number(0)
        for token in sequence.tokens:
            x = sequence.x(token)
            total += clip(x, None, bound) if a > 0 else clip(x, -D(bound), None) if a < 0 else Number(0)
        return {token: -((total / len(sequence.tokens)).exp() * a) for token in sequence.tokens}
    return apply


def sapo(sequence):
    terms = {}
    for token in sequence.tokens:
        a = sequence.advantage[token]
        tau = ONE if a > 0 else D("1.05")
        terms[token] = -(sigmoid((sequence.x(token).exp() - 1) * tau) * (4 / tau) * a)
    return terms


def trust_region(sequence):
    """prime-rl: the gain counts while p - p_rollout is within 0.2 on the side that A pushes to; 1e-3 of x squared always."""
    terms = {}
    for token in sequence.tokens:
        x, a = sequence.x(token, "rollout"), sequence.advantage[token]
        moved = sequence.lp[token].value.exp() - sequence.rollout_lp[token].exp()
        inside = moved <= D("0.2") if a > 0 else moved >= D("-0.2")
        terms[token] = (-(x.exp() * a) if inside else Number(0)) + x * x * D("1e-3")
    return terms


# -- KL, importance, filter ----------------------------------------------------------------------------------------------------------

def k3(log_clamp=None, value_clamp=None):
    def apply(difference):
        held = clip(difference, None if log_clamp is None else -D(log_clamp), log_clamp)
        value = (-held).exp() + held - 1
        return clip(value, None if value_clamp is None else -D(value_clamp), value_clamp)
    return apply


def mask_above(high):
    """The product of old/rollout over the sequence is its weight, 0 above the bound."""
    def apply(sequence):
        product = sum((sequence.old[token] - sequence.rollout_lp[token] for token in sequence.tokens), ZERO).exp()
        sequence.weight = product if product <= D(high) else ZERO
    return apply


def drop_equal(sequences):
    for members in groups(sequences):
        for member in members:
            member.kept = not equal([other.reward for other in members])


# -- what a token weighs: {(sequence, token): weight} ---------------------------------------------------------------------------------

def by_sequence(kept):
    return {(s.index, t): ONE / (len(s.tokens) * len(kept)) for s in kept for t in s.tokens}


def by_token(kept):
    count = sum(len(sequence.tokens) for sequence in kept)
    return {(s.index, t): ONE / count for s in kept for t in s.tokens}


def by_length(longest):
    return lambda kept: {(s.index, t): ONE / (len(kept) * longest) for s in kept for t in s.tokens}


def by_rollout(kept):
    tokens = {}
    for sequence in kept:
        tokens[sequence.rollout] = tokens.get(sequence.rollout, 0) + len(sequence.tokens)
    return {(s.index, t): ONE / (len(tokens) * tokens[s.rollout]) for s in kept for t in s.tokens}


# -- the presets -----------------------------------------------------------------------------------------------------------------------

PPO, PPO_TEXT = ppo("0.2", "0.2"), "−min(rA, clip(r, 0.8, 1.2)·A)"
GRPO, GRPO_TEXT = group_relative(0, "0"), "(R − μ)/σ, population σ"
PRESETS = {
    # name: (advantage, its words, loss, its words, weight, its words, more)
    "grpo": (GRPO, GRPO_TEXT, PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "dr_grpo": (centred, "R − μ", PPO, PPO_TEXT, by_length(1024), "1/(N·1024)", {}),
    "dapo": (GRPO, GRPO_TEXT, ppo("0.2", "0.28"), "−min(rA, clip(r, 0.8, 1.28)·A)", by_token, "1/T",
             {"filter": drop_equal, "also": "groups of equal rewards, or of one member, are left out"}),
    "gspo": (GRPO, GRPO_TEXT, gspo("3e-4", "4e-4"), "−min(sA, clip(s, 0.9997, 1.0004)·A), s = exp(mean x)", by_sequence, "1/(n·N)", {}),
    "rloo": (others(leave_one_out), "R − mean of the others, alone 0", PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "reinforce_pp": (returns_whitened(), "R on every token, minus the mean over all tokens, divided by their population σ", PPO, PPO_TEXT, by_token, "1/T", {}),
    "reinforce_pp_baseline": (baseline_whitened, "R − μ on every token, minus the mean over all tokens, divided by their population σ", PPO, PPO_TEXT,
                              by_token, "1/T", {}),
    "cispo": (GRPO, GRPO_TEXT, cispo(5), "−sg(min(r, 5))·A·lp", by_token, "1/T", {}),
    "gmpo": (GRPO, GRPO_TEXT, gmpo("0.4"), "−A·exp(mean c); c = min(x, 0.4) for A > 0, max(x, −0.4) for A < 0", by_sequence, "1/(n·N)", {}),
    "sapo": (GRPO, GRPO_TEXT, sapo, "−(4/τ)·sigmoid(τ(r − 1))·A; τ = 1 for A > 0, else 1.05", by_sequence, "1/(n·N)", {}),
    "gpg": (gpg, "(6/5)·(R − μ): five of the six rollouts have a reward other than 0; alone μ = 0", reinforce, "−A·lp", by_token, "1/T", {}),
    "opo": (opo, "R − Σ nR/Σ n of the group, alone R", PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "remax": (remax, "R − 0.25, the greedy completion's reward", PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "gdpo": (gdpo, "z = (score − μ)/(σ + 1e-4) of each name in its group, sample σ; S = z(right) + z(form)/2; (S − mean S)/(sample σ of S + 1e-4)",
             PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "maxrl": (max_rl, "(R − μ)/μ", PPO, PPO_TEXT, by_sequence, "1/(n·N)", {}),
    "trl@1.16": (group_relative(1, "1e-4"), "(R − μ)/(sample σ + 1e-4)", PPO, PPO_TEXT, by_token, "1/T",
                 {"importance": mask_above(3), "also": "the policy term of a sequence × W = exp(Σ(lo − lb)), or 0 where W > 3"}),
    "verl@1dda039b": (group_relative(1, "1e-6", True), "(R − μ)/(sample σ + 1e-6), alone R/(1 + 1e-6)", ppo("0.2", "0.2", 3),
                      PPO_TEXT + ", for A < 0 at most −3A", by_token, "1/T", {}),
    "verl@b178a3cd": (group_relative(1, "1e-6", True), "(R − μ)/(sample σ + 1e-6), alone R/(1 + 1e-6)", ppo("0.2", "0.2", 3),
                      PPO_TEXT + ", for A < 0 at most −3A", by_token, "1/T", {}),
    "openrlhf@3c3be623": (returns_whitened("0.01", 10), "sums from the end of min(R, 10) at the last token and −0.01·(lo − lr) at each, minus their mean "
                          "over all tokens, divided by their population σ", PPO, PPO_TEXT, by_token, "1/T", {}),
    "nemo_rl@7ea279ab": (others(leave_one_out_scaled), "(R − mean of the others)/(their sample σ + 1e-6), undivided where σ is 0 or there is one other; alone 0",
                         PPO, PPO_TEXT, by_token, "1/T", {"kl": k3(20, 10), "beta": "0.01", "also": "+ 0.01·k3, k3 at most 10"}),
    "prime_rl@559b4477": (centred, "R − μ", trust_region, "−rA while p − p_b ≤ 0.2 (A > 0) or ≥ −0.2 (A ≤ 0), + 0.001·x²; x = lp − lb", by_token, "1/T",
                          {"filter": drop_equal, "also": "groups of equal rewards, or of one member, are left out"}),
    "areal@4aef98d8": (group_relative(1, "1e-5", limit=20), "(R − μ)/(sample σ + 1e-5), R within 20", PPO, PPO_TEXT, by_token, "1/T", {}),
    "slime@624b824a": (group_relative(1, "1e-6"), "(R − μ)/(sample σ + 1e-6)", PPO, PPO_TEXT, by_rollout, "1/(rollouts · tokens of the rollout)", {}),
    "skyrl@a9564572": (group_relative(1, "1e-6", True), "(R − μ)/(sample σ + 1e-6), alone R/(1 + 1e-6)", PPO, PPO_TEXT, by_token, "1/T",
                       {"kl": k3(), "beta": "0.001", "also": "+ 0.001·k3"}),
    "open_instruct@e6c3044a": (centred, "R − μ", ppo("0.2", "0.272"), "−min(rA, clip(r, 0.8, 1.272)·A)", by_token, "1/T",
                               {"kl": k3(40), "beta": "0.05", "filter": drop_equal,
                                "also": "+ 0.05·k3; groups of equal rewards, or of one member, are left out"}),
    "ms_swift@3602360a": (group_relative(1, "1e-4"), "(R − μ)/(sample σ + 1e-4)", PPO, PPO_TEXT, by_sequence, "1/(n·N)",
                          {"kl": k3(20, 10), "beta": "0.04", "also": "+ 0.04·k3, k3 at most 10"}),
}


def work(name):
    """{"loss", "advantages" (per token, at trainable ones), "gradient" (per token)}, Decimals."""
    advantage, _, loss, _, weigh, _, more = PRESETS[name]
    sequences = [Sequence(index, row) for index, row in enumerate(BATCH)]
    more.get("filter", lambda all_of_them: None)(sequences)
    kept = [sequence for sequence in sequences if sequence.kept]
    advantage(kept)
    weights, total = weigh(kept), Number(0)
    for sequence in kept:
        more.get("importance", lambda one: None)(sequence)
        for token, term in loss(sequence).items():
            policy = term * sequence.weight if sequence.weight else Number(0)
            kl = more["kl"](sequence.lp[token] - sequence.ref[token]) * D(more["beta"]) if "kl" in more else Number(0)
            total += (policy + kl) * weights[sequence.index, token]
    return {"loss": total.value,
            "advantages": [[s.advantage[t] if s.kept else ZERO for t in s.tokens] for s in sequences],
            "gradient": [[total.slopes.get((s.index, t), ZERO) for t in range(len(s.mask))] for s in sequences]}


# -- the page ------------------------------------------------------------------------------------------------------------------------------

def digits(value):
    return format(float(value), ".12g") if value else "0"


def rows(values):
    return " · ".join(" ".join(digits(value) for value in row) for row in values)


def section(name):
    _, advantage, _, loss, _, weight, more = PRESETS[name]
    worked = work(name)
    shown = [row[:1] if len(set(row)) <= 1 else row for row in worked["advantages"]]
    also = f"; {more['also']}" if "also" in more else ""
    return "\n".join([f"## `{name}`", "", f"A = {advantage}; {loss}; weight {weight}{also}.", "", "| | a-1 · a-2 · a-2 · a-3 · b-1 · b-2 · c-1 |", "|---|---|",
                      f"| A | {rows(shown)} |", f"| `dloss_dlogp` | {rows(worked['gradient'])} |", f"| `loss` | {digits(worked['loss'])} |", ""])


HEAD = """# Presets, one worked example each

Written by `tests/tools/worked_examples.py` from the formulas of papers and trainers, in fifty digits and without any code of the service;
`tests/http/test_presets.py` asks the service for the same numbers. [objective.md](objective.md) explains each knob of a preset.

The batch is the same for all: six rollouts in three groups, μ and σ of a group, n trainable tokens of a sequence, N = 7 sequences,
T = 10 trainable tokens. R = `right` + `form`/2, so group a has rewards 1.5, 0.5 and 0, group b two of 0.5, group c one of 12. Rollout a-2 comes
as two sequences: its reward counts once, and both have its advantage. The third token of the first of them is masked. x = lp − lo, r = e^x; lo, lr, lb are the old, the reference's and the engine's log-probabilities.

```json
{"objective": {"preset": "…"}, "sequences": [
%s
]}
```

In the tables a dot stands between sequences, a space between tokens; an advantage that is the same for all tokens is written once.
`dloss_dlogp` is what a trainer multiplies its log-probabilities by before it calls backward.
"""


def page():
    lines = ",\n".join(" " + json.dumps(row) for row in request())
    return HEAD % lines + "\n" + "\n".join(section(name) for name in PRESETS).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--check", metavar="FILE")
    options = parser.parse_args()
    if options.write:
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(page())
    if options.check:
        with open(options.check, encoding="utf-8") as file:
            return 0 if file.read() == page() else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
