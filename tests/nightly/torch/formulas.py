"""The formulas of docs/objective.md once more, in torch: values from here, derivatives from autograd.

Tensors are [sequences, longest]; x = lp - lo, m the mask. Each loss gives the loss of every token."""
import math

import torch


def sg(value):
    return value.detach()


class Place:
    """The names that a formula may use."""

    def __init__(self, batch, advantage):
        tensors = batch.tensors()
        self.lp, self.lo, self.lr, self.lb, self.mask = (tensors[name] for name in ("logprobs", "old_logprobs", "ref_logprobs", "rollout_logprobs", "mask"))
        self.a = torch.tensor(advantage, dtype=torch.float64).unsqueeze(1)
        self.group = torch.tensor(batch.group)
        self.n = self.mask.sum(1, keepdim=True)
        self.x = self.lp - self.lo
        self.r = self.x.exp()

    def sum(self, values):
        return (values * self.mask).sum(1, keepdim=True)

    def mean(self, values):
        return self.sum(values) / self.n


def ppo_clip(p, low=0.2, high=0.2, dual_c=None, delta=None):
    ratio = p.r if delta is None else p.r.clamp(max=delta)
    loss = -torch.minimum(ratio * p.a, p.r.clamp(1 - low, 1 + high) * p.a)
    return loss if dual_c is None else torch.where(p.a < 0, torch.minimum(loss, -dual_c * p.a), loss)


def gspo(p, low=3e-2, high=4e-2):
    s = p.mean(p.x).exp()
    return -torch.minimum(s * p.a, s.clamp(1 - low, 1 + high) * p.a).expand_as(p.x)


def gspo_token(p, low=3e-2, high=4e-2):
    s = sg(p.mean(p.x)).exp() * (p.lp - sg(p.lp)).exp()
    return -torch.minimum(s * p.a, s.clamp(1 - low, 1 + high) * p.a)


def gmpo(p, bound=0.4):
    held = torch.where(p.a > 0, p.x.clamp(max=bound), torch.where(p.a < 0, p.x.clamp(min=-bound), torch.zeros_like(p.x)))
    return (-p.a * p.mean(held).exp()).expand_as(p.x)


def vespo(p):
    low = math.log(1e-8)
    w = p.sum(p.x.clamp(-20, 20)).clamp(low, 20)
    k, scale = torch.where(p.a >= 0, 2.0, 3.0), torch.where(p.a >= 0, 3.0, 2.0)
    return -sg((scale + k * w - scale * w.exp()).exp()) * p.a * p.lp


def sapo(p):
    tau = torch.where(p.a > 0, 1.0, 1.05)
    return -4 / tau * torch.sigmoid(tau * (p.r - 1)) * p.a


def inside(p, low=0.2, high=0.2, zero_low=False):
    moved = sg(p.lp.exp() - p.lo.exp())
    keep = torch.where(p.a > 0, moved <= high, moved >= -low)
    return keep | (p.a == 0) if not zero_low else keep


def dppo_tv(p, form="ratio", c=None, kl_tau=0.0):
    keep = inside(p).double()
    held = sg(p.r if c is None else p.r.clamp(max=c))
    return (-p.r * p.a * keep if form == "ratio" else -held * p.a * p.lp * keep) + kl_tau * p.x ** 2


def dppo_kl(p, bound=0.05):
    new, old = p.lp.exp(), p.lo.exp()
    kl = sg(old * (p.lo - p.lp) + (1 - old) * torch.log((1 - old + 1e-8) / (1 - new + 1e-8)))
    keep = (kl <= bound) | torch.where(p.a > 0, new <= old, new >= old)
    return -sg(p.r) * p.a * p.lp * keep


def ipo(p):
    return -p.r * p.a * ((p.lp.exp() - p.lo.exp()).abs() <= 0.1) + 1e-3 * p.x ** 2


def rollout_is(p):
    q = sg((p.lp - p.lb).exp())
    return -torch.where((q > 0.8) & (q < 1.2), q, 0.0) * p.a * p.lp


def fipo(p):
    decay, x = 2 ** (-1 / 32), sg(p.x) * p.mask
    ahead = torch.zeros_like(x)
    for token in reversed(range(x.shape[1])):
        ahead[:, token] = x[:, token] + (decay * ahead[:, token + 1] if token + 1 < x.shape[1] else 0)
    factor = ahead.exp().clamp(1, 1.2)
    factor = torch.where((p.a < 0) & (sg(p.r) > 4), factor.clamp(0.8, 1), factor)
    return ppo_clip(p) * factor


def real(p, tau=0.5):
    """One number: the loss of the request."""
    s, total, groups = p.mean(p.x).squeeze(1) / tau, torch.zeros((), dtype=torch.float64), p.group.unique()
    for group in groups:
        good = (p.group == group) & (p.a.squeeze(1) > 0)
        bad = (p.group == group) & (p.a.squeeze(1) <= 0)
        if good.any() and bad.any():
            total = total + torch.log1p(s[bad].exp().sum()) + torch.log1p((-s[good]).exp().sum())
    return total / len(groups)


# name: (the knobs that say so, the formula)
LOSSES = {
    "ppo_clip": ({"eps_low": 0.2, "eps_high": 0.28}, lambda p: ppo_clip(p, 0.2, 0.28)),
    "dual_clip": ({"dual_c": 1.3}, lambda p: ppo_clip(p, dual_c=1.3)),
    "two_sided": ({"delta": 1.3}, lambda p: ppo_clip(p, delta=1.3)),
    "cispo": ({"lo": 0.8, "hi": 1.2}, lambda p: -sg(p.r.clamp(0.8, 1.2)) * p.a * p.lp),
    "gspo": ({"eps_low": 3e-2, "eps_high": 4e-2}, gspo),
    "gspo_token": ({"eps_low": 3e-2, "eps_high": 4e-2}, gspo_token),
    "luspo": ({"eps_low": 3e-2, "eps_high": 4e-2}, lambda p: gspo(p) * p.n),
    "gmpo": ({}, gmpo),
    "vespo": ({}, vespo),
    "sapo": ({}, sapo),
    "dppo_tv": ({"kl_tau": 1e-2}, lambda p: dppo_tv(p, kl_tau=1e-2)),
    "dppo_tv logp": ({"form": "logp", "c": 1.2}, lambda p: dppo_tv(p, "logp", 1.2)),
    "dppo_kl": ({}, dppo_kl),
    "ipo": ({}, ipo),
    "gpg": ({}, lambda p: -p.a * p.lp),
    "importance_sampling": ({}, lambda p: -p.r * p.a),
    "dro": ({"beta": 0.5}, lambda p: -(p.a * p.lp - 0.25 * p.x ** 2)),
    "rollout_is": ({}, rollout_is),
    "fipo": ({}, fipo),
    "real": ({}, real),
}


def straight_through(value, slope_of):
    return sg(value) + slope_of - sg(slope_of)


def k3(d):
    return torch.expm1(-d) + d


# name: (the knobs of `kl`, value of a token)
KLS = {
    "none": (None, None),
    "k1": ({"estimator": "k1"}, lambda p, d: d),
    "abs": ({"estimator": "abs"}, lambda p, d: d.abs()),
    "k2": ({"estimator": "k2"}, lambda p, d: d ** 2 / 2),
    "k3": ({"estimator": "k3"}, lambda p, d: k3(d)),
    "k1_plus": ({"estimator": "k1_plus"}, lambda p, d: straight_through(d, d ** 2 / 2)),
    "k3_plus": ({"estimator": "k3_plus"}, lambda p, d: straight_through(k3(d), d ** 2 / 2)),
    "low_var": ({"estimator": "low_var"}, lambda p, d: k3(d.clamp(-20, 20)).clamp(-10, 10)),
    "k3 clamped": ({"estimator": "k3", "log_clamp": 0.5, "value_clamp": 0.1}, lambda p, d: k3(d.clamp(-0.5, 0.5)).clamp(-0.1, 0.1)),
    "k3 x ratio": ({"estimator": "k3", "ratio": "multiply"}, lambda p, d: k3(d) * p.kl_ratio),
    "k3 x sg(ratio)": ({"estimator": "k3", "ratio": "detached"}, lambda p, d: k3(d) * sg(p.kl_ratio)),
}


def within(p, batch, mode):
    """Trainable tokens of a sequence's group."""
    tokens = torch.zeros(max(batch.group) + 1, dtype=torch.float64).index_add_(0, p.group, p.n.squeeze(1))
    return tokens[p.group].unsqueeze(1)


# name: (the knobs of `aggregation`, the weight of a token)
AGGREGATIONS = {
    "seq_mean_token_mean": ({}, lambda p, b: 1 / (p.n * b.count)),
    "token_mean": ({}, lambda p, b: 1 / p.n.sum()),
    "token_sum": ({}, lambda p, b: 1.0),
    "seq_mean_token_sum": ({}, lambda p, b: 1 / b.count),
    "seq_mean_token_sum_norm": ({"max_len": 16}, lambda p, b: 1 / (b.count * 16)),
    "seq_sum_token_sum_norm": ({"max_len": 16}, lambda p, b: 1 / 16),
    "prompt_mean": ({}, lambda p, b: 1 / ((max(b.group) + 1) * within(p, b, None))),
    "rollout_mean": ({}, lambda p, b: 1 / (b.count * p.n)),
    "constant": ({"denominator": 40}, lambda p, b: 1 / 40),
    "group_mean_seq_mean_token_mean": ({}, lambda p, b: 1 / ((max(b.group) + 1) * b.size * p.n)),
}

BETA = 0.3


def evaluate(batch, advantage, loss, kl, aggregation):
    """(loss, gradient by lp) of one combination, by autograd."""
    p = Place(batch, advantage)
    weight, term = AGGREGATIONS[aggregation][1](p, batch) * p.mask, LOSSES[loss][1](p)
    p.kl_ratio = (p.lp - p.lb).exp() if loss == "rollout_is" else p.r  # the ratio of the loss
    if loss == "real":  # ms-swift adds the KL as a mean over tokens
        weight = p.mask / p.n.sum()
    total = term if term.dim() == 0 else (weight * term).sum()
    if KLS[kl][1]:
        total = total + BETA * (weight * KLS[kl][1](p, p.lp - p.lr)).sum()
    total.backward()
    return total.item(), batch.flat(p.lp.grad)


def objective(loss, kl, aggregation):
    asked = {"loss": {"kind": loss.split()[0], **LOSSES[loss][0]}, "aggregation": {"mode": aggregation, **AGGREGATIONS[aggregation][0]}}
    if KLS[kl][0]:
        asked.update(beta=BETA, kl=KLS[kl][0])
    return asked
