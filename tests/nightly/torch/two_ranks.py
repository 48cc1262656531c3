"""The trainer of docs/objective.md, taken from the page and run on two ranks: the gradient of one call, to float rounding.

  two_ranks.py                       samples, starts the ranks, compares
  two_ranks.py URL RANK FILE PORT    one rank (started by the first form)
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "..", "http"), os.path.join(ROOT, "client", "python")]
import rolloutd.torch  # noqa: E402
RANKS, MICRO_BATCHES, VOCABULARY = 2, 3, 12


def load_page():
    """The definitions of the page."""
    with open(os.path.join(ROOT, "docs", "objective.md"), encoding="utf-8") as file:
        text = re.search(r"```python\n(.*?)```", file.read(), re.S)[1]
    found = {}
    exec(compile(text, "docs/objective.md", "exec"), found)
    return found


def make_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 8), torch.nn.Tanh(), torch.nn.Linear(8, VOCABULARY)).double()


def log_probabilities(model, rollout):
    """Each token depends on the one before it."""
    ids = torch.tensor(rollout["completion_ids"])
    logits = model(torch.cat([torch.zeros(1, dtype=torch.long), ids[:-1]]))
    return torch.log_softmax(logits, -1).gather(1, ids.unsqueeze(1)).squeeze(1)


def sample(url):
    """Completions of a policy that has moved since, judged by a reward of our own."""
    model, draw, groups = make_model(), random.Random(3), []
    for task in range(5):
        completions = []
        for _ in range(7):
            ids = [draw.randrange(VOCABULARY) for _ in range(draw.randint(1, 9))]
            with torch.no_grad():
                values = [value + draw.gauss(0, 0.3) for value in log_probabilities(model, {"completion_ids": ids}).tolist()]
            completions.append({"completion_ids": ids, "logprobs": values, "finish_reason": "stop", "completion_mask": [int(draw.random() < 0.9) for _ in ids],
                                "rewards": {"env": {"score": draw.random(), "weight": 1}}})
        groups.append({"task": f"t{task}", "completions": completions})
    with rolloutd.Client(url) as client:
        return client.score(run="ranks", verifiers=[], objective={"preset": "grpo"}, groups=groups)


def gradient(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def one_rank(url, rank, path, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    with open(path, encoding="utf-8") as file:
        batch = json.load(file)
    model = torch.nn.parallel.DistributedDataParallel(make_model())
    loss = load_page()["optimizer_step"](rolloutd.Client(url), model, log_probabilities, batch, rank, RANKS, MICRO_BATCHES, step=0)
    torch.save({"loss": loss, "gradient": gradient(model)}, f"{path}.{rank}")
    torch.distributed.destroy_process_group()


def compare(url, folder):
    """The largest difference of the gradient, relative to its largest number; and that of the loss."""
    import socket
    batch, path = sample(url), os.path.join(folder, "batch.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(batch, file)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [subprocess.Popen([sys.executable, __file__, url, str(rank), path, port]) for rank in range(RANKS)]
    assert [rank.wait() for rank in ranks] == [0] * RANKS, "a rank failed"
    rollouts = [rollout for group in batch["groups"] for rollout in group["rollouts"]]
    model = make_model()
    loss = rolloutd.torch.backward(rolloutd.Client(url), rollouts, [log_probabilities(model, rollout) for rollout in rollouts])
    whole, parts = gradient(model), [torch.load(f"{path}.{rank}") for rank in range(RANKS)]
    worst = max(((part["gradient"] - whole).abs().max() / whole.abs().max()).item() for part in parts)
    return worst, abs(sum(part["loss"] for part in parts) - loss)


def main():
    from harness import Rolloutd
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder).start()
        try:
            worst, loss = compare(service.url, folder)
        finally:
            code = service.terminate()
    failed = int(worst > 1e-12 or loss > 1e-12 or code != 0)
    print(f"two ranks of {MICRO_BATCHES} micro-batches against one call: gradient {worst:.1e} apart, loss {loss:.1e}\n\n{1 - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        one_rank(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        sys.exit(main())
