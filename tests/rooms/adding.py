#!/usr/bin/env python3
"""Adds one of each kind to a copy of the tree, builds it with -Werror, reaches each over HTTP, and counts the files it took.

    tests/rooms/adding.py [--keep FOLDER]

A verifier of the table, REAL_VERIFIER, is shown to consist of its four files. KINDS says what adding one of a kind may touch. Beside it only generated files change (tests/tools/generate), and the contract:
pages that a person writes (schema/openapi.yaml, a page of docs/) are counted where the goal names it. New files lie in
tests/rooms/adding/ under the path that they get; the migration gets its number here."""
import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NEW = os.path.join(ROOT, "tests", "rooms", "adding")
TREE = ["client", "config", "deploy", "docs", "schema", "server", "tests", "verifiers", "meson.build", "meson_options.txt", "README.md"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))

from caselib import fake  # noqa: E402
from caselib.service import Service  # noqa: E402


class Insertion:
    """Text before the only place where `anchor` stands; without one at the end of the file."""

    def __init__(self, path, text, anchor=None):
        self.path, self.text, self.anchor = path, text, anchor

    def apply(self, tree):
        path = os.path.join(tree, self.path)
        with open(path, encoding="utf-8") as file:
            content = file.read()
        if self.anchor and content.count(self.anchor) != 1:
            sys.exit(f"adding: {self.path} has {content.count(self.anchor)} times {self.anchor!r}")
        at = content.index(self.anchor) if self.anchor else len(content)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content[:at] + self.text + content[at:])


class NewFile:
    def __init__(self, path, source=None):
        self.path, self.source = path, source or path

    def apply(self, tree):
        shutil.copyfile(os.path.join(NEW, self.source), os.path.join(tree, self.path))


def next_migration():
    """The build refuses a number that is left out."""
    numbers = [int(name[:4]) for name in os.listdir(os.path.join(ROOT, "schema", "migrations")) if name.endswith(".sql")]
    return f"schema/migrations/{max(numbers) + 1:04}_dummy.sql"


HEALTH = '    begin(&json, call);\n    json_put_string(&json, "status", "ok");\n'
GET_HEALTH = "void get_health(void *owner, struct request *request)\n"
CHANGES = """\
struct dummy_change {
    struct store_wait wait;
};

static void dummy_changed(struct store_op *op)
{
    struct dummy_change *change = op->context;
    struct request *request = change->wait.request;
    if (request && op->status == STORE_OK) {
        call_answer_json(request_call(request), 200);
        buffer_append_string(&request_call(request)->reply.body, "{}");
        request_answer(request);
    } else {
        store_wait_refuse(&change->wait, "");
    }
    free(change);
}

void change_dummy(void *owner, struct request *request)
{
    struct server *server = owner;
    struct dummy_change *change = xcalloc(1, sizeof(*change));
    change->wait.op = (struct store_op){.kind = STORE_CHANGE_DUMMY, .done = dummy_changed, .context = change};
    change->wait.op.change_dummy = (struct store_change_dummy){42};
    if (!store_wait_submit(&change->wait, server->store, request))
        free(change);
}

"""
OPERATION = """
enum store_status operation_change_dummy(struct store *store, struct store_op *op)
{
    sqlite3_stmt *change = database_statement(&store->writer, SQL_CHANGE_DUMMY);
    bind_int(change, 1, op->change_dummy.in_flight);
    int result = database_run(change);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
"""
LOSS = """
void dummy_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    gpg_terms(knobs, whole, block);
}
"""
ROUTE = """\
void get_dummy(void *owner, struct request *request)
{
    struct json_write json;
    (void)owner;
    begin(&json, request_call(request));
    json_put_string(&json, "dummy", "reached");
    end(&json, request, 200);
}

"""

# kind: (how many files it may take, what adding one is)
KINDS = {
    "verifier": (4, [
        NewFile("verifiers/graders/dummy.c"), NewFile("tests/cases/own/dummy.jsonl"), NewFile("docs/verifiers/dummy.md"),
        Insertion("verifiers/rows.def", "VERIFIER(dummy)\n")]),
    "settings key": (2, [
        Insertion("server/settings/keys.def", 'SETTING(INT, dummy_key, "dummy.key", "3", RANGE(0, 9), "A dummy.")\n'),
        Insertion("server/api/service.c", '        json_put_int(&json, "dummy_key", server->settings->dummy_key);\n', '        json_put_string(&json, "version", ROLLOUTD_VERSION);\n')]),
    "metric": (2, [
        Insertion("server/runtime/metrics.def", 'METRIC(DUMMY, COUNTER, "rolloutd_dummy_total", LABEL("of", "a", "b"), "A dummy.")\n'),
        Insertion("server/api/service.c", "    metric_add(METRIC_DUMMY, 1, 1);\n", HEALTH)]),
    "route": (2, [
        Insertion("server/api/routes.def", 'ON_LOOP("GET", "/v1/dummy", 0, get_dummy)\n'),
        Insertion("server/api/service.c", ROUTE, GET_HEALTH)]),
    "route with a store operation": (5, [
        Insertion("server/api/routes.def", 'ON_LOOP("POST", "/v1/dummy", 0, change_dummy)\n'),
        Insertion("server/api/engines.c", CHANGES, "void delete_engine(void *owner, struct request *request)\n"),
        Insertion("server/store/store.h", "struct store_change_dummy {\n    int64_t in_flight;\n};\n\n", "/* THE list of operations."),
        Insertion("server/store/store.h", "    ROW(CHANGE_DUMMY, struct store_change_dummy, change_dummy) \\\n", "    ROW(TRY_WRITE, "),
        Insertion("server/store/sqlite/statements.def", 'WRITE(CHANGE_DUMMY, "UPDATE engines SET in_flight = ?1")\n', "WRITE(DELETE_ENGINE, "),
        Insertion("server/store/sqlite/engines.c", OPERATION)]),
    "loss": (2, [
        Insertion("server/objective/losses.def", 'LOSS(DUMMY, "dummy", dummy_terms, NULL, TRAITS(.reads_logprob = true), "−A·lp", "−A", "none")\n'),
        Insertion("server/objective/loss.c", LOSS)]),
    "stored column": (3, [
        NewFile(next_migration(), "schema/migrations/dummy.sql"),
        Insertion("server/store/engine.h", "    int64_t dummy;\n", "    bool draining;\n"),
        Insertion("server/store/sqlite/columns.h", "    COLUMN(engines, dummy, int, dummy) \\\n", "    COLUMN(engines, draining, flag, draining)")]),
    "engine kind": (2, [
        NewFile("client/adapters/dummy.c"),
        Insertion("client/adapters/kinds.def", "ENGINE_KIND(dummy)\n")]),
}


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"adding: {' '.join(command)}\n{done.stdout[-6000:]}")
    return done.stdout


def copy_tree(target):
    for name in TREE:
        source = os.path.join(ROOT, name)
        (shutil.copytree if os.path.isdir(source) else shutil.copyfile)(source, os.path.join(target, name))


# A verifier of the table that was added with nothing else: its file, its row, its cases, its page.
REAL_VERIFIER = "cosine_length"


def program_files(tree):
    """The files of the program that a person writes."""
    for room in ("client", "server", "verifiers"):
        for folder, _, names in os.walk(os.path.join(tree, room)):
            yield from (os.path.join(folder, name) for name in names if name.endswith((".c", ".h", ".def", ".py", ".build")))


def check_real_verifier(tree):
    """Its row and the file of its name are all that the program knows of it, and no file is without its place."""
    owned = [f"verifiers/graders/{REAL_VERIFIER}.c", f"tests/cases/own/{REAL_VERIFIER}.jsonl", f"docs/verifiers/{REAL_VERIFIER}.md"]
    for path in owned:
        check(f"{path} is there", os.path.exists(os.path.join(tree, path)), True)
    word, naming = re.compile(rf"\b(?:verifier_)?{REAL_VERIFIER}\b"), []
    for path in program_files(tree):
        with open(path, encoding="utf-8") as file:
            if word.search(file.read()):
                naming.append(os.path.relpath(path, tree))
    check(f"what names {REAL_VERIFIER}", sorted(naming), sorted([owned[0], "verifiers/rows.def"]))
    print(f"the verifier {REAL_VERIFIER}: {len(owned) + 1} files, 4 allowed: {', '.join([*owned, 'verifiers/rows.def'])}")


def check_files(tree):
    for kind, (goal, additions) in KINDS.items():
        for addition in additions:
            addition.apply(tree)
        files = {addition.path for addition in additions}
        print(f"{kind}: {len(files)} files, {goal} allowed: {', '.join(sorted(files))}")
        if len(files) > goal:
            sys.exit(f"adding: a {kind} takes more files than it may")


def build(tree):
    """Without optimisation: what is asked is whether the parts find each other."""
    run("meson", "setup", "build", "--werror", "-Dtests=disabled", "-Doptimization=0", "-Ddebug=false", cwd=tree)
    run("ninja", "-C", "build", "rolloutd", cwd=tree)
    return os.path.join(tree, "build", "rolloutd")


# -- each kind is reached ------------------------------------------------------------------------------------------------------------

def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"adding: {what}: {found!r}, expected {wanted!r}")


def loss_of(service, kind):
    sequences = [{"group": "a", "reward": reward, "logprobs": [-0.5, -1.25], "old_logprobs": [-0.5, -1]} for reward in (0, 1)]
    return service.post("/v1/objective", {"objective": {"preset": "grpo", "loss": {"kind": kind}}, "sequences": sequences}).data["loss"]


def answer_as_engine(method, path, body):
    if method == "GET":
        return fake.reply_json({"object": "list", "data": [{"id": "dummy", "object": "model"}]})
    return fake.reply_json({"choices": [{"text": json.loads(body)["dummy_prompt"][::-1], "finish_reason": "stop"}]})


def sample_at_dummy(service):
    """Texts and rewards of a batch at an engine of the new kind, judged by the new verifier."""
    with fake.FakeServer(answer_as_engine) as engine:
        put = service.request("PUT", "/v1/engines/dummy", {"url": engine.url, "kind": "dummy", "in_flight": 2})
        check("the engine's kind", (put.status, put.data and put.data["kind"]), (201, "dummy"))
        batch = service.post("/v1/batches", {"run": "dummy", "sampling": {"n": 1}, "verifiers": [{"name": "dummy"}],
                                             "groups": [{"task": "t", "prompt": "x", "reference": "x"}]}, timeout=600).data
        return [(rollout["text"], rollout["reward"]) for rollout in batch["groups"][0]["rollouts"]]


def check_service(binary, folder):
    database = os.path.join(folder, "dummy.db")
    with Service(binary, database=database, env={"ROLLOUTD_DUMMY_KEY": "7"}, start_timeout=600) as service:
        item = {"id": "1", "completion": "x", "reference": "x", "verifiers": [{"name": "dummy"}]}
        check("the verdict of the verifier", service.post("/v1/verify", {"items": [item]}).data["items"][0]["reward"], 1.0)
        check("the setting", service.request("GET", "/healthz").data["dummy_key"], 7)
        metrics = service.request("GET", "/metrics").text
        check("the metric", "rolloutd_dummy_total{of=\"b\"} " in metrics and "rolloutd_dummy_total{of=\"b\"} 0\n" not in metrics, True)
        check("the route", service.request("GET", "/v1/dummy").data, {"dummy": "reached"})
        check("the loss", loss_of(service, "dummy"), loss_of(service, "gpg"))
        check("the engine's reply", sample_at_dummy(service), [("x", 1.0)])
        check("the route with an operation", service.request("POST", "/v1/dummy").status, 200)
    rows = sqlite3.connect(database).execute("SELECT dummy, in_flight FROM engines").fetchall()
    check("the stored column and what the operation wrote", rows, [(0, 42)])


def check_generated(binary, tree):
    generate = os.path.join(tree, "tests", "tools", "generate")
    run(sys.executable, generate, "--binary", binary, cwd=tree)
    run(sys.executable, generate, "--binary", binary, "--check", cwd=tree)
    for path in ("config/rolloutd.yaml", "docs/metrics.md", "docs/verifiers/README.md", "docs/objective.md", "schema/openapi.yaml", "README.md", "tests/fingerprints/verdicts.jsonl"):
        with open(os.path.join(tree, path), encoding="utf-8") as file:
            check(f"{path} names what is new", "dummy" in file.read(), True)


def check_cases(binary, tree):
    run(sys.executable, os.path.join(tree, "tests", "tools", "cases"), "--binary", binary, "--cases", os.path.join(tree, "tests", "cases", "own"), "--only", "dummy")


def check_all(tree):
    copy_tree(tree)
    check_real_verifier(tree)
    check_files(tree)
    binary = build(tree)
    run(sys.executable, os.path.join(tree, "tests", "rooms", "rooms.py"), os.path.join(tree, "build"), cwd=tree)
    check_service(binary, tree)
    check_generated(binary, tree)
    check_cases(binary, tree)
    print(f"adding: {len(KINDS)} passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="leave the copy in this folder")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep)
        check_all(os.path.abspath(options.keep))
        return
    with tempfile.TemporaryDirectory(prefix="adding-") as folder:
        check_all(folder)


if __name__ == "__main__":
    main()
