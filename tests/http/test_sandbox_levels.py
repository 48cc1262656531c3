"""Machines that forbid one thing at a time: the level that the service then finds, names, and keeps to. All of it as an ordinary user."""
import os
import re
import shutil
import subprocess

import pytest

import harness
from harness import Rolloutd
from programs import HELLO, outcome, program

FILTER = os.path.join(harness.ROOT, "tests", "tools", "container_filter.py")
ESCAPE = "/var/tmp/rolloutd_escaped"
NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
CHROOT = "folder=$(mktemp -d) && mount --rbind / \"$folder\" && exec chroot \"$folder\" \"$@\""
CONTAINER = ["bwrap", "--unshare-all", "--share-net", "--die-with-parent", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
# what is forbidden -> (wrapper, level, the step that fails at the level above)
PLACES = {
    "nothing": ([], "full", None),
    "user namespaces by their number": (["unshare", "-Ur", "sh", "-c", NO_NAMESPACES, "sh"], "reduced", "user namespace"),
    "user namespaces in a chroot": (["unshare", "-Urm", "sh", "-c", CHROOT, "sh"], "reduced", "user namespace"),
    "namespaces by the filter of a container": ([FILTER], "reduced", "user namespace"),
    "nothing in an unprivileged container": (CONTAINER, "full", None),
    "nothing to root of a container without another user": (["unshare", "-Urpf", "--mount-proc", "--kill-child"], "full", None),
    "a part of proc in a container": ([*CONTAINER, "--ro-bind", "/dev/null", "/proc/version"], "reduced", "proc")}
KINDS = [pytest.param(name, id=name.replace(" ", "-")) for name in PLACES]


def namespaces_work(user):
    command = [*user, "unshare", "-Urmpinuf", "--mount-proc", "unshare", "-Urmpif", "--mount-proc", "true"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True, check=False).returncode == 0


def landlock_works():
    try:
        with open("/sys/kernel/security/lsm", encoding="ascii") as file:
            return "landlock" in file.read()
    except OSError:
        return True  # without the list the level is what the service says


class Place:
    def __init__(self, name, user, folder):
        wrapper, self.level, self.step = PLACES[name]
        if wrapper and not shutil.which(wrapper[0]):
            pytest.skip(f"there is no {wrapper[0]}")
        if not namespaces_work(user):
            pytest.skip("this machine itself has no namespaces to forbid")
        if self.level == "reduced" and not landlock_works():
            self.level = "none"
        self.wrapper, self.folder = [*user, *wrapper], folder

    def check(self):
        return subprocess.run([*self.wrapper, harness.BINARY, "sandbox-check"], capture_output=True, text=True, timeout=300, check=False)

    def service(self, **settings):
        return Rolloutd(self.folder, wrapper=self.wrapper, settings=settings)


@pytest.fixture
def place(request, as_nobody):
    user, folder = as_nobody
    if os.path.exists(ESCAPE):
        os.unlink(ESCAPE)
    return Place(request.param, user, folder)


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_sandbox_check_names_the_level_and_what_failed(place):
    done = place.check()
    said = dict(re.findall(r"^(\w+) +(.*)$", done.stdout, re.M))
    assert said["level"] == place.level, done
    assert (said["programs"].startswith("run"), done.returncode == 0) == (place.level == "full", place.level == "full"), done
    if place.step:
        assert said["failed"].startswith(place.step) and said["change"], done
    else:
        assert "failed" not in said, done


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_below_min_level_nothing_runs_and_the_other_verifiers_go_on(place):
    """R50."""
    service = place.service().start()
    try:
        verifiers = [{"name": "code"}, {"name": "format", "options": {"template": "boxed_once"}, "weight": 0.1}]
        item = program("1", f"try:\n    open({ESCAPE!r}, 'w').write('x')\nexcept OSError:\n    pass\nprint(1)\n")
        reply = service.post("/v1/verify", {"verifiers": verifiers, "items": [{key: item[key] for key in ("id", "completion", "reference")}]})
        code, form = reply.json["items"][0]["verdicts"]
        assert form["verdict"] == "incorrect"
        if place.level == "full":
            assert (code["score"], code["reason"]) == (1, "pass")
        else:
            assert (code["score"], code["failure"]["code"]) == (None, "sandbox_unavailable")
            assert reply.json["items"][0]["reward"] is None
        assert not os.path.exists(ESCAPE)
    finally:
        service.kill()


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_where_the_settings_allow_less_programs_run_at_that_level(place):
    if place.level == "none":
        pytest.skip("nothing runs at this level")
    service = place.service(**{"sandbox.min_level": "reduced"}).start()
    try:
        assert outcome(service, HELLO) == (1, "pass")
        assert outcome(service, "print(open('/etc/passwd').read())\n")[0] == 0
        assert outcome(service, f"open({ESCAPE!r}, 'w').write('x')\nprint(1)\n") == ((1, "pass") if place.level == "full" else (0, "runtime_error"))  # a box has that path
        assert outcome(service, "import socket\nsocket.socket()\nprint(1)\n") == (0, "runtime_error")
        assert outcome(service, "import time\ntime.sleep(600)\n", limits={"wall_ms": 500}) == (0, "timeout")
        assert not os.path.exists(ESCAPE)
    finally:
        service.kill()
