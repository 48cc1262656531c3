"""The task of the examples: `3+4 is \\boxed{7}`. The examples of how it is written stand in the prompt."""

SHOTS = "2+1 is \\boxed{3}\n4+5 is \\boxed{9}\n"
TASKS = [{"task": f"{a}+{b}", "prompt": f"{SHOTS}{a}+{b} is", "reference": str(a + b)} for a in range(10) for b in range(10)]
SAMPLES = 8  # of a task in a batch
SAMPLING = {"max_tokens": 16, "temperature": 1.0, "stop": ["\n"]}
VERIFIERS = [
    {"name": "math", "weight": 0.8, "options": {"extract": "boxed"}},
    {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}},
    {"name": "math", "id": "correct", "heldout": True, "options": {"extract": "last_number"}},  # no part of the reward
]
