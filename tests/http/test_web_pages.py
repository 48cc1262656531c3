"""F14: a web page that somebody else wrote, in the browser of somebody who runs the service, neither reads it nor drives it."""
import json

import pytest

TOKEN = "correct-horse.battery_staple"
JSON = "Content-Type: application/json\r\n"
UPDATE = "/v1/runs/r/policy/commit"  # an empty POST that would do something


def ask(service, head, body=b""):
    """head with {port}; Host is what it says."""
    with service.wire() as wire:
        lines = head.replace("{port}", str(service.port)).encode() + (b"Content-Length: %d\r\n" % len(body) if body else b"")
        return wire.send(lines + b"\r\n" + body).reply()


def sent(service, method, path, headers="", body=b""):
    return ask(service, f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\n{headers}", body)


# -- Host ------------------------------------------------------------------------------------------------------------------

GOOD_HOSTS = ["localhost", "localhost:{port}", "LocalHost:{port}", "localhost.", "localhost.:{port}", "127.0.0.1", "127.0.0.1:{port}", "127.1.2.3:{port}",
              "[::1]", "[::1]:{port}", "[0:0:0:0:0:0:0:1]:{port}", "[::ffff:127.0.0.1]:{port}",
              "localhost:9999"]  # who forwards port 9999 to here
BAD_HOSTS = ["evil.example", "evil.example:{port}", "localhost.evil.example", "localhost.evil", "evil-localhost", "evil.localhost", "localhost-evil", "localhost..",
             "localhostx", "xlocalhost", "127.0.0.1.evil.example", "127.0.0.1.nip.io:{port}", "evil127.0.0.1", "127.0.0.1:{port}@evil.example", "evil@127.0.0.1",
             "127.0.0.1:{port}:80", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1, evil.example", "127.0.0.1 evil", "127.0.0.1/", "127.1",
             "127.0.0.256", "127.0.0.01", "0x7f.0.0.1", "0x7f000001", "2130706433", "0.0.0.0", "0.0.0.0:{port}", "10.0.0.1", "128.0.0.1", "192.168.1.2:{port}",
             "::1", "[::]", "[::2]", "[::1", "[::1]evil", "[::1].evil.example", "[::1%lo]", "[::ffff:10.0.0.1]", "[localhost]", "[127.0.0.1]", "", ":{port}", "localhost:",
             "local host", "http://localhost", "*", "a" * 300, "localhost\u00a0", "localhost%00.evil"]


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_a_loopback_name_or_address_is_served(plain, host):
    assert ask(plain, f"GET /v1/runs HTTP/1.1\r\nHost: {host}\r\n").status == 200


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_another_host_is_forbidden(plain, host):
    for line in ("GET /v1/runs", "GET /healthz", "GET /v1/nothing", f"POST {UPDATE}", "DELETE /v1/engines/e1", "HEAD /v1/runs"):
        reply = ask(plain, f"{line} HTTP/1.1\r\nHost: {host}\r\n") if not line.startswith("HEAD") else None
        if reply:
            assert (reply.status, reply.error["code"], reply.error["path"]) == (403, "forbidden", "Host"), (line, reply)


def test_a_client_with_the_token_may_use_any_host_name(start, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    service = start(settings={"token_file": tmp_path / "token"})
    for host in ("evil.example", "rollouts.intern:443", ""):
        assert ask(service, f"GET /v1/runs HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n").status == 200
        assert ask(service, f"GET /v1/runs HTTP/1.1\r\nHost: {host}\r\n").status == 401
        assert ask(service, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n").status == 200
    own = f"POST /v1/verify HTTP/1.1\r\nHost: rollouts.intern\r\nAuthorization: Bearer {TOKEN}\r\n{JSON}"
    assert ask(service, own + "Origin: https://rollouts.intern\r\n", b"{}").status == 400
    assert ask(service, own + "Origin: https://evil.example\r\n", b"{}").status == 403


# -- Origin ----------------------------------------------------------------------------------------------------------------

FOREIGN = ["Origin: http://evil.example", "Origin: https://evil.example", "Origin: null", "Origin: NULL", "Origin:", "Origin: file://", "Origin: http://localhost:3000",
           "Origin: http://localhost", "Origin: http://127.0.0.1.evil.example:{port}", "Origin: http://localhost.evil.example:{port}",
           "Origin: http://evil.example:{port}", "Origin: http://127.0.0.1:{port}@evil.example", "Origin: http://evil-localhost:{port}",
           "Origin: 127.0.0.1:{port}", "Origin: ftp://127.0.0.1:{port}", "Origin: http://127.0.0.1:{port}0", "Origin: chrome-extension://abcdef",
           "Origin: http://127.0.0.1:{port} http://evil.example", "Origin: http://127.0.0.1:{port}\r\nOrigin: http://evil.example",
           "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: CROSS-SITE", "Sec-Fetch-Site:", "Sec-Fetch-Site: none, cross-site",
           "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site", "Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: cross-site"]
OWN = ["", "Origin: http://127.0.0.1:{port}", "Origin: http://localhost:{port}", "Origin: HTTP://LOCALHOST:{port}", "Origin: http://[::1]:{port}", "Sec-Fetch-Site: same-origin",
       "Sec-Fetch-Site: none", "Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin", "Referer: http://127.0.0.1:{port}/v1/runs?x"]


@pytest.mark.parametrize("sign", FOREIGN)
def test_a_foreign_origin_changes_nothing_by_any_method(plain, sign):
    for method, path in (("POST", "/v1/verify"), ("POST", UPDATE), ("PUT", "/v1/runs/r/policy"), ("DELETE", "/v1/engines/e1"), ("PATCH", "/v1/runs"),
                         ("OPTIONS", "/v1/runs"), ("POST", "/v1/nothing"), ("TRACE", "/"), ("delete", "/v1/engines/e1")):
        for kind in ("", JSON):
            reply = sent(plain, method, path, f"{sign}\r\n{kind}")
            assert (reply.status, reply.error["code"]) == (403, "forbidden"), (method, path, reply)
            assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize("sign", FOREIGN)
def test_a_get_is_answered_and_the_page_may_not_read_it(plain, sign):
    """A browser that was not told that it may keeps the reply from the page."""
    reply = sent(plain, "GET", "/v1/runs", f"{sign}\r\n")
    assert reply.status == 200 and not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize("sign", OWN)
def test_the_services_own_origin_is_none_of_a_stranger(plain, sign):
    body = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "4", "reference": "4"}]}).encode()
    assert sent(plain, "POST", "/v1/verify", (sign + "\r\n" if sign else "") + JSON, body).status == 200
    assert sent(plain, "POST", UPDATE, sign + "\r\n" if sign else "").status in (404, 409)


def test_an_engine_is_not_removed_by_a_page(start, engine):
    service = start()
    assert service.put("/v1/engines/mine", {"url": engine.for_rolloutd.partition("#")[0], "kind": "vllm"}).status in (200, 201)
    assert sent(service, "DELETE", "/v1/engines/mine", "Origin: http://evil.example\r\n").status == 403
    assert [item["name"] for item in service.read("/v1/engines")["items"]] == ["mine"]
    assert sent(service, "DELETE", "/v1/engines/mine").status < 300
    assert service.read("/v1/engines")["items"] == []


# -- what a form sends -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain;charset=UTF-8", "application/jsonx"])
def test_an_empty_post_of_a_forms_type_is_refused(plain, kind):
    for length in ("", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"):
        with plain.wire() as wire:
            wire.send(f"POST {UPDATE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{length}\r\n" + ("0\r\n\r\n" if "chunked" in length else ""))
            reply = wire.reply()
            assert (reply.status, reply.error["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("referer", ["http://evil.example/form.html", "http://127.0.0.1.evil.example:{port}/", "http://localhost:3000/", "about:blank", ""])
def test_an_empty_post_that_a_foreign_page_refers_to_is_forbidden(plain, referer):
    reply = sent(plain, "POST", UPDATE, f"Referer: {referer}\r\n")
    assert (reply.status, reply.error["code"]) == (403, "forbidden")


def test_an_empty_post_without_signs_or_as_json_is_taken(plain):
    for headers in ("", "Content-Length: 0\r\n", "Content-Type: \r\n", JSON, JSON + "Content-Length: 0\r\n"):
        assert sent(plain, "POST", UPDATE, headers).status in (404, 409)


# -- what a browser is told about replies --------------------------------------------------------------------------------------

def test_no_reply_may_be_taken_for_a_page(plain):
    for reply in (plain.get("/healthz"), plain.get("/openapi.yaml"), plain.get("/metrics"), plain.get("/v1/nothing"), plain.get("/v1/rollouts"),
                  plain.post("/v1/verify", b"{"), plain.wire().send("GET / HTTP/1.1\r\n\r\n").reply()):
        assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["content-security-policy"] == "default-src 'none'"
