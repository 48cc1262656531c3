"""F22 and the file modes of F25: signals without a meaning, settings with NUL, unknown variables, names and ports of engines."""
import os
import signal
import stat

import pytest

from harness import descendants, eventually
from material import make_batch
from test_incidents import ENDLESS, ENDLESS_TEXT, kept, score
from test_start import refused, run, serving

MEANINGLESS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR", "SIGWINCH", "SIGURG", "SIGCHLD", "SIGPIPE", "SIGXFSZ", "SIGSTKFLT",
               "SIGRTMIN", "SIGRTMAX"]


# -- signals ----------------------------------------------------------------------------------------------------------------------

def test_signals_without_a_meaning_are_ignored_by_the_service_and_its_workers(start):
    service = start()
    family = eventually(lambda: (found := descendants(service.pid)) and len(found) >= 3 and found, "the spawner and its workers")
    for name in MEANINGLESS:
        for pid in [service.pid, *(process.pid for process in family)]:
            os.kill(pid, getattr(signal, name))
    item = {"id": "1", "completion": "\\boxed{42}", "reference": "42"}
    for _ in range(3):
        judged = service.post("/v1/verify", {"verifiers": [{"name": "math"}], "items": [item]})
        assert judged.json["items"][0]["reward"] == 1.0, judged
    assert service.alive() and all(process.alive() for process in family)


def test_a_parent_that_ignores_its_children_does_not_blind_the_service(start):
    """Started with SIGCHLD ignored, it would miss the end of a text worker."""
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    service = start(wrapper=["/usr/bin/python3", "-c", ignore])
    workers = eventually(lambda: (found := descendants(service.pid)) and len(found) >= 3 and found, "the workers")
    os.kill(workers[-1].pid, signal.SIGKILL)
    eventually(lambda: not workers[-1].alive() and len(descendants(service.pid)) >= 3, "a worker in its place")


# -- settings with NUL ---------------------------------------------------------------------------------------------------------------

TEXTS = ["listen", "database", "ready_file", "token_file", "engine.token_dir"]


def in_yaml(key, value):
    group, _, name = key.rpartition(".")
    return f"{group}:\n  {name}: {value}\n" if group else f"{key}: {value}\n"


@pytest.mark.parametrize("key", TEXTS)
@pytest.mark.parametrize("value", ['"\\u0000"', '"\\0x"', '"x\\x00y"'], ids=["alone", "first", "inside"])
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_setting_with_nul_is_refused_with_its_line(tmp_path, key, value, check):
    file = tmp_path / "rolloutd.yaml"
    file.write_text("# settings\n" + in_yaml(key, value))
    refused("--config", file, *(["--check"] if check else []), cwd=tmp_path,
            names=[key.rpartition(".")[2], f"rolloutd.yaml line {3 if '.' in key else 2}", "NUL"])


@pytest.mark.parametrize("field", ["url", "name", "pool", "kind", "model", "token_file", "in_flight", "shared"])
def test_an_engine_with_nul_is_refused_in_the_file(tmp_path, field):
    file = tmp_path / "rolloutd.yaml"
    file.write_text('engines:\n  - url: http://127.0.0.1:9\n' if field != "url" else "engines:\n  - name: a\n")
    with file.open("a") as more:
        more.write(f'    {field}: "http://127.0.0.1:9\\u0000x"\n')
    refused(*serving(tmp_path, "--config", file, "--check"), names=[field, "line 3", "NUL"])


@pytest.mark.parametrize("how", ["flag", "variable"])
@pytest.mark.parametrize("field", ["name", "pool", "model", "token_file"])
def test_an_engine_with_an_escaped_nul_is_refused_on_the_way_in(tmp_path, how, field):
    url = f"http://127.0.0.1:9#{field}=a%00b"
    if how == "flag":
        refused(*serving(tmp_path, "--engine", url, "--check"), names=["%00", "NUL"])
    else:
        refused(*serving(tmp_path, "--check"), env={"ROLLOUTD_ENGINES": url}, names=["%00", "NUL"])


@pytest.mark.parametrize("body", [{"url": "http://127.0.0.1:9\u0000"}, {"url": "http://127.0.0.1:9", "model": "a\u0000b"}, {"url": "http://127.0.0.1:9", "pool": "a\u0000"},
                                  {"url": "http://127.0.0.1:9", "token": "a\u0000"}, {"url": "http://127.0.0.1:9", "kind": "vllm\u0000"}])
def test_an_engine_with_nul_is_refused_by_the_api(plain, body):
    reply = plain.put("/v1/engines/a", body)
    assert reply.status == 400 and reply.error["path"] == list(body)[-1]


# -- variables -------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, nearest", [("ROLLOUTD_LISTN", "ROLLOUTD_LISTEN"), ("ROLLOUTD_LOG_LEVL", "ROLLOUTD_LOG_LEVEL"), ("ROLLOUTD_CONFIGS", "ROLLOUTD_CONFIG"),
                                           ("ROLLOUTD_TOKEN_FIEL", "ROLLOUTD_TOKEN_FILE"), ("ROLLOUTD_MAX_ROLLOUT_PER_BATCH", "ROLLOUTD_MAX_ROLLOUTS_PER_BATCH"),
                                           ("ROLLOUTD_SOMETHING_ELSE_ALTOGETHER", None), ("ROLLOUTD_", None), ("ROLLOUTD_TOKEN_", "ROLLOUTD_TOKEN_FILE")])
def test_an_unknown_variable_is_named_with_the_nearest(start, tmp_path, name, nearest):
    done = run(*serving(tmp_path, "--check"), env={name: "127.0.0.1:1"})
    assert done.returncode == 0 and f"{name}:" in done.stderr and (nearest or name) in done.stderr
    service = start(env={name: "127.0.0.1:1"})
    line = next(line for line in service.log().splitlines() if f"variable={name}" in line)
    assert " warning " in line and (not nearest or f"did_you_mean={nearest}" in line)


def test_known_variables_are_not_warned_of(tmp_path):
    known = {"ROLLOUTD_LOG_LEVEL": "info", "ROLLOUTD_TOKEN_judge": "x", "ROLLOUTD_TOKEN_E1": "x", "ROLLOUTD_CONFIG": "", "ROLLOUTD_SCAN_BUDGET": "5"}
    assert run(*serving(tmp_path, "--check"), env=known).stderr == ""


# -- names and ports of engines -----------------------------------------------------------------------------------------------------------

PORTS = ["http://127.0.0.1:99999", "http://127.0.0.1:65536", "http://127.0.0.1:0", "http://127.0.0.1:", "http://127.0.0.1:-1", "http://127.0.0.1:+80", "http://127.0.0.1:8x",
         "http://127.0.0.1:99999999999999999999", "http://a:1:2", "http://[::1]:0", "http://[::1]x", "http://[zz]:80", "http://[::1", "http://:80", "http:///x", "https://h:70000/v1"]
GOOD_URLS = ["http://127.0.0.1:1", "http://127.0.0.1:65535", "http://[::1]:8000", "http://host", "https://host:443/prefix"]


@pytest.mark.parametrize("url", PORTS)
def test_an_impossible_port_is_refused_wherever_an_engine_is_named(plain, tmp_path, url):
    refused(*serving(tmp_path, "--engine", url, "--check"), names=[url, "65535"])
    refused(*serving(tmp_path, "--check"), env={"ROLLOUTD_ENGINES": url}, names=[url, "65535"])
    (tmp_path / "file.yaml").write_text(f'engines:\n  - url: "{url}"\n')
    refused(*serving(tmp_path, "--config", tmp_path / "file.yaml", "--check"), names=[url, "65535"])
    reply = plain.put("/v1/engines/a", {"url": url})
    assert (reply.status, reply.error["path"]) == (400, "url") and "65535" in reply.error["message"]


@pytest.mark.parametrize("url", GOOD_URLS)
def test_a_possible_port_is_taken(tmp_path, url):
    assert run(*serving(tmp_path, "--engine", url, "--check")).returncode == 0


@pytest.mark.parametrize("name", [".", ".."])
def test_the_names_of_folders_are_no_names_of_engines(plain, tmp_path, name):
    refused(*serving(tmp_path, "--engine", f"http://127.0.0.1:9#name={name}", "--check"), names=["name", f'"{name}"'])
    refused(*serving(tmp_path, "--check"), env={"ROLLOUTD_ENGINES": f"http://127.0.0.1:9#name={name}"}, names=["name", f'"{name}"'])
    (tmp_path / "file.yaml").write_text(f'engines:\n  - {{url: "http://127.0.0.1:9", name: "{name}"}}\n')
    refused(*serving(tmp_path, "--config", tmp_path / "file.yaml", "--check"), names=["name", f'"{name}"'])
    for path in (name, name.replace(".", "%2e")):
        reply = plain.put(f"/v1/engines/{path}", {"url": "http://127.0.0.1:9"})
        assert (reply.status, reply.error["path"]) == (400, "name")
    assert plain.read("/v1/engines")["items"] == []


@pytest.mark.parametrize("line", ['{url: "http://127.0.0.1:9", name: ".."}', '{url: "http://127.0.0.1:99999"}', '{url: "http://127.0.0.1:9", model: "a\\0b"}'])
def test_a_reload_refuses_them_and_changes_nothing(start, tmp_path, line):
    file = tmp_path / "rolloutd.yaml"
    file.write_text('engines:\n  - {url: "http://127.0.0.1:9", name: "kept"}\n')
    service = start(args=["--config", str(file)])
    file.write_text(f"engines:\n  - {line}\n")
    service.process.send_signal(signal.SIGHUP)
    seen = eventually(lambda: (found := service.read("/v1/engines")) and found["settings"]["error"] and found, "the settings to be refused")
    assert [engine["name"] for engine in seen["items"]] == ["kept"]


# -- modes (F25) -------------------------------------------------------------------------------------------------------------------------

def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("umask", ["022", "000", "007"])
def test_the_database_and_what_lies_beside_it_belong_to_the_service_alone(start, engine, umask):
    service = start(engine, wrapper=["/bin/sh", "-c", f'umask {umask}; exec "$@"', "sh"])
    service.batch(make_batch())
    assert {suffix: mode(service.database + suffix) for suffix in ("", "-wal", "-shm", "-lock")} == dict.fromkeys(("", "-wal", "-shm", "-lock"), 0o600)


def test_files_of_an_older_version_become_private(start, engine):
    service = start(engine)
    service.batch(make_batch())
    service.kill()
    for suffix in ("", "-wal", "-shm", "-lock"):
        os.chmod(service.database + suffix, 0o644)
    service.start()
    assert {mode(service.database + suffix) for suffix in ("", "-wal", "-shm", "-lock")} == {0o600}


def test_the_folder_of_crashes_becomes_private(start_endless):
    service = start_endless(settings={"verify_timeout": "1s"})
    os.mkdir(service.database + ".crashes", 0o755)
    score(service, "a", [ENDLESS_TEXT], [ENDLESS])
    path = eventually(lambda: (files := kept(service)) and files[0], "the file")
    assert mode(os.path.dirname(path)) == 0o700 and mode(path) == 0o600


def test_the_check_leaves_the_mode_alone(tmp_path, start):
    service = start()
    service.terminate()
    os.chmod(service.database, 0o644)
    assert run("--database", service.database, "--check").returncode == 0
    assert mode(service.database) == 0o644
