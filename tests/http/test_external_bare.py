"""`sandbox: none`: a reward function that runs as a process of the service, because the settings say so, and never unseen."""
import os
import socketserver
import threading

import pytest

from harness import eventually
from rewards import entry, judge, settings, with_programs

ACTS = r'''
import json, os, resource, socket, subprocess, sys
asked = json.load(sys.stdin)
act, _, rest = asked["completion"].partition(" ")
detail = {}
if act == "look":
    detail = {"passwd": os.path.exists("/etc/passwd"), "session": os.getsid(0) == os.getpid(), "box": sorted(os.listdir(".")), "folder": os.getcwd(),
              "environment": sorted(os.environ), "home": os.environ["HOME"] == os.environ["TMPDIR"] == os.getcwd(), "fds": sorted(os.listdir("/proc/self/fd")),
              "user": os.getuid(), "data": resource.getrlimit(resource.RLIMIT_DATA)[1], "core": resource.getrlimit(resource.RLIMIT_CORE)[1]}
if act == "connect":
    with socket.create_connection(("127.0.0.1", int(rest))) as other:
        detail = {"heard": other.recv(5).decode()}
if act in ("hang", "leave"):
    subprocess.Popen(["/bin/sleep", rest], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if act == "hang":
    while True:
        pass
if act == "crash":
    raise SystemError("the card is gone")
if act == "eat":
    eaten = bytearray(400 << 20)
    eaten[::4096] = b"x" * len(eaten[::4096])
print(json.dumps({"score": 1, "detail": detail}))
'''


@pytest.fixture(scope="module")
def service(shared_factory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewards")
    entries = [entry(folder, "open", ACTS, sandbox="none"), entry(folder, "slow", ACTS, sandbox="none", timeout="500ms"), entry(folder, "small", ACTS, sandbox="none", memory="64MiB"),
               entry(folder, "full", ACTS), {"name": "gone", "command": ["/no/such/program"], "sandbox": "none"}]
    return with_programs(shared_factory(settings=settings(*entries), env={"A_SECRET": "hidden"}))


def level(service):
    return service.read("/v1/verifiers")["sandbox"]["level"]


def test_it_sees_the_machine_from_a_session_of_its_own_and_nothing_of_the_service(service):
    verdict, = judge(service, "look", name="open")
    assert (verdict["score"], verdict["detail"]["sandbox"], verdict["detail"]["external"]) == (1, "none", "open"), verdict
    said = verdict["detail"]["said"]
    assert said["passwd"] and said["session"] and said["home"] and said["box"] == ["open.py"]
    assert "A_SECRET" not in said["environment"]
    assert said["fds"] in (["0", "1", "2", "3"], ["0", "1", "2"])  # 3 is the folder that it lists
    assert said["user"] == (os.getuid() or 65534)
    assert said["data"] <= (512 << 20) + (1 << 30) and said["core"] in (0, 1)
    eventually(lambda: not os.path.exists(said["folder"]), "the end of its box")


def test_it_has_the_network(service):
    class Greeter(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(b"hello")

    with socketserver.TCPServer(("127.0.0.1", 0), Greeter) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.server_address[1]
        heard, = judge(service, f"connect {port}", name="open")
        walled, = judge(service, f"connect {port}", name="full")
        server.shutdown()
        thread.join()
    assert heard["detail"]["said"] == {"heard": "hello"}
    assert (walled["score"], walled["failure"]["code"], walled["detail"]["sandbox"]) == (None, "verifier_crashed", level(service))


def is_there(seconds):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == b"/bin/sleep\0" + seconds.encode() + b"\0":
                    return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("act, name, code", [("hang", "slow", "verifier_timeout"), ("leave", "open", None)])
def test_its_whole_group_ends_with_it(service, act, name, code):
    seconds = f"8{os.getpid()}"
    verdict, = judge(service, f"{act} {seconds}", name=name)
    assert (verdict["failure"] and verdict["failure"]["code"], verdict["detail"]["sandbox"]) == (code, "none"), verdict
    assert not is_there(seconds)


@pytest.mark.parametrize("completion, name, part", [("crash", "open", "the card is gone"), ("look", "gone", "cannot be run"), ("eat", "small", "memory")])
def test_a_bad_end_is_a_failure_that_names_the_level(service, completion, name, part):
    verdict, = judge(service, completion, name=name)
    assert (verdict["score"], verdict["failure"]["code"], verdict["detail"]["sandbox"]) == (None, "verifier_crashed", "none") and part in verdict["failure"]["message"], verdict


def test_a_full_and_an_open_one_run_for_one_completion(service):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": name}, "id": name} for name in ("open", "full")], "items": [
        {"id": str(index), "completion": "look"} for index in range(4)]})
    for item in reply.json["items"]:
        opened, walled = item["verdicts"]
        assert (opened["detail"]["sandbox"], opened["detail"]["said"]["passwd"]) == ("none", True)
        assert (walled["score"], walled["detail"]["sandbox"]) == (1, level(service))


def test_the_list_says_it(service):
    shown = {external["name"]: external["sandbox"] for external in service.read("/v1/verifiers")["externals"]}
    assert shown == {"open": "none", "slow": "none", "small": "none", "full": "full", "gone": "none"}
