"""A service that cannot do its work does not start, and says why in one line."""
import hashlib
import os
import re
import socket
import sqlite3
import subprocess

import pytest

from harness import BINARY, PATIENCE
from material import make_batch, rollouts


def run(*args, env=None, cwd=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROLLOUTD_")}
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, env={**clean, **(env or {})}, cwd=cwd)


def refused(*args, names, **options):
    done = run(*args, **options)
    said = done.stderr + done.stdout
    assert done.returncode not in (0, None) and done.returncode > 0, f"ended with {done.returncode}: {said}"
    for name in names:
        assert name in said, f"{name!r} is not in {said!r}"
    return said


def serving(folder, *args):
    """Arguments of an ordinary start in this folder."""
    return ("--listen", "127.0.0.1:0", "--database", folder / "rolloutd.db", "--ready-file", folder / "ready", *args)


# -- the command line ---------------------------------------------------------------------------------------------------

def test_version_and_help():
    version = run("--version")
    assert version.returncode == 0 and re.search(r"\d+\.\d+\.\d+", version.stdout)
    usage = run("--help")
    assert usage.returncode == 0 and all(flag in usage.stdout for flag in ("--config", "--listen", "--database", "--engine", "--ready-file", "--set", "--check"))


@pytest.mark.parametrize("args, names", [
    (["--lisen", "x"], ["--lisen"]), (["--listen"], ["--listen"]), (["--listen", "nonsense"], ["nonsense"]), (["--listen", "127.0.0.1:99999"], ["99999"]),
    (["--set", "scan_budget"], ["scan_budget"]), (["--set", "colour=red"], ["colour"]), (["--set", "scan_budget=many"], ["scan_budget", "many"]),
    (["--set", "scan_budget=-1"], ["scan_budget", "-1"]), (["--set", "drain_timeout=3"], ["drain_timeout", "3"]), (["--set", "body_limit=huge"], ["body_limit", "huge"]),
    (["--config", "/nowhere/rolloutd.yaml"], ["/nowhere/rolloutd.yaml"]), (["--engine", "ftp://x"], ["ftp"]), (["--engine", "http://127.0.0.1:1#kind=magic"], ["magic"]),
    (["--engine", "http://127.0.0.1:1#colour=red"], ["colour"]), (["stray"], ["stray"])])
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_bad_setting_ends_the_start_with_its_name_and_value(tmp_path, args, names, check):
    said = refused(*serving(tmp_path), *args, *(["--check"] if check else []), names=names)
    assert len(said.strip().splitlines()) == 1, said
    assert not (tmp_path / "ready").exists()


@pytest.mark.parametrize("text, names", [
    ("colour: red\n", ["colour"]), ("scan_budget: many\n", ["scan_budget"]), ("scan_budget: [1\n", ["rolloutd.yaml"]), ("engines:\n  - {kind: vllm}\n", ["url"]),
    ("\u0000", ["rolloutd.yaml"])])
def test_a_bad_settings_file_ends_the_start(tmp_path, text, names):
    file = tmp_path / "rolloutd.yaml"
    file.write_text(text)
    refused(*serving(tmp_path, "--config", file), names=names)


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_empty_settings_file_is_a_settings_file(tmp_path, text):
    file = tmp_path / "rolloutd.yaml"
    file.write_text(text)
    assert run(*serving(tmp_path, "--config", file, "--check")).returncode == 0


def test_the_shipped_settings_file_is_the_default(tmp_path):
    from harness import ROOT
    done = run(*serving(tmp_path, "--config", os.path.join(ROOT, "config", "rolloutd.yaml"), "--check"))
    assert done.returncode == 0, done.stderr


def test_flag_beats_environment_beats_file(tmp_path):
    file = tmp_path / "rolloutd.yaml"
    file.write_text("scan_budget: wrong-in-file\n")
    refused(*serving(tmp_path, "--config", file, "--check"), names=["wrong-in-file"])
    refused(*serving(tmp_path, "--config", file, "--check"), env={"ROLLOUTD_SCAN_BUDGET": "wrong-in-env"}, names=["wrong-in-env"])
    refused(*serving(tmp_path, "--config", file, "--check", "--set", "scan_budget=wrong-flag"), env={"ROLLOUTD_SCAN_BUDGET": "wrong-in-env"}, names=["wrong-flag"])
    assert run(*serving(tmp_path, "--config", file, "--check", "--set", "scan_budget=1000")).returncode == 0


def test_check_validates_and_touches_nothing(tmp_path):
    assert run(*serving(tmp_path, "--check")).returncode == 0
    assert list(tmp_path.iterdir()) == []


# -- who may reach it -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_beyond_loopback_it_wants_a_token(tmp_path, address):
    refused("--listen", address, "--database", tmp_path / "x.db", "--check", names=["token"])
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    assert run("--listen", address, "--database", tmp_path / "x.db", "--set", f"token_file={token}", "--check").returncode == 0


def test_an_unreadable_or_empty_token_file_ends_the_start(tmp_path):
    refused(*serving(tmp_path, "--set", f"token_file={tmp_path}/none"), names=["token"])
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "empty").chmod(0o600)
    refused(*serving(tmp_path, "--set", f"token_file={tmp_path}/empty"), names=["token"])


def test_a_token_that_everybody_may_read_is_no_token(tmp_path):
    (tmp_path / "open").write_text("secret\n")
    (tmp_path / "open").chmod(0o644)
    refused(*serving(tmp_path, "--set", f"token_file={tmp_path}/open"), names=["token"])


def test_a_port_that_is_taken_ends_the_start(start, tmp_path):
    service = start()
    refused("--listen", f"127.0.0.1:{service.port}", "--database", tmp_path / "x.db", names=[str(service.port)])


# -- the database ---------------------------------------------------------------------------------------------------------------

def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_database_that_is_open_elsewhere_is_refused_with_its_holder(start, tmp_path):
    """R58"""
    service = start()
    refused("--listen", "127.0.0.1:0", "--database", service.database, names=[service.database, str(service.pid)])
    assert service.get("/healthz").status == 200


def test_two_services_on_two_databases_do_not_mind_each_other(start):
    first, second = start(), start()
    assert first.port != second.port and first.get("/healthz").status == second.get("/healthz").status == 200


@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_damaged_database_is_refused_and_left_alone(start, engine, tmp_path, check):
    """R59"""
    service = start(engine)
    for run_name in "abcde":
        service.batch(make_batch(run=run_name))
    service.terminate()
    path = tmp_path / "damaged.db"
    with open(service.database, "rb") as file:
        whole = bytearray(file.read())
    whole[3 * 4096:5 * 4096] = os.urandom(2 * 4096)
    path.write_bytes(whole)
    before = digest(path)
    refused("--listen", "127.0.0.1:0", "--database", path, "--ready-file", tmp_path / "ready", *(["--check"] if check else []), names=[str(path)])
    assert digest(path) == before and not (tmp_path / "ready").exists()


def make_text(path):
    path.write_text("this is a diary, not a database\n" * 1000)


def make_foreign(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE diary (day TEXT)")
    database.close()


def make_newer(path):
    run("--listen", "127.0.0.1:0", "--database", path, "--check")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 999999")
    database.close()


def make_folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [make_text, make_foreign, make_newer, make_folder])
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_file_that_is_not_our_database_is_refused_and_left_alone(tmp_path, make, check):
    """R59"""
    path = tmp_path / "other.db"
    make(path)
    before = digest(path) if path.is_file() else None
    refused("--listen", "127.0.0.1:0", "--database", path, "--ready-file", tmp_path / "ready", *(["--check"] if check else []), names=[str(path)])
    assert not path.is_file() or digest(path) == before


def test_a_database_of_a_newer_version_is_not_migrated_down(start, tmp_path):
    """R59"""
    service = start()
    service.terminate()
    with sqlite3.connect(service.database) as database:
        database.execute("PRAGMA user_version = 999999")
    database.close()
    refused("--listen", "127.0.0.1:0", "--database", service.database, names=[service.database, "999999"])


def test_an_empty_file_is_a_fresh_store(start, engine, tmp_path):
    """R59"""
    (tmp_path / "empty.db").touch()
    assert len(rollouts(start(engine, database=tmp_path / "empty.db").batch(make_batch()))) == 2


@pytest.mark.parametrize("make", ["missing folder", "read-only folder"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, make):
    folder = tmp_path / "place"
    if make == "read-only folder":
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        folder.mkdir()
        folder.chmod(0o500)
    refused("--listen", "127.0.0.1:0", "--database", folder / "x.db", names=[str(folder)])


def test_a_path_with_odd_characters_is_a_path(start, engine, tmp_path):
    folder = tmp_path / "a b?c%d'é#&mode=ro"
    folder.mkdir()
    service = start(engine, database=folder / "x?y.db")
    service.batch(make_batch())
    service.terminate()
    assert (folder / "x?y.db").stat().st_size > 0


def test_a_ready_file_that_cannot_be_written_ends_the_start(tmp_path):
    refused("--listen", "127.0.0.1:0", "--database", tmp_path / "x.db", "--ready-file", tmp_path / "none" / "ready", names=["ready"])


# -- what it prints ---------------------------------------------------------------------------------------------------------------

def test_the_ready_file_holds_the_url(start):
    service = start()
    with open(service.ready_file, encoding="utf-8") as file:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+\n", file.read())


def test_log_lines_in_json_carry_the_ids(start, engine):
    import json
    service = start(engine, settings={"log.format": "json", "log.level": "debug"})
    batch = service.batch(make_batch())
    service.terminate()
    lines = [json.loads(line) for line in service.log().splitlines()]
    assert lines and any(batch["id"] in line.values() for line in lines)


def test_a_secret_is_never_in_the_log(start, engine, tmp_path):
    (tmp_path / "token").write_text("open-sesame-9f3\n")
    (tmp_path / "token").chmod(0o600)
    service = start(engine, settings={"log.level": "debug", "token_file": tmp_path / "token"})
    service.request("GET", "/v1/runs", headers={"Authorization": "Bearer open-sesame-9f3"})
    service.request("GET", "/v1/runs", headers={"Authorization": "Bearer guess-77aa"})
    service.terminate()
    assert "open-sesame-9f3" not in service.log() and "guess-77aa" not in service.log()


def test_hostile_text_cannot_forge_a_log_line(start, engine):
    service = start(engine, settings={"log.level": "debug"})
    service.get("/v1/rollouts/%0Aforged%20line%0D")
    service.post("/v1/batches", make_batch(run="a\nforged line"))
    service.terminate()
    assert not any(line.startswith("forged line") for line in service.log().splitlines())


def test_it_listens_on_the_loopback_of_ipv6(start):
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError as problem:
        pytest.skip(f"no IPv6 here: {problem}")
    service = start(args=["--listen", "[::1]:0"])
    assert re.fullmatch(r"http://\[::1\]:\d+", service.url) and service.get("/healthz").status == 200
