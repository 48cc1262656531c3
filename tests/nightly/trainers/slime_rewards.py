"""slime's async_rm and batched_async_rm over the route and over rolloutd.slime. The modules of the other kinds of reward are replaced."""
import asyncio
import importlib
import os
import sys
import types

import aiohttp

from common import SAMPLES, SOURCES, TOKEN, bare, check_record, client_of, done, route, service

REWARDS = [reward or 0 for _, _, reward in SAMPLES]


def load():
    folder = os.path.join(SOURCES, "slime", "slime")
    for name in ("slime", "slime.utils", "slime.rollout"):
        bare(name, os.path.join(folder, *name.split(".")[1:]))
    graders = types.ModuleType("slime.rollout.rm_hub.math_utils")  # needs sympy and pylatexenc
    graders.extract_answer = graders.grade_answer_verl = graders.grade_answer_mathd = graders.grade_answer_sympy = None
    sys.modules[graders.__name__] = graders
    return importlib.import_module("slime.rollout.rm_hub"), importlib.import_module("slime.utils.types").Sample


def samples_of(kind):
    return [kind(prompt="6*7=", response=said, label=label) for said, label, _ in SAMPLES]


async def in_one_loop(hub, calls):
    try:
        return [await call() for call in calls]
    finally:
        await hub._get_shared_session().close()


def over_the_route(hub, kind, made, client):
    client.attach("slime", step=0, revision=0)
    args = types.SimpleNamespace(rm_url=route(made, "/compat/slime/rm?run=slime"), rm_type="remote_rm", custom_rm_path=None)
    rewards, = asyncio.run(in_one_loop(hub, [lambda: hub.batched_async_rm(args, samples_of(kind)[:4])]))
    assert rewards == REWARDS[:4], rewards
    try:
        asyncio.run(in_one_loop(hub, [lambda: hub.remote_rm(args, samples_of(kind)[4], max_retries=2)]))
        raise AssertionError("it was given a reward")
    except aiohttp.ClientResponseError as problem:
        assert problem.status == 422
    check_record(client, "slime", [*SAMPLES, SAMPLES[4]])


def over_the_function(hub, kind, made, client):
    args = types.SimpleNamespace(rm_type=None, custom_rm_path="rolloutd.slime.reward", rolloutd_url=made.url, rolloutd_token=TOKEN,
                                 rolloutd_verifiers=[{"name": "math"}], rolloutd_run="slime-function")
    samples = samples_of(kind)
    one_by_one = [lambda sample=sample: hub.async_rm(args, sample) for sample in samples]
    *single, several = asyncio.run(in_one_loop(hub, [*one_by_one, lambda: hub.batched_async_rm(args, samples_of(kind))]))
    assert single == several == REWARDS, (single, several)
    assert [sample.remove_sample for sample in samples] == [reward is None for _, _, reward in SAMPLES]
    check_record(client, "slime-function", SAMPLES + SAMPLES)


def main():
    hub, kind = load()
    with service() as made:
        client = client_of(made)
        over_the_route(hub, kind, made, client)
        over_the_function(hub, kind, made, client)
    done("slime", "remote_rm on record, a failure raises after its tries", "custom_rm_path: remove_sample")


if __name__ == "__main__":
    main()
