"""Requests made from /openapi.yaml by schemathesis: no status and no form of reply that the schema does not name."""
import os
import subprocess

import pytest

PYTHON = os.environ.get("ROLLOUTD_SCHEMATHESIS_PYTHON")
MISSING = os.environ.get("ROLLOUTD_SCHEMATHESIS_MISSING", "ROLLOUTD_SCHEMATHESIS_PYTHON names no interpreter with schemathesis")
HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "schemathesis.toml")
HOOKS = {**os.environ, "SCHEMATHESIS_HOOKS": os.path.join(HERE, "schemathesis_hooks.py")}


@pytest.mark.schema
@pytest.mark.skipif(not PYTHON, reason=MISSING)
def test_every_reply_is_one_that_the_schema_names(start, toy, tmp_path):
    service = start(toy, settings={"lease.wait": "0s"})
    done = subprocess.run([PYTHON, "-m", "schemathesis.cli", "--config-file", CONFIG, "run", f"{service.url}/openapi.yaml", "--no-color"],
                          capture_output=True, text=True, timeout=240, cwd=tmp_path, env=HOOKS)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]
    assert service.get("/healthz").status == 200
