"""A machine that did not let programs run may do so later: the service notices without a restart."""
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from harness import eventually

PROGRAM = {"id": "a", "completion": "```python\nprint(int(input()) ** 2)\n```", "reference": {"tests": [{"stdin": "3\n", "stdout": "9\n"}]}}


@pytest.fixture
def folder():
    """Where every user may look."""
    top = tempfile.mkdtemp(prefix="again-", dir="/tmp")
    os.chmod(top, 0o755)
    yield os.path.join(top, "venv")
    shutil.rmtree(top)


def verdict(service):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "code"}], "items": [PROGRAM]})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


def shown(service):
    return service.read("/v1/verifiers")["sandbox"]


@pytest.mark.parametrize("told", [True, False])
def test_programs_run_when_the_machine_lets_them(start, folder, told):
    service = start(settings={"python.venv": folder})
    eventually(lambda: shown(service)["programs_run"] is not None, "the trial of the sandbox")
    if "folder of the settings" not in shown(service)["why"]:
        pytest.skip("programs do not run here: " + shown(service)["why"])
    assert (verdict(service)["score"], verdict(service)["failure"]["code"]) == (None, "sandbox_unavailable")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
    if told:
        service.process.send_signal(signal.SIGHUP)
    eventually(lambda: shown(service)["programs_run"], "another trial of the sandbox")
    assert shown(service)["why"] is None
    assert verdict(service)["score"] == 1
    service.process.send_signal(signal.SIGHUP)  # where programs run, nothing is tried
    assert verdict(service)["score"] == 1
