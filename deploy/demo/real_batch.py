#!/usr/bin/env python3
"""Posts eight questions and a small program task for a real language model to rolloutd and shows what came of each completion.

    real_batch.py --service URL [--run real]
"""
import argparse
import sys

from service import Service, ServiceError

QUESTIONS = [("What is 3 + 4?", "7"), ("What is 6 * 7?", "42"), ("What is 10 - 8?", "2"), ("What is 20 / 5?", "4"),
             ("How many days does a week have?", "7"), ("What is half of 10?", "5"), ("What is 9 + 9?", "18"),
             ("List five animal emojis: \U0001f436 \U0001f431", "5")]
# The last one is there to fail: llama.cpp gives fewer log-probabilities than ids where a character takes several tokens, and
# what cannot be believed becomes a failure, not a reward of 0.
PROGRAM = ("Write a Python program that reads a number n from standard input and prints n + 1.",
           [{"stdin": "1\n", "stdout": "2\n"}, {"stdin": "41\n", "stdout": "42\n"}, {"stdin": "-1\n", "stdout": "0\n"}])
SHOWN_CHARACTERS = 64


def chat(question):
    """The model's own chat template, as text."""
    return (f"<|im_start|>user\n{question} Answer briefly and put the final number in \\boxed{{}}.<|im_end|>\n"
            "<|im_start|>assistant\n")


def program_group():
    """Graded by running it, in the sandbox, on three inputs. A model of this size rarely writes one that is right."""
    question, tests = PROGRAM
    return {"task": "program-1", "prompt": f"<|im_start|>user\n{question} Answer with one ```python block.<|im_end|>\n<|im_start|>assistant\n",
            "reference": {"tests": tests}, "sampling": {"n": 4, "max_tokens": 160, "temperature": 0.3},
            "verifiers": [{"name": "code", "options": {"language": "python", "limits": {"wall_ms": 5000}}}]}


def batch(run):
    groups = [{"task": f"question-{number}", "prompt": chat(question), "reference": reference} for number, (question, reference) in enumerate(QUESTIONS, 1)]
    return {"run": run, "policy_revision": 0, "seed": 7, "sampling": {"n": 4, "max_tokens": 48, "temperature": 1.0},
            "verifiers": [{"name": "math", "weight": 0.8, "options": {"extract": "last_number"}},
                          {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}],
            "objective": {"preset": "grpo"}, "deadline": "10m", "groups": [*groups, program_group()]}


def shortened(text):
    line = " ".join((text or "").split())
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS - 3] + "..."


def number(value):
    return "  none" if value is None else f"{value:6.2f}"


def show_rollout(rollout):
    if rollout["failure"]:
        failure = rollout["failure"]
        print(f"  reward   none  advantage   none  failed: {failure['stage']}/{failure['code']}: {shortened(failure['message'])}")
    else:
        said = ", ".join(f"{verdict['id']} {verdict['verdict']}" + (f" ({verdict['reason']})" if verdict.get("reason") else "")
                         for verdict in rollout["verdicts"])
        print(f"  reward {number(rollout['reward'])}  advantage {number(rollout['advantage'])}  {rollout['finish_reason']:6}  {said}")
    if rollout.get("text"):
        print(f"      {shortened(rollout['text'])}")


def show(reply):
    for (question, reference), group in zip([*QUESTIONS, (PROGRAM[0], "three tests, in the sandbox")], reply["groups"]):
        print(f"\n{question}  [{reference}]")
        for rollout in group["rollouts"]:
            show_rollout(rollout)
    summary = reply["summary"]
    failures = ", ".join(f"{code} {count}" for code, count in summary["failures"].items())
    print(f"\n{summary['rollouts']} rollouts: {summary['scored']} scored, {summary['failed']} failed"
          f"{f' ({failures})' if failures else ''}; mean reward{number(summary['reward_mean'])}; {summary['completion_tokens']} tokens")


def main():
    parser = argparse.ArgumentParser(description="Eight questions and a program for a real language model, through rolloutd.")
    parser.add_argument("--service", required=True, help="URL of rolloutd")
    parser.add_argument("--run", default="real")
    options = parser.parse_args()
    service = Service("rolloutd", options.service, timeout_s=660)
    print("Eight questions and a program, four samples each; this takes about a minute", flush=True)
    reply = service.post("/v1/batches", batch(options.run))
    show(reply)
    if reply["state"] != "complete" or not reply["summary"]["scored"]:
        sys.exit(f"real_batch: batch {reply['id']} is {reply['state']!r}, failures: {reply['summary']['failures']}")


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a model may say what the terminal cannot show
    try:
        main()
    except ServiceError as problem:
        sys.exit(f"\nreal_batch: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
