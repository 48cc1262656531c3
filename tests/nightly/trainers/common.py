"""A service with the reward routes on, single modules of a trainer without its package, and the checks that every trainer gets."""
import contextlib
import importlib
import json
import os
import sys
import tempfile
import types
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "..", "http"), os.path.join(ROOT, "client", "python")]
SOURCES = os.environ.get("ROLLOUTD_TRAINERS_SOURCES") or os.path.join(ROOT, "build-trainers", "sources")
MATH = [{"name": "math"}]
TOKEN = "a-token-of-some-length-0123456789"
UNREADABLE = "\\frac{"
OWN = json.dumps({"verifiers": [{"name": "exact"}], "reference": "yes"})
# completion, label, reward; None: it cannot be graded
SAMPLES = [("\\boxed{42}", "42", 1), ("so it is \\boxed{41}", "42", 0), ("yes", OWN, 1), ("no", OWN, 0), ("\\boxed{42}", UNREADABLE, None)]


def bare(name, folder):
    """A package of which modules can be imported without running its __init__, which imports the whole trainer."""
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package


@contextlib.contextmanager
def service(**settings):
    from harness import Rolloutd
    with tempfile.TemporaryDirectory() as folder:
        token = os.path.join(folder, "token")
        with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(TOKEN)
        text = json.dumps(MATH)
        made = Rolloutd(folder, settings={"compat.openrlhf": text, "compat.slime": text, "compat.nemo_gym": text, "compat.sandbox_fusion": "true", "token_file": token,
                                          **settings}).start()
        try:
            yield made
        finally:
            assert made.terminate() == 0


def client_of(made):
    return importlib.import_module("rolloutd").Client(made.url, TOKEN)


def route(made, path):
    """With the token as a password, as for a trainer that takes a URL alone."""
    return made.url.replace("http://", f"http://x:{TOKEN}@") + path


def check_record(client, run, samples):
    """The record has the rewards that the trainer was told, and a failure for what could not be graded."""
    rows = list(client.rollouts(run=run))
    assert sorted(map(str, (row["reward"] for row in rows))) == sorted(str(None if reward is None else float(reward)) for _, _, reward in samples), rows
    assert all((row["reward"] is None) == (row["failure"] is not None) for row in rows), rows
    assert client.report(run)["totals"]["n"] == len(samples)
    return rows


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.loads(reply.read())


def done(name, *facts):
    print(f"{name}: " + "; ".join(facts))
