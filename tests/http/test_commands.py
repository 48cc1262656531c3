"""The commands beside serving, on the real binary: rolloutd verify, rolloutd check-references, rolloutd help."""
import json
import os
import subprocess

import pytest

from harness import BINARY, ENDLESS_BINARY, PATIENCE
from test_incidents import ENDLESS, ENDLESS_TEXT, kept, score
from harness import eventually


def run(*words, text=None, data=None, binary=BINARY):
    given = {"input": data if data is not None else (text or "").encode()}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROLLOUTD_")}
    done = subprocess.run([binary, *map(str, words)], capture_output=True, timeout=PATIENCE, env=clean, **given)
    done.out, done.err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return done


def judge(*words, **options):
    """The verdict object, and the exit code."""
    done = run("verify", "--json", *words, **options)
    assert not done.err, done.err
    return json.loads(done.stdout), done.returncode


def refused(*words, names, **options):
    done = run(*words, **options)
    assert done.returncode == 2 and not done.out, (done.returncode, done.out)
    assert len(done.err.splitlines()) == 1, done.err
    for name in names:
        assert name in done.err, done.err


# -- verify ------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("completion, code, verdict, reason", [
    ("\\boxed{0.5}", 0, "correct", "equal"), ("\\boxed{0.6}", 1, "incorrect", "different"), ("none", 1, "incorrect", "no_answer")])
def test_verify_judges_one_completion(completion, code, verdict, reason):
    found, got = judge("--verifier", "math", "--reference", "\\frac{1}{2}", "--completion", "-", text=completion)
    assert (got, found["verdict"], found["reason"], found["failure"]) == (code, verdict, reason, None)


def test_verify_says_for_people_what_was_read_and_how_it_ended():
    done = run("verify", "--reference", "\\frac{1}{2}", "--completion", "It is \\boxed{0.5}.")
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert done.returncode == 0 and lines["reference"] == "\\frac{1}{2}" and lines["extracted"] == lines["read"] == "0.5" and lines["decision"] == "equal" and lines["span"] == "bytes 13 to 16" and lines["verdict"].startswith("correct (equal)")
    assert lines["verifier"].startswith("math ")


def test_verify_gives_the_verdict_of_the_service(plain):
    item = {"id": "1", "completion": "\\boxed{7}", "reference": "8", "verifiers": [{"name": "math", "options": {"percent": "unit"}}]}
    served = plain.post("/v1/verify", {"items": [item]}).json["items"][0]["verdicts"][0]
    found, _ = judge("--reference", "8", "--options", '{"percent":"unit"}', "--completion", "\\boxed{7}")
    assert {**found, "duration_us": 0} == {**served, "duration_us": 0}


def test_verify_takes_references_of_any_form():
    assert judge("--verifier", "exact", "--reference-json", '["a","b"]', "--completion", "b")[1] == 0
    assert judge("--verifier", "exact", "--reference", '["a","b"]', "--completion", "b")[1] == 1
    assert judge("--verifier", "format", "--options", '{"template":"boxed_once"}', "--completion", "\\boxed{1}")[1] == 0


def test_a_score_in_between_is_no_failure():
    done, code = judge("--verifier", "format", "--options", '{"template":"tag_count"}', "--completion", "<think>\nx\n</think>\n")
    assert (done["verdict"], done["score"], code) == ("scored", 0.5, 0)


SHAPED = ("--verifier", "cosine_length", "--options", '{"of":"exact","max_length":100}', "--verifier", "exact", "--reference", "yes", "--completion-tokens", "50")


def test_verify_judges_a_verifier_beside_the_one_that_its_of_names():
    found, code = judge(*SHAPED, "--completion", "yes")
    assert ([verdict["id"] for verdict in found], [verdict["score"] for verdict in found], code) == (["cosine_length", "exact"], [0.75, 1], 0)
    found, code = judge(*SHAPED, "--completion", "no")
    assert ([verdict["score"] for verdict in found], code) == ([-0.75, 0], 1)
    done = run("verify", *SHAPED, "--completion", "yes")
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("verifier ")] == ["cosine_length", "exact"]
    refused("verify", "--verifier", "cosine_length", "--options", '{"of":"exact","max_length":100}', "--completion", "yes", names=["options.of", "no verifier of this list"])
    refused("verify", "--options", "{}", "--options", "{}", "--completion", "yes", names=["--options", "twice"])


def test_a_kept_file_has_the_ids_that_an_of_names(tmp_path):
    verifiers = [{"id": "c", "name": "cosine_length", "options": {"of": "truth", "max_length": 100}}, {"id": "truth", "name": "exact", "options": {}}]
    (tmp_path / "kept.json").write_text(json.dumps({"verifiers": verifiers, "completion": "yes", "completion_tokens": 50, "reference": "yes"}))
    found, _ = judge("--replay", tmp_path / "kept.json")
    assert [(verdict["id"], verdict["score"]) for verdict in found] == [("c", 0.75), ("truth", 1)]


def test_a_completion_that_cannot_be_judged_ends_with_3():
    found, code = judge("--reference", "\\frac{1}{", "--completion", "\\boxed{1}")
    assert (code, found["verdict"], found["failure"]["code"]) == (3, "unscored", "reference_unreadable")
    assert judge("--completion", "\\boxed{1}")[1] == 3  # no reference at all
    found, code = judge("--verifier", "exact", "--reference", "1", "--completion", "-", data=b"\x01" * ((8 << 20) // 6))
    assert (code, found["failure"]["code"]) == (3, "verifier_input_too_large")


@pytest.mark.skipif(not os.access(ENDLESS_BINARY, os.X_OK), reason=f"there is no {ENDLESS_BINARY}")
def test_a_verifier_that_hangs_is_ended_and_named():
    words = ("--verifier", "endless", "--completion", "-", "--timeout", "500ms")
    found, code = judge(*words, text=ENDLESS_TEXT, binary=ENDLESS_BINARY)
    assert (code, found["verdict"], found["failure"]["code"]) == (3, "unscored", "verifier_timeout")
    done = run("verify", *words, text=ENDLESS_TEXT, binary=ENDLESS_BINARY)
    assert done.returncode == 3 and "killed after 500ms" in done.out


def test_hostile_text_reaches_the_terminal_harmless():
    done = run("verify", "--reference", "1", "--completion", "-", text="\\boxed{\x1b[2J\u202e1\x07é}")
    assert done.returncode == 1 and "\\x1b[2J\\u{202e}1\\x07é" in done.out and not any(mark in done.out for mark in "\x1b\u202e\x07")


@pytest.mark.parametrize("words, names", [
    (["--completion", "x", "--colour"], ["--colour"]), (["--completion", "x", "--verifier", "nope"], ["nope", "math"]),
    (["--completion", "x", "--options", "{"], ["--options", "JSON"]), (["--completion", "x", "--options", '{"extract":"x"}'], ["extract"]),
    (["--completion", "x", "--options", "[]"], ["options"]), (["--completion"], ["--completion"]), ([], ["--completion"]), (["stray"], ["stray"]),
    (["--completion", "x", "--completion-tokens", "many"], ["many"]), (["--completion", "x", "--timeout", "0s"], ["0s"]), (["--replay", "/nowhere"], ["/nowhere"]),
    (["--completion-file", "/nowhere"], ["/nowhere"]), (["--completion", "x", "--reference", "1", "--reference-json", "1"], ["--reference-json"])])
def test_a_wrong_word_is_named_in_one_line(words, names):
    refused("verify", *words, names=["verify", *names])


def test_broken_utf8_is_refused_as_by_the_service():
    refused("verify", "--reference", "1", "--completion", "-", data=b"ab\xff", names=["UTF-8", "byte 2"])


# -- what the service kept -----------------------------------------------------------------------------------------------------------

def test_a_kept_file_is_replayed(start_endless):
    service = start_endless(settings={"verify_timeout": "2s"})
    score(service, "kept", [ENDLESS_TEXT], [{"name": "exact"}, ENDLESS])
    path, = eventually(lambda: kept(service), "the file")
    found, code = judge("--replay", path, "--timeout", "300ms", binary=ENDLESS_BINARY)
    assert (code, found["name"], found["failure"]["code"]) == (3, "endless", "verifier_timeout")
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    assert found["options_sha256"] == content["verifiers"][0]["options_sha256"]
    changed = path.replace(".json", "-short.json")
    with open(changed, "w", encoding="utf-8") as file:
        json.dump({**content, "completion": "aab"}, file)
    assert judge("--replay", changed, binary=ENDLESS_BINARY)[1] == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"verifiers":[],"completion":1}', '{"verifiers":[{"name":"nope"}],"completion":"x"}', "\x00"])
def test_a_file_that_is_no_kept_one_is_refused(tmp_path, text):
    (tmp_path / "file").write_text(text)
    refused("verify", "--replay", tmp_path / "file", names=["verify"])


def test_a_product_of_many_roots_is_counted_before_it_is_worked_out():
    """It has 2^20 terms, which no text worker has the memory for."""
    sums = [f"(1+\\sqrt{{{prime}}})" for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)]
    verdict, code = judge("--reference", "".join(sums), "--completion", "\\boxed{" + "".join(reversed(sums)) + "}")
    assert (verdict["reason"], verdict["failure"], code) == ("undecided", None, 1)


# -- check-references ------------------------------------------------------------------------------------------------------------------

LINES = ['{"reference":"1/2"}', '{"reference":"\\\\frac{1}{"}', "", "nope", '{"question":"?"}', "[1]", '{"reference":null}', '{"reference":0.1}', '{"reference":["1","2"]}',
         '{"reference":"1","reference":"2"}']


def findings(*words, **options):
    done = run("check-references", "--json", *words, **options)
    lines = [json.loads(line) for line in done.out.splitlines()]
    return lines[:-1], lines[-1], done.returncode


def test_references_that_cannot_be_read_are_listed_with_their_lines(tmp_path):
    file = tmp_path / "tasks.ndjson"
    file.write_text("\n".join(LINES))
    found, summary, code = findings(file)
    assert code == 1 and summary == {"tasks": 4, "unreadable": 2, "broken_lines": 5}
    assert [(one["line"], one["code"]) for one in found] == [
        (2, "reference_unreadable"), (4, "invalid_json"), (5, "missing_field"), (6, "invalid_json"), (7, "missing_field"), (8, "reference_unreadable"), (10, "invalid_json")]
    assert found[0]["reference"] == "\\frac{1}{" and found[0]["verifier"] == "math" and found[0]["message"]
    done = run("check-references", file)
    assert done.returncode == 1 and f"{file}:2: math: " in done.out and done.out.splitlines()[-1].startswith("4 tasks, 2 references")


def test_references_without_a_value_are_listed_too():
    """The service would notice with the first answer: it grades against none of these."""
    none = ["1/0", "42=43", "\\ln 0", ["5", "\\tan 90^\\circ"], "\\{1/0, 2\\}"]
    some = ["0", "x", "\\infty", "\\text{undefined}", "x=5", "2^{1/2}", "1/x", ["5", "6"]]
    found, summary, code = findings("-", text="".join(json.dumps({"reference": one}) + "\n" for one in none + some))
    assert [one["line"] for one in found] == [1, 2, 3, 4, 5] and code == 1 and summary["unreadable"] == 5
    assert {one["message"] for one in found} == {"the reference has no value"}


def test_a_data_set_without_fault_ends_with_0():
    assert findings("-", text='{"reference":"1"}\r\n{"reference":7}\n\n') == ([], {"tasks": 2, "unreadable": 0, "broken_lines": 0}, 0)
    assert findings("-", text="") == ([], {"tasks": 0, "unreadable": 0, "broken_lines": 0}, 0)


def test_the_reference_may_stand_elsewhere():
    text = '{"reward_model":{"ground_truth":"1"},"a.b":"2","reference":"{"}\n'
    assert findings("-", "--field", "reward_model.ground_truth", text=text)[2] == 0
    assert findings("-", "--field", "a.b", text=text)[2] == 0
    assert findings("-", "--field", "reward_model.none", text=text)[0][0]["code"] == "missing_field"
    assert findings("-", "--field", "reference.x", text=text)[0][0]["code"] == "missing_field"


def test_several_verifiers_have_their_own_options():
    found, summary, _ = findings("-", "--verifier", "exact", "--options", '{"strip":false}', "--verifier", "math", text='{"reference":"{"}\n{"reference":""}\n')
    assert [(one["line"], one["verifier"]) for one in found] == [(1, "math"), (2, "exact"), (2, "math")] and summary["tasks"] == 2


def test_a_line_of_any_length_is_one_finding():
    long = b'{"reference":"' + b"9" * (9 << 20) + b'"}\n'
    found, summary, code = findings("-", data=b'{"reference":"1"}\n' + long + b'{"reference":"{"}\n')
    assert [(one["line"], one["code"]) for one in found] == [(2, "line_too_long"), (3, "reference_unreadable")] and (summary["tasks"], code) == (2, 1)


def test_a_line_of_many_values_takes_bounded_memory():
    found, summary, code = findings("-", data=b'{"reference":"1","x":[' + b"[]," * 2_700_000 + b'1]}\n{"reference":"2"}\n')
    assert [(one["line"], one["code"]) for one in found] == [(1, "line_too_long")] and (summary["tasks"], code) == (1, 1)


def test_hostile_references_reach_the_terminal_harmless():
    done = run("check-references", "-", text=json.dumps({"reference": "{\x1b[2J\u202e"}) + "\n")
    assert done.returncode == 1 and "\\x1b[2J\\u{202e}" in done.out and "\x1b" not in done.out


@pytest.mark.parametrize("words, names", [
    ([], ["file"]), (["a", "b"], ["b"]), (["-", "--verifier", "nope"], ["nope", "math"]), (["-", "--options", "{"], ["JSON"]), (["/nowhere/x"], ["/nowhere/x"]),
    (["-", "--set", "x"], ["--set"]), (["--set", "x", "--field", "y"], ["--field"]), (["-", "--database", "x"], ["--database"]), (["--set", "x", "--database", "/nowhere/x"], ["/nowhere/x"]),
    (["-", "--options", '{"extract":"x"}'], ["extract"]), (["-", "--options", "{}", "--options", "{}"], ["twice"]), (["-", "--feild", "x"], ["--field"]), (["."], ["."])])
def test_check_references_names_a_wrong_word(words, names):
    refused("check-references", *words, names=["check-references", *names])


def test_the_references_of_a_set_on_record_are_checked_beside_the_service(start):
    service = start()
    tasks = [{"task": "a", "prompt": "?", "reference": "1/2"}, {"task": "b", "split": "test", "prompt": "?", "reference": "\\frac{1}{"}, {"task": "c\u001b[2J", "prompt": "?"},
             {"task": "d", "prompt": "?", "reference": ["1", "2"]}, {"task": "e", "prompt": "?", "reference": "1/0"}]
    body = "".join(json.dumps(task) + "\n" for task in tasks) + "\n" + "".join(json.dumps({"task": f"t{number}", "prompt": "?", "reference": str(number)}) + "\n" for number in range(450))
    assert service.put("/v1/tasksets/asked", body.encode(), {"Content-Type": "application/x-ndjson"}).status == 201
    words = ("--set", "asked", "--database", service.database)
    found, summary, code = findings(*words)
    assert code == 1 and summary == {"tasks": 454, "unreadable": 2, "without_reference": 1}
    assert [(one["line"], one["task"], one["code"], one["verifier"]) for one in found] == [
        (2, "b", "reference_unreadable", "math"), (3, "c\x1b[2J", "missing_field", None), (5, "e", "reference_unreadable", "math")]
    done = run("check-references", *words)
    assert done.returncode == 1 and "\nasked:3: c\\x1b[2J: there is no reference\n" in done.out and done.out.startswith("asked:2: b: math: "), done.out
    assert done.out.splitlines()[-1] == "454 tasks with a reference, 2 references that cannot be read, 1 task without one"
    assert findings("--verifier", "exact", *words)[1]["unreadable"] == 0
    refused("check-references", "--set", "nobody", "--database", service.database, names=["nobody"])


# -- help --------------------------------------------------------------------------------------------------------------------------------

def test_help_lists_commands_arguments_and_settings():
    done = run("help")
    assert done.returncode == 0 and done.out == run("--help").out
    assert all(word in done.out for word in ("verify", "check-references", "help", "--config", "--check", "crashes.alarm"))


@pytest.mark.parametrize("command", ["verify", "check-references"])
def test_help_of_a_command_names_its_options_and_exit_codes(command):
    done = run("help", command)
    assert done.returncode == 0 and "Exit code" in done.out and "--verifier" in done.out and "--options" in done.out


def test_a_command_that_is_none_is_refused_with_the_nearest():
    refused("verfy", names=["verfy", "verify"])
    refused("help", "colours", names=["colours"])


def test_a_file_without_an_end_is_read_as_far_as_anything_is_judged():
    done = run("verify", "--reference", "5", "--completion-file", "/dev/zero")
    assert done.returncode == 2 and "/dev/zero: larger than" in done.err
