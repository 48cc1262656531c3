"""GET /metrics: every line parses, and no text from outside ever becomes a label."""
import math
import re

from harness import eventually
from material import make_batch, make_group

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")


def parse(text):
    """Prometheus text format 0.0.4, strictly: {(name, labels): value} and {name: type}."""
    assert text.endswith("\n") and "\r" not in text
    samples, kinds, helped, current = {}, {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in helped, f"HELP twice: {line}"
            helped.add(current)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and name not in kinds and kind in ("counter", "gauge", "histogram"), line
            assert kind != "counter" or name.endswith("_total"), line
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            name, inside, value = match.groups()
            labels = read_labels(inside, line)
            family = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
            assert family == current and family in kinds, f"a sample outside its family: {line}"
            key = (name, labels)
            assert key not in samples, f"twice: {line}"
            samples[key] = float(value)
            assert not math.isnan(samples[key])
    return samples, kinds


def read_labels(inside, line):
    if not inside:
        return ()
    found = LABEL.findall(inside)
    assert ",".join(f'{name}="{value}"' for name, value in found) == inside, f"labels do not parse: {line!r}"
    assert len({name for name, _ in found}) == len(found)
    return tuple(found)


def metrics(service):
    reply = service.get("/metrics")
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/plain"), reply
    return parse(reply.body.decode("utf-8"))


def test_metrics_parse_strictly(service):
    """R77"""
    service.batch(make_batch())
    samples, kinds = metrics(service)
    assert len(kinds) > 10 and all(name.startswith("rolloutd_") for name in kinds), sorted(kinds)
    for name, kind in kinds.items():
        if kind == "histogram":
            check_histogram(name, samples)


def check_histogram(name, samples):
    by_labels = {}
    for (sample, labels), value in samples.items():
        if sample == f"{name}_bucket":
            bound = dict(labels)["le"]
            by_labels.setdefault(tuple(label for label in labels if label[0] != "le"), []).append((math.inf if bound == "+Inf" else float(bound), value))
    assert by_labels, name
    for labels, buckets in by_labels.items():
        buckets.sort()
        assert buckets[-1][0] == math.inf and buckets[-1][1] == samples[f"{name}_count", labels]
        assert [value for _, value in buckets] == sorted(value for _, value in buckets), name
        assert (f"{name}_sum", labels) in samples


def test_hostile_names_make_no_series(start, engine):
    """R76 and R77: routes are templates, unknown paths one value; nothing a client chooses is a label."""
    service = start(engine)
    service.batch(make_batch())
    service.get("/v1/rollouts/r_0")
    service.get("/nothing/0")
    before, _ = metrics(service)
    for index in range(300):
        service.get(f"/v1/rollouts/r_{index}")
        service.get(f"/nothing/{index}")
    for index in range(25):
        service.batch(make_batch(make_group(f"task-{index}"), run=f"run-{index}", verifiers=[{"name": "math", "id": f"id-{index}"}]))
    service.post("/v1/batches", make_batch(verifiers=[{"name": "math", "id": 'q"uo\nte'}]))
    service.request("BREW", "/healthz")
    after, _ = metrics(service)
    grown = set(after) - set(before)
    assert len(grown) < 50, grown
    text = str(list(after))
    for word in ("run-", "task-", "id-", "nothing", "r_1", "quo", "127.0.0.1", "BREW"):
        assert word not in text, word


def test_counters_count(service, engine):
    def value(name, **labels):
        samples, _ = metrics(service)
        return sum(number for (sample, found), number in samples.items() if sample == name and set(labels.items()) <= set(found))
    engine.rules({"in": "LOST", "lp": None})
    service.batch(make_batch(make_group("t1"), make_group("lost", "LOST")))
    assert value("rolloutd_rollouts_total", state="scored") == 2 and value("rolloutd_rollouts_total", state="failed") == 2
    assert value("rolloutd_batches_total", state="complete") == 1


def test_batches_without_a_usable_rollout_are_seen(service, engine):
    """R78: generation that no step can come of must not go unnoticed."""
    engine.rules({"in": "LOST", "lp": None})

    def barren():
        samples, _ = metrics(service)
        return next(value for (name, _), value in samples.items() if "without_scored" in name)
    for _ in range(3):
        service.batch(make_batch(make_group("lost", "LOST")))
    assert barren() == 3
    service.batch(make_batch())
    eventually(lambda: barren() == 0, "the count to start again")
