"""The lines of docs/history.md for pandas and duckdb, as they stand (tests/run --only schema installs both)."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import ROOT
from test_curl_pages import training

SEED = 9007199254740993  # not exact as a double
PYTHON = os.environ.get("ROLLOUTD_SCHEMATHESIS_PYTHON")
MISSING = os.environ.get("ROLLOUTD_SCHEMATHESIS_MISSING", "ROLLOUTD_SCHEMATHESIS_PYTHON names no interpreter with pandas and duckdb")


def lines():
    with open(os.path.join(ROOT, "docs", "history.md"), encoding="utf-8") as file:
        return re.findall(r"^```bash\n(curl .*?)\n```$", file.read(), re.M | re.S)


@pytest.mark.schema
@pytest.mark.skipif(not PYTHON or not shutil.which("curl"), reason=MISSING)
def test_an_export_goes_into_pandas_and_into_parquet(start, tmp_path):
    service = start()
    training(service)
    completion = {"text": "9", "completion_ids": [1], "logprobs": [-1], "seed": SEED}
    assert service.post("/v1/score", {"run": "demo", "policy_revision": 0, "verifiers": [{"name": "math"}],
                                      "groups": [{"task": "one", "reference": "9", "completions": [completion]}]}).status == 200
    env = {**os.environ, "U": service.url, "PATH": os.path.dirname(os.path.abspath(PYTHON)) + os.pathsep + os.environ["PATH"]}
    said = []
    for line in lines():
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (line, done)
        said.append(done.stdout)
    pandas, duckdb, csv = said
    assert "3+4=" in pandas and "4+4=" in pandas and duckdb == "" and "1.0" in csv
    ask = 'import duckdb, json; print(json.dumps(duckdb.sql("SELECT count(*), count(DISTINCT id), max(seed), sum(reward) FROM \'demo.parquet\'").fetchall()[0]))'
    done = subprocess.run([PYTHON, "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    rewards = [row["reward"] for row in service.read("/v1/rollouts", run="demo", fields="reward")["items"]]
    rows, ids, seed, reward = json.loads(done.stdout)
    assert (rows, ids, seed) == (9, 9, SEED) and abs(reward - sum(rewards)) < 1e-9
