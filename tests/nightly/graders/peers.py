"""Graders of other packages, each in a process of its own that is killed when it does not come back.

A grader is a function that makes one: {"completion", "reference", "options", "prompt"} -> True, False, or None where it has no such rule.
"""
import json
import multiprocessing
import os
import sys
import sysconfig
import types


# -- IFEval of lm-eval, IFBench of if-verifiable ---------------------------------------------------------------------------------------

def folder_package(name):
    """The package without its __init__, which asks for a deep-learning framework."""
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(sysconfig.get_path("purelib"), *name.split("."))]
    sys.modules[name] = module


def one_instruction(registry, is_given, name, kwargs, prompt, response, forms):
    """As the harnesses do it: build_description, then check_following of the response, or of each of its loose forms."""
    checker = registry[name](name)
    checker.build_description(**{key: value for key, value in kwargs.items() if is_given(value)})
    arguments = checker.get_instruction_args()
    if arguments and "prompt" in arguments:
        checker.build_description(prompt=prompt)
    return any(form.strip() and bool(checker.check_following(form)) for form in forms(response))


def loose_forms(response):
    rows = response.split("\n")
    cut = [response] + ["\n".join(part).strip() for part in (rows[1:], rows[:-1], rows[1:-1])]
    return cut + [form.replace("*", "") for form in cut]


def instructions(registry, is_given):
    """is_given: which kwargs of a row the harness hands on."""
    def judge(asked):
        reference, verdicts = asked["reference"], []
        if not isinstance(reference, dict) or not set(reference.get("instruction_id_list") or ["?"]) <= set(registry):
            return None
        for index, name in enumerate(reference["instruction_id_list"]):
            kwargs = (reference.get("kwargs") or [{}] * (index + 1))[index] or {}
            prompt = asked.get("prompt") or kwargs.get("prompt_to_repeat") or ""
            forms = loose_forms if asked["options"].get("mode") == "loose" else lambda response: [response]
            verdicts.append(one_instruction(registry, is_given, name, kwargs, prompt, asked["completion"], forms))
        return all(verdicts)
    return judge


def lm_eval():
    for name in ("lm_eval", "lm_eval.tasks"):
        folder_package(name)
    from lm_eval.tasks.ifeval.instructions_registry import INSTRUCTION_DICT
    return instructions(INSTRUCTION_DICT, bool)  # a threshold of 0 is dropped, and another one drawn


def ifbench():
    folder_package("if_verifiable")
    from if_verifiable.ifbench.instructions_registry import INSTRUCTION_DICT
    return instructions(INSTRUCTION_DICT, lambda value: value is not None)


# -- json_schema -----------------------------------------------------------------------------------------------------------------------

def jsonschema():
    from jsonschema import Draft202012Validator

    def judge(asked):
        schema = asked["options"].get("schema")
        schema = asked["reference"] if schema is None else schema
        if asked["options"].get("allow_fence"):
            return None
        try:
            value = json.loads(asked["completion"])
        except ValueError:
            return False
        return Draft202012Validator(schema).is_valid(value)
    return judge


# -- reasoning-gym ---------------------------------------------------------------------------------------------------------------------

def countdown():
    from reasoning_gym import create_dataset
    from reasoning_gym.utils import extract_answer
    grader = create_dataset("countdown", size=1, seed=1)

    def judge(asked):
        if asked["options"] or not isinstance(asked["reference"].get("target"), (int, float)):
            return None
        return grader.score_answer(extract_answer(asked["completion"]), {"metadata": asked["reference"]}) == 1
    return judge


def exact():
    from reasoning_gym import create_dataset
    from reasoning_gym.dataset import ProceduralDataset
    grader = create_dataset("countdown", size=1, seed=1)

    def judge(asked):
        if asked["options"] or not isinstance(asked["reference"], str):
            return None
        return ProceduralDataset.score_answer(grader, asked["completion"].strip(), {"answer": asked["reference"].strip()}) == 1
    return judge


PEERS = {"ifeval": {"lm-eval": lm_eval, "IFBench": ifbench}, "json_schema": {"jsonschema": jsonschema}, "countdown": {"reasoning-gym": countdown}, "exact": {"reasoning-gym": exact}}


# -- a process of its own ----------------------------------------------------------------------------------------------------------------

def serve(make, pipe):
    judge = make()
    pipe.send("ready")
    while True:
        asked = pipe.recv()
        try:
            pipe.send((judge(asked), None))
        except Exception as problem:  # whatever it raises
            pipe.send((False, type(problem).__name__))


class Peer:
    def __init__(self, make, hard):
        self.make, self.hard = make, hard
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.make, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def ask(self, asked):
        """(True, False or None, why it is False where it raised, hung or died)"""
        self.pipe.send(asked)
        try:
            if self.pipe.poll(self.hard):
                return self.pipe.recv()
            error = "hangs"
        except EOFError:
            error = "dies"
        self.stop()
        self.start()
        return False, error

    def stop(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()
