"""POST /v1/verify: right answers are paid, wrong ones are not, broken things are neither."""

import pytest


def verify(service, items, verifiers=None, **extra):
    body = {"items": items, **extra, **({"verifiers": verifiers} if verifiers is not None else {})}
    reply = service.post("/v1/verify", body)
    assert reply.status == 200, reply
    return reply.json["items"]


def one(service, name, completion, reference=None, **options):
    item = {"id": "1", "completion": completion, **({"reference": reference} if reference is not None else {})}
    return verify(service, [item], [{"name": name, **({"options": options} if options else {})}])[0]


def assert_unscored(item, code):
    assert item["reward"] is None and item["failure"]["code"] == code, item
    verdict = item["verdicts"][0]
    assert (verdict["verdict"], verdict["score"], verdict["failure"]["code"]) == ("unscored", None, code)


# -- the verifiers -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("completion, reference, score", [
    ("\\boxed{42}", "42", 1), ("so \\boxed{41}, no, \\boxed{42}", "42", 1), ("\\boxed{42}, or \\boxed{41}", "42", 0), ("\\boxed{\\frac{1}{2}}", "0.5", 1),
    ("\\boxed{0.50}", "\\frac12", 1), ("\\boxed{2/4}", "1/2", 1), ("\\boxed{-3}", "3", 0), ("\\boxed{1,000}", "1000", 1), ("\\boxed{0.1}", "1/10", 1),
    ("\\boxed{0.3333333333}", "1/3", 0), ("\\boxed{100000000000000000001}", "100000000000000000000", 0), ("nothing here", "42", 0),
    ("\\boxed{}", "42", 0), ("\\boxed{banana}", "42", 0)])
def test_math_compares_exactly(plain, completion, reference, score):
    item = one(plain, "math", completion, reference)
    assert item["reward"] == score and item["failure"] is None and item["verdicts"][0]["verdict"] == ("correct" if score else "incorrect")


@pytest.mark.parametrize("answer, reference, score", [
    ("\\sqrt{8}", "2\\sqrt{2}", 1), ("(x+1)^2", "x^2+2x+1", 1), ("\\{3,1,2\\}", "1,2,3", 1), ("(-2,3)", "(3,-2)", 0), ("0\\le x<1", "[0,1)", 1),
    ("4x-2y+6=0", "y=2x+3", 1), ("x^2-4=0", "2", 0), ("5\\text{ m}", "5\\text{ km}", 0), ("42=43", "43", 0), ("1/0", "\\infty", 0),
    ("\\begin{bmatrix}1\\\\2\\end{bmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}", 0), ("1\\mp\\sqrt{2}", "1\\pm\\sqrt{2}", 1)])
def test_math_compares_what_an_answer_is(plain, answer, reference, score):
    assert one(plain, "math", f"\\boxed{{{answer}}}", reference)["reward"] == score


def test_the_detail_of_math_says_how_the_answer_was_read_and_decided(plain):
    detail = one(plain, "math", "so \\boxed{\\dfrac12}", "0.5")["verdicts"][0]["detail"]
    assert detail == {"extracted": "\\dfrac12", "start": 10, "end": 18, "read": "\\frac{1}{2}", "decision": "equal", "method": "rational"}
    verdict = one(plain, "math", "\\boxed{\\frac{1}{}}", "0.5")["verdicts"][0]
    assert verdict["reason"] == "unparsed_answer" and verdict["detail"]["expected"] and verdict["detail"]["expected_at"] == 9
    assert "read" not in verdict["detail"]


def test_a_reference_of_math_that_cannot_be_read_says_what_was_expected_where(plain):
    failure = one(plain, "math", "\\boxed{3}", "\\frac{1}{")["failure"]
    assert failure["code"] == "reference_unreadable" and "expected at byte" in failure["message"]


def test_math_reads_the_answer_tag_when_told_to(plain):
    assert one(plain, "math", "<think>1</think><answer>42</answer>", "42", extract="answer_tag")["reward"] == 1


def test_a_reason_says_why_and_the_detail_never_shows_the_reference(plain):
    item = one(plain, "math", "\\boxed{7}", "987654321")
    verdict = item["verdicts"][0]
    assert verdict["reason"] == "different" and verdict["detail"]["extracted"] == "7" and "987654321" not in str(item)
    assert one(plain, "math", "none", "1")["verdicts"][0]["reason"] == "no_answer"


@pytest.mark.parametrize("completion, reference, options, score", [
    ("4", "4", {}, 1), (" 4\n", "4", {"strip": True}, 1), ("Yes", "yes", {}, 0), ("Yes", "yes", {"ignore_case": True}, 1),
    ("b", ["a", "b"], {}, 1), ("c", ["a", "b"], {}, 0), ("", "4", {}, 0)])
def test_exact(plain, completion, reference, options, score):
    assert one(plain, "exact", completion, reference, **options)["reward"] == score


@pytest.mark.parametrize("completion, options, score", [
    ("abc123", {"pattern": "\\d+"}, 1), ("abc", {"pattern": "\\d+"}, 0), ("123", {"pattern": "\\d+", "mode": "fullmatch"}, 1),
    ("a123", {"pattern": "\\d+", "mode": "fullmatch"}, 0), ("abc", {"pattern": "\\d", "mode": "absent"}, 1), ("a\u0000b", {"pattern": "^a\\x00b$"}, 1),
    ("é", {"pattern": "^.$"}, 1)])
def test_regex(plain, completion, options, score):
    assert one(plain, "regex", completion, **options)["reward"] == score


def test_a_pattern_that_explodes_is_stopped_and_never_paid(plain):
    item = one(plain, "regex", "a" * 40 + "!", pattern="^(a+)+$")
    assert (item["reward"], item["verdicts"][0]["reason"]) == (0, "work_limit")
    assert plain.get("/healthz").status == 200


@pytest.mark.parametrize("completion, score", [
    ("<think>\na\n</think>\n<answer>\n4\n</answer>", 1), ("<think>\na\n</think>\n<answer>\n4\n</answer>\nThanks!", 0), ("4", 0)])
def test_format_think_answer(plain, completion, score):
    assert one(plain, "format", completion, template="think_answer")["reward"] == score


def test_format_boxed_once(plain):
    assert [one(plain, "format", text, template="boxed_once")["reward"] for text in ("\\boxed{1}", "\\boxed{1}\\boxed{2}", "1")] == [1, 0, 0]


# -- what a verdict says --------------------------------------------------------------------------------------------------------

def test_a_verdict_can_be_recomputed_from_what_it_says(plain):
    verdict = one(plain, "math", "\\boxed{1}", "1")["verdicts"][0]
    assert {"id", "name", "version", "options_sha256", "score", "verdict", "reason", "detail", "failure", "duration_us"} <= set(verdict)
    assert len(verdict["options_sha256"]) == 64 and isinstance(verdict["duration_us"], int)
    same = one(plain, "math", "\\boxed{2}", "1")["verdicts"][0]
    other = one(plain, "math", "\\boxed{1}", "1", extract="boxed")["verdicts"][0]
    assert same["options_sha256"] == verdict["options_sha256"] != other["options_sha256"]


def test_weights_gates_and_held_out_verifiers(plain):
    item = {"id": "1", "completion": "\\boxed{42}", "reference": "42"}
    boxed = {"name": "format", "weight": 0.5, "options": {"template": "boxed_once"}}
    assert verify(plain, [item], [{"name": "math"}, boxed])[0]["reward"] == 1.5
    gate = {"name": "regex", "gate": True, "options": {"pattern": "never"}}
    assert verify(plain, [item], [{"name": "math"}, gate])[0]["reward"] == 0
    held = verify(plain, [item], [boxed, {"name": "math", "id": "correct", "heldout": True}])[0]
    assert held["reward"] == 0.5 and held["heldout"]["correct"]["score"] == 1 and set(held["rewards"]) == {"format"}


def test_a_verifiers_own_reference_wins(plain):
    item = {"id": "1", "completion": "5", "reference": "4"}
    assert verify(plain, [item], [{"name": "exact", "reference": "5"}])[0]["reward"] == 1


# -- items are independent --------------------------------------------------------------------------------------------------------

def test_order_and_ids_are_kept(plain):
    items = verify(plain, [{"id": str(index % 7), "completion": str(index), "reference": "500"} for index in range(1000)], [{"name": "exact"}])
    assert [item["id"] for item in items] == [str(index % 7) for index in range(1000)]
    assert [index for index, item in enumerate(items) if item["reward"] == 1] == [500]


def test_a_broken_reference_is_neither_right_nor_wrong(plain):
    """R35"""
    items = verify(plain, [{"id": "1", "completion": "\\boxed{3}", "reference": "\\frac{1}{"}, {"id": "2", "completion": "\\boxed{3}", "reference": ""},
                           {"id": "3", "completion": "\\boxed{3}", "reference": None}, {"id": "4", "completion": "\\boxed{3}", "reference": "3"}],
                   [{"name": "math"}, {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}])
    for item in items[:3]:
        assert_unscored(item, "reference_unreadable")
        assert item["rewards"]["format"]["score"] == 1
    assert items[3]["reward"] == 1.2


def test_a_broken_item_does_not_spoil_the_others(plain):
    items = verify(plain, [{"id": "1", "completion": "1", "verifiers": [{"name": "regex", "options": {"pattern": "("}}]},
                           {"id": "2", "completion": "2", "verifiers": [{"name": "regex", "options": {"pattern": "2"}}]}])
    assert items[0]["reward"] is None and items[0]["failure"]["code"] == "verifier_options"
    assert items[1]["reward"] == 1


def test_a_completion_that_no_worker_reads_does_not_spoil_the_others(plain):
    """A frame for a worker is JSON of 8 MiB at most; a control character takes six bytes of it."""
    items = verify(plain, [{"id": "1", "completion": "\x01" * ((8 << 20) // 6), "reference": "2"}, {"id": "2", "completion": "2", "reference": "2"}],
                   [{"name": "exact"}])
    assert items[0]["reward"] is None and items[0]["failure"]["code"] == "verifier_input_too_large"
    assert items[1]["reward"] == 1


@pytest.mark.parametrize("verifier, path", [
    ({"name": "regex", "options": {"pattern": "("}}, "verifiers[0].options.pattern"), ({"name": "regex"}, "verifiers[0].options"),
    ({"name": "format", "options": {"template": "haiku"}}, "verifiers[0].options.template"),
    ({"name": "math", "options": {"extract": "guess"}}, "verifiers[0].options.extract"),
    ({"name": "math", "options": {"exctract": "boxed"}}, "verifiers[0].options.exctract")])
def test_broken_options_of_the_whole_request_are_refused(plain, verifier, path):
    reply = plain.post("/v1/verify", {"verifiers": [verifier], "items": [{"id": "1", "completion": "x", "reference": "1"}]})
    assert (reply.status, reply.error["code"]) == (422, "verifier_options") and reply.error["path"].startswith(path), reply


def test_an_item_without_any_verifier_is_refused(plain):
    reply = plain.post("/v1/verify", {"items": [{"id": "1", "completion": "x"}]})
    assert reply.status == 400 and "verifiers" in reply.error["path"]


def test_no_items_no_verdicts(plain):
    reply = plain.post("/v1/verify", {"verifiers": [{"name": "exact"}], "items": []})
    assert reply.status == 400 or reply.json == {"items": []}


@pytest.mark.parametrize("text", ["", "\u0000", "\\boxed{" * 3000, "\\frac{" * 3000 + "1" + "}{2}" * 3000, "{" * 100000, "$" * 99999, "9" * 100000,
                                  "\\boxed{9^9^9^9^9}", "\\boxed{" + "9" * 100000 + "}", "\\boxed{1/0}", "\\boxed{0.{1}}", "\u202e42\u202c", "💥" * 5000])
def test_hostile_text_ends_in_a_verdict(plain, text):
    for name, options in (("math", {}), ("exact", {}), ("format", {"template": "think_answer"}), ("regex", {"pattern": "never"})):
        item = one(plain, name, text, "42" if name in ("math", "exact") else None, **options)
        assert item["reward"] in (0, None), (name, item)
        assert item["failure"] is None or item["failure"]["code"].startswith("verifier_"), item["failure"]


def test_verdicts_do_not_depend_on_company(plain):
    """Promise 6: the same item alone and among a thousand others."""
    item = {"id": "x", "completion": "\\boxed{\\frac{2}{6}}", "reference": "1/3"}
    crowd = [{"id": str(index), "completion": f"\\boxed{{{index}}}", "reference": str(index % 3)} for index in range(500)]
    alone = verify(plain, [item], [{"name": "math"}])[0]
    among = verify(plain, [*crowd, item, *crowd], [{"name": "math"}])[500]
    for verdict in (alone["verdicts"][0], among["verdicts"][0]):
        del verdict["duration_us"]
    assert alone == among and alone["reward"] == 1


def test_the_list_of_verifiers(plain):
    rows = {row["name"]: row for row in plain.read("/v1/verifiers")["verifiers"]}
    assert {"exact", "regex", "format", "math"} <= set(rows)
    assert rows["regex"]["version"] and "pattern" in str(rows["regex"]["options"])


def test_a_verification_leaves_nothing_behind(plain):
    one(plain, "exact", "a", "a")
    assert plain.read("/v1/rollouts")["items"] == [] and plain.read("/v1/batches")["items"] == []
