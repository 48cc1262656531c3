"""With a token configured, only its holder sees anything but that the service lives."""
import pytest

from harness import Wire, eventually

TOKEN = "correct-horse.battery_staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
OPEN = ["/healthz", "/readyz"]
CLOSED = ["/metrics", "/openapi.yaml", "/v1/runs", "/v1/rollouts", "/v1/batches", "/v1/pending", "/v1/verifiers", "/v1/presets", "/v1/engines", "/v1/engines/e1", "/v1/nothing"]


@pytest.fixture(scope="module")
def guarded(shared_factory):
    token = shared_factory.folder / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    return shared_factory(settings={"token_file": token})


@pytest.mark.parametrize("path", OPEN)
def test_probes_need_no_token_and_give_no_detail(guarded, path):
    """R74"""
    eventually(lambda: guarded.get(path).status == 200, "everything to be ready")
    assert len(guarded.get(path).body) < 100
    assert guarded.request("GET", path, headers=BEARER).status == 200


@pytest.mark.parametrize("path", CLOSED)
def test_everything_else_is_refused_without_the_token(guarded, path):
    """R74"""
    for header in (None, "", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"bearer{TOKEN}", f"Basic {TOKEN}", TOKEN):
        reply = guarded.request("GET", path, headers={} if header is None else {"Authorization": header})
        assert reply.status == 401 and reply.error["code"] == "unauthorized", (header, reply)
        assert "bearer" in reply.headers["www-authenticate"].lower() and TOKEN not in reply.body.decode()


@pytest.mark.parametrize("path", [path for path in CLOSED if path not in ("/v1/nothing", "/v1/engines/e1")])
def test_its_holder_sees_everything(guarded, path):
    assert guarded.request("GET", path, headers=BEARER).status == 200
    assert guarded.request("GET", path, headers={"Authorization": f"bearer {TOKEN}"}).status == 200


def test_a_wrong_token_is_refused_before_the_body_is_sent(guarded):
    """R65"""
    with Wire(guarded.url) as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\nContent-Type: application/json\r\n"
                  "Content-Length: 50000000\r\nExpect: 100-continue\r\n\r\n")
        assert wire.reply().status == 401
        wire.closed()


def test_an_unauthorised_post_changes_nothing(guarded):
    assert guarded.put("/v1/runs/x/policy", {"revision": 3}).status == 401
    assert guarded.request("GET", "/v1/runs", headers=BEARER).json["items"] == []
