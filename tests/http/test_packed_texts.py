"""Long texts of rollouts are on record compressed; every reader has them as they came."""
import json
import sqlite3

import pytest

from material import make_batch, make_group, rollouts
from test_provenance import RIGHT
from test_rollups import verify

LONG = "so it follows that ünïcode \u0000 and \"quotes\" are kept, " * 40
TEXTS = [LONG + "needle one", "short needle", LONG + "two", LONG * 50 + "needle three", "x", LONG + "two", LONG + "old needle"]


def record(service, texts=None, **fields):
    """Texts alone: no ids, so duplicates are found by the text."""
    group = make_group("t", completions=[{"text": text} for text in texts or TEXTS])
    reply = service.post("/v1/score", {"run": "test", "policy_revision": 1, "verifiers": [{"name": "math"}], "groups": [group], **fields})
    assert reply.status == 200, reply
    return [rollout["id"] for rollout in rollouts(reply.json)]


def change(service, statement, *values):
    with sqlite3.connect(service.database) as link:
        changed = link.execute(statement, values).rowcount
    link.close()
    return changed


def forms(service):
    with sqlite3.connect(service.database) as link:
        found = link.execute("SELECT text, packed FROM rollout_texts x JOIN rollouts r ON r.seq = x.rollout_seq ORDER BY r.sample_index").fetchall()
    link.close()
    return ["plain" if packed is None else "packed" for text, packed in found if (text is None) != (packed is None)]


def make_old(service, identity_index, text):
    """As the schema before had it."""
    assert change(service, "UPDATE rollout_texts SET text = ?, packed = NULL WHERE rollout_seq = (SELECT seq FROM rollouts WHERE sample_index = ?)", text, identity_index) == 1


def exported(service, **query):
    *lines, end = [json.loads(line) for line in service.get("/v1/export", **query).body.splitlines()]
    assert "end" in end or "rows" in end, end
    return lines


@pytest.fixture(scope="module")
def mixed(shared_factory):
    """Packed rows, short ones, and one as a record of before has it."""
    service = shared_factory()
    identities = record(service)
    assert forms(service) == ["packed", "plain", "packed", "packed", "plain", "packed", "packed"]
    make_old(service, 6, TEXTS[6])
    assert forms(service)[6] == "plain"
    return service, identities


def test_every_reader_has_the_text_as_it_came(mixed):
    service, identities = mixed
    want = dict(zip(identities, TEXTS))
    assert {identity: service.read(f"/v1/rollouts/{identity}")["text"] for identity in identities} == want
    assert {row["id"]: row["text"] for row in service.read("/v1/rollouts", fields="text")["items"]} == want
    assert {row["id"]: row["text"] for row in exported(service)} == want
    group, = service.read(f"/v1/batches/{service.read('/v1/batches')['items'][0]['id']}/groups")["items"]
    assert {rollout["id"]: rollout["text"] for rollout in group["rollouts"]} == want


@pytest.mark.parametrize("wanted", ["needle", "two", "ünïcode", "needle one", "nowhere", "kept, so it", ""])
def test_a_substring_is_found_in_each_form(mixed, wanted):
    service, identities = mixed
    want = [identity for identity, text in zip(identities, TEXTS) if wanted in text]
    assert sorted(row["id"] for row in service.read("/v1/rollouts", text=wanted)["items"]) == want
    assert sorted(row["id"] for row in exported(service, text=wanted, fields="reward")) == want


def test_texts_that_repeat_an_earlier_one_are_duplicates(mixed):
    service, identities = mixed
    found = {row["id"]: row["duplicate"] for row in service.read("/v1/rollouts", fields="duplicate")["items"]}
    assert [index for index, identity in enumerate(identities) if found[identity]] == [5]


def test_the_database_is_in_order(mixed):
    done = verify(mixed[0])
    assert done.returncode == 0, done


def test_a_sampled_text_is_packed_too(start, engine):
    engine.rules({**RIGHT, "text": LONG})
    service = start(engine)
    batch = service.batch(make_batch())
    assert [rollout["text"] for rollout in rollouts(batch)] == [LONG] * 2 and forms(service) == ["packed"] * 2
    assert len(service.read("/v1/rollouts", text="ünïcode")["items"]) == 2


CUT = "substr(packed, 1, length(packed) - 5)"
ANOTHER_LETTER = "CAST(substr(packed, 1, 13) || X'21' || substr(packed, 15) AS BLOB)"  # within the text that the frame begins with


@pytest.mark.parametrize("harm", [CUT, ANOTHER_LETTER], ids=["cut", "another letter"])
def test_a_damaged_text_is_an_error_and_not_none(start, harm):
    service = start()
    whole, damaged = record(service, [LONG + "whole", LONG + "damaged"])
    assert change(service, f"UPDATE rollout_texts SET packed = {harm} WHERE rollout_seq = (SELECT seq FROM rollouts WHERE sample_index = 1)") == 1
    assert service.read(f"/v1/rollouts/{whole}")["text"] == LONG + "whole"
    for path, query in ((f"/v1/rollouts/{damaged}", {}), ("/v1/rollouts", {"fields": "text"}), ("/v1/rollouts", {"text": "damaged"})):
        reply = service.get(path, **query)
        assert reply.status == 503 and reply.error["code"] == "store_unavailable", (path, reply)
    assert sorted(row["id"] for row in service.read("/v1/rollouts")["items"]) == [whole, damaged]
    service.terminate()
    done = verify(service)
    assert done.returncode == 1 and "a prompt, reference, request or completion is damaged: rollout " in done.stdout, done


def test_a_text_that_claims_to_be_huge_takes_no_memory(start):
    service = start()
    huge = bytes.fromhex("28b52ffde0") + (1 << 50).to_bytes(8, "little") + b"\x01\x00\x00"  # zstd: magic, header, length, an empty last block
    identity, = record(service, [LONG])
    assert change(service, "UPDATE rollout_texts SET packed = ?", huge) == 1
    assert service.get(f"/v1/rollouts/{identity}").status == 503
    assert service.get("/v1/rollouts", text="x").status == 503
    assert service.read(f"/v1/rollouts/{identity}", fields="reward")["reward"] is not None
