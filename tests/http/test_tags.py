"""Tags of groups: a mixture is split by them."""
import pytest

from material import make_batch, make_group, rollouts

MIXTURE = {"g1": {"source": "gsm8k", "level": "2"}, "g2": {"level": "1", "source": "gsm8k"}, "m": {"source": "math"}, "none": None}


@pytest.fixture
def mixed(service, engine):
    engine.rules({"text": "\\boxed{42}", "ids": [5], "lp": [-0.5]})
    service.made = service.batch(make_batch(*(make_group(task, tags=tags) for task, tags in MIXTURE.items())))
    return service


def tasks(service, **query):
    return {item["task"] for item in service.read("/v1/rollouts", **query)["items"]}


@pytest.mark.parametrize("query, wanted", [
    ({"tag.source": "gsm8k"}, {"g1", "g2"}), ({"tag.source": "math"}, {"m"}), ({"tag.source": "gsm8k", "tag.level": "1"}, {"g2"}),
    ({"tag.source": "gsm"}, set()), ({"tag.colour": "red"}, set()), ({"tag.source": ""}, set()), ({"tag.source": "gsm8k", "task": "g1"}, {"g1"})])
def test_a_filter_finds_the_rollouts_with_all_its_tags(mixed, query, wanted):
    assert tasks(mixed, **query) == wanted


def test_groups_and_rollouts_show_their_tags(mixed):
    for group in mixed.made["groups"]:
        wanted = MIXTURE[group["task"]] or {}
        assert group["tags"] == wanted and mixed.read(f"/v1/groups/{group['id']}")["tags"] == wanted
        assert "tags" not in group["rollouts"][0]
        assert mixed.read(f"/v1/rollouts/{group['rollouts'][0]['id']}")["tags"] == wanted
    assert [set(item) for item in mixed.read("/v1/rollouts", fields="tags", limit=1)["items"]] == [{"id", "tags"}]


def test_tags_are_the_same_after_a_restart(mixed):
    mixed.terminate()
    mixed.start()
    assert tasks(mixed, **{"tag.source": "gsm8k"}) == {"g1", "g2"}


@pytest.mark.parametrize("store", [True, False])
def test_a_score_takes_tags(plain, store):
    reply = plain.post("/v1/score", {"run": f"kept-{store}", "store": store, "verifiers": [{"name": "math"}], "groups": [
        {"task": "a", "reference": "1", "tags": {"source": "x"}, "completions": [{"text": "\\boxed{1}"}]}]})
    assert reply.status == 200 and reply.json["groups"][0]["tags"] == {"source": "x"}
    assert tasks(plain, **{"run": f"kept-{store}", "tag.source": "x"}) == ({"a"} if store else set())


@pytest.mark.parametrize("value", ["\u00e9\u4e16\U0001f4a5", "a\"b\\c\n\t\u0001", "x=y&z +%41", " ", "0" * 256])
def test_a_value_is_found_whatever_characters_it_has(plain, value):
    reply = plain.post("/v1/score", {"run": "test", "groups": [{"task": "a", "tags": {"it": value}, "completions": [{"text": "1"}]}]})
    assert reply.status == 200 and reply.json["groups"][0]["tags"] == {"it": value}
    assert tasks(plain, **{"tag.it": value}) == {"a"} and tasks(plain, **{"tag.it": value + "."}) == set()


@pytest.mark.parametrize("tags, path", [
    ({"source": 1}, "groups[1].tags.source"), ({"source": None}, "groups[1].tags.source"), ({"source": ["a"]}, "groups[1].tags.source"),
    ({"a b": "x"}, "groups[1].tags.a b"), ({"": "x"}, "groups[1].tags"), ({"n" * 65: "x"}, "groups[1].tags." + "n" * 65),
    ({"a": "x" * 257}, "groups[1].tags.a"), ({"a": "x\0y"}, "groups[1].tags.a"), ({f"t{i}": "x" for i in range(17)}, "groups[1].tags"),
    (["a"], "groups[1].tags"), ("a", "groups[1].tags")])
def test_a_wrong_tag_is_refused_with_its_path(plain, tags, path):
    reply = plain.post("/v1/score", {"run": "test", "groups": [{"task": "a", "completions": [{"text": "1"}]}, {"task": "b", "tags": tags, "completions": [{"text": "1"}]}]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", path)
    assert len(reply.error["message"]) < 200


@pytest.mark.parametrize("name, code", [("tag.", "unknown_field"), ("tag", "unknown_field"), ("tags", "unknown_field"), ("xtag.source", "unknown_field"), ("tag.a b", "invalid_field"), ("tag." + "n" * 65, "invalid_field")])
def test_a_filter_by_an_invalid_tag_is_refused(plain, name, code):
    reply = plain.get("/v1/rollouts", **{name: "x"})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, code, name)


def test_a_tag_that_is_asked_for_twice_is_refused(plain):
    reply = plain.request("GET", "/v1/rollouts?tag.a=1&tag.a=2")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "tag.a")


def test_a_cursor_belongs_to_its_tags(mixed):
    cursor = mixed.read("/v1/rollouts", **{"tag.source": "gsm8k", "limit": 1})["next"]
    assert mixed.get("/v1/rollouts", **{"tag.source": "gsm8k", "cursor": cursor}).status == 200
    assert mixed.get("/v1/rollouts", **{"tag.source": "math", "cursor": cursor}).error["path"] == "cursor"
    assert len(rollouts(mixed.made)) == 8
