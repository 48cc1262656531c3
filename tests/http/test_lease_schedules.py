"""Random schedules of leases, acknowledgements, expiry, releases, rewinds and attaches, while the service is killed again and again.

Each schedule is a run with one trainer, which sends again what was not answered. Every reply, and in the end the record, must be what
lease_model.py says. Of that follows: every group is delivered at least once or stale, acknowledged at most once in an incarnation, and
never delivered after it was stale. ROLLOUTD_SCHEDULES has how many schedules there are, ROLLOUTD_SCHEDULE_SEED other ones."""
import concurrent.futures
import http.client
import os
import random
import subprocess
import threading

import harness
import pytest
from harness import eventually
from lease_model import Group, Run
from leasing import RIGHT
from material import make_batch, make_group

SCHEDULES = int(os.environ.get("ROLLOUTD_SCHEDULES", "100"))
SEED = int(os.environ.get("ROLLOUTD_SCHEDULE_SEED", "1"))
PARTS = 8  # each within the time that a test has, also under the sanitizers
CALLS = 24
AT_ONCE = 8
KILLS_EVERY = (60, 200)  # requests


class Mortal:
    """A service that is killed behind some random number of requests; each is sent until it is answered."""

    def __init__(self, service, dice):
        self.service, self.dice, self.changed = service, dice, threading.Condition()
        self.lives, self.up, self.left = 1, True, dice.randrange(*KILLS_EVERY)

    def send(self, method, path, body=None, headers=None, **query):
        """(reply, whether it was sent before)"""
        again = False
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.up)
                life = self.lives
                self.left -= 1
                self.changed.notify_all()
            try:
                return self.service.request(method, path, body, headers, **query), again
            except (OSError, http.client.HTTPException):
                again = True
                with self.changed:
                    assert self.changed.wait_for(lambda: self.lives > life or self.broken(), harness.PATIENCE), "it is not back"

    def broken(self):
        return self.up and not self.service.alive()

    def kill_until(self, done):
        """In a thread of its own, while others send."""
        while not done():
            with self.changed:
                if not self.changed.wait_for(lambda: self.left <= 0, 0.2):
                    continue
                self.up = False
            self.service.kill()
            self.service.start()
            with self.changed:
                self.up, self.lives, self.left = True, self.lives + 1, self.dice.randrange(*KILLS_EVERY)
                self.changed.notify_all()


class Trainer:
    def __init__(self, mortal, number):
        self.mortal, self.name, self.dice = mortal, f"schedule-{number}", random.Random(SEED * 1_000_003 + number)
        self.run, self.step, self.keys, self.checkpoints = Run(), 0, 0, [(0, 1)]
        self.said = []  # shown when a schedule fails

    def send(self, method, path, body=None, key=False, **query):
        headers = None
        if key:
            self.keys += 1
            headers = {"Idempotency-Key": f"{self.name}-{self.keys}"}
        reply, again = self.mortal.send(method, path, body, headers, **query)
        self.said.append((method, path, body, reply.status, again))
        return reply, again

    def post(self, what, body, **options):
        return self.send("POST", f"/v1/runs/{self.name}/{what}", body, **options)

    def play(self):
        try:
            self.post_batch()
            for _ in range(CALLS):
                self.dice.choice([self.post_batch, self.take, self.take, self.take, self.take_shortly, self.ack, self.ack, self.ack, self.release,
                                  self.extend, self.update, self.update, self.go_back, self.attach, self.compare])()
            self.compare()
            self.drain()
        except BaseException as error:
            raise AssertionError(f"{self.name}: " + "\n".join(str(line) for line in self.said[-12:])) from error

    # -- calls -------------------------------------------------------------------------------------------------------------------

    def post_batch(self):
        limit = self.dice.choice([None, None, 1, 3])
        tasks = [make_group(f"{self.name}-{self.keys}-{place}") for place in range(self.dice.randrange(1, 4))]
        body = make_batch(*tasks, run=self.name, policy_revision=self.run.revision, max_staleness=limit, deliver="lease", deadline="30m",
                          sampling={"n": 1, "max_tokens": 16})
        reply, _ = self.send("POST", "/v1/batches", body, key=True)
        assert reply.status in (200, 202), reply
        batch = eventually(lambda: self.ended(reply.json["id"]), "the batch to end", harness.BATCH_PATIENCE)
        self.run.groups += [Group(group["id"], self.run.revision, self.run.incarnation, limit) for group in batch["groups"]]

    def ended(self, identity):
        reply, _ = self.send("GET", f"/v1/batches/{identity}", wait="5s")
        return reply.json if reply.status == 200 and reply.json["state"] == "complete" else None

    def take(self, lease="1h"):
        wanted, limit, exact = self.dice.randrange(1, 5), self.dice.choice([None, None, None, 0, 1, 2]), self.dice.random() < 0.3
        reply, _ = self.post("leases", {"groups": wanted, "max_staleness": limit, "exact": exact, "wait": "0s", "lease": lease}, key=True)
        assert reply.status == 200, reply
        expected = self.run.take(wanted, limit, exact)
        assert [group["id"] for group in reply.json["groups"]] == [group.id for group in expected]
        if not expected:
            assert reply.json["lease"] is None
            return None
        made = self.run.taken(reply.json["lease"], expected)
        for said, group in zip(reply.json["groups"], expected):
            assert (said["staleness"], said["deliveries"]) == (group.staleness, group.deliveries)
        return made

    def take_shortly(self):
        """A lease that runs out before anything else happens."""
        made = self.take("1ms")
        if made:
            eventually(lambda: made.id not in [item["lease"] for item in self.read(f"/v1/runs/{self.name}/leases")["items"]], "the lease to expire")
            made.lose()

    def read(self, path):
        reply, _ = self.send("GET", path)
        assert reply.status == 200, reply
        return reply.json

    def choose(self):
        """A lease, mostly an open one, and some of its groups; None: all."""
        open_ones = [lease for lease in self.run.leases if not lease.ended]
        choice = open_ones if open_ones and self.dice.random() < 0.8 else self.run.leases
        if not choice:
            return None, None
        lease = self.dice.choice(choice)
        some = self.dice.random() < 0.5
        return lease, self.dice.sample(lease.groups, self.dice.randrange(1, len(lease.groups) + 1)) if some else None

    def change(self, made, what, groups=None, **fields):
        named = {} if groups is None else {"groups": [group.id for group in groups]}
        return self.post(f"leases/{made.id}/{what}", {**fields, **named})

    def ack(self):
        lease, groups = self.choose()
        if not lease:
            return
        self.step += 1
        reply, again = self.change(lease, "ack", groups, optimizer_step=self.step)
        count, conflict = self.run.ack(lease, groups, self.step)
        if conflict is None:
            assert reply.status == 200 and (again or reply.json["acked"] == count), reply
        else:
            assert reply.status == 409 and reply.error["code"] == "state_conflict", reply
            said = {item["group"]: (item["state"], item["lease"]) for item in reply.error["groups"]}
            assert said == {group.id: (group.state, group.lease) for group in conflict}
        self.checkpoints.append((self.step, self.run.revision))

    def release(self):
        lease, groups = self.choose()
        if not lease:
            return
        reply, again = self.change(lease, "release", groups)
        count = self.run.release(lease, groups)
        assert reply.status == 200 and (again or reply.json["released"] == count), reply

    def extend(self):
        lease, _ = self.choose()
        if lease:
            reply, _ = self.change(lease, "extend", lease="2h")
            assert reply.status == (409 if lease.ended else 200), reply

    def update(self):
        revision = self.run.revision + 1
        reply, _ = self.send("PUT", f"/v1/runs/{self.name}/policy", {"revision": revision})
        assert reply.status == 200, reply
        self.run.declare(revision)

    def checkpoint(self):
        """A step and a revision to go back to, and to continue from."""
        place = self.dice.randrange(len(self.checkpoints))
        self.checkpoints = self.checkpoints[:place + 1]
        return self.checkpoints[place]

    def go_back(self):
        step, revision = self.checkpoint()
        reply, _ = self.send("PUT", f"/v1/runs/{self.name}/policy", {"revision": revision, "rewind_to_step": step})
        self.run.go_back(revision, step)
        self.step = step
        assert (reply.status, reply.json["incarnation"], reply.json["revision"]) == (200, self.run.incarnation, revision), reply

    def attach(self):
        step, revision = self.checkpoint() if self.dice.random() < 0.5 else (self.step, self.run.revision)
        reply, _ = self.post("attach", {"step": step, "revision": revision}, key=True)
        ended = self.run.attach(step, revision)
        self.step = step
        assert (reply.status, reply.json["incarnation"], reply.json["policy_revision"]) == (200, self.run.incarnation, self.run.revision), reply
        assert {item["lease"] for item in reply.json["leases"]} == {lease.id for lease in ended}

    # -- what is on record -------------------------------------------------------------------------------------------------------

    def compare(self):
        expected = {}
        for group in self.run.groups:
            expected[group.state] = expected.get(group.state, 0) + 1
        counts = self.read(f"/v1/runs/{self.name}")["delivery"]
        assert {state: count for state, count in counts.items() if count} == expected
        if self.run.groups:
            group = self.dice.choice(self.run.groups)
            assert self.read(f"/v1/groups/{group.id}")["delivery"] == group.delivery()

    def drain(self):
        """The rest is delivered and acknowledged."""
        self.run.end_leases()
        self.post("attach", {"step": self.step, "revision": self.run.revision}, key=True)
        while self.run.ready():
            reply, _ = self.post("leases", {"groups": 64, "wait": "0s"}, key=True)
            lease = self.run.taken(reply.json["lease"], self.run.take(64, None, False)) if reply.json["lease"] else None
            if lease:
                self.step += 1
                assert self.change(lease, "ack", optimizer_step=self.step)[0].status == 200
                self.run.ack(lease, None, self.step)
            else:
                self.run.take(64, None, False)
        assert all(group.state == "acked" and group.deliveries or group.state == "stale" for group in self.run.groups)
        for group in self.run.groups:
            assert self.read(f"/v1/groups/{group.id}")["delivery"] == group.delivery()


@pytest.mark.parametrize("part", range(PARTS))
def test_schedules_lose_no_group_and_hand_none_out_twice(service, engine, part):
    engine.rules(RIGHT)
    mortal = Mortal(service, random.Random(SEED * 31 + part))
    trainers = [Trainer(mortal, number) for number in range(part, SCHEDULES, PARTS)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        played = [pool.submit(trainer.play) for trainer in trainers]
        mortal.kill_until(lambda: all(future.done() for future in played))
    for future in played:
        future.result()
    assert mortal.lives > 1
    service.terminate()
    checked = subprocess.run([harness.BINARY, "verify-database", service.database], capture_output=True, text=True, check=False,
                             timeout=harness.PATIENCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
