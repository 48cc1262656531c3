"""POST /compat/sandbox_fusion/run_code: the protocol of SandboxFusion, as verl's own client speaks it."""
import base64
import importlib.util
import json
import subprocess
import sys
import tarfile
import types

import pytest

from harness import BATCH_PATIENCE, Wire, eventually, http_request

PATH = "/compat/sandbox_fusion/run_code"
ON = {"compat.sandbox_fusion": "true"}
LONG = 600  # seconds, where a test does not wait for an end


def asked(code, language="python", stdin=None, **more):
    """As call_sandbox_api() of verl 0.5 to 0.9 writes it."""
    return {"compile_timeout": LONG, "run_timeout": LONG, "code": code, "stdin": stdin, "memory_limit_MB": 1024, "language": language, "files": {}, "fetch_files": [], **more}


@pytest.fixture(scope="module")
def service(shared_factory):
    service = shared_factory(settings=ON)
    sandbox = eventually(lambda: service.read("/v1/verifiers")["sandbox"]["level"] and service.read("/v1/verifiers")["sandbox"], "the trial of the sandbox")
    if not sandbox["programs_run"]:
        pytest.skip("programs do not run here: " + sandbox["why"])
    return service


def run(service, *args, **more):
    reply = service.post(PATH, asked(*args, **more))
    assert reply.status == 200, reply
    return reply.json


# -- programs ------------------------------------------------------------------------------------------------------------------------

def test_a_program_gets_its_input_and_its_output_comes_back(service):
    reply = run(service, "import sys\nprint(input()[::-1])\nprint('aside', file=sys.stderr)", stdin="abc\n")
    assert reply["run_result"].pop("execution_time") > 0
    assert reply == {"status": "Success", "message": "", "compile_result": None, "executor_pod_name": None, "files": {},
                     "run_result": {"status": "Finished", "return_code": 0, "stdout": "cba\n", "stderr": "aside\n"}}


@pytest.mark.parametrize("language, code", [("bash", "read x; echo $((x * 2))"), ("c", '#include <stdio.h>\nint main(void) { int x; return scanf("%d", &x) != 1 || printf("%d\\n", x * 2) < 0; }'),
                                            ("cpp", "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2 << std::endl; }")])
def test_each_language_is_run(service, language, code):
    reply = run(service, code, language, "21")
    assert (reply["status"], reply["run_result"]["stdout"]) == ("Success", "42\n"), reply
    assert (reply["compile_result"] is None) == (language == "bash")
    assert language == "bash" or (reply["compile_result"]["status"], reply["compile_result"]["return_code"]) == ("Finished", 0)


def test_a_program_that_cannot_be_compiled_has_no_run_result(service):
    reply = run(service, "int main(void) { return nothing; }", "c")
    assert (reply["status"], reply["run_result"], reply["compile_result"]["return_code"]) == ("Failed", None, 1) and "nothing" in reply["compile_result"]["stderr"]


@pytest.mark.parametrize("code, return_codes", [("raise SystemExit(3)", {3}), ("1 / 0", {1}), ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", {-15}), ("print('x' * (5 << 20))", {-9}),
                                                ("x = bytearray(2 << 30)", {1, -9})])  # where a sanitizer is in the program, its memory is watched from outside alone
def test_a_bad_end_is_failed_with_its_code(service, code, return_codes):
    reply = run(service, code)
    assert (reply["status"], reply["run_result"]["status"]) == ("Failed", "Finished") and reply["run_result"]["return_code"] in return_codes, reply["run_result"]


def test_a_program_that_does_not_end_is_out_of_time_and_keeps_its_output(service):
    reply = run(service, "print('before', flush=True)\nwhile True: pass", run_timeout=0.5)
    assert (reply["status"], reply["run_result"]["status"], reply["run_result"]["return_code"], reply["run_result"]["stdout"]) == ("Failed", "TimeLimitExceeded", None, "before\n")


def test_an_output_of_megabytes_comes_back_whole(service):
    assert run(service, "print('\\x01' * (3 << 20), end='')")["run_result"]["stdout"] == "\x01" * (3 << 20)


def test_bytes_that_are_no_text_are_mended(service):
    assert run(service, "import sys\nsys.stdout.buffer.write(b'a\\xffb\\x00c')")["run_result"]["stdout"] == "a\ufffdb\0c"


def test_files_lie_beside_the_program(service):
    files = {"data.bin": base64.b64encode(bytes(range(256))).decode(), "none.txt": None}
    reply = run(service, "import os\nprint(sum(open('data.bin', 'rb').read()), sorted(os.listdir('.')))", files=files)
    assert reply["run_result"]["stdout"] == f"{sum(range(256))} ['data.bin', 'solution.py']\n"


def test_fields_that_are_left_out_have_their_defaults(service):
    reply = service.post(PATH, {"code": "print(1)", "language": "python"})
    assert reply.json["run_result"]["stdout"] == "1\n"


# -- refusals ------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("more, path", [({"language": "cobol"}, "language"), ({"run_timeout": 0}, "run_timeout"), ({"run_timeout": "10"}, "run_timeout"), ({"fetch_files": ["a"]}, "fetch_files"),
                                        ({"files": {"a/b": ""}}, "files"), ({"files": {"solution.py": ""}}, "files"), ({"files": {"a": "no base64!"}}, "files"), ({"files": {"..": ""}}, "files"),
                                        ({"files": {str(index): "" for index in range(5)}}, "files"), ({"memory_limit_MB": -2}, "memory_limit_MB"), ({"code": 5}, "code"), ({"cmd": "x"}, "cmd")])
def test_a_meaningless_field_is_refused_with_its_path(service, more, path):
    reply = service.post(PATH, {**asked("print(1)"), **more})
    assert (reply.status, reply.error["path"]) == (400, path), reply


def test_the_route_is_off_unless_the_settings_say_so(start):
    reply = start().post(PATH, asked("print(1)"))
    assert reply.status == 404 and "compat.sandbox_fusion" in reply.error["message"]


def test_the_token_may_be_a_password(start, tmp_path):
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)
    service = start(settings={**ON, "token_file": str(tmp_path / "token")})

    def status(authorization, path=PATH):
        return http_request(service.url, "POST", path, {**asked("print(1)"), "language": "none"}, {"Authorization": authorization}).status

    def basic(pair):
        return "Basic " + base64.b64encode(pair.encode()).decode()

    assert [status(basic("x:secret")), status(basic(":secret")), status("Bearer secret")] == [400] * 3  # the language: behind the door
    assert [status(basic("secret")), status(basic("secret:x")), status(basic("x:secret:")), status("Basic !"), status("Basic")] == [401] * 5
    assert status(basic("x:secret"), "/v1/verify") == 401


# -- what is the service's own fault ---------------------------------------------------------------------------------------------------

def test_a_sandbox_that_is_not_there_is_a_504(start, tmp_path):
    # a level that no machine has: the folder of the virtual environment is not there
    service = start(settings={**ON, "python.venv": str(tmp_path / "nothing")})
    reply = service.post(PATH, asked("print(1)"))
    assert (reply.status, reply.error["code"]) == (504, "sandbox_unavailable"), reply


@pytest.fixture
def narrow(start):
    """A service with one slot, which a program that does not end has. Its client is there until the test closes it."""
    service = start(settings={**ON, "sandbox.slots": "1", "sandbox.queue_limit": "1"})
    level = eventually(lambda: service.read("/v1/verifiers")["sandbox"]["level"], "the trial of the sandbox")
    if level != "full":
        pytest.skip("programs do not run here")
    service.hog = send(service, asked("while True: pass"))
    eventually(lambda: [slot["busy"] for slot in service.read("/v1/pending")["slots"]] == [1], "a busy slot")
    return service


def send(service, body, path=PATH):
    """Without waiting for a reply."""
    text = json.dumps(body)
    return Wire(service.url).send(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}")


def test_a_request_without_a_slot_in_time_is_a_504_and_one_that_hangs_up_makes_room(narrow):
    reply = narrow.post(PATH, asked("print(1)", compile_timeout=0.001, run_timeout=0.001))
    assert (reply.status, reply.error["code"]) == (504, "queue_full") and "no slot was free in time" in reply.error["message"]
    narrow.hog.close()
    assert run(narrow, "print(1)")["run_result"]["stdout"] == "1\n"


def test_a_full_queue_is_a_504_at_once(narrow):
    items = [{"id": str(index), "completion": "```python\npass\n```", "reference": {"tests": [{"stdin": "", "stdout": ""}]}} for index in range(64)]
    waiting = [send(narrow, {"verifiers": [{"name": "code"}], "items": items}, "/v1/verify") for _ in range(17)]  # beyond queue_limit there is a margin of 1,024
    eventually(lambda: sum(slot["waiting"] for slot in narrow.read("/v1/pending")["slots"]) >= 1025, "a full queue")
    reply = narrow.post(PATH, asked("print(1)"))
    assert (reply.status, reply.error["code"]) == (504, "queue_full") and "sandbox.queue_limit" in reply.error["message"]
    for wire in waiting:
        wire.close()
    narrow.hog.close()
    assert run(narrow, "print(1)")["run_result"]["stdout"] == "1\n"


# -- verl's own client ---------------------------------------------------------------------------------------------------------------

CASES = [  # program, input, expected output, what verl's check_correctness() says: True, False, -2 runtime, -3 time, -4 compiler
    ("print(int(input()) ** 2)", "3\n", "9\n", True), ("print(int(input()) ** 2)", "3\n", "8\n", False), ("1 / 0", "", "", -2), ("print(1)\nraise SystemExit(1)", "", "1\n", -2),
    ("while True: pass", "", "", -3), ("def f(:", "", "", -2), ("print('x', end='')", "", "x\n", True)]


def reads(reply, expected):
    """The reading of a reply by verl, in our own words."""
    compiled, ran = reply["compile_result"], reply["run_result"]
    if reply["status"] == "Failed" and compiled and (compiled["status"] != "Finished" or compiled["return_code"] != 0):
        return -4
    if reply["status"] == "Failed":
        return -3 if ran["status"] == "TimeLimitExceeded" else -2 if ran["return_code"] != 0 else -1
    return ran["stdout"].rstrip("\n") == expected.rstrip("\n") if ran["status"] == "Finished" else -1


@pytest.mark.parametrize("code, stdin, expected, said", CASES)
def test_a_reply_means_to_verl_what_it_should(service, code, stdin, expected, said):
    found = reads(run(service, code, stdin=stdin, run_timeout=2 if said == -3 else LONG), expected)
    assert (type(found), found) == (type(said), said)


def stand_in_for_requests():
    """As much of the library as the client uses."""
    module = types.ModuleType("requests")
    module.exceptions = types.SimpleNamespace(RequestException=type("RequestException", (IOError,), {}))

    class Response:
        def __init__(self, reply):
            self.status_code, self.text = reply.status, reply.body.decode()

        def raise_for_status(self):
            if self.status_code >= 400:
                raise module.exceptions.RequestException(self.text)

        def json(self):
            return json.loads(self.text)

    def post(url, headers, data, timeout):
        base, _, path = url.partition("/compat")
        return Response(http_request(base, "POST", "/compat" + path, data.encode(), headers, timeout))

    module.post = post
    return module


@pytest.fixture(scope="module")
def verl(tmp_path_factory):
    """verl's client from its source archive."""
    folder = tmp_path_factory.mktemp("verl")
    try:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), "verl==0.5.0"], capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("no package index answers")
    archives = list(folder.glob("verl-*.tar.gz"))
    if done.returncode or not archives:
        pytest.skip("no package index can be reached")
    with tarfile.open(archives[0]) as archive:
        source = archive.extractfile("verl-0.5.0/verl/utils/reward_score/sandbox_fusion/utils.py").read()
    (folder / "verl_client.py").write_bytes(source)
    spec = importlib.util.spec_from_file_location("verl_client", folder / "verl_client.py")
    client = importlib.util.module_from_spec(spec)
    before = sys.modules.get("requests")
    sys.modules["requests"] = stand_in_for_requests()
    try:
        spec.loader.exec_module(client)
    finally:
        if before:
            sys.modules["requests"] = before
        else:
            del sys.modules["requests"]
    return client


def test_verls_own_client_scores_as_it_should(service, verl):
    def judge(code, stdin, expected, timeout):
        return verl.check_correctness(service.url + PATH, {"inputs": [stdin], "outputs": [expected]}, code, timeout=timeout)

    for code, stdin, expected, said in CASES:
        if said == -3:  # on a busy machine its two seconds take longer than the client waits: that is nobody's verdict
            results, about = eventually(lambda: next((found for found in [judge(code, stdin, expected, 2)] if found[0] != [-1]), None), "processor time", BATCH_PATIENCE)
        else:
            results, about = judge(code, stdin, expected, 60)
        assert results == [said], about
    results, about = verl.check_correctness(service.url + PATH, {"inputs": ["21", "4"], "outputs": ["42", "8"]}, "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2; }",
                                            timeout=60, language="cpp")
    assert results == [True, True], about
    results, about = verl.check_correctness(service.url + PATH, {"inputs": ["1", "2"], "outputs": ["", ""]}, "int main() { return x; }", timeout=60, language="cpp")
    assert results == [-4, -4], about
    results, about = verl.check_correctness(service.url + PATH, {"inputs": ["[1, 2, 3]\n2"], "outputs": ["[2, 4, 6]"], "fn_name": "scale"},
                                            "class Solution:\n    def scale(self, xs, k):\n        return [x * k for x in xs]", timeout=60)
    assert results == [True], about


def test_verls_own_client_repeats_what_was_not_its_programs_fault(start, verl, tmp_path, monkeypatch):
    service = start(settings={**ON, "python.venv": str(tmp_path / "nothing")})
    monkeypatch.setattr(verl.time, "sleep", lambda seconds: None)
    results, about = verl.check_correctness(service.url + PATH, {"inputs": [""], "outputs": ["1"]}, "print(1)", timeout=10)
    assert results == [-1] and "504" in about[0]["api_request_error"] and "attempt 3/3" in about[0]["api_request_error"]
