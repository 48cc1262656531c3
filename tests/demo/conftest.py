"""Fixtures: the toy engine, shared by a file's tests and made new for each of them."""
import pytest

from toy_process import ToyEngine


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory):
    engine = ToyEngine(tmp_path_factory.mktemp("engine"))
    yield engine
    engine.close()


@pytest.fixture
def engine(shared_engine):
    """The engine as it was at its start."""
    shared_engine.ask("DELETE", "/misbehave")
    shared_engine.ask("DELETE", "/_log")
    shared_engine.ask("POST", "/weights", {"revision": 0, "table": {}})
    return shared_engine
