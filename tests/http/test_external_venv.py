"""`venv`: a reward function with libraries of its own, in a virtual environment that it can read and not write."""
import os
import shutil
import subprocess
import tempfile

import pytest

from harness import Rolloutd, StartFailed
from rewards import entry, judge, settings, with_programs

ACTS = r'''
import json, os, shutil, subprocess, sys
asked = json.load(sys.stdin)
import rubric
try:
    open(os.path.join(os.path.dirname(rubric.__file__), "rubric.py"), "a")
    written = True
except OSError:
    written = False
print(json.dumps({"score": rubric.score(asked["completion"]), "detail": {
    "found": shutil.which("python3"), "tool": subprocess.run(["rubric-tool"], capture_output=True, text=True).stdout, "written": written,
    "prefix": sys.prefix, "environment": os.environ.get("VIRTUAL_ENV")}}))
'''


def make_venv(folder, word):
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
    library = os.path.join(folder, "lib", os.listdir(os.path.join(folder, "lib"))[0], "site-packages")
    with open(os.path.join(library, "rubric.py"), "w", encoding="utf-8") as file:
        file.write(f"def score(text):\n    return text.count({word!r})\n")
    os.chmod(os.path.join(library, "rubric.py"), 0o666)  # so that nothing but the sandbox keeps it
    os.mkdir(os.path.join(library, "rubric-1.0.dist-info"))
    tool = os.path.join(folder, "bin", "rubric-tool")
    with open(tool, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho counts {word}\n")
    os.chmod(tool, 0o755)
    return folder, library


@pytest.fixture(scope="module")
def venvs():
    """Two, where every user may look."""
    top = tempfile.mkdtemp(prefix="venv-", dir="/tmp")
    os.chmod(top, 0o755)
    yield [make_venv(os.path.join(top, word), word)[0] for word in ("yes", "no")]
    shutil.rmtree(top)


def entries(folder, venvs):
    yes, no = venvs
    return [{**entry(folder, "yes", ACTS, venv=yes), "command": [f"{yes}/bin/python3", "yes.py"]}, {**entry(folder, "no", ACTS, venv=no), "command": [f"{no}/bin/python3", "no.py"]},
            {**entry(folder, "open", ACTS, venv=yes, sandbox="none"), "command": [f"{yes}/bin/python3", "open.py"]},
            {**entry(folder, "env", ACTS, venv=no), "command": ["/usr/bin/env", "python3", "env.py"]},
            {**entry(folder, "bare", "import os, json\nprint(json.dumps({'score': 0, 'detail': {'venv': os.environ.get('VIRTUAL_ENV'), 'path': os.environ['PATH']}}))\n")}]


@pytest.fixture(scope="module")
def service(shared_factory, tmp_path_factory, venvs):
    return with_programs(shared_factory(settings=settings(*entries(tmp_path_factory.mktemp("rewards"), venvs))))


@pytest.mark.parametrize("name, place, score", [("yes", 0, 2), ("no", 1, 1), ("open", 0, 2), ("env", 1, 1)])
def test_its_modules_and_programs_are_found_first(service, venvs, name, place, score):
    verdict, = judge(service, "yes no yes", name=name)
    said = verdict["detail"].pop("said")
    assert (verdict["score"], verdict["failure"]) == (score, None), verdict
    assert said["found"] == f"{venvs[place]}/bin/python3" and said["environment"] == said["prefix"] == venvs[place]
    assert said["tool"] == f"counts {'yes' if place == 0 else 'no'}\n"


def test_it_cannot_be_written_to(service):
    verdict, = judge(service, "yes", name="yes")
    assert verdict["detail"]["said"]["written"] is False


def test_a_command_without_one_has_none_of_another(service):
    judge(service, "yes", name="yes")
    verdict, = judge(service, "yes", name="bare")
    assert verdict["detail"]["said"] == {"venv": None, "path": "/usr/local/bin:/usr/bin:/bin"}


def test_its_packages_are_part_of_the_version(start, tmp_path):
    def version(folder):
        one = {**entry(tmp_path, source=ACTS, venv=folder)}
        return start(settings=settings(one)).read("/v1/verifiers")["externals"][0]["version"]

    folder, library = make_venv(str(tmp_path / "venv"), "yes")
    seen = [version(folder)]
    os.rename(os.path.join(library, "rubric-1.0.dist-info"), os.path.join(library, "rubric-1.1.dist-info"))
    seen.append(version(folder))
    os.mkdir(os.path.join(library, "another-0.1.dist-info"))
    seen.append(version(folder))
    assert len(set(seen)) == 3 and version(folder) == seen[-1]


def test_one_that_went_away_fails_its_own_command_alone(start, tmp_path):
    top = tempfile.mkdtemp(prefix="venv-", dir="/tmp")
    try:
        folder, _ = make_venv(os.path.join(top, "venv"), "yes")
        lost = {**entry(tmp_path, "lost", ACTS, venv=folder), "command": [f"{folder}/bin/python3", "lost.py"]}
        service = with_programs(start(settings=settings(lost, entry(tmp_path, "kept", "print('{\"score\": 1}')\n"))))
        shutil.rmtree(folder)
    finally:
        shutil.rmtree(top)
    assert judge(service, "yes", name="kept")[0]["score"] == 1
    verdict, = judge(service, "yes", name="lost")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "verifier_crashed") and "cannot be run" in verdict["failure"]["message"]


@pytest.mark.parametrize("venv", ["venv", "/no/such/venv", "/usr", "/tmp/../usr", "/" + "x" * 300])
def test_a_folder_that_is_no_virtual_environment_ends_the_start(tmp_path, venv):
    with pytest.raises(StartFailed) as failed:
        Rolloutd(tmp_path, settings=settings({"name": "a", "command": ["/bin/true"], "venv": venv})).start()
    assert "virtual environment" in str(failed.value)
