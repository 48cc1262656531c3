"""The trainer's own numbers of a run, and notes on it."""
import json
import threading

import pytest

from test_records import pages


def run_of(service, run):
    """A run on record."""
    reply = service.put(f"/v1/runs/{run}/policy", {"revision": 1})
    assert reply.status == 200, reply


def post(service, run, step, values, revision=1):
    return service.post(f"/v1/runs/{run}/metrics", {"optimizer_step": step, "revision": revision, "values": values})


# -- metrics ---------------------------------------------------------------------------------------------------------------

def test_any_finite_numbers_come_back_as_they_were_posted(plain):
    run_of(plain, "numbers")
    values = {"loss": 0.1, "kl/ref": -1e-300, "grad_norm": 1.7976931348623157e308, "lr": 5e-324, "epoch": 3, "tokens": 9007199254740993, "ä \" \\ \n": -0.5}
    reply = post(plain, "numbers", 0, values)
    assert reply.status == 200 and reply.json["replaced"] is False and reply.json["incarnation"] == 0
    item, = pages(plain, "/v1/runs/numbers/metrics")
    assert item["values"] == values and list(item["values"]) == list(values)
    assert (item["optimizer_step"], item["revision"]) == (0, 1)


def test_the_same_step_again_replaces_all_of_its_numbers_also_after_a_restart(start):
    service = start()
    run_of(service, "again")
    assert post(service, "again", 4, {"loss": 1, "kl": 2}).json["replaced"] is False
    service.restart()
    assert post(service, "again", 4, {"loss": 0.5}, revision=2).json["replaced"] is True
    assert post(service, "again", 4, {"loss": 0.5}, revision=2).json["replaced"] is True
    item, = pages(service, "/v1/runs/again/metrics")
    assert item["values"] == {"loss": 0.5} and item["revision"] == 2


def test_a_step_after_a_rewind_is_another_one(plain):
    run_of(plain, "rewound")
    post(plain, "rewound", 2, {"loss": 1})
    assert plain.put("/v1/runs/rewound/policy", {"revision": 0, "rewind_to_step": 1}).status == 200
    post(plain, "rewound", 2, {"loss": 3})
    found = pages(plain, "/v1/runs/rewound/metrics", optimizer_step=2)
    assert [(item["incarnation"], item["values"]["loss"]) for item in found] == [(0, 1), (1, 3)]


def test_pages_are_whole_while_other_steps_are_recorded(plain):
    run_of(plain, "pages")
    for step in range(25):
        post(plain, "pages", step, {"loss": step})
    adding = threading.Thread(target=lambda: [post(plain, "pages", step, {"loss": step}) for step in range(25, 50)])
    adding.start()
    steps = [item["optimizer_step"] for item in pages(plain, "/v1/runs/pages/metrics", limit=3)]
    adding.join()
    assert steps[:25] == list(range(25)) and steps == list(range(len(steps)))


@pytest.mark.parametrize("body, code, path", [
    ({"optimizer_step": 1, "revision": 1}, "missing_field", "values"),
    ({"optimizer_step": 1, "values": {"loss": 1}}, "missing_field", "revision"),
    ({"revision": 1, "values": {"loss": 1}}, "missing_field", "optimizer_step"),
    ({"optimizer_step": -1, "revision": 1, "values": {"loss": 1}}, "invalid_field", "optimizer_step"),
    ({"optimizer_step": 1, "revision": 1, "values": {}}, "invalid_field", "values"),
    ({"optimizer_step": 1, "revision": 1, "values": [1]}, "invalid_field", "values"),
    ({"optimizer_step": 1, "revision": 1, "values": {"loss": None}}, "invalid_field", "values.loss"),
    ({"optimizer_step": 1, "revision": 1, "values": {"loss": "0.1"}}, "invalid_field", "values.loss"),
    ({"optimizer_step": 1, "revision": 1, "values": {"loss": True}}, "invalid_field", "values.loss"),
    ({"optimizer_step": 1, "revision": 1, "values": {"loss": {"mean": 1}}}, "invalid_field", "values.loss"),
    ({"optimizer_step": 1, "revision": 1, "values": {"": 1}}, "invalid_field", "values"),
    ({"optimizer_step": 1, "revision": 1, "values": {"x" * 129: 1}}, "invalid_field", "values"),
    ({"optimizer_step": 1, "revision": 1, "values": {f"x{i}": i for i in range(257)}}, "invalid_field", "values"),
    ({"optimizer_step": 1, "revision": 1, "values": {"loss": 1}, "step": 1}, "unknown_field", "step"),
])
def test_invalid_numbers_are_refused_with_their_path(plain, body, code, path):
    run_of(plain, "refused")
    reply = plain.post("/v1/runs/refused/metrics", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, code, path)
    assert pages(plain, "/v1/runs/refused/metrics") == []


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"nan"])
def test_a_number_that_is_not_finite_is_refused(plain, number):
    run_of(plain, "refused")
    reply = plain.post("/v1/runs/refused/metrics", b'{"optimizer_step":1,"revision":1,"values":{"loss":' + number + b"}}")
    assert (reply.status, reply.error["code"]) == (400, "invalid_field" if number == b"1e999" else "invalid_json")


def test_the_largest_allowed_values_fit(plain):
    run_of(plain, "large")
    values = {f"{i:03}" + "\u0001" * 125: -1.2345678901234567e-300 for i in range(256)}
    assert post(plain, "large", 1, values).status == 200
    assert pages(plain, "/v1/runs/large/metrics")[0]["values"] == values


def test_deep_json_is_refused(plain):
    run_of(plain, "deep")
    reply = plain.post("/v1/runs/deep/metrics", b'{"optimizer_step":1,"revision":1,"values":' + b"[" * 100000 + b"]" * 100000 + b"}")
    assert reply.status == 400


# -- notes -----------------------------------------------------------------------------------------------------------------

def test_earlier_notes_are_kept_also_after_a_restart(start):
    service = start()
    run_of(service, "noted")
    said = [{"prediction": "up"}, {"result": "down", "explanation": "the format paid\nmore"}, {"limitation": "one seed ✓"}, {"prediction": "up"}]
    for note in said:
        reply = service.put("/v1/runs/noted/notes", note)
        assert reply.status == 200 and {name: value for name, value in reply.json.items() if value and name != "at"} == note
    service.restart()
    found = pages(service, "/v1/runs/noted/notes", limit=1)
    assert [{name: value for name, value in item.items() if value and name != "at"} for item in found] == said
    assert sorted(item["at"] for item in found) == [item["at"] for item in found]


def test_the_same_note_again_adds_nothing(plain):
    run_of(plain, "repeated")
    first = plain.put("/v1/runs/repeated/notes", {"result": "as expected"}).json
    assert plain.put("/v1/runs/repeated/notes", {"result": "as expected"}).json == first
    assert pages(plain, "/v1/runs/repeated/notes") == [first]


def test_the_same_note_from_many_at_once_is_one(plain):
    run_of(plain, "crowd")
    threads = [threading.Thread(target=plain.put, args=("/v1/runs/crowd/notes", {"result": "same"})) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pages(plain, "/v1/runs/crowd/notes")) == 1


@pytest.mark.parametrize("body, code, path", [
    ({}, "missing_field", "prediction"), ({"prediction": ""}, "invalid_field", "prediction"), ({"prediction": None}, "invalid_field", "prediction"),
    ({"result": 1}, "invalid_field", "result"), ({"result": "x" * 65537}, "invalid_field", "result"), ({"conclusion": "x"}, "unknown_field", "conclusion")])
def test_an_invalid_note_is_refused_with_its_path(plain, body, code, path):
    run_of(plain, "wrong")
    reply = plain.put("/v1/runs/wrong/notes", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, code, path)
    assert pages(plain, "/v1/runs/wrong/notes") == []


@pytest.mark.parametrize("text", ["x" * 65536, "\x00", "\x00a\x00", "</script>"])
def test_a_text_of_any_characters_comes_back(plain, text):
    run_of(plain, "texts")
    assert plain.put("/v1/runs/texts/notes", {"result": text}).status == 200
    assert pages(plain, "/v1/runs/texts/notes")[-1]["result"] == text


def test_large_notes_are_read_in_pages_whatever_the_limit(plain):
    run_of(plain, "large")
    text = "\x01" * 65536  # six bytes of JSON each
    for number in range(40):
        note = {"prediction": text, "result": text, "explanation": text, "limitation": f"{number}"}
        assert plain.put("/v1/runs/large/notes", note).status == 200
    first = plain.get("/v1/runs/large/notes?limit=1000")
    assert first.json["next"] and len(first.body) < 32 << 20
    assert [note["limitation"] for note in pages(plain, "/v1/runs/large/notes", limit=1000)] == [f"{number}" for number in range(40)]


# -- both ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("run", ["nobody", "%00", "a%2Fb", "x" * 129])
@pytest.mark.parametrize("kind", ["metrics", "notes"])
def test_a_run_that_nobody_has_made_is_not_found(plain, run, kind):
    assert plain.get(f"/v1/runs/{run}/{kind}").status in (404, 400)
    said = plain.put(f"/v1/runs/{run}/notes", {"result": "x"}) if kind == "notes" else post(plain, run, 1, {"loss": 1})
    assert said.status in (404, 400)
    if run == "nobody":
        assert (said.status, said.error["code"], said.error["path"]) == (404, "not_found", "run")


@pytest.mark.parametrize("kind", ["metrics", "notes"])
@pytest.mark.parametrize("query", ["?cursor=x", "?cursor=", "?limit=0", "?limit=1001", "?revision=1"])
def test_a_question_that_the_list_does_not_know_is_refused(plain, kind, query):
    run_of(plain, "asked")
    assert plain.get(f"/v1/runs/asked/{kind}{query}").status == 400


def test_posts_of_numbers_and_notes_take_no_parameters(plain):
    run_of(plain, "bare")
    for reply in (plain.put("/v1/runs/bare/notes?dry_run=true", {"result": "x"}),
                  plain.post("/v1/runs/bare/metrics?replace=false", {"optimizer_step": 1, "revision": 1, "values": {"loss": 1}})):
        assert (reply.status, reply.error["code"]) == (400, "unknown_field"), reply
    assert pages(plain, "/v1/runs/bare/notes") == pages(plain, "/v1/runs/bare/metrics") == []


def test_a_client_that_hangs_up_has_said_it(start):
    """A sent operation is stored, also if its client has hung up."""
    service = start()
    run_of(service, "hung")
    body = json.dumps({"result": "gone"}).encode()
    with service.wire() as wire:
        wire.send(b"PUT /v1/runs/hung/notes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert service.put("/v1/runs/hung/notes", {"result": "next"}).status == 200
    assert pages(service, "/v1/runs/hung/notes")[-1]["result"] == "next"
