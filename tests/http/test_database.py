"""F12 (a start reads a bounded part of the file, an upgrade runs behind /readyz) and of F22 the loss of the database file."""
import glob
import hashlib
import os
import shutil
import socket
import sqlite3
import subprocess

import pytest

from harness import BINARY, PATIENCE, ROOT, eventually, http_request
from material import make_batch, make_group, rollouts
from test_start import refused

READ_AT_A_START = 16 << 20
MIGRATIONS = sorted(glob.glob(os.path.join(ROOT, "schema", "migrations", "*.sql")))
APPLICATION = 0x524F4C44


def statements(path, *texts):
    connection = sqlite3.connect(path)
    for text in texts:
        connection.executescript(text)
    connection.commit()
    connection.close()


def numbers(path, sql):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def bytes_read(service):
    with open(f"/proc/{service.pid}/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


ROWS = """
WITH RECURSIVE i (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM i WHERE k + 1 < {count})
INSERT INTO rollouts (group_seq, sample_index, batch_seq, run_seq, task_seq, incarnation, purpose, created_at_us, state, reward, policy_revision, straddles, resample,
    attempts, seed, trainable, logprobs_mode, completion_tokens, trainable_tokens, queued_us, engine_us, verify_us)
SELECT g.seq, 1000 + k, g.batch_seq, b.run_seq, g.task_seq, 0, 'train', 1, 'scored', 1.0, 1, 0, 0, 1, k, 1, 'raw', 0, 0, 0, 0, 0
FROM i, (SELECT * FROM groups LIMIT 1) g JOIN batches b ON b.seq = g.batch_seq;
"""
TEXTS = "INSERT INTO rollout_texts (rollout_seq, text, text_replaced) SELECT seq, hex(zeroblob({bytes})), 0 FROM rollouts WHERE sample_index >= 1000;"


def fill(service, count, text_bytes=0):
    """More rows than anybody sampled: the file of a long training."""
    statements(service.database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", ROWS.format(count=count),
               *([TEXTS.format(bytes=text_bytes // 2)] if text_bytes else []))


# -- the start ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_start_reads_a_bounded_part_of_a_large_file(start, engine, end):
    service = start(engine)
    before = service.batch(make_batch())
    service.terminate()
    fill(service, 20_000, 10_000)
    assert os.path.getsize(service.database) > 10 * READ_AT_A_START
    service.start()
    if end == "stop":
        service.terminate()
    else:
        service.batch(make_batch(run="more"))
        service.kill()
    log = os.path.getsize(service.database + "-wal") if end == "kill" else 0
    service.start()
    assert bytes_read(service) - 2 * log < READ_AT_A_START
    assert service.read(f"/v1/batches/{before['id']}")["id"] == before["id"]


def test_a_check_reads_a_bounded_part_too(start, engine, tmp_path):
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    fill(service, 20_000, 10_000)
    script = 'import subprocess, sys, resource; code = subprocess.call(sys.argv[1:]); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock); sys.exit(code)'
    subprocess.run(["/usr/bin/python3", "-c", script, BINARY, "--database", service.database, "--check"], check=True, timeout=PATIENCE)
    assert not os.path.exists(service.database + "-shm")


@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
@pytest.mark.parametrize("damage", ["roots", "cut", "header"])
def test_a_large_file_that_is_damaged_where_it_begins_or_ends_is_refused(start, engine, tmp_path, check, damage):
    """R59 at any size."""
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    fill(service, 2000, 10_000)
    size = os.path.getsize(service.database)
    with open(service.database, "r+b") as file:
        if damage == "cut":
            file.truncate(size // 2)
        else:
            file.seek(3 * 4096 if damage == "roots" else 100)
            file.write(os.urandom(2 * 4096 if damage == "roots" else 4))
    before = digest(service.database)
    refused("--listen", "127.0.0.1:0", "--database", service.database, *(["--check"] if check else []), names=[service.database, "damaged"])
    assert digest(service.database) == before


@pytest.mark.parametrize("how", ["missing", "empty"])
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_log_without_its_file_is_not_thrown_away(start, engine, how, check):
    """SQLite takes it for a left-over and deletes it, and all that is in it alone."""
    service = start(engine)
    service.batch(make_batch())
    service.kill()
    kept = service.database + ".kept"
    os.rename(service.database, kept)
    if how == "empty":
        open(service.database, "wb").close()
    log = digest(service.database + "-wal")
    refused("--listen", "127.0.0.1:0", "--database", service.database, *(["--check"] if check else []), names=[service.database + "-wal", "missing or empty"])
    assert digest(service.database + "-wal") == log
    os.replace(kept, service.database)
    service.start()
    assert len(service.read("/v1/batches")["items"]) == 1


# -- the whole check --------------------------------------------------------------------------------------------------------------

def verify(path, **options):
    return subprocess.run([BINARY, "verify-database", path], capture_output=True, text=True, timeout=PATIENCE, **options)


def test_a_database_in_order_passes_the_whole_check_and_is_left_alone(start, engine):
    service = start(engine)
    service.batch(make_batch(make_group("a"), make_group("b")))
    service.terminate()
    before, files = digest(service.database), sorted(os.listdir(service.folder))
    done = verify(service.database)
    assert done.returncode == 0 and "1 batches, 4 rollouts" in done.stdout, done
    assert digest(service.database) == before and sorted(os.listdir(service.folder)) == files


def test_the_whole_check_runs_beside_a_service_that_writes(start, engine):
    service = start(engine)
    for index in range(3):
        service.batch(make_batch(run=f"r{index}"))
        done = verify(service.database)
        assert done.returncode == 0 and f"{index + 1} batches" in done.stdout, done
    assert service.get("/readyz").status == 200


def test_a_run_that_goes_back_while_a_batch_runs_leaves_a_record_in_order(start, engine):
    engine.rules({"in": "SLOW", "hold": True})
    service = start(f"{engine.for_rolloutd}&in_flight=2")
    identity = service.post("/v1/batches", make_batch(make_group("a", "SLOW"), make_group("b"), deadline="120s"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "the first group to be sampled")
    assert service.put("/v1/runs/test/policy", {"revision": 0, "rewind_to_step": 0}).json["incarnation"] == 1
    engine.release()
    assert service.settled(identity)["state"] == "complete"
    assert numbers(service.database, "SELECT DISTINCT incarnation FROM rollouts ORDER BY 1") == [(0,), (1,)]
    done = verify(service.database)
    assert done.returncode == 0, done
    service.terminate()
    statements(service.database, "UPDATE rollouts SET incarnation = 2 WHERE incarnation = 1")
    assert "of another batch, run, task, incarnation or purpose" in verify(service.database).stdout


def test_the_whole_check_reads_what_a_crash_left_in_the_log(start, engine):
    service = start(engine)
    service.batch(make_batch())
    service.kill()
    done = verify(service.database)
    assert done.returncode == 0 and "1 batches, 2 rollouts" in done.stdout, done


WRONG = [
    ("UPDATE batches SET scored = 3, failed = 1", "a batch's counters"),
    ("UPDATE runs SET scored = 99", "a run's counters"),
    ("UPDATE batches SET group_count = 1, rollout_count = 4", "another number of groups"),
    ("UPDATE groups SET rewarded = 1", "a closed group lacks members"),
    ("UPDATE groups SET state = 'running', closed_at_us = NULL, rewarded = NULL, zero_variance = NULL, reward_mean = NULL, reward_std = NULL", "a group that is not closed"),
    ("UPDATE rollouts SET purpose = 'eval'", "of another batch, run, task, incarnation or purpose"),
    ("UPDATE rollouts SET completion_tokens = 9, trainable_tokens = 0", "another number of ids"),
    ("DELETE FROM batch_contents", "no contents"),
    ("PRAGMA foreign_keys = OFF; DELETE FROM tasks", "refers to one that is not there"),
    ("DROP INDEX rollouts_by_task", "rollouts_by_task"),
    ("DROP TRIGGER rollouts_are_final; UPDATE groups SET first_sample_index = 1", "rollouts_are_final"),
    ("DROP TRIGGER rollouts_are_final; UPDATE groups SET first_sample_index = 1", "index is outside its group"),
    ("PRAGMA ignore_check_constraints = ON; UPDATE rollouts SET straddles = 7", "CHECK constraint failed in rollouts"),
]


@pytest.mark.parametrize("sql, found", WRONG)
def test_each_fault_is_named(start, engine, sql, found):
    service = start(engine)
    service.batch(make_batch(make_group("a"), make_group("b")))
    service.terminate()
    statements(service.database, sql)
    done = verify(service.database)
    assert done.returncode == 1 and found in done.stdout, done


def test_a_page_that_a_start_does_not_read_is_found_by_the_whole_check(start, engine):
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    fill(service, 3000, 4000)
    with open(service.database, "r+b") as file:
        file.seek(os.path.getsize(service.database) // 2 // 4096 * 4096)
        file.write(os.urandom(4096))
    done = verify(service.database)
    assert done.returncode == 1 and done.stdout.strip(), done
    service.start()


@pytest.mark.parametrize("cut_bytes", [1, 100, 4096, 3 * 4096 + 5])
def test_a_file_that_lacks_its_last_bytes_fails_the_check_and_the_start_alike(start, engine, cut_bytes):
    """F12: SQLite reads a part of a page as if zeros followed."""
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    os.truncate(service.database, os.path.getsize(service.database) - cut_bytes)
    done = verify(service.database)
    assert done.returncode == 1 and service.database in done.stdout, done
    refused("--listen", "127.0.0.1:0", "--database", service.database, names=[service.database, "damaged"])


@pytest.mark.parametrize("content", [None, b"", b"this is a diary\n" * 1000])
def test_a_file_that_is_no_database_of_ours_fails_the_whole_check(tmp_path, content):
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    done = verify(path)
    assert done.returncode == 1 and str(path) in done.stdout
    with sqlite3.connect(tmp_path / "foreign.db") as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    connection.close()
    assert "another program" in verify(tmp_path / "foreign.db").stdout


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--fast", "a"]])
def test_the_whole_check_says_how_it_is_used(arguments):
    done = subprocess.run([BINARY, "verify-database", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "verify-database" in done.stderr


# -- an upgrade --------------------------------------------------------------------------------------------------------------------

def make_of_version(path, version):
    """A database as an older release made it."""
    for number, file in enumerate(MIGRATIONS[:version], 1):
        with open(file, encoding="utf-8") as text:
            statements(path, text.read(), f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {number};")


def schema(path):
    return sorted(numbers(path, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"))


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_database_of_each_older_version_becomes_one_of_this(start, engine, tmp_path, version):
    make_of_version(tmp_path / "old.db", version)
    make_of_version(tmp_path / "new.db", len(MIGRATIONS))
    service = start(engine, database=tmp_path / "old.db")
    assert len(rollouts(service.batch(make_batch()))) == 2
    service.terminate()
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")
    assert verify(service.database).returncode == 0


LACKING = ["rollouts_by_task", "rollouts_by_run", "rollouts_by_revision", "rollouts_by_batch"]


@pytest.fixture
def lacking(start, engine, slow_sync):
    """A service on a large database of an older schema: its indexes are to be built, on a disk that stands still while `hanging` is there."""
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    fill(service, 100_000)
    statements(service.database, *(f"DROP INDEX {name};" for name in LACKING))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hanging = service.folder + "/hanging"
    service.env.update({"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": hanging})
    service.args += ["--listen", f"127.0.0.1:{port}"]
    service.url = f"http://127.0.0.1:{port}"
    service.hanging = hanging
    return service


def launch(service):
    """Without waiting for the ready file, which comes when the upgrade has ended."""
    if os.path.exists(service.ready_file):
        os.unlink(service.ready_file)
    with open(service.log_file, "ab") as log:
        service.process = subprocess.Popen(service.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=service.env)


def answers(service):
    try:
        return http_request(service.url, "GET", "/healthz").status == 200
    except OSError:
        return False


def built(service):
    return {name for (name,) in numbers(service.database, "SELECT name FROM sqlite_schema WHERE type = 'index'")} & set(LACKING)


def hold_in_the_first_index(service):
    launch(service)
    eventually(lambda: "building an index" in service.log(), "the first index")
    open(service.hanging, "w", encoding="ascii").close()
    eventually(lambda: answers(service), "an answer")


def test_while_indexes_are_built_health_is_answered_and_all_else_is_refused_as_migrating(lacking):
    service = lacking
    hold_in_the_first_index(service)
    ready = service.get("/readyz")
    assert ready.status == 503 and ready.json["ready"] is False and ready.error["code"] == "migrating"
    assert "of 4" in ready.json["parts"]["store"]
    assert service.get("/metrics").status == service.get("/openapi.yaml").status == 200
    for method, path, body in (("POST", "/v1/batches", make_batch()), ("GET", "/v1/runs", None), ("POST", "/v1/verify", {}), ("PUT", "/v1/runs/a/policy", {"revision": 1})):
        reply = service.request(method, path, body)
        assert (reply.status, reply.error["code"]) == (503, "migrating") and "retry-after" in reply.headers
    assert not os.path.exists(service.ready_file)
    os.unlink(service.hanging)
    eventually(service.ready, "the ready file")
    assert service.get("/readyz").status == 200 and built(service) == set(LACKING)
    assert len(rollouts(service.batch(make_batch(run="after")))) == 2


def test_a_death_in_the_middle_costs_the_index_that_was_being_built(lacking):
    service = lacking
    seen = set()
    for _ in range(3):
        hold_in_the_first_index(service)
        service.kill()
        os.unlink(service.hanging)
        with open(service.log_file, "w", encoding="ascii"):
            pass
        assert seen <= built(service), "what was built stays"
        seen = built(service)
        if seen == set(LACKING):
            break
    service.start()
    assert built(service) == set(LACKING)
    service.terminate()
    assert "the schema lacks" not in verify(service.database).stdout


def test_a_stop_in_the_middle_is_a_clean_one(lacking):
    service = lacking
    launch(service)
    eventually(lambda: "building an index" in service.log() and answers(service), "the first index")
    assert service.terminate() == 0
    service.start()
    assert built(service) == set(LACKING)


# -- loss ----------------------------------------------------------------------------------------------------------------------------

def lose_by(how, path, folder):
    if how == "deleted":
        os.unlink(path)
    elif how == "moved":
        os.rename(path, path + ".away")
    elif how == "replaced":
        shutil.copy(path, path + ".copy")
        os.replace(path + ".copy", path)
    elif how == "folder":
        os.rename(folder, folder + ".away")
    else:
        os.truncate(path, 0 if how == "emptied" else os.path.getsize(path) // 2)


def store_part(service):
    ready = service.get("/readyz")
    return ready.status == 503 and ready.json["parts"]["store"]


@pytest.mark.parametrize("how, said", [("deleted", "deleted"), ("moved", "deleted"), ("replaced", "replaced"), ("emptied", "truncated"), ("halved", "truncated"),
                                       ("folder", "deleted")])
def test_a_lost_file_is_noticed_and_nothing_is_acknowledged_into_nowhere(start, engine, tmp_path, how, said):
    folder = str(tmp_path / "record")
    os.mkdir(folder)
    service = start(engine, database=os.path.join(folder, "x.db"))
    service.batch(make_batch())
    assert service.get("/readyz").status == 200
    lose_by(how, service.database, folder)
    assert eventually(lambda: store_part(service), "readyz to say so") == f"the database file was {said}"
    reply = service.post("/v1/batches", make_batch(run="lost"))
    assert (reply.status, reply.error["code"]) == (503, "store_unavailable"), reply
    assert service.put("/v1/runs/x/policy", {"revision": 1}).status == 503
    assert service.get("/healthz").status == 200


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_batch_is_not_acknowledged_even_before_the_loss_was_seen(start, engine, how):
    service = start(engine)
    service.batch(make_batch())
    lose_by(how, service.database, None)
    reply = service.post("/v1/batches", make_batch(run="lost"))
    assert (reply.status, reply.error["code"]) == (503, "store_unavailable"), reply


@pytest.mark.parametrize("suffix, name", [("-wal", "the write-ahead log"), ("-shm", "the index of the write-ahead log")])
def test_the_loss_of_the_log_is_a_loss(start, engine, suffix, name):
    """Commits since the last checkpoint are nowhere else."""
    service = start(engine)
    service.batch(make_batch())
    os.unlink(service.database + suffix)
    assert eventually(lambda: store_part(service), "readyz to say so") == f"{name} was deleted"
    assert service.post("/v1/batches", make_batch(run="lost")).status == 503


def test_a_file_that_comes_back_is_used_again(start, engine):
    service = start(engine)
    service.batch(make_batch())
    os.rename(service.database, service.database + ".away")
    eventually(lambda: store_part(service), "readyz to say so")
    assert service.post("/v1/batches", make_batch(run="a")).status == 503
    os.rename(service.database + ".away", service.database)
    eventually(lambda: service.get("/readyz").status == 200, "the store to be there again")
    assert len(rollouts(service.batch(make_batch(run="b")))) == 2


def test_a_vacuum_by_hand_and_a_checkpoint_are_no_loss(start, engine):
    service = start(engine)
    service.batch(make_batch(*(make_group(f"t{index}", os.urandom(2000).hex()) for index in range(20))))
    connection = sqlite3.connect(service.database, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = os.path.getsize(service.database)
    connection.execute("DELETE FROM requests")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert os.path.getsize(service.database) < size
    for name in "abc":
        assert len(rollouts(service.batch(make_batch(run=name)))) == 2
    assert service.get("/readyz").status == 200
