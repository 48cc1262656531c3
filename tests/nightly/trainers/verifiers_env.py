"""A task of verifiers 0.4, as prime-rl takes its environments, and a Rubric of verifiers 0.1: their own scoring."""
import asyncio
import importlib
import os
import sys

from common import MATH, SAMPLES, SOURCES, TOKEN, check_record, client_of, done, service


def task_of(vf, reward, plugged):
    class Data(vf.TaskData):
        answer: str

    class Sums(vf.Task[Data, vf.State, vf.TaskConfig]):
        if not plugged:
            rolloutd = vf.reward(reward)

    return Sums, Data


async def score(vf, task, said):
    trace = make_trace(task, said)
    try:
        await task.score(trace)
        return trace.rewards, trace.reward
    except vf.TaskError as problem:
        return trace.rewards, problem


def check_tasks(made, client):
    vf = importlib.import_module("verifiers.v1")
    adapter = importlib.import_module("rolloutd.verifiers_env")
    reward = adapter.reward(made.url, MATH, run="tasks", token=TOKEN, name="rolloutd")
    kind, data = task_of(vf, reward, False)
    for said, label, expected in SAMPLES:
        task = kind(data(prompt="6*7=", answer=label, id=label))
        rewards, outcome = asyncio.run(score(vf, task, said))
        if expected is None:
            assert rewards == {"rolloutd": None} and "reference_unreadable" in str(outcome), (rewards, outcome)
        else:
            assert outcome == expected and rewards["rolloutd"].score == expected, (rewards, outcome)
    check_record(client, "tasks", SAMPLES)


def make_trace(task, said):
    trace_module = importlib.import_module("verifiers.v1.trace")
    types = importlib.import_module("verifiers.v1.types")
    node = trace_module.MessageNode(parent=None, message=types.AssistantMessage(content=said), sampled=True)
    return trace_module.Trace.model_construct(task=trace_module.TraceTask(type="Sums", data=task.data, key=task.key, hash=task.hash), nodes=[node], calls=[], rewards={},
                                              metrics={}, root_reply=None)


def rubric_main():
    sys.path.insert(0, os.path.join(SOURCES, "verifiers-0.1"))
    vf = importlib.import_module("verifiers")
    adapter = importlib.import_module("rolloutd.verifiers_env")
    with service() as made:
        rubric = vf.Rubric(funcs=[adapter.rubric_reward(made.url, MATH, token=TOKEN, run="rubric")])
        for said, label, expected in SAMPLES:
            state = {"prompt": [{"role": "user", "content": "6*7="}], "completion": [{"role": "assistant", "content": said}], "answer": label, "task": None}
            asyncio.run(rubric.score_rollout(state))
            assert state["reward"] == (expected or 0) and ("error" in state) == (expected is None), state
        check_record(client_of(made), "rubric", SAMPLES)
    done("verifiers 0.1", "a Rubric on record; what could not be graded has state['error']")


def main():
    with service() as made:
        check_tasks(made, client_of(made))
    done("verifiers 0.4", "a task's rewards on record; a failure is a TaskError, and the trace has no reward")


if __name__ == "__main__":
    rubric_main() if sys.argv[1:] == ["rubric"] else main()
