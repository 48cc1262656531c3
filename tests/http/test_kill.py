"""kill -9 again and again under load, on one database: what was told is there, once, and everything ends as if nothing had happened."""
import json
import os
import random
import shutil
import threading

from harness import eventually
from material import make_batch, make_group, rollouts, sampling
from test_faults import VERIFIERS, Truth
from test_restart import check_database

KILLS = int(os.environ.get("ROLLOUTD_KILLS", "50" if not os.environ.get("ROLLOUTD_SANITIZED") else "5"))
SEED = int(os.environ.get("ROLLOUTD_KILL_SEED", "1"))


class Client:
    """Posts batches, repeats a request until it is answered, and remembers all that it was told."""

    def __init__(self, service):
        self.service, self.told, self.accepted, self.prompts = service, {}, {}, {}
        self.stop, self.answered, self.wrong = threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.work, args=(index,)) for index in range(3)]

    def body(self, name):
        delay = 0.01 * (len(self.prompts) % 7)
        prompts = {f"{name}-{index}": f"<<delay={delay:.2f}>> {index}+{index}=" for index in range(3)}
        self.prompts.update(prompts)
        return make_batch(*[make_group(task, prompt) for task, prompt in prompts.items()], verifiers=VERIFIERS, sampling=sampling(4), deadline="5m")

    def work(self, number):
        for turn in range(10**9):
            if self.stop.is_set():
                return
            name = f"c{number}-{turn}"
            body, wait = self.body(name), {} if turn % 2 else {"Prefer": "respond-async"}
            while not self.ask(name, body, wait) and not self.stop.wait(0.005):
                pass

    def ask(self, name, body, wait):
        try:
            reply = self.service.post("/v1/batches", body, {"Idempotency-Key": name, **wait})
            seen = self.service.read("/v1/rollouts", limit=200, order="desc") if reply.status in (200, 202) else {"items": []}
        except (OSError, AssertionError, ValueError, EOFError, Exception) as problem:  # pylint: disable=broad-except
            if isinstance(problem, (KeyError, TypeError)):
                self.wrong.append(repr(problem))
            return False
        if reply.status not in (200, 202):
            if reply.status not in (429, 503):
                self.wrong.append(repr(reply))
            return False
        if self.accepted.setdefault(name, reply.json["id"]) != reply.json["id"]:
            self.wrong.append(f"{name} was told {self.accepted[name]} and then {reply.json['id']}")
        self.answered += 1
        self.remember(rollouts(reply.json) if reply.json["state"] == "complete" else [])
        self.remember(seen["items"])
        return True

    def remember(self, found):
        for rollout in found:
            known = self.told.setdefault(rollout["id"], rollout)
            if (known["seed"], known["reward"]) != (rollout["seed"], rollout["reward"]):
                self.wrong.append(f"{rollout['id']} was told twice, differently")


def check_copy(service, told, folder):
    """Of a copy, so that the next start finds the log as the kill left it."""
    copy = os.path.join(str(folder), "copy.db")
    for end in ("", "-wal"):
        if os.path.exists(service.database + end):
            shutil.copyfile(service.database + end, copy + end)
    check_database(copy, told)
    for end in ("", "-wal", "-shm"):
        if os.path.exists(copy + end):
            os.unlink(copy + end)


def test_killed_again_and_again_it_loses_nothing_and_invents_nothing(start, toy, tmp_path):
    dice, truth = random.Random(SEED), Truth()
    service = start(toy)
    client = Client(service)
    for thread in client.threads:
        thread.start()
    try:
        for number in range(KILLS):
            answered = client.answered
            eventually(lambda: (client.answered > answered and client.told) or client.wrong or number % 3, "somebody to be answered, and told of a rollout")
            client.stop.wait(dice.uniform(0, 0.15))
            service.kill()
            if number % 5 == 0:
                check_copy(service, dict(client.told), tmp_path)
            service.start()
        service.no_orphans()
    finally:
        client.stop.set()
        for thread in client.threads:
            thread.join()
    assert not client.wrong, client.wrong[:5]
    ended = 0
    for name, identity in client.accepted.items():
        batch = service.settled(identity)
        assert batch["state"] == "complete", name
        for group in batch["groups"]:
            for rollout in group["rollouts"]:
                assert truth.check(rollout, group["task"], client.prompts[group["task"]]), rollout
                earlier = client.told.get(rollout["id"], rollout)
                assert all(rollout[field] == earlier[field] for field in ("seed", "reward", "state")), (rollout, earlier)
        ended += 1
    eventually(lambda: service.read("/v1/pending")["count"] == 0, "what nobody was told of to end, too")
    service.terminate()
    rows = check_database(service.database, client.told)
    print(f"{KILLS} kills, {ended} batches, {rows} rollouts on record, {len(client.told)} of them told before a kill")
    assert rows >= 12 * ended and len(client.told) > 0
