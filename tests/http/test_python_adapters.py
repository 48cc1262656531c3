"""The parts of the Python package that trainers call, as each of them calls. TRL's own trainer: tests/nightly/torch."""
import asyncio
import importlib
import json
import os
import sys
import threading
import urllib.request

import pytest

from harness import PATIENCE, ROOT

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import rolloutd  # noqa: E402
import rolloutd.slime  # noqa: E402
import rolloutd.tasks  # noqa: E402
import rolloutd.trl  # noqa: E402
import rolloutd.verl  # noqa: E402
import rolloutd.verifiers_env  # noqa: E402

MATH = [{"name": "math"}]
UNREADABLE = "\\frac{"


@pytest.fixture
def client(plain):
    with rolloutd.Client(plain.url, patience_s=PATIENCE, timeout_s=PATIENCE) as made:
        yield made


# -- TRL ---------------------------------------------------------------------------------------------------------

TRL = {"prompts": ["6*7="] * 2 + ["1+1="] * 2, "completions": ["\\boxed{42}", "\\boxed{41}", "\\boxed{2}", "\\boxed{2}"],
       "answer": ["42"] * 2 + [UNREADABLE] * 2}


def test_trl_gets_a_reward_or_none(plain):
    metrics, columns = {}, {}
    judge = rolloutd.trl.reward(plain.url, MATH)
    assert judge(**TRL, completion_ids=[[1]] * 4, log_metric=metrics.__setitem__, log_extra=columns.__setitem__) == [1, 0, None, None]
    assert metrics == {"rolloutd/failed": 0.5}
    assert columns == {"rolloutd_failure": ["", "", "reference_unreadable", "reference_unreadable"]}
    assert judge.__name__ == "rolloutd"


def test_trl_with_a_run_is_on_record(plain, client):
    class State:
        global_step = 3
    judge = rolloutd.trl.reward(plain.url, MATH, run="trl")
    mixed = {name: [values[place] for place in (0, 2, 1, 3)] for name, values in TRL.items()}
    assert judge(**mixed, trainer_state=State) == [1, None, 0, None]
    assert judge(**mixed, trainer_state=State) == [1, None, 0, None]  # another draw of the same tasks
    rows = list(client.rollouts(run="trl"))
    assert len(rows) == 8 and {row["policy_revision"] for row in rows} == {3}
    assert sum(row["reward"] is None for row in rows) == 4


def test_trl_conversations_and_empty_completions(plain, client):
    judge = rolloutd.trl.reward(plain.url, MATH, run="chat", task="name")
    prompt = [{"role": "user", "content": "6*7="}]
    said = [[{"role": "assistant", "content": text}] for text in ("\\boxed{42}", "")]
    assert judge(prompts=[prompt] * 2, completions=said, answer=["42"] * 2, name=["t"] * 2) == [1, None]
    failed, = [row["failure"] for row in client.rollouts(run="chat", task="t") if row["failure"]]
    assert failed["code"] == "empty_completion"


def test_trl_conversations_without_a_run(plain, monkeypatch):
    judge = rolloutd.trl.reward(plain.url, MATH)
    verify, sent = judge.client.verify, []
    monkeypatch.setattr(judge.client, "verify", lambda verifiers, items: sent.extend(items) or verify(verifiers, items))
    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello?"}, {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "6*7="}]}]
    said = [[{"role": "assistant", "content": content}] for content in ("\\boxed{42}", [{"type": "text", "text": "\\boxed{41}"}], None)]
    assert judge(prompts=[talk, talk, talk[1:2]], completions=said, answer=["42"] * 3) == [1, 0, 0]
    assert [item.get("prompt") for item in sent] == ["6*7=", "6*7=", None]


class State:
    def __init__(self, step):
        self.global_step = step


class Model:
    def __init__(self, training):
        self.training = training

    def log_metric(self, *_):
        pass

    @property
    def model(self):
        return self


@pytest.mark.parametrize("run", [None, "column"])
def test_trl_is_told_that_the_column_of_references_is_not_there(plain, run):
    renamed = {("solution" if name == "answer" else name): values for name, values in TRL.items()}
    with pytest.raises(rolloutd.Error, match="column 'answer'"):
        rolloutd.trl.reward(plain.url, MATH, run=run)(**renamed, trainer_state=State(0))
    assert rolloutd.trl.reward(plain.url, MATH, run=run, reference="solution")(**renamed, trainer_state=State(0)) == [1, 0, None, None]


def test_trl_goes_on_where_a_later_step_has_no_reference_that_can_be_read(plain):
    judge = rolloutd.trl.reward(plain.url, MATH)
    judge(**TRL)
    assert judge(**{**TRL, "answer": [UNREADABLE] * 4}) == [None] * 4


def test_trl_that_starts_again_takes_back_what_it_threw_away(plain, client):
    for step in (0, 1):
        rolloutd.trl.reward(plain.url, MATH, run="again")(**TRL, trainer_state=State(step))
    judge = rolloutd.trl.reward(plain.url, MATH, run="again")
    judge(**TRL, trainer_state=State(0))
    judge(**TRL, trainer_state=State(1))
    assert client.run("again")["incarnation"] == 1
    assert client.report("again")["totals"]["n"] == 8, "two steps of the trainer that survived"


def test_trl_evaluations_are_no_training_and_take_nothing_back(plain, client):
    rolloutd.trl.reward(plain.url, MATH, run="eval")(**TRL, trainer_state=State(5))
    judge = rolloutd.trl.reward(plain.url, MATH, run="eval")
    judge(**TRL, trainer_state=State(0), log_metric=Model(training=False).log_metric)
    shown = client.run("eval")
    assert (shown["incarnation"], shown["policy_revision"]) == (0, 5)
    assert {row["policy_revision"]: row["purpose"] for row in client.rollouts(run="eval")} == {5: "train", 0: "eval"}


class Trainer:
    """The members that Rollouts looks at."""
    num_generations = 2
    num_generations_eval = 2
    eos_token_ids = [99]

    class state:
        global_step = 1

    class model:
        training = True

    class accelerator:
        process_index, is_main_process = 0, True
        unwrap_model = staticmethod(lambda model: model)
        wait_for_everyone = staticmethod(lambda: None)


def test_trl_rollouts_sample_judge_and_push(service, engine):
    engine.rules({"in": "6*7", "text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]}, {"in": "broken", "status": 400, "body": {"message": "no"}})
    rows = [{"prompt": "6*7=", "answer": "42"}, {"prompt": "broken", "answer": "1"}]
    pushed = []
    rollouts = rolloutd.trl.Rollouts(service.url, "r", rows, MATH, {"max_tokens": 8}, push=lambda model, revision: pushed.append(revision))
    output = rollouts(["6*7="] * 2 + ["broken"] * 2, Trainer)
    assert pushed == [1] and output["rolloutd_reward"] == [1, 1, None, None]
    assert output["completion_ids"] == [[5, 2], [5, 2], [99], [99]] and output["logprobs"][2] == [0.0]
    assert rollouts.reward(completions=[], **{name: output[name] for name in ("rolloutd_reward", "rollout")}) == [1, 1, None, None]
    with pytest.raises(ValueError, match="in no row"):
        rollouts(["unknown"] * 2, Trainer)


def test_trl_rollouts_push_once_a_step_and_begin_with_whatever_the_trainer_has(service, engine):
    engine.rules({"text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]})
    seen = []

    def push(model, revision):
        with rolloutd.Client(service.url, patience_s=PATIENCE, timeout_s=PATIENCE) as client:
            seen.append((revision, client.run("r")["update"] is not None))

    def start(step, training=True):
        rollouts = rolloutd.trl.Rollouts(service.url, "r", [{"prompt": "6*7=", "answer": "42"}], MATH, {"max_tokens": 8}, push=push)

        class Now(Trainer):
            state, model = State(step), Model(training)
        return rollouts, Now

    rollouts, trainer = start(3)
    rollouts(["6*7="] * 2, trainer)
    rollouts(["6*7="] * 2, trainer)
    trainer.state = State(4)
    rollouts(["6*7="] * 2, trainer)
    assert seen == [(3, False), (4, True)], "the first time nothing samples, so nothing has to wait"
    rollouts, trainer = start(2, training=False)
    rollouts(["6*7="] * 2, trainer)
    rollouts, trainer = start(2)
    rollouts(["6*7="] * 2, trainer)
    assert [revision for revision, _ in seen[2:]] == [2, 2]
    with rolloutd.Client(service.url, patience_s=PATIENCE, timeout_s=PATIENCE) as client:
        rows = list(client.rollouts(run="r"))
        assert sorted((row["incarnation"], row["policy_revision"], row["purpose"]) for row in rows) == \
            [(0, 2, "eval")] * 2 + [(0, 3, "train")] * 4 + [(0, 4, "train")] * 2 + [(1, 2, "train")] * 2


# -- verl --------------------------------------------------------------------------------------------------------


def one(url, completion, label, **more):
    return asyncio.run(rolloutd.verl.compute_score("set", completion, label, {"index": 1}, url=url, **more))


def test_verl_one_sample(plain):
    assert one(plain.url, "\\boxed{42}", "42") == {"score": 1, "rolloutd_failed": 0}
    assert one(plain.url, "\\boxed{42}", UNREADABLE, failed=-1.0) == {"score": -1, "rolloutd_failed": 1}
    with pytest.raises(rolloutd.Error, match="reference_unreadable"):
        one(plain.url, "\\boxed{42}", UNREADABLE)
    assert one(plain.url, "yes", {"verifiers": [{"name": "exact"}], "reference": "yes"})["score"] == 1


def test_verl_a_step_at_once(plain):
    broken = {"verifiers": MATH, "reference": UNREADABLE}
    infos = [{"index": number // 3} for number in range(6)]
    labels = ["42"] * 3 + [broken] * 3
    with pytest.raises(rolloutd.Error, match="reference_unreadable"):
        rolloutd.verl.compute_scores(["s"] * 6, ["\\boxed{42}"] * 6, labels, infos, url=plain.url)
    scores = rolloutd.verl.compute_scores(["s"] * 3, ["\\boxed{42}", "\\boxed{41}", "x"], ["42"] * 3, infos[:3], url=plain.url)
    assert [row["score"] for row in scores] == [1, 0, 0]


def test_verl_siblings_lend_their_mean(service, engine, monkeypatch):
    client = rolloutd.verl.client_of(service.url, None)
    judged = [{"reward": 1.0, "failure": None}, {"reward": None, "failure": {"code": "verifier_timeout", "message": ""}}, {"reward": 0.5, "failure": None}]
    monkeypatch.setattr(client, "verify", lambda verifiers, items: judged)
    scores = rolloutd.verl.compute_scores(["s"] * 3, ["a", "b", "c"], ["42"] * 3, [{"index": 0}] * 3, url=service.url)
    assert scores == [{"score": 1.0, "rolloutd_failed": 0.0}, {"score": 0.75, "rolloutd_failed": 1.0}, {"score": 0.5, "rolloutd_failed": 0.0}]


def rows_of(client, run):
    return sorted(((row["task"], row["reward"], (row["failure"] or {}).get("code")) for row in client.rollouts(run=run)), key=str)


def test_verl_under_a_run_is_on_record(plain, client):
    client.attach("verl", step=0, revision=4)
    labels = ["42", "42", UNREADABLE, "42", {"verifiers": [{"name": "none"}], "reference": "1"}, None]
    said = ["\\boxed{42}", "", "\\boxed{1}", "\\boxed{41}", "x", "y"]
    infos = [{"index": number, "split": "train"} for number in (0, 0, 1, 0, 2, 3)]
    with pytest.raises(rolloutd.Error, match="reference_unreadable"):
        rolloutd.verl.compute_scores(["gsm8k"] * 6, said, labels, infos, url=plain.url, run="verl")
    assert [row for row in rows_of(client, "verl")] == sorted(
        [("gsm8k-train-0", 1, None), ("gsm8k-train-0", None, "empty_completion"), ("gsm8k-train-0", 0, None), ("gsm8k-train-1", None, "reference_unreadable"),
         ("gsm8k-train-2", None, "invalid_field"), ("gsm8k-train-3", None, "missing_field")], key=str)
    assert {row["policy_revision"] for row in client.rollouts(run="verl")} == {4}
    scores = rolloutd.verl.compute_scores(["gsm8k"] * 3, said[:2] + said[3:4], labels[:3:2][:1] * 3, infos[:1] * 3, url=plain.url, run="verl")
    assert scores == [{"score": 1, "rolloutd_failed": 0}, {"score": 0.5, "rolloutd_failed": 1}, {"score": 0, "rolloutd_failed": 0}]
    assert one(plain.url, "\\boxed{42}", "42", run="verl-one") == {"score": 1, "rolloutd_failed": 0}
    assert rows_of(client, "verl-one") == [("set-1", 1, None)]
    with pytest.raises(rolloutd.Error, match="run"):
        one(plain.url, "\\boxed{42}", "42", run="no name")


# -- slime -------------------------------------------------------------------------------------------------------


class SlimeSample:
    def __init__(self, response, label):
        self.prompt, self.response, self.label, self.remove_sample, self.metadata = "6*7=", response, label, False, {}


def test_a_reward_function_of_slime_takes_failures_out(plain, client):
    class Args:
        rolloutd_url, rolloutd_verifiers, rolloutd_run = plain.url, MATH, "slime"
    texts = json.dumps({"verifiers": [{"name": "exact"}], "reference": "yes"})
    samples = [SlimeSample("\\boxed{42}", "42"), SlimeSample("\\boxed{41}", "42"), SlimeSample("x", UNREADABLE), SlimeSample("yes", texts)]
    assert asyncio.run(rolloutd.slime.reward(Args, samples)) == [1, 0, 0, 1]
    assert [sample.remove_sample for sample in samples] == [False, False, True, False]
    assert samples[2].metadata == {"rolloutd_failure": "reference_unreadable"}
    assert asyncio.run(rolloutd.slime.reward(Args, samples[0])) == 1
    siblings = [SlimeSample("\\boxed{42}", "42"), SlimeSample("\\boxed{41}", "42"), SlimeSample("", "42")]
    assert asyncio.run(rolloutd.slime.reward(Args, siblings)) == [1, 0, 0.5] and siblings[2].remove_sample
    rows = rows_of(client, "slime")
    assert len(rows) == 8 and len({row[0] for row in rows}) == 3


# -- verifiers, prime-rl -------------------------------------------------------------------------------------------


class Row:
    """A task's data and a trace, as far as a reward function looks at them. The real ones: tests/nightly/trainers."""

    def __init__(self, answer, reply):
        self.prompt, self.id, self.answer, self.last_reply = "6*7=", "t", answer, reply


def test_a_reward_function_of_verifiers(plain, client):
    for run in (None, "environment"):
        judge = rolloutd.verifiers_env.reward(plain.url, MATH, run=run, name="math")
        assert judge.__name__ == "math"
        for reply, expected in (("\\boxed{42}", 1), ("\\boxed{41}", 0)):
            assert asyncio.run(judge(task=Row("42", reply), trace=Row("42", reply))) == expected
        with pytest.raises(rolloutd.Error, match="reference_unreadable"):
            asyncio.run(judge(task=Row(UNREADABLE, "x"), trace=Row(UNREADABLE, "x")))
    assert rows_of(client, "environment") == [("t", 0, None), ("t", 1, None), ("t", None, "reference_unreadable")]


def test_a_reward_function_of_a_rubric(plain):
    judge = rolloutd.verifiers_env.rubric_reward(plain.url, MATH)
    state, said = {}, [{"role": "assistant", "content": "\\boxed{42}"}]
    assert asyncio.run(judge([{"role": "user", "content": "6*7="}], said, "42", state)) == 1 and state == {}
    assert asyncio.run(judge("6*7=", said, UNREADABLE, state)) == 0 and state["error"].code == "reference_unreadable"


# -- task sets ---------------------------------------------------------------------------------------------------


def test_tasks_of_lines(client, tmp_path):
    lines = [{"question": f"{number}+1=", "answer": UNREADABLE if number == 7 else str(number + 1)} for number in range(300)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    mapping = {"prompt": "question", "reference": "answer", "split": lambda row: "test" if row["question"] == "3+1=" else None}
    found = rolloutd.tasks.from_jsonl(client, "lines", str(tmp_path / "tasks.jsonl"), mapping, MATH)
    assert found.tasks == 300 and [task for task, why in found.unreadable] == ["7"] and "reference_unreadable" in found.unreadable[0][1]
    assert client.get("/v1/tasksets/lines")["splits"] == {"test": 1, "train": 299}
    assert rolloutd.tasks.from_jsonl(client, "lines", str(tmp_path / "tasks.jsonl"), mapping).sha256 == found.sha256
    with pytest.raises(rolloutd.Error) as caught:
        rolloutd.tasks.from_rows(client, "lines", [{"prompt": "other"}])
    assert caught.value.code == "state_conflict"
    with pytest.raises(ValueError):
        rolloutd.tasks.from_rows(client, "none", [])


def test_tasks_in_the_form_of_verl(client):
    row = {"data_source": "gsm8k", "prompt": [{"role": "user", "content": "6*7="}], "ability": "math",
           "reward_model": {"style": "rule", "ground_truth": "42"}, "extra_info": {"split": "train", "index": 5}}
    assert rolloutd.tasks.from_rows(client, "verl", [row], rolloutd.tasks.VERL).tasks == 1
    task = client.get("/v1/tasksets/verl/tasks/gsm8k-train-5")
    assert task["reference"] == "42" and task["tags"] == {"source": "gsm8k"}
    broken = {**row, "reward_model": {"ground_truth": UNREADABLE}}
    found = rolloutd.tasks.from_rows(client, "verl-broken", [broken], rolloutd.tasks.VERL, MATH)
    assert [task for task, why in found.unreadable] == ["gsm8k-train-5"]


def test_tasks_of_a_parquet_file(client, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="there is no pyarrow")
    pyarrow = importlib.import_module("pyarrow")
    rows = [{"data_source": "s", "prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": "1"}, "extra_info": {"index": number}} for number in range(3)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), str(tmp_path / "train.parquet"))
    assert rolloutd.tasks.from_verl(client, "parquet", str(tmp_path / "train.parquet")).tasks == 3


# -- functions that a team has -----------------------------------------------------------------------------------


def length_trl(completions, answer, **_):
    return [float(len(text)) if expected != "none" else None for text, expected in zip(completions, answer)]


async def score_verl(data_source, solution_str, ground_truth, extra_info):
    if solution_str == "explode":
        raise RuntimeError("no such thing")
    return {"score": float(solution_str == ground_truth), "source": data_source}


def ask(server, **fields):
    request = urllib.request.Request(server.url, json.dumps({"prompt": "p", "metadata": None, **fields}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.loads(reply.read())


def test_a_function_is_served():
    with rolloutd.serve(length_trl, "trl") as server:
        said = ask(server, completion="four", reference="x")
        assert said["score"] == 4 and len(said["version"]) == 16
        assert "None" in ask(server, completion="four", reference="none")["failure"]
    with rolloutd.serve(score_verl, "verl", version="7") as server:
        said = ask(server, completion="x", reference="x", metadata={"data_source": "s"})
        assert said == {"score": 1.0, "detail": {"source": "s"}, "version": "7"}
        said = ask(server, completion="explode", reference="x")
        assert "score" not in said and "no such thing" in said["failure"]
    with pytest.raises(ValueError):
        rolloutd.serve(length_trl, "other")


def test_a_function_gives_one_number_or_a_failure():
    async def later(completions, **_):
        return [0.5 for _ in completions]

    def ends(**_):
        raise SystemExit(3)

    for said, words in (([], "0 rewards"), ([1, 2], "2 rewards"), (None, "TypeError"), ([float("nan")], "nan"), ([float("inf")], "inf"), (["1"], "'1'"),
                        ([[1]], "TypeError"), ([None], "None"), ([{"other": 1}], "score"), (7, "TypeError")):
        with rolloutd.serve(lambda **_: said, "trl") as server:
            reply = ask(server, completion="x", reference="x")
            assert "score" not in reply and words in reply["failure"], (said, reply)
    with rolloutd.serve(later, "trl") as server:
        assert ask(server, completion="x")["score"] == 0.5
    with rolloutd.serve(ends, "verl") as server:
        assert "SystemExit" in ask(server, completion="x")["failure"]
    with rolloutd.serve(lambda **_: {"score": True, "odd": float("nan"), "object": object, 3: 4}, "verl") as server:
        reply = ask(server, completion="x")
        assert reply["score"] == 1 and reply["detail"]["odd"] == "NaN" and reply["detail"]["3"] == 4


def test_a_function_that_hangs_costs_its_own_verdict(start):
    let_go = threading.Event()

    def hangs(completions, **_):
        if completions[0] == "hang":
            let_go.wait(PATIENCE)
        return [1.0]

    with rolloutd.serve(hangs, "trl") as server:
        service = start(settings={"externals": json.dumps([{"name": "ours", "url": server.url}, {"name": "hasty", "url": server.url, "timeout": "2s"}])})
        with rolloutd.Client(service.url, patience_s=PATIENCE, timeout_s=PATIENCE) as client:
            hung, = client.verify([{"name": "external", "options": {"name": "hasty"}}], [{"id": "1", "completion": "hang"}])
            let_go.set()
            good, = client.verify([{"name": "external", "options": {"name": "ours"}}], [{"id": "2", "completion": "x"}])
    assert hung["reward"] is None and hung["failure"]["code"] == "verifier_timeout"
    assert good["reward"] == 1


def test_a_function_that_is_served_is_an_external(start):
    with rolloutd.serve(score_verl, "verl", version="7") as server:
        service = start(settings={"externals": json.dumps([{"name": "ours", "url": server.url}])})
        with rolloutd.Client(service.url, patience_s=PATIENCE, timeout_s=PATIENCE) as client:
            items = [{"id": "1", "completion": "x", "reference": "x"}, {"id": "2", "completion": "explode", "reference": "x"}]
            right, failed = client.verify([{"name": "external", "options": {"name": "ours"}}], items)
    assert right["reward"] == 1 and right["verdicts"][0]["version"] == "7"
    assert failed["reward"] is None and failed["failure"]["code"] == "external_failed" and "no such thing" in failed["failure"]["message"]
