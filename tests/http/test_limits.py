"""F03: a limit of the process that is too small is named, or waited for, and never booked on a completion or an engine."""
import os
import resource
import socket
import subprocess
import time

import pytest

from harness import BINARY, PATIENCE, Wire, eventually
from material import make_batch, make_group, rollouts, sampling
from test_start import run, serving

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
ITEM = {"id": "1", "completion": "\\boxed{42}", "reference": "42"}


def under(*limits):
    """Runs what follows under these limits, as a shell sets them: ("-s", 4096), or ("-Ss", 4096) for the soft one."""
    if os.environ.get("ROLLOUTD_SANITIZED") and any(flag[-1] in "dv" for flag, _ in limits):
        pytest.skip("a sanitizer maps more address space than any such limit")
    return ["/bin/bash", "-c", "".join(f"ulimit {flag} {value}; " for flag, value in limits) + 'exec "$@"', "bash"]


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("ROLLOUTD_")}


def start_under(*limits, arguments=(), command=()):
    return subprocess.run([*under(*limits), BINARY, *map(str, command or arguments)], capture_output=True, text=True, timeout=PATIENCE, env=plain_environment())


def judges(service):
    judged = service.post("/v1/verify", {"verifiers": [{"name": "math"}], "items": [ITEM] * 20})
    return [item["reward"] for item in judged.json["items"]] == [1.0] * 20


# -- too small to start ---------------------------------------------------------------------------------------------------------------

TOO_SMALL = [("-s", 4096, "8192 KiB"), ("-s", 64, "8192 KiB"), ("-d", 32768, "KiB"), ("-d", 600000, "KiB"), ("-v", 300000, "KiB"), ("-f", 100, "2048 KiB"), ("-f", 0, "2048 KiB"),
             ("-n", 40, "at least"), ("-t", 3600, "unlimited")]


@pytest.mark.parametrize("flag, value, must_be", TOO_SMALL)
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_limit_that_is_too_small_is_named_with_what_it_must_be(tmp_path, flag, value, must_be, check):
    done = start_under((flag, value), arguments=serving(tmp_path, *(["--check"] if check else [])))
    lines = [line for line in done.stderr.splitlines() if line.startswith("rolloutd: ")]
    assert done.returncode == 1 and len(lines) == 1, done
    assert f"(ulimit {flag})" in lines[0] and f" is {value}" in lines[0] and must_be in lines[0]
    assert not (tmp_path / "ready").exists() and not (tmp_path / "rolloutd.db").exists()


def test_a_smaller_budget_needs_a_smaller_limit(tmp_path):
    arguments = serving(tmp_path, "--set", "memory_budget=32MiB", "--set", "workers=2", "--check")
    assert start_under(("-d", 600000), arguments=arguments).returncode == 0
    assert start_under(("-d", 100000), arguments=arguments).returncode == 1


@pytest.mark.parametrize("flag, value", [("-s", 4096), ("-d", 32768), ("-v", 200000), ("-t", 60)])
@pytest.mark.parametrize("command", ["verify", "check-references"])
def test_the_commands_that_judge_say_it_too(tmp_path, flag, value, command):
    (tmp_path / "tasks").write_text('{"reference": "42"}\n')
    words = ["verify", "--reference", "42", "--completion", "42"] if command == "verify" else ["check-references", tmp_path / "tasks"]
    done = start_under((flag, value), command=words)
    assert done.returncode == 2 and f"(ulimit {flag})" in done.stderr, done


def test_processes_that_the_user_may_not_have_are_counted(tmp_path):
    """Root may have any number, so this is somebody else."""
    if run(*serving(tmp_path, "--check")).returncode or resource.getrlimit(resource.RLIMIT_NPROC)[0] == 0:
        pytest.skip("no start at all")
    nobody = []
    if os.geteuid() == 0:
        nobody = ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        tmp_path.chmod(0o777)
        for parent in list(tmp_path.parents)[:3]:
            parent.chmod(0o755)
    demote = [*nobody, "/bin/bash", "-c", 'ulimit -u "$1"; shift; exec "$@"', "bash"]
    done = subprocess.run([*demote, "3", BINARY, *map(str, serving(tmp_path, "--check"))], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "Permission denied" in done.stderr:
        pytest.skip("nobody may not read the binary")
    assert done.returncode == 1 and "(ulimit -u) is 3, and must be at least" in done.stderr, done


# -- soft limits ---------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("flag, value", [("-Ss", 4096), ("-Ss", 128), ("-Sd", 32768), ("-Sv", 300000), ("-Sf", 100), ("-Sn", 40), ("-St", 3600), ("-Si", 0), ("-Sl", 0), ("-Sq", 0), ("-Su", 1),
                                         ("-Sx", 1), ("-Sc", 0), ("-Sm", 100), ("-s", "unlimited"), ("-i", 0), ("-l", 0), ("-q", 0), ("-x", 0)])
def test_a_soft_limit_is_raised_and_what_nobody_needs_is_left(start, engine, flag, value):
    engine.rules(RIGHT)
    service = start(engine, wrapper=under((flag, value)))
    assert judges(service)
    assert [rollout["reward"] for rollout in rollouts(service.batch(make_batch(make_group("a"))))] == [1.0, 1.0]
    assert service.read("/v1/pending")["verifier_incidents"] == []
    if flag == "-Su" and os.geteuid() != 0:  # whatever else the user starts later
        soft, hard = limits_of(service.pid, "Max processes")
        assert soft == hard != "1"


def limits_of(pid, name):
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return next(line for line in file if line.startswith(name))[len(name):].split()[:2]


def test_deep_json_does_not_end_a_thread_with_a_small_soft_stack(start):
    service = start(wrapper=under(("-Ss", 128)))
    assert service.post("/v1/objective", b"[" * 2000 + b"]" * 2000).status == 400
    assert service.post("/v1/batches", b'{"a":' * 2000 + b"1" + b"}" * 2000).status == 400
    assert service.get("/healthz").status == 200


# -- descriptors -------------------------------------------------------------------------------------------------------------------------------

def connect(service, count):
    links = []
    for _ in range(count):
        links.append(socket.create_connection(("127.0.0.1", service.port), PATIENCE))
    return links


def close(links):
    for link in links:
        link.close()


def is_told_at_once(service):
    """Answered, or refused: but not left hanging."""
    try:
        with Wire(service.url, 20) as wire:
            wire.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return wire.reply().status
    except (ConnectionError, EOFError):
        return "refused"


@pytest.mark.parametrize("limit", [1, 8, 50])
def test_beyond_connection_limit_a_client_is_told_at_once(start, limit):
    service = start(settings={"connection_limit": str(limit)})
    links = connect(service, limit)
    eventually(lambda: is_told_at_once(service) in (429, "refused"), "the limit to be reached")
    for _ in range(3 * limit):
        assert is_told_at_once(service) in (429, "refused")
    more = connect(service, 300)
    assert is_told_at_once(service) in (429, "refused")
    close(more)
    links[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert links[0].recv(65536).startswith(b"HTTP/1.1 200"), "earlier connections stay open"
    close(links)
    eventually(lambda: is_told_at_once(service) == 200, "a place")


def test_a_refused_client_reads_the_reason(start):
    service = start(settings={"connection_limit": "2"})
    links = connect(service, 2)
    eventually(lambda: is_told_at_once(service) in (429, "refused"), "the limit to be reached")
    with Wire(service.url, 20) as wire:
        reply = wire.reply()
        assert (reply.status, reply.error["code"]) == (429, "queue_full") and reply.headers["retry-after"] and "connection_limit" in reply.error["message"]
        assert wire.closed()
    close(links)


def test_with_few_descriptors_idle_clients_leave_some_for_the_rest(start):
    service = start(wrapper=under(("-n", 128)))
    assert "fewer clients than connection_limit" in service.log()
    links = connect(service, 200)
    assert is_told_at_once(service) in (200, 429, "refused")
    close(links)
    eventually(lambda: service.get("/healthz").status == 200, "a place")


def test_with_few_descriptors_a_batch_waits_and_no_engine_is_blamed(start, engine):
    engine.rules({**RIGHT, "delay": 0.05})
    service = start(engine, wrapper=under(("-n", 128)), settings={"engine.check_interval": "100ms"})
    links = connect(service, 60)
    batch = service.batch(make_batch(make_group("a"), make_group("b"), sampling=sampling(64), deadline="2m"))
    assert batch["summary"]["scored"] == 128 and batch["summary"]["failed"] == 0
    shown = service.read("/v1/engines")["items"][0]
    assert shown["state"] == "up" and not shown["last_error"], shown
    assert judges(service)
    close(links)
    assert "engine down" not in service.log() and "commit failed" not in service.log()


def test_when_descriptors_run_out_while_it_runs_samples_wait_for_one(start, engine):
    """Somebody took them away: EMFILE is nobody's failure but ours."""
    engine.rules(RIGHT)
    service = start(engine, settings={"engine.check_interval": "100ms"})
    service.batch(make_batch())
    eventually(lambda: service.get("/readyz").json["sandbox"]["level"], "the spawner of the slots, which has a descriptor, too")
    used = len(service_descriptors(service))
    hard = resource.prlimit(service.pid, resource.RLIMIT_NOFILE)[1]
    identity = None
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (used + 1, hard))
    try:
        reply = service.post("/v1/batches", make_batch(make_group("x"), run="short", sampling=sampling(32), deadline="2m"), {"Prefer": "respond-async"})
        identity = reply.json["id"]
        time.sleep(1)
    finally:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (hard, hard))
    batch = service.settled(identity)
    assert batch["summary"]["scored"] == 32 and batch["summary"]["failed"] == 0
    assert "engine down" not in service.log()


def service_descriptors(service):
    return os.listdir(f"/proc/{service.pid}/fd")


# -- the size of files ------------------------------------------------------------------------------------------------------------------------------

def test_a_limit_of_the_size_of_files_is_a_full_disk_and_not_the_end(start, engine):
    engine.rules({**RIGHT, "text": "\\boxed{42} " + "x" * 20000})
    service = start(engine, wrapper=under(("-f", 2048)))
    codes = set()
    for index in range(60):
        reply = service.post("/v1/batches", make_batch(make_group("a", "P" * 20000), run=f"r{index}", sampling=sampling(4), deadline="1s"))
        codes.add(reply.status)
        if 507 in codes:
            break
    assert 507 in codes and service.get("/healthz").status == 200


def test_a_soft_limit_of_the_size_of_files_does_not_bound_the_record(start, engine):
    """Its log alone outgrows a limit that was raised only as far as the start needs."""
    engine.rules({**RIGHT, "text": "\\boxed{42} " + "x" * 20000})
    service = start(engine, wrapper=under(("-Sf", 100)))
    for index in range(40):
        batch = service.batch(make_batch(make_group("a", f"{index}" * 20000), run=f"r{index}", sampling=sampling(4)))
        assert batch["summary"]["scored"] == 4
    assert os.path.getsize(f"{service.database}-wal") + os.path.getsize(service.database) > 2 << 20
