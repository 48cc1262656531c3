"""rolloutd backup and restore: a copy of the record beside a running service, and a record out of a copy."""
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from pathlib import Path

import pytest

from engines import ScriptedEngine
from harness import BINARY, PATIENCE, eventually
from material import make_batch, make_group, rollouts, sampling
from test_database import digest, fill, numbers, statements, verify
from test_restart import check_database, finished, samples_of, toy_batch

MIB = 1 << 20
LARGE_ROWS = 7_500  # of 10,000 bytes: beyond the 64 MiB after which a copy tells how far it is
NAMES = ["", "-wal", "-shm", "-journal"]


def run(*words, env=None, wrapper=(), cwd=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROLLOUTD_")}
    return subprocess.run([*wrapper, BINARY, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, env={**clean, **(env or {})}, cwd=cwd, check=False)


def backup(service, file, **options):
    return run("backup", file, "--database", service.database, **options)


def restore(file, database, *words, **options):
    return run("restore", file, "--database", database, *words, **options)


def made(done):
    assert done.returncode == 0, done
    return done


def refused(done, *names):
    """In one sentence."""
    assert done.returncode == 1 and not done.stdout and len(done.stderr.splitlines()) == 1, done
    for name in names:
        assert name in done.stderr, done
    return done


def in_order(path, rows):
    done = verify(str(path))
    assert done.returncode == 0 and f" {rows} rollouts" in done.stdout, done


def files(folder):
    return sorted(os.listdir(folder))


class Paused:
    """A backup that stops at the first line that it would print: the pipe for it is full."""

    def __init__(self, service, file, command="backup"):
        self.partial = f"{file}.partial" if command == "backup" else f"{service.database}.partial"
        self.read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        self.filled = 0
        try:
            while True:
                self.filled += os.write(write_end, b"\n" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        self.process = subprocess.Popen([BINARY, command, str(file), "--database", service.database], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=write_end)
        os.close(write_end)
        eventually(lambda: self.process.poll() is not None or os.path.exists(self.partial) and os.path.getsize(self.partial) >= 32 * MIB, "it to be in the middle")
        assert self.process.poll() is None, self.read()

    def read(self):
        said = b""
        while more := os.read(self.read_end, 65536):
            said += more
        return said.decode().lstrip("\n")

    def go_on(self):
        """The exit code, and what it printed as errors."""
        said = self.read()
        self.process.stdout.read()
        return self.process.wait(PATIENCE), said

    def end(self, number):
        self.process.send_signal(number)
        return self.go_on()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        os.close(self.read_end)


@pytest.fixture(scope="module")
def large(shared_factory):
    """A large file with one batch that was sampled."""
    engine = ScriptedEngine()
    try:
        service = shared_factory(engine)
        service.batch(make_batch())
        service.terminate()
    finally:
        engine.close()
    fill(service, LARGE_ROWS, 10_000)
    return service.database


@pytest.fixture
def filled(start, engine, large):
    """A service that is not started, on a copy of it."""
    service = start.make(engine)
    shutil.copyfile(large, service.database)
    return service


@pytest.fixture
def stopped(start, engine):
    """A service that has ended, with one batch of two rollouts."""
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    return service


# -- a copy ------------------------------------------------------------------------------------------------------------------

def test_a_copy_made_while_a_batch_runs_is_finished_by_another_service_with_the_same_numbers(start, toy, tmp_path):
    service = start(toy)
    identity = service.post("/v1/batches", toy_batch(), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: finished(service, identity), "some to be answered")
    answered = finished(service, identity)
    copy = tmp_path / "copy.db"
    made(backup(service, copy))
    at_the_copy = numbers(copy, "SELECT count(*) FROM rollouts")[0][0]
    in_order(copy, at_the_copy)
    check_database(str(copy), answered)
    whole = samples_of(service.settled(identity))
    assert len(answered) <= at_the_copy <= len(whole)
    other = start(toy, database=copy)
    again = other.settled(identity)
    assert again["state"] == "complete" and samples_of(again) == whole
    other.terminate()
    in_order(copy, len(whole))


def test_a_copy_of_what_runs_lacks_what_was_not_sampled_and_gets_it(start, engine, tmp_path):
    """The moment is certain here: two members answered, two held by the engine."""
    engine.rules({"in": "SLOW", "hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(make_group("a"), make_group("b", "SLOW"), deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(finished(service, identity)) == 2 and engine.open == 2, "one group to be answered, the other to be sampled")
    made(backup(service, tmp_path / "copy.db"))
    in_order(tmp_path / "copy.db", 2)
    engine.release()
    whole = samples_of(service.settled(identity))
    service.terminate()
    other = start(engine, database=tmp_path / "copy.db")
    assert samples_of(other.settled(identity)) == whole
    assert len(engine.samples_for("SLOW")) == 4 and len(engine.samples) == 6


def test_a_copy_has_all_that_is_in_the_log_alone(start, engine, tmp_path):
    service = start(engine)
    for index in range(3):
        service.batch(make_batch(run=f"r{index}"))
    assert os.path.getsize(service.database + "-wal") > 0
    made(backup(service, tmp_path / "copy.db"))
    in_order(tmp_path / "copy.db", 6)
    service.kill()
    made(backup(service, tmp_path / "after.db"))
    in_order(tmp_path / "after.db", 6)


def test_a_copy_is_one_private_file_and_leaves_the_database_alone(stopped, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    before, names = digest(stopped.database), files(stopped.folder)
    done = made(backup(stopped, folder / "copy.db"))
    assert files(folder) == ["copy.db"] and not done.stderr
    assert stat.S_IMODE(os.stat(folder / "copy.db").st_mode) == 0o600
    assert str(folder / "copy.db") in done.stdout and "1 batches, 2 rollouts" in done.stdout
    assert digest(stopped.database) == before and files(stopped.folder) == names


def test_the_database_is_that_of_the_settings(stopped, tmp_path):
    settings = tmp_path / "rolloutd.yaml"
    settings.write_text(f"database: {stopped.database}\nlisten: 0.0.0.0:1\n")  # which no service would take without a token
    made(run("backup", tmp_path / "file.db", "--config", settings))
    made(run("backup", tmp_path / "environment.db", env={"ROLLOUTD_DATABASE": stopped.database}))
    made(run("backup", tmp_path / "default.db", cwd=stopped.folder))
    assert {digest(tmp_path / f"{name}.db") for name in ("file", "environment", "default")} == {digest(tmp_path / "file.db")}


def test_a_copy_of_a_large_file_tells_how_far_it_is(filled, tmp_path):
    done = made(backup(filled, tmp_path / "copy.db"))
    whole = os.path.getsize(filled.database) // MIB
    assert done.stderr.splitlines() == [f"{at} of {whole} MiB" for at in range(64, whole + 1, 64)]
    assert numbers(tmp_path / "copy.db", "SELECT count(*) FROM rollouts") == [(LARGE_ROWS + 2,)]


def test_somebody_who_is_not_root_makes_a_copy_and_uses_it(start, engine, as_nobody):
    wrapper, folder = as_nobody
    service = start.make(engine, database=os.path.join(folder, "x.db"), wrapper=wrapper)
    if wrapper:
        os.makedirs(service.folder, exist_ok=True)
        service.ready_file = os.path.join(folder, "ready")
    service.start()
    service.batch(make_batch())
    copy = os.path.join(folder, "copy.db")
    made(backup(service, copy, wrapper=wrapper))
    refused(restore(copy, service.database, "--replace", wrapper=wrapper), "already open in process")
    service.terminate()
    made(restore(copy, service.database, "--replace", wrapper=wrapper))
    assert os.stat(service.database).st_uid == os.stat(copy).st_uid == (65534 if wrapper else os.geteuid())
    service.start()
    assert len(service.read("/v1/batches")["items"]) == 1


def test_a_database_that_root_restores_keeps_its_owner(start, engine, as_nobody, tmp_path):
    wrapper, folder = as_nobody
    if not wrapper:
        pytest.skip("only root gives files away")
    os.chown(folder, 65534, 65534)
    service = start(engine)
    service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    made(restore(tmp_path / "copy.db", os.path.join(folder, "x.db")))
    assert {os.stat(os.path.join(folder, name)).st_uid for name in ("x.db", "x.db-lock")} == {65534}


def test_a_restore_by_root_that_fails_leaves_the_lock_to_its_owner(stopped, as_nobody, tmp_path):
    """A service that cannot open it would not start."""
    wrapper, folder = as_nobody
    if not wrapper:
        pytest.skip("only root gives files away")
    os.chown(folder, 65534, 65534)
    make_wrong("cut", tmp_path / "cut", stopped.database)
    refused(restore(tmp_path / "cut", os.path.join(folder, "x.db")), "damaged")
    assert os.stat(os.path.join(folder, "x.db-lock")).st_uid == 65534


# -- beside a service ------------------------------------------------------------------------------------------------------

def test_a_service_writes_on_during_a_copy_and_shortens_its_log_afterwards(filled, engine, tmp_path):
    """The log cannot begin again behind a reader. So it holds what was committed meanwhile and no more, and goes no further afterwards."""
    service = filled.start()
    prompt = lambda: os.urandom(MIB // 2).hex()  # each once on record, and a request packs it to half at best
    body = lambda name: make_batch(*[make_group(f"t{index}", prompt()) for index in range(8)], run=name, sampling=sampling(1), deadline="10m")
    log = lambda: os.path.getsize(service.database + "-wal")
    with Paused(service, tmp_path / "copy.db") as copying:
        for index in range(3):
            service.batch(body(f"during{index}"))
        during = log()
        assert 3 * 8 * MIB <= during < 2 * 3 * 8 * MIB, "a prompt is in the log once, and once packed"
        code, said = copying.go_on()
    assert code == 0, said
    assert "during" not in str(numbers(tmp_path / "copy.db", "SELECT name FROM runs"))
    assert numbers(tmp_path / "copy.db", "SELECT count(*) FROM rollouts") == [(LARGE_ROWS + 2,)]
    for index in range(4):
        service.batch(body(f"after{index}"))
    assert log() < during + 2 * 8 * MIB, "it began again"
    service.terminate()
    assert numbers(service.database, "SELECT count(*) FROM rollouts") == [(LARGE_ROWS + 2 + 56,)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_copy_that_is_cut_off_never_has_the_name(filled, tmp_path, number):
    folder = tmp_path / "copies"
    folder.mkdir()
    with Paused(filled, folder / "copy.db") as copying:
        code, said = copying.end(number)
    if number == signal.SIGKILL:
        assert code == -number and files(folder) == ["copy.db.partial"]
        refused(backup(filled, folder / "copy.db"), "copy.db.partial", "delete it")
        os.unlink(folder / "copy.db.partial")
    else:
        assert code == 1 and "stopped" in said.splitlines()[-1] and files(folder) == [], said
    made(backup(filled, folder / "copy.db"))


def test_two_copies_of_one_name_do_not_share_a_file(filled, tmp_path):
    with Paused(filled, tmp_path / "copy.db") as copying:
        refused(backup(filled, tmp_path / "copy.db"), "copy.db.partial", "another copy is being made")
        made(backup(filled, tmp_path / "other.db"))
        code, said = copying.go_on()
    assert code == 0, said
    assert digest(tmp_path / "copy.db") == digest(tmp_path / "other.db")


def test_a_copy_never_takes_a_name_that_somebody_else_took_meanwhile(filled, tmp_path):
    with Paused(filled, tmp_path / "copy.db") as copying:
        (tmp_path / "copy.db").write_text("somebody's")
        code, said = copying.go_on()
    assert code == 1 and "copy.db" in said.splitlines()[-1], said
    assert (tmp_path / "copy.db").read_text() == "somebody's" and not os.path.exists(tmp_path / "copy.db.partial")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_full_disk_ends_a_copy_with_a_sentence_and_leaves_nothing(filled, tmp_path, command):
    limited = ["/bin/bash", "-c", f'ulimit -f {20 * 1024}; exec "$@"', "bash"]
    folder = tmp_path / "copies"
    folder.mkdir()
    if command == "backup":
        refused(backup(filled, folder / "copy.db", wrapper=limited), "copy.db", "disk is full")
        assert files(folder) == []
    else:
        refused(restore(filled.database, folder / "to.db", wrapper=limited), "to.db", "disk is full")
        assert files(folder) == ["to.db-lock"]


# -- what is no place for a copy --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["a copy.db", "100%25.db?mode=memory#x", "-copy", "kopie-\u00fc.db", "copy.db-lock"])
def test_a_copy_may_have_any_other_name(stopped, tmp_path, name):
    made(backup(stopped, tmp_path / name))
    in_order(tmp_path / name, 2)
    made(restore(tmp_path / name, tmp_path / f"to {name}"))
    in_order(tmp_path / f"to {name}", 2)


def occupy(what, path):
    if what == "file":
        path.write_text("somebody's")
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "link to nowhere":
        path.symlink_to("nowhere")
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as made_socket:
            made_socket.bind(str(path))
    else:
        path.with_name(path.name + what).write_text("a log of somebody's")


@pytest.mark.parametrize("what", ["file", "fifo", "folder", "link to nowhere", "socket", "-wal", "-shm", "-journal", ".partial"])
def test_a_copy_is_not_written_over_anything(stopped, tmp_path, what, monkeypatch):
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.chdir(folder)  # the path of a socket must be short
    occupy(what, Path("copy.db"))
    before = files(folder)
    refused(backup(stopped, folder / "copy.db"), "copy.db", "is there already")
    assert files(folder) == before


@pytest.mark.parametrize("name, said", [("rolloutd.db", "the database itself"), ("link.db", "the database itself"), ("nowhere/copy.db", "nowhere/copy.db"), ("log/copy.db", "log/copy.db"),
                                        ("rolloutd.db-journal", "the database itself uses"), ("rolloutd.db.crashes", "the database itself uses"),
                                        ("rolloutd.db.restoring", "the database itself uses"), ("new/", "new/"), ("x" * 250, "x" * 250)])
def test_a_name_that_cannot_be_a_copy_is_refused(stopped, name, said):
    os.link(stopped.database, os.path.join(stopped.folder, "link.db"))
    before = files(stopped.folder)
    refused(backup(stopped, os.path.join(stopped.folder, name)), said)
    assert files(stopped.folder) == before


def test_the_names_of_a_service_that_ended_are_not_for_copies(stopped):
    for suffix in ("-wal", "-shm"):
        refused(backup(stopped, stopped.database + suffix), suffix, "the database itself uses")


def make_wrong(what, path, good):
    """A file that must not be copied."""
    if what == "empty":
        path.write_bytes(b"")
    elif what == "text":
        path.write_text("no database" * 100)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "another program's":
        statements(path, "CREATE TABLE t (a)")
    elif what == "without a table":
        statements(path, "VACUUM")
    elif what != "missing":
        shutil.copyfile(good, path)
        damage(what, path)


def damage(what, path):
    if what == "newer":
        statements(path, "PRAGMA user_version = 9999")
    elif what == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        with sqlite3.connect(path) as database:
            root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (what,)).fetchone()[0]
        database.close()
        with open(path, "r+b") as file:
            file.seek((root - 1) * 4096 + 8)
            file.write(b"\xff" * 2000)


WRONG = [("missing", "missing or empty"), ("empty", "missing or empty"), ("text", "no database"), ("fifo", "not a regular file"), ("folder", "not a regular file"), ("another program's", "another program"),
         ("without a table", "is empty"), ("newer", "newer than this program"), ("cut", "damaged"), ("batches", "check"), ("rollouts_by_task", "check")]


@pytest.mark.parametrize("command", ["backup", "restore"])
@pytest.mark.parametrize("what, said", WRONG)
def test_a_file_that_is_no_sound_database_is_not_copied(stopped, tmp_path, command, what, said):
    wrong, folder = tmp_path / "wrong", tmp_path / "copies"
    make_wrong(what, wrong, stopped.database)
    folder.mkdir()
    shutil.copyfile(stopped.database, folder / "to.db")
    words = ["backup", folder / "copy.db", "--database", wrong] if command == "backup" else ["restore", wrong, "--database", folder / "to.db", "--replace"]
    refused(run(*words), str(wrong), said)
    assert set(files(folder)) <= {"to.db", "to.db-lock"} and digest(folder / "to.db") == digest(stopped.database)


@pytest.mark.parametrize("words", [[], ["a", "b"], ["--replace", "a"], ["a", "--database"], ["a", "--config", "/nowhere.yaml"], [""], ["a", "--set", "database=x"]])
def test_a_wrong_use_of_backup_is_told(words, tmp_path):
    done = run("backup", *words, cwd=tmp_path)
    assert done.returncode == 2 and "rolloutd backup: " in done.stderr and files(tmp_path) == [], done


# -- restore ---------------------------------------------------------------------------------------------------------------

def test_a_record_is_restored_and_goes_on(start, engine, tmp_path):
    service = start(engine)
    before = service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    after = service.batch(make_batch(run="after"))
    service.kill()
    for suffix in ("", "-wal", "-shm"):
        os.unlink(service.database + suffix)
    done = made(restore(tmp_path / "copy.db", service.database))
    assert service.database in done.stdout and "1 batches, 2 rollouts" in done.stdout and "kept" not in done.stdout
    assert stat.S_IMODE(os.stat(service.database).st_mode) == 0o600
    service.start()
    assert samples_of(service.read(f"/v1/batches/{before['id']}")) == samples_of(before)
    assert service.get(f"/v1/batches/{after['id']}").status == 404
    assert len(rollouts(service.batch(make_batch(run="again")))) == 2
    service.terminate()
    in_order(service.database, 4)
    in_order(tmp_path / "copy.db", 2)


def test_the_old_record_is_kept_whole_with_its_log(start, engine, tmp_path):
    service = start(engine)
    service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    service.batch(make_batch(run="after"))
    service.kill()
    refused(restore(tmp_path / "copy.db", service.database), service.database, "--replace")
    log = digest(service.database + "-wal")
    done = made(restore(tmp_path / "copy.db", service.database, "--replace"))
    kept = done.stdout.splitlines()[-1].removeprefix("the old database is kept as ")
    assert kept.startswith(service.database + ".replaced-") and digest(kept + "-wal") == log and os.path.exists(kept + "-shm")
    assert not any(os.path.exists(service.database + suffix) for suffix in NAMES[1:] + [".partial", ".restoring"])
    in_order(kept, 4)
    service.start()
    assert len(service.read("/v1/batches")["items"]) == 1


def test_an_old_record_never_takes_a_name_that_another_has(stopped, tmp_path):
    """Two restores in one second: the second would find the name of the first."""
    made(backup(stopped, tmp_path / "copy.db"))
    now = int(time.time())
    taken = [time.strftime(f"{stopped.database}.replaced-%Y%m%dT%H%M%SZ", time.gmtime(at)) + ("", "-wal")[at % 2] for at in range(now, now + 2 * int(PATIENCE))]
    for name in taken:
        Path(name).write_text("somebody's")
    kept = [made(restore(tmp_path / "copy.db", stopped.database, "--replace")).stdout.splitlines()[-1].removeprefix("the old database is kept as ") for _ in range(3)]
    assert len(set(kept)) == 3 and not set(kept) & {name.removesuffix("-wal") for name in taken}
    assert {Path(name).read_text() for name in taken} == {"somebody's"}
    for name in [*kept, stopped.database]:
        in_order(name, 2)
    assert not os.path.exists(stopped.database + ".restoring")


def test_a_log_without_its_database_is_not_left_to_the_restored_one(start, engine, tmp_path):
    """SQLite would play it into the new file."""
    service = start(engine)
    service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    service.batch(make_batch(run="after"))
    service.kill()
    os.unlink(service.database)
    refused(restore(tmp_path / "copy.db", service.database), service.database, "log", "--replace")
    made(restore(tmp_path / "copy.db", service.database, "--replace"))
    in_order(service.database, 2)


def test_a_damaged_database_is_replaced_too(stopped, tmp_path):
    made(backup(stopped, tmp_path / "copy.db"))
    with open(stopped.database, "r+b") as file:
        file.write(os.urandom(8192))
    broken = digest(stopped.database)
    done = made(restore(tmp_path / "copy.db", stopped.database, "--replace"))
    assert digest(done.stdout.splitlines()[-1].removeprefix("the old database is kept as ")) == broken
    in_order(stopped.database, 2)


def test_a_copy_with_a_log_beside_it_is_restored_with_what_is_in_it(start, engine, tmp_path):
    service = start(engine)
    service.batch(make_batch())
    service.kill()
    for suffix in ("", "-wal"):
        shutil.copyfile(service.database + suffix, str(tmp_path / "copy.db") + suffix)
    made(restore(tmp_path / "copy.db", tmp_path / "to.db"))
    in_order(tmp_path / "to.db", 2)


def test_a_database_that_a_service_has_open_is_not_replaced(service, tmp_path):
    service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    before = files(service.folder)
    for words in ([], ["--replace"]):
        refused(restore(tmp_path / "copy.db", service.database, *words), service.database, str(service.pid))
    assert files(service.folder) == before and service.get("/readyz").status == 200
    refused(restore(service.database, service.database, "--replace"), "the database itself")


def test_no_service_starts_while_a_record_is_restored(filled, tmp_path):
    copy = tmp_path / "copy.db"
    os.rename(filled.database, copy)
    with Paused(filled, copy, "restore") as restoring:
        check = subprocess.run([BINARY, "--listen", "127.0.0.1:0", "--database", filled.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert check.returncode == 1 and str(restoring.process.pid) in check.stderr, check
        code, said = restoring.go_on()
    assert code == 0, said
    assert numbers(filled.database, "SELECT count(*) FROM rollouts") == [(LARGE_ROWS + 2,)]


SYNCS = 4  # of the copy, and of the folder when the copy is ready, the old files are away, and the copy has its name


@pytest.mark.parametrize("passed", range(SYNCS))
def test_a_restore_that_is_killed_leaves_the_old_record_or_the_new_one_or_says_so(start, engine, tmp_path, slow_sync, passed):
    service = start(engine)
    service.batch(make_batch())
    made(backup(service, tmp_path / "copy.db"))
    service.batch(make_batch(run="after"))
    service.kill()
    hanging = tmp_path / "hanging"
    hanging.touch()
    process = subprocess.Popen([BINARY, "restore", tmp_path / "copy.db", "--database", service.database, "--replace"],
                               env={**os.environ, "LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": str(hanging)}, stdout=subprocess.DEVNULL)
    for _ in range(passed):
        eventually(lambda: os.path.exists(f"{hanging}.waits"), "a sync")
        (tmp_path / "hanging.step").touch()
        eventually(lambda: not os.path.exists(f"{hanging}.step"), "it to pass")
    eventually(lambda: os.path.exists(f"{hanging}.waits"), "the last sync")
    process.kill()
    process.wait()
    started = run("--check", "--database", service.database)
    if passed in (1, 2):
        assert started.returncode == 1 and "restore" in started.stderr and service.database in started.stderr, started
        made(restore(tmp_path / "copy.db", service.database, "--replace"))
    else:
        assert started.returncode == 0, started
    kept = sorted(name for name in files(service.folder) if ".replaced-" in name)
    if passed == 0:
        assert kept == []
        in_order(service.database, 4)
    else:
        assert [name[len(kept[0]):] for name in kept] == ["", "-shm", "-wal"], "the old files are together"
        in_order(os.path.join(service.folder, kept[0]), 4)
        in_order(service.database, 2)


def test_a_copy_of_the_file_alone_is_not_a_copy_of_the_record(start, engine, tmp_path):
    """As docs/commands.md says of cp."""
    service = start(engine)
    service.batch(make_batch())
    shutil.copyfile(service.database, tmp_path / "cp.db")
    made(backup(service, tmp_path / "copy.db"))
    assert verify(str(tmp_path / "cp.db")).returncode == 1 or numbers(tmp_path / "cp.db", "SELECT count(*) FROM rollouts") == [(0,)]
    in_order(tmp_path / "copy.db", 2)
