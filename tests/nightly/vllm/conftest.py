"""One vLLM for all files; the service's fixtures are those of tests/http."""
import importlib.util
import os
import sys

import pytest

HTTP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "http")
sys.path.insert(0, HTTP)
spec = importlib.util.spec_from_file_location("http_conftest", os.path.join(HTTP, "conftest.py"))
http_conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(http_conftest)
binary, start, shared_factory, pytest_runtest_makereport = (
    getattr(http_conftest, name) for name in ("binary", "start", "shared_factory", "pytest_runtest_makereport"))

KINDS = ("vllm", "vllm_generate")
SETTINGS = {"engine.backoff_min": "50ms", "engine.backoff_max": "250ms", "engine.check_interval": "250ms"}


@pytest.fixture(scope="session")
def vllm(tmp_path_factory):
    from vllm_server import Vllm
    made = Vllm(tmp_path_factory.mktemp("vllm"), "--enable-scale-out")
    made.load("first", "v1")
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def service(start, vllm, kind):
    return start(vllm.as_kind(kind), settings=SETTINGS)
