"""rolloutd verify-database computes every advantage anew."""
import re
import sqlite3
import subprocess

from harness import BINARY, PATIENCE
from test_deletion import held, score  # noqa: F401  (a fixture)

WEIGHTS = [{"name": "math", "weight": 0.8}, {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}]


def verify(service):
    done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout


def change(service, sql):
    with sqlite3.connect(service.database) as link:
        return link.execute(sql).rowcount


def test_the_advantages_of_every_preset_come_out_again(start):
    service = start()
    taken = 0
    for preset in [item["name"] for item in service.read("/v1/presets")["presets"]]:
        completions = [{"text": text, "completion_ids": [index, 5, 2], "logprobs": [-0.5, -0.25, -1.5], "finish_reason": "stop"}
                       for index, text in enumerate(("\\boxed{42}", "\\boxed{41}", "42", "no", "\\boxed{42} and more"))]
        reply = service.post("/v1/score", {"run": "presets", "policy_revision": 1, "verifiers": WEIGHTS, "objective": {"preset": preset},
                                           "groups": [{"task": f"{preset}-{index}", "reference": "42", "completions": completions[index:]} for index in range(3)]})
        taken += reply.status == 200
    assert taken >= 5
    service.terminate()
    code, said = verify(service)
    assert code == 0, said
    assert f"advantages of {3 * taken} groups, {12 * taken} rollouts, were recomputed" in said and "older" not in said


def test_an_advantage_that_was_changed_is_found_and_named(start):
    service = start()
    made = score(service, "changed")
    service.terminate()
    assert change(service, "UPDATE rollouts SET advantage = advantage + 0.001 WHERE sample_index = 2 AND group_seq = (SELECT min(seq) FROM groups)") == 1
    code, said = verify(service)
    assert code == 1 and f"an advantage differs from that of its rewards: {made['groups'][0]['id']} sample 2:" in said
    assert "1 found wrong" in said


def test_advantages_of_an_older_arithmetic_are_reported_and_no_fault(start):
    service = start()
    score(service, "older")
    service.terminate()
    change(service, "UPDATE rollouts SET advantage = advantage + 0.001 WHERE sample_index = 2 AND group_seq = (SELECT min(seq) FROM groups)")
    for version in ("NULL", "0"):
        change(service, f"UPDATE batches SET arithmetic_version = {version}")
        code, said = verify(service)
        assert code == 0 and re.search("^1 groups have the advantages of an older arithmetic", said, re.M), said


def test_a_run_that_is_half_deleted_is_no_fault(held):  # noqa: F811
    service = held.service
    held.meanwhile(lambda: service.put("/v1/runs/other/policy", {"revision": 5}))
    service.kill()
    held.go()
    code, said = verify(service)
    assert code == 0 and "advantages of 2 groups, 8 rollouts, were recomputed" in said, said
