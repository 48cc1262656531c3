"""The trainers' own functions on the same batches: TRL's GRPOTrainer from rewards to loss, and what verl, OpenRLHF, AReaL and ms-swift
publish as functions. Nothing of them is copied: they are imported, with stand-ins for the model and for packages that are not installed."""
import contextlib
import importlib.util
import os
import sys
import types
from collections import defaultdict
from importlib import metadata

import numpy as np
import torch

NAMES = ("trl", "verl", "openrlhf", "areal", "ms-swift")


def versions():
    return [f"{name} {metadata.version(name)}" for name in NAMES]


def advantages_of(reply, batch, wanted):
    """As many for each sequence as `wanted` has: one, or one for each token, of which the masked ones are 0."""
    found = []
    for row, mask, want in zip(reply["sequences"], batch.mask, wanted):
        own = row["advantage"] if isinstance(row["advantage"], list) else [row["advantage"]] * len(mask)
        found.append(own[:1] if len(want) < len(mask) else [value * on for value, on in zip(own, mask)] if len(mask) > 1 else own)
    return found


class Case:
    def __init__(self, family, name, objective, run, *, masked=True, by_name=False, tolerance=1e-11, given=False):
        self.family = family if tolerance < 1e-10 else f"{family} (near)"
        self.name, self.objective, self.masked, self.by_name = name, objective, masked, by_name
        self.tolerance, self.run, self.given = tolerance, run, given

    def sequences(self, batch):
        if self.given:
            return batch.sequences(advantage=given_advantages(batch))
        return batch.sequences(rewards=batch.by_name()) if self.by_name else batch.sequences(reward=batch.reward)


def given_advantages(batch):
    return [round((reward - 0.6) * 1.7, 3) for reward in batch.reward]


# -- TRL ------------------------------------------------------------------------------------------------------------------------

class Alone:
    """An accelerator of one process."""

    device, num_processes, process_index, sync_gradients = torch.device("cpu"), 1, 0, True

    def gather(self, value):
        return value

    gather_for_metrics = pad_across_processes = reduce = lambda self, value, *_, **__: value

    def unwrap_model(self, model):
        return model


def trl_trainer(batch, base, **settings):
    """A trainer that skipped its constructor: arguments as GRPOConfig has them, log-probabilities in place of a model."""
    from trl import GRPOConfig

    class Trainer(base):
        def __init__(self):  # noqa: no model, no data set
            pass

        def _generate(self, prompts):
            none = [None] * batch.count
            ids = [[7] * length for length in batch.lengths]
            return [[1]] * batch.count, ids, batch.mask, ["x"] * batch.count, batch.rollout_logprobs, {}, None, none

        def _calculate_rewards(self, *_):
            return torch.tensor([list(pair) for pair in zip(batch.right, batch.form)])

        def _get_per_token_logps_and_entropies(self, model, *_, **__):
            return model, self.tensors["entropy"], None

    trainer = Trainer()
    args = GRPOConfig(output_dir="/nonexistent", report_to=[], use_cpu=True, bf16=False, per_device_train_batch_size=batch.count,
                      num_generations=batch.size, gradient_accumulation_steps=1, steps_per_generation=1,
                      **{name: value for name, value in settings.items() if name != "use_vllm"})
    for name in vars(args):
        with contextlib.suppress(AttributeError):
            setattr(trainer, name, getattr(args, name))
    trainer.tensors = batch.tensors()
    trainer.args, trainer.accelerator, trainer.current_gradient_accumulation_steps = args, Alone(), 1
    trainer.epsilon_low = args.epsilon
    trainer.epsilon_high = args.epsilon_high if args.epsilon_high is not None else args.epsilon
    trainer.use_vllm = settings.get("use_vllm", False)
    trainer.model = types.SimpleNamespace(training=True, is_gradient_checkpointing=False)
    trainer.ref_model = trainer.tensors["ref_logprobs"]
    trainer._tokenizer = types.SimpleNamespace(pad_token_id=0, eos_token_id=2)
    trainer.reward_weights, trainer.reward_funcs, trainer.reward_func_names = torch.tensor([1.0, 0.5]), [0, 1], ["right", "form"]
    trainer._metrics, trainer._logs = {"train": defaultdict(list)}, defaultdict(list)
    trainer._logs["rewards"], trainer._logs["extra"] = defaultdict(list), defaultdict(list)
    trainer._pending_extra_logs, trainer._pending_metrics = defaultdict(list), defaultdict(list)
    for name in ("environment_factories", "environments", "tools", "pad_to_multiple_of", "_is_vlm", "aux_loss_enabled", "_entropy_bonus_enabled",
                 "_batch_environments", "log_multimodal"):
        setattr(trainer, name, None)
    trainer.num_generations, trainer.loss_type = batch.size, args.loss_type
    return trainer


def trl(base="GRPOTrainer", **settings):
    """From rewards to loss by TRL's own methods."""
    def run(batch):
        from trl import GRPOTrainer
        from trl.experimental.gmpo import GMPOTrainer
        trainer = trl_trainer(batch, {"GRPOTrainer": GRPOTrainer, "GMPOTrainer": GMPOTrainer}[base], **settings)
        old, trainer.model_is = trainer.tensors["old_logprobs"], None
        model = trainer.model
        # The pass before the update sees the old policy, or the reference.
        trainer._get_per_token_logps_and_entropies = lambda asked, *_, **__: (asked if asked is trainer.ref_model else old, None, None)
        import trl.trainer.grpo_trainer as module
        module.disable_gradient_checkpointing = lambda *_, **__: contextlib.nullcontext()
        inputs = trainer._generate_and_score_completions([{"prompt": "x"} for _ in range(batch.count)])
        inputs["old_per_token_logps"] = old
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: (trainer.tensors["logprobs"], trainer.tensors["entropy"], None)
        loss = trainer._compute_loss(model, inputs)
        loss.backward()
        return loss.item(), batch.flat(trainer.tensors["logprobs"].grad), [[value] for value in inputs["advantages"].tolist()]
    return run


def trl_cases():
    bare = {"preset": "trl", "importance": {"method": "none"}}
    by_sequence = {"mode": "seq_mean_token_mean"}
    rows = [
        ("defaults with vLLM", {"preset": "trl"}, {"use_vllm": True}),
        ("defaults", bare, {}),
        ("epsilon_high", {**bare, "loss": {"eps_high": 0.28}}, {"epsilon_high": 0.28}),
        ("loss_type grpo, beta", {**bare, "beta": 0.04, "aggregation": by_sequence}, {"loss_type": "grpo", "beta": 0.04}),
        ("loss_type grpo, beta, no bias correction", {**bare, "beta": 0.04, "kl": {"ratio": "none"}, "aggregation": by_sequence},
         {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": False}),
        ("loss_type bnpo", bare, {"loss_type": "bnpo"}),
        ("loss_type dr_grpo", {**bare, "advantage": {"scale": "none"}, "aggregation": {"mode": "seq_mean_token_sum_norm", "max_len": 12}},
         {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 12}),
        ("loss_type cispo", {**bare, "loss": {"kind": "cispo", "hi": 1.1}}, {"loss_type": "cispo", "epsilon_high": 1.1}),
        ("loss_type sapo", {**bare, "loss": {"kind": "sapo"}, "aggregation": by_sequence}, {"loss_type": "sapo"}),
        ("loss_type vespo", {**bare, "loss": {"kind": "vespo"}}, {"loss_type": "vespo"}),
        ("loss_type luspo", {**bare, "loss": {"kind": "luspo"}, "aggregation": {"mode": "seq_mean_token_mean"}},
         {"loss_type": "luspo", "importance_sampling_level": "sequence"}),
        ("GSPO", {**bare, "loss": {"kind": "gspo", "eps_low": 0.02, "eps_high": 0.03}, "aggregation": by_sequence},
         {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.02, "epsilon_high": 0.03}),
        ("delta", {**bare, "loss": {"delta": 1.3}}, {"delta": 1.3}),
        ("scale_rewards batch", {**bare, "advantage": {"scale": "batch"}}, {"scale_rewards": "batch"}),
        ("normalize_then_sum", {**bare, "advantage": {"estimator": "gdpo"}}, {"multi_objective_aggregation": "normalize_then_sum"}),
        ("off_policy_mask_threshold", {**bare, "selection": {"method": "off_policy_sequence_mask", "delta": 0.02}},
         {"off_policy_mask_threshold": 0.02, "use_vllm": True, "vllm_importance_sampling_correction": False}),
        # TRL takes the quantile in float32: where it falls on a token, rounding may drop that token there.
        ("top_entropy_quantile", {**bare, "selection": {"method": "top_entropy_quantile", "rho": 0.3137}}, {"top_entropy_quantile": 0.3137}),
        *[(f"importance {mode}", {**bare, "importance": {"method": mode, "lo": 0.7, "hi": 1.3}},
           {"use_vllm": True, "vllm_importance_sampling_mode": mode, "vllm_importance_sampling_clip_min": 0.7,
            "vllm_importance_sampling_clip_max": 1.3}) for mode in ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")],
        ("vespo with token_truncate", {**bare, "loss": {"kind": "vespo"}, "importance": {"method": "token_truncate", "lo": 0.7, "hi": 1.3}},
         {"loss_type": "vespo", "use_vllm": True, "vllm_importance_sampling_mode": "token_truncate", "vllm_importance_sampling_clip_min": 0.7,
          "vllm_importance_sampling_clip_max": 1.3}),
    ]
    yield from (Case("TRL GRPOTrainer", name, objective, trl(**settings), by_name=True) for name, objective, settings in rows)
    yield Case("TRL GMPOTrainer", "GMPO", {**bare, "loss": {"kind": "gmpo"}, "aggregation": by_sequence},
               trl("GMPOTrainer", epsilon=0.4, epsilon_high=0.4), by_name=True)


# -- single files of trainers whose packages are not installed whole -----------------------------------------------------------------

def stand_in(name, **members):
    """A module of that name, so that an import of it succeeds; packages above it too."""
    for end in [at for at, letter in enumerate(name) if letter == "."] + [len(name)]:
        module = sys.modules.setdefault(name[:end], types.ModuleType(name[:end]))
        module.__path__ = []
    vars(sys.modules[name]).update(members)


def load(package, path, name):
    """One file of an installed distribution as the module `name`."""
    stand_in(name.rpartition(".")[0])
    root = metadata.distribution(package).locate_file("")
    spec = importlib.util.spec_from_file_location(name, os.path.join(root, path))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Settings(types.SimpleNamespace):
    """Settings of a trainer: attributes, and get() with a default."""

    def get(self, name, default=None):
        return getattr(self, name, default)


def load_verl():
    if "verl.trainer.ppo.core_algos" in sys.modules:
        return sys.modules["verl.trainer.ppo.core_algos"]
    stand_in("tensordict", TensorDict=dict)
    stand_in("omegaconf", DictConfig=dict)
    stand_in("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=lambda: torch)
    stand_in("verl.utils.import_utils", deprecated=lambda *_: lambda function: function)
    stand_in("verl.trainer.config", AlgoConfig=dict)
    stand_in("verl.workers.config", ActorConfig=Settings)
    groupwise = load("verl", "verl/utils/groupwise.py", "verl.utils.groupwise")
    sys.modules["verl.utils"].torch_functional = load("verl", "verl/utils/torch_functional.py", "verl.utils.torch_functional")
    stand_in("verl.utils", as_torch_index=groupwise.as_torch_index, group_mean_std=groupwise.group_mean_std)
    return load("verl", "verl/trainer/ppo/core_algos.py", "verl.trainer.ppo.core_algos")


def load_openrlhf():
    stand_in("deepspeed")
    load("openrlhf", "openrlhf/models/utils.py", "openrlhf.models.utils")
    return load("openrlhf", "openrlhf/models/loss.py", "openrlhf.models.loss"), sys.modules["openrlhf.models.utils"]


def load_areal():
    stand_in("areal.api.cli_args", RejectionSamplingConfig=object)
    stand_in("areal.utils.data", KLEstimator=object)
    return load("areal", "areal/utils/functional/functional.py", "areal.utils.functional.functional")


def load_swift():
    def nanstd(values, dim=None, keepdim=False):
        return values.std(dim=dim, keepdim=keepdim)
    stand_in("swift.utils", nanstd=nanstd)
    return load("ms-swift", "swift/rl_core/advantage.py", "swift.rl_core.advantage")


def at_last_token(batch, mask):
    """The reward on the last trainable token, as verl hands it to its estimators."""
    found = torch.zeros_like(mask)
    for i, row in enumerate(batch.mask):
        found[i, max(t for t, on in enumerate(row) if on)] = batch.reward[i]
    return found


def finish(batch, lp, loss, advantages):
    """The result of a case; advantages [sequences, longest] or None."""
    loss.backward()
    return loss.item(), batch.flat(lp.grad), batch.flat(advantages) if advantages is not None else None


def verl(estimator=None, loss="vanilla", mode="token-mean", kl=None, weights=False, **settings):
    """verl's estimator (None: the advantages are given), its loss with its aggregation, its KL as the actor adds it."""
    def run(batch):
        algos, t = load_verl(), batch.tensors()
        mask, lp = t["mask"], t["logprobs"]
        config = Settings(clip_ratio=0.2, clip_ratio_low=None, clip_ratio_high=None, global_batch_info={}, tau_pos=1.0, tau_neg=1.05)
        config.policy_loss = Settings(dro_beta=0.5, dro=Settings(beta=0.5))
        vars(config).update(settings)
        if estimator:
            rewards = at_last_token(batch, mask)
            more = {"reward_baselines": torch.full((batch.count,), 0.25)} if estimator == "remax" else {"index": np.array(batch.group)}
            if estimator == "reinforce_plus_plus":
                more = {"config": Settings(gamma=1.0)}
            if estimator == "gpg":
                more["alpha"] = batch.count / sum(1 for reward in batch.reward if reward)
            if estimator == "grpo_passk":
                more["config"] = Settings(norm_adv_by_std_in_grpo=True)
            advantages, _ = algos.get_adv_estimator_fn(estimator)(token_level_rewards=rewards, response_mask=mask, **more)
        else:
            advantages = torch.tensor(given_advantages(batch)).unsqueeze(1) * mask
        is_weights = (t["old_logprobs"] - t["rollout_logprobs"]).exp().clamp(max=1.2) if weights else None
        total, _ = algos.get_policy_loss_fn(loss)(old_log_prob=t["old_logprobs"], log_prob=lp, advantages=advantages, response_mask=mask,
                                                  loss_agg_mode=mode, config=config, rollout_is_weights=is_weights)
        if kl:
            total = total + 0.3 * algos.agg_loss(algos.kl_penalty(lp, t["ref_logprobs"], kl), mask, mode)
        return finish(batch, lp, total, advantages if estimator else None)
    return run


def verl_cases():
    bare = {"preset": "verl"}
    estimators = [
        ("grpo", {}), ("grpo_vectorized", {}), ("rloo", {"estimator": "rloo"}), ("rloo_vectorized", {"estimator": "rloo"}), ("opo", {"estimator": "opo"}),
        ("grpo_passk", {"estimator": "grpo_passk"}), ("gpg", {"estimator": "gpg"}),
        ("reinforce_plus_plus", {"estimator": "reinforce_plus_plus", "eps": 1e-8}),
        ("reinforce_plus_plus_baseline", {"estimator": "reinforce_plus_plus_baseline", "eps": 1e-8})]
    for name, knobs in estimators:
        # float32 inside, or 1e-8 beside the number of tokens
        near = 1e-4 if name == "grpo_vectorized" else 1e-6 if name.startswith("reinforce") else 1e-11
        yield Case("verl grpo_vectorized" if name == "grpo_vectorized" else "verl estimators, loss vanilla", name, {**bare, "advantage": knobs} if knobs else bare, verl(name), tolerance=near)
    losses = [
        ("vanilla", {"loss": {"dual_c": 1.4}}, {"clip_ratio_c": 1.4}), ("vanilla", {"loss": {"eps_high": 0.28}}, {"clip_ratio_high": 0.28}),
        ("gspo", {"loss": {"kind": "gspo_token", "eps_low": 0.02, "eps_high": 0.03, "log_max": 10}}, {"clip_ratio_low": 0.02, "clip_ratio_high": 0.03}),
        ("sapo", {"loss": {"kind": "sapo"}, "aggregation": {"mode": "seq_mean_token_mean"}}, {}), ("gpg", {"loss": {"kind": "gpg"}}, {}),
        ("geo_mean", {"loss": {"kind": "gmpo", "eps_low": 0.4, "eps_high": 0.4}, "aggregation": {"mode": "seq_mean_token_mean"}}, {"clip_ratio": 0.4}),
        ("dro", {"loss": {"kind": "dro", "beta": 0.5}}, {}),
        ("cispo", {"loss": {"kind": "cispo", "lo": 0.8, "hi": 1.2}}, {}),
        ("dppo_tv", {"loss": {"kind": "dppo_tv", "form": "logp", "c": 1.3, "zero_adv": "low"}}, {"clip_ratio_c": 1.3}),
        ("dppo_kl", {"loss": {"kind": "dppo_kl", "c": 1.3, "d_low": 0.05, "d_high": 0.05}}, {"clip_ratio_c": 1.3, "clip_ratio": 0.05})]
    for name, objective, settings in losses:
        near = 1e-6 if name in ("geo_mean", "sapo") else 1e-11  # near: 1e-8 beside the length
        yield Case("verl losses", name, {**bare, **objective}, verl(None, name, **settings), given=True, tolerance=near)
    for mode, near in (("token-mean", 1e-11), ("token-sum", 1e-11), ("seq-mean-token-sum", 1e-11), ("seq-mean-token-mean", 1e-6),
                       ("seq-mean-token-sum-norm", 1e-11)):
        for kl in ("k1", "abs", "k2", "k3", "k1+", "k3+"):
            knobs = {"mode": mode.replace("-", "_")}

            def run(batch, mode=mode, kl=kl):
                info = {"loss_scale_factor": 12} if mode.endswith("norm") else {}
                algos, t = load_verl(), batch.tensors()
                lp, mask = t["logprobs"], t["mask"]
                terms = -(torch.tensor(given_advantages(batch)).unsqueeze(1) * lp) + 0.3 * algos.kl_penalty(lp, t["ref_logprobs"], kl)
                return finish(batch, lp, algos.agg_loss(terms, mask, mode, **info), None)
            yield Case("verl kl_penalty, agg_loss", f"{kl}, {mode}", {
                **bare, "loss": {"kind": "gpg"}, "beta": 0.3, "kl": {"estimator": kl.replace("+", "_plus"), "log_clamp": 20 if "3" in kl else None,
                                                                     "value_clamp": 10 if "3" in kl else None},
                "aggregation": {**knobs, "max_len": 12} if mode.endswith("norm") else knobs}, run, given=True, tolerance=near)
    yield Case("verl losses", "vanilla with truncated importance weights", {**bare, "importance": {"method": "token_truncate", "hi": 1.2}},
               verl(None, weights=True), given=True)


def other_cases():
    openrlhf, openrlhf_utils = load_openrlhf()
    areal, swift = load_areal(), load_swift()

    def openrlhf_loss(batch, **settings):
        t = batch.tensors()
        advantages = torch.tensor(given_advantages(batch)).unsqueeze(1).expand_as(t["mask"])
        loss = openrlhf.PolicyLoss(**settings)(t["logprobs"], t["old_logprobs"], advantages, t["mask"], t["rollout_logprobs"])[0]
        return finish(batch, t["logprobs"], loss, None)

    def areal_loss(batch, **settings):
        t = batch.tensors()
        advantages = torch.tensor(given_advantages(batch)).unsqueeze(1).expand_as(t["mask"])
        loss, _ = areal.ppo_actor_loss_fn(t["logprobs"], t["old_logprobs"], t["rollout_logprobs"], advantages, 0.2, t["mask"].bool(), **settings)
        return finish(batch, t["logprobs"], loss, None)

    def swift_advantages(batch, **settings):
        """Their advantages; the loss is TRL's."""
        t = batch.tensors()
        scores = torch.tensor([list(pair) for pair in zip(batch.right, batch.form)])
        advantages, _ = swift.compute_advantages(scores, torch.tensor([1.0, 0.5]), batch.size, **settings)
        ratio, a = (t["logprobs"] - t["old_logprobs"]).exp(), advantages.unsqueeze(1)
        terms = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a) * t["mask"]
        loss, gradient, _ = finish(batch, t["logprobs"], (terms.sum(1) / t["mask"].sum(1)).mean(), None)
        return loss, gradient, [[value] for value in advantages.tolist()]

    def case(family, name, objective, function, **settings):
        more = {name: settings.pop(name) for name in ("tolerance", "by_name") if name in settings}
        return Case(family, name, objective, lambda batch: function(batch, **settings), given=not more.get("by_name"), **more)

    # Their REINFORCE++ advantages live inside a trainer; the advantages are given and the KL, which is in the reward, is off.
    rlhf = {"preset": "openrlhf", "beta": 0, "kl": {"in": "loss"}, "shaping": []}
    yield case("OpenRLHF PolicyLoss", "ppo", rlhf, openrlhf_loss)
    yield case("OpenRLHF PolicyLoss", "dual clip", {**rlhf, "loss": {"dual_c": 1.4, "eps_high": 0.28}}, openrlhf_loss, dual_clip=1.4, clip_eps_high=0.28)
    yield case("OpenRLHF PolicyLoss", "gspo", {**rlhf, "loss": {"kind": "gspo", "eps_low": 0.02, "eps_high": 0.03},
                                               "aggregation": {"mode": "seq_mean_token_mean"}}, openrlhf_loss, policy_loss_type="gspo",
               clip_eps_low=0.02, clip_eps_high=0.03, tolerance=1e-6)
    for name, method, settings in (("IcePop", "token_mask", ("token", "mask")), ("TIS", "token_truncate", ("token", "clip")),
                                   ("seq-mask-tis", "seq_mask_tis", ("seq", "mask"))):
        low, high = (0.95, 1.05) if name == "seq-mask-tis" else (0.8, 1.2)
        yield case("OpenRLHF PolicyLoss", name, {**rlhf, "importance": {"method": method, "lo": low, "hi": high}}, openrlhf_loss,
                   is_correction_level=settings[0], is_correction_mode=settings[1], is_correction_threshold=[low, high])
    yield case("AReaL ppo_actor_loss_fn", "ppo", {"preset": "areal", "shaping": []}, areal_loss)
    yield case("AReaL ppo_actor_loss_fn", "eps_clip_higher, c_clip", {"preset": "areal", "shaping": [], "loss": {"eps_high": 0.28, "dual_c": 1.4}},
               areal_loss, eps_clip_higher=0.28, c_clip=1.4)
    own = {"preset": "ms_swift", "beta": 0}
    yield case("ms-swift compute_advantages", "grpo", own, swift_advantages, by_name=True)
    yield case("ms-swift compute_advantages", "batch", {**own, "advantage": {"scale": "batch"}}, swift_advantages, by_name=True, scale_rewards="batch")
    yield case("ms-swift compute_advantages", "none", {**own, "advantage": {"scale": "none"}}, swift_advantages, by_name=True, scale_rewards="none")
    yield case("ms-swift compute_advantages", "rloo", {**own, "advantage": {"estimator": "rloo"}}, swift_advantages, by_name=True,
               advantage_estimator="rloo", scale_rewards="none")
    yield case("ms-swift compute_advantages", "gdpo", {**own, "advantage": {"estimator": "gdpo", "eps_group": 1e-8, "eps_batch": 1e-8}}, swift_advantages,
               by_name=True, scale_rewards="gdpo")
    yield case("ms-swift compute_advantages", "reinforce_plus_plus, batch", {
        **own, "advantage": {"estimator": "reinforce_plus_plus_baseline_sequence"}}, swift_advantages, by_name=True,
        advantage_estimator="reinforce_plus_plus", scale_rewards="batch")


def cases():
    yield from trl_cases()
    yield from verl_cases()
    yield from other_cases()
