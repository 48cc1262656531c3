"""Reward functions of the settings, for tests of the verifier `external`."""
import json

import pytest

from harness import eventually

PYTHON = ["/usr/bin/python3", "-I", "-S"]


def entry(folder, name="style", source="", **more):
    path = folder / f"{name}.py"
    path.write_text(source)
    return {"name": name, "command": [*PYTHON, path.name], "files": [str(path)], **more}


def settings(*entries):
    return {"externals": json.dumps(entries)}


def with_programs(service):
    """The service, if it runs programs."""
    shown = eventually(lambda: service.read("/v1/verifiers")["sandbox"]["level"] and service.read("/v1/verifiers"), "the trial of the sandbox")
    if not shown["sandbox"]["programs_run"]:
        pytest.skip("programs do not run here: " + shown["sandbox"]["why"])
    return service


def judge(service, *completions, name="style", **item):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": name}}],
                                        "items": [{"id": str(index), "completion": text, **item} for index, text in enumerate(completions)]})
    assert reply.status == 200, reply
    return [item["verdicts"][0] for item in reply.json["items"]]
