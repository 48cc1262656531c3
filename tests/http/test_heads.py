"""F06 and F15: a request that could be read in two ways is refused whole; each error is the service's own, in one reply."""
import json
import re
import socket

import pytest

from harness import eventually

HOST = "Host: localhost\r\n"
BEHIND = b"GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
ITEM = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "4", "reference": "4"}]}).encode()
POST = "POST /v1/verify HTTP/1.1\r\n" + HOST + "Content-Type: application/json\r\n"


def whole(service, data):
    """All that the service says until it closes; a reset behind it is an end, too."""
    with service.wire() as wire:
        try:
            wire.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        wire.closed()
        return wire.held


def replies(said):
    return len(re.findall(rb"HTTP/1\.1 \d\d\d ", said))


def one_reply(service, data):
    """The only reply, of which everything is checked that does not depend on the fault."""
    said = whole(service, data)
    head, _, body = said.partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    assert replies(said) == 1 and lines[0].startswith("HTTP/1.1 "), said
    assert len(body) == int(headers["content-length"]) and headers["connection"].lower() == "close", said
    error = json.loads(body)["error"]
    assert set(error) == {"code", "message", "path", "request_id"} and error["request_id"] == headers["x-request-id"]
    assert headers["content-type"] == "application/json" and headers["x-content-type-options"] == "nosniff"
    return int(lines[0].split()[1]), error


HEADS = {
    # the request line
    "no version": "GET /healthz\r\n\r\n",
    "no target": "GET HTTP/1.1\r\n" + HOST,
    "two blanks": "GET  /healthz HTTP/1.1\r\n" + HOST,
    "two blanks before the version": "GET /healthz  HTTP/1.1\r\n" + HOST,
    "tabulators": "GET\t/healthz\tHTTP/1.1\r\n" + HOST,
    "a blank at its end": "GET /healthz HTTP/1.1 \r\n" + HOST,
    "a blank at its beginning": " GET /healthz HTTP/1.1\r\n" + HOST,
    "a blank in the target": "GET /healthz /x HTTP/1.1\r\n" + HOST,
    "NUL in the target": "GET /healthz\0 HTTP/1.1\r\n" + HOST,
    "a control character in the target": "GET /healthz\x7f HTTP/1.1\r\n" + HOST,
    "a method that is no token": "G(T /healthz HTTP/1.1\r\n" + HOST,
    "an endless method": "G" * 100 + " /healthz HTTP/1.1\r\n" + HOST,
    "an absolute target": "GET http://localhost/healthz HTTP/1.1\r\n" + HOST,
    "a relative target": "GET healthz HTTP/1.1\r\n" + HOST,
    "a tunnel": "CONNECT localhost:80 HTTP/1.1\r\n" + HOST,
    "a star for a GET": "GET * HTTP/1.1\r\n" + HOST,
    "small letters": "GET /healthz http/1.1\r\n" + HOST,
    "a version of three parts": "GET /healthz HTTP/1.1.1\r\n" + HOST,
    "a version without a minor one": "GET /healthz HTTP/1\r\n" + HOST,
    "two empty lines in front": "\r\n\r\nGET /healthz HTTP/1.1\r\n" + HOST,
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a line of SMTP": "HELO localhost\r\n",
    # header lines
    "no Host": "GET /healthz HTTP/1.1\r\n",
    "two Hosts": "GET /healthz HTTP/1.1\r\n" + HOST + HOST,
    "two Hosts that differ": "GET /healthz HTTP/1.1\r\n" + HOST + "host: 127.0.0.1\r\n",
    "two Hosts of HTTP/1.0": "GET /healthz HTTP/1.0\r\n" + HOST + HOST,
    "a blank before a colon": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A : b\r\n",
    "a tabulator before a colon": "GET /healthz HTTP/1.1\r\nHost\t: localhost\r\n",
    "a blank in a name": "GET /healthz HTTP/1.1\r\n" + HOST + "X A: b\r\n",
    "no colon": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A\r\n",
    "no name": "GET /healthz HTTP/1.1\r\n" + HOST + ": b\r\n",
    "a name that is no token": "GET /healthz HTTP/1.1\r\n" + HOST + "X(A): b\r\n",
    "NUL in a name": "GET /healthz HTTP/1.1\r\n" + HOST + "X\0A: b\r\n",
    "a name that is not ASCII": "GET /healthz HTTP/1.1\r\n" + HOST + "X-\u00e9: b\r\n",
    "a folded line": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\r\n c\r\n",
    "a folded line of a tabulator": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\r\n\tc\r\n",
    "a first line that is folded": "GET /healthz HTTP/1.1\r\n X-A: b\r\n" + HOST,
    "NUL in a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\0c\r\n",
    "a control character in a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\x01c\r\n",
    "a bell in a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\x07\r\n",
    "DEL in a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: \x7f\r\n",
    "a bare CR in a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\rX-B: c\r\n",
    "two CR": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\r\r\n",
    "a bare LF behind the request line": "GET /healthz HTTP/1.1\n" + HOST,
    "a bare LF behind a value": "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: b\nX-B: c\r\n",
    "bare LFs": "GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "a bare LF as the empty line": "GET /healthz HTTP/1.1\r\n" + HOST + "\n",
    # lengths and codings
    "a blank before a length's colon": POST + f"Content-Length : {len(BEHIND)}\r\n",
    "two lengths": POST + "Content-Length: 0\r\nContent-Length: 5\r\n",
    "the same length twice": POST + "Content-Length: 0\r\ncontent-length: 0\r\n",
    "a list of lengths": POST + "Content-Length: 0, 0\r\n",
    "no digits": POST + "Content-Length:\r\n",
    "a sign": POST + "Content-Length: +0\r\n",
    "less than nothing": POST + "Content-Length: -1\r\n",
    "a hexadecimal length": POST + "Content-Length: 0x0\r\n",
    "a length with a blank behind": POST + "Content-Length: 0 \r\n",
    "a length with an underscore": POST + "Content-Length: 1_0\r\n",
    "a length of other digits": POST + "Content-Length: \u0663\r\n",
    "2^64": POST + "Content-Length: 18446744073709551616\r\n",
    "2^63": POST + "Content-Length: 9223372036854775808\r\n",
    "a length beside chunks": POST + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunks beside a length": POST + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "chunks in HTTP/1.0": POST.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n",
    "chunks twice": POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "chunked, chunked": POST + "Transfer-Encoding: chunked, chunked\r\n",
    "gzip, chunked": POST + "Transfer-Encoding: gzip, chunked\r\n",
    "an unknown coding": POST + "Transfer-Encoding: cow\r\n",
    "identity": POST + "Transfer-Encoding: identity\r\n",
    "a coding with a parameter": POST + "Transfer-Encoding: chunked;q=1\r\n",
    "a coding with a blank behind": POST + "Transfer-Encoding: chunked \r\n",
    "a coding with a vertical tabulator": POST + "Transfer-Encoding: \vchunked\r\n",
    "an empty coding": POST + "Transfer-Encoding:\r\n",
    "a coding in quotes": POST + 'Transfer-Encoding: "chunked"\r\n',
}


@pytest.mark.parametrize("text", HEADS.values(), ids=list(HEADS))
def test_a_head_that_could_be_read_in_two_ways_is_refused_in_one_reply(plain, text):
    """F15, F06: what stands behind it, as body or as the next request, is not run."""
    head = text if text.endswith("\r\n\r\n") else text + "\r\n"
    status, error = one_reply(plain, head.encode("utf-8" if "\u0663" in head or "\u00e9" in head else "latin-1") + BEHIND)
    assert status == 400 and error["code"] == "bad_request" and error["message"]


@pytest.mark.parametrize("version", ["HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/3.0", "HTTP/9.9"])
def test_another_version_is_505(plain, version):
    """F06"""
    status, error = one_reply(plain, f"GET /healthz {version}\r\n{HOST}\r\n".encode() + BEHIND)
    assert (status, error["code"]) == (505, "http_version")


def test_the_preface_of_http_2_is_505(plain):
    """F06"""
    assert one_reply(plain, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[0] in (400, 505)


@pytest.mark.parametrize("head", [
    "X-Long: " + "a" * 40000, "\r\n".join(f"X-{index}: b" for index in range(400)), "Cookie: " + "a=b; " * 5000, "X-A: " + "a" * 2_000_000,
    "\r\n".join("A: b" for _ in range(20000))], ids=["one long", "many", "cookies", "very long", "very many"])
def test_a_head_too_large_is_431(plain, head):
    """F06: the library would answer by itself when the connection's memory is full."""
    status, error = one_reply(plain, f"GET /healthz HTTP/1.1\r\n{HOST}{head}\r\n\r\n".encode())
    assert (status, error["code"]) == (431, "head_too_large")


@pytest.mark.parametrize("target", ["/healthz?" + "a" * 40000, "/" + "a" * 2_000_000, "/healthz?" + "&" * 5000], ids=["query", "path", "parameters"])
def test_a_target_too_long_is_431(plain, target):
    """F06"""
    assert one_reply(plain, f"GET {target} HTTP/1.1\r\n{HOST}\r\n".encode())[0] == 431


def test_a_reply_that_just_fits_is_answered(plain):
    """As many headers, parameters and cookies as are taken: the library must have room for them."""
    with plain.wire() as wire:
        query = "&".join("a=b" for _ in range(60))
        headers = "".join(f"X-{index}: {'v' * 100}\r\n" for index in range(100)) + "Cookie: " + "; ".join(f"a{index}=b" for index in range(60)) + "\r\n"
        long = "X-Long: " + "v" * 18000 + "\r\n"
        for _ in range(3):
            reply = wire.send(f"GET /v1/rollouts?{query} HTTP/1.1\r\n{HOST}{headers}{long}\r\n").reply()
            assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", "a"), reply  # by the service
        reply = wire.send(f"GET /v1/rollouts?{query}{'&a=b' * 10} HTTP/1.1\r\n{HOST}\r\n").reply()
        assert (reply.status, reply.error["code"]) == (400, "bad_request"), reply  # too many
        assert wire.send(f"GET /healthz HTTP/1.1\r\n{HOST}{headers}{long}\r\n").reply().status == 200


@pytest.mark.parametrize("head", [
    "GET /healthz HTTP/1.1\r\nHost:localhost\r\n", "GET /healthz HTTP/1.1\r\nhost:\t localhost \t\r\n", "GET /healthz HTTP/1.0\r\n",
    "GET /healthz HTTP/1.0\r\n" + HOST, "\r\nGET /healthz HTTP/1.1\r\n" + HOST, "GET /healthz HTTP/1.1\r\n" + HOST + "X-A:\r\nX-B: \tb\tc \r\n",
    "GET /healthz HTTP/1.1\r\n" + HOST + "X-A: \u00e9\r\n", "HEAD /healthz HTTP/1.1\r\n" + HOST, "GET /healthz?a=b HTTP/1.1\r\n" + HOST,
    "GET /healthz HTTP/1.1\r\n" + HOST + "Content-Length: 0\r\n", "GET /healthz HTTP/1.1\r\n" + HOST + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
    "GET /healthz HTTP/1.1\r\n" + HOST + "Connection: keep-alive, close\r\nTE: trailers\r\n", "GET /healthz HTTP/1.1\r\n" + HOST + "!#$%&'*+-.^_`|~9: b\r\n"])
def test_an_odd_head_that_can_be_read_in_one_way_is_taken(plain, head):
    with plain.wire() as wire:
        assert wire.send((head + "\r\n").encode()).until(b"\r\n").split()[1] in (b"200", b"400" if "?a=b" in head else b"200")


# -- bodies ----------------------------------------------------------------------------------------------------------------

def chunked(*pieces):
    return (POST + "Transfer-Encoding: chunked\r\n\r\n").encode() + b"".join(pieces)


def chunk(data, size=None):
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + b"\r\n"


END = b"0\r\n\r\n"
GOOD_CHUNKS = {
    "capital hex": chunked(chunk(ITEM, b"%X" % len(ITEM)), END), "zeros in front": chunked(chunk(ITEM, b"000%x" % len(ITEM)), END),
    "an extension": chunked(chunk(ITEM, b"%x;a=\"b;c\"" % len(ITEM)), END), "a trailer": chunked(chunk(ITEM), b"0\r\nX-Sum: 1\r\nX-More: \r\n\r\n"),
    "an extension of the last": chunked(chunk(ITEM), b"0;a\r\n\r\n"), "bytes alone": chunked(*(chunk(ITEM[at:at + 1]) for at in range(len(ITEM))), END),
    "line ends in the data": chunked(chunk(b"\r\n0\r\n\r\n".replace(b"0", b" ") + ITEM), END),
}


@pytest.mark.parametrize("data", GOOD_CHUNKS.values(), ids=list(GOOD_CHUNKS))
def test_good_chunks_are_read_and_the_connection_goes_on(plain, data):
    with plain.wire() as wire:
        for _ in range(2):
            assert wire.send(data).reply().json["items"][0]["reward"] == 1
        for byte in data:
            wire.send(bytes([byte]))
        assert wire.reply().json["items"][0]["reward"] == 1
        assert wire.send(data + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + data).reply().status == 200
        assert [wire.reply().status for _ in range(2)] == [200, 200]


BAD_CHUNKS = {
    "no size": b"\r\n" + END, "no hex": b"xyz\r\n" + END, "0x": chunk(ITEM, b"0x%x" % len(ITEM)), "a sign": chunk(ITEM, b"+%x" % len(ITEM)),
    "a blank in front": chunk(ITEM, b" %x" % len(ITEM)), "a blank behind": chunk(ITEM, b"%x " % len(ITEM)), "less than nothing": b"-1\r\n",
    "too many digits": b"0" * 17 + b"1\r\na\r\n" + END, "a bare LF behind the size": b"%x\n" % len(ITEM) + ITEM + b"\r\n" + END,
    "a bare CR behind the size": b"%x\r" % len(ITEM) + ITEM + b"\r\n" + END, "a bare LF in an extension": b"%x;a\nb\r\n" % len(ITEM) + ITEM + b"\r\n" + END,
    "a bare LF behind the data": b"%x\r\n" % len(ITEM) + ITEM + b"\n" + END, "more data": b"1\r\n" + ITEM + b"\r\n" + END,
    "less data": b"%x\r\n" % (len(ITEM) + 3) + ITEM + b"\r\n" + END, "a bare LF at the end": chunk(ITEM) + b"0\r\n\n",
    "a bare LF behind the last": chunk(ITEM) + b"0\n\r\n", "a trailer without a colon": chunk(ITEM) + b"0\r\nabc\r\n\r\n",
    "a folded trailer": chunk(ITEM) + b"0\r\nA: b\r\n c\r\n\r\n", "NUL in a trailer": chunk(ITEM) + b"0\r\nA: \0\r\n\r\n",
    "an endless extension": b"%x;" % len(ITEM) + b"a" * 20000 + b"\r\n" + ITEM + b"\r\n" + END, "endless trailers": chunk(ITEM) + b"0\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
}


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=list(BAD_CHUNKS))
def test_a_bad_chunk_ends_the_connection_and_nothing_behind_it_is_run(plain, body):
    """F06"""
    status, error = one_reply(plain, chunked(body) + BEHIND)
    assert (status, error["code"]) == (400, "bad_request") and "chunk" in error["message"]


def test_requests_before_a_refused_one_are_answered_first(plain):
    """F06: the refusal of a pipelined request comes behind the replies to those before it, and is the last."""
    good = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    post = (POST + f"Content-Length: {len(ITEM)}\r\n\r\n").encode() + ITEM
    for bad in (b"GET /healthz HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n", chunked(b"zz\r\n")):
        said = whole(plain, good + post + good + bad + good)
        assert [line.split()[1] for line in said.split(b"\n") if line.startswith(b"HTTP/")] == [b"200", b"200", b"200", b"400"], said


def test_nothing_is_said_behind_a_reply_that_closes(plain):
    """F06: neither to a good request behind it nor to a bad one."""
    for behind in (BEHIND, b"GET /healthz HTTP/1.1\r\n\r\n", b"\0\0\0"):
        for first in ("GET /healthz HTTP/1.1\r\n" + HOST + "Connection: close\r\n\r\n", "GET /healthz HTTP/1.0\r\n\r\n",
                      POST.replace("application/json", "text/plain") + "Content-Length: 3\r\n\r\n{} "):
            said = whole(plain, first.encode() + behind)
            assert replies(said) == 1, said


def test_a_body_that_looks_like_a_request_is_a_body(plain):
    with plain.wire() as wire:
        wire.send((POST + f"Content-Length: {len(BEHIND)}\r\n\r\n").encode() + BEHIND + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = wire.reply()
        assert (first.status, first.error["code"]) == (400, "invalid_json")
        assert wire.reply().status == 200


def test_requests_in_any_pieces_are_answered_in_order(plain):
    """Also where a piece ends in the middle of a head behind a request that is under way."""
    post = (POST + f"Content-Length: {len(ITEM)}\r\n\r\n").encode() + ITEM
    stream = (post + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + chunked(chunk(ITEM[:9]), chunk(ITEM[9:]), END)) * 20
    for step in (1, 7, 64, 1000, len(stream)):
        with plain.wire() as wire:
            wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(stream), step):
                wire.send(stream[at:at + step])
            assert [wire.reply().status for _ in range(60)] == [200] * 60


def test_a_thousand_requests_at_once_are_answered(plain):
    with plain.wire() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
        assert [wire.reply().status for _ in range(1000)] == [200] * 1000


def test_a_refusal_carries_the_requests_own_id(plain):
    """F06: where it was read before the fault."""
    _, error = one_reply(plain, f"GET /healthz HTTP/1.1\r\n{HOST}X-Request-Id: mine.7\r\nX A: b\r\n\r\n".encode())
    assert error["request_id"] == "mine.7"
    _, error = one_reply(plain, f"GET /healthz HTTP/1.1\r\n{HOST}X-Request-Id: a b\r\nX A: b\r\n\r\n".encode())
    assert error["request_id"] not in ("", "a b")


def test_bytes_behind_a_refusal_do_not_destroy_it(plain):
    """F06: a reset would overtake the reply."""
    for _ in range(20):
        said = whole(plain, b"GET /healthz HTTP/1.1\r\n\r\n" + b"x" * 300000)
        assert said.startswith(b"HTTP/1.1 400 ") and replies(said) == 1


def test_refused_connections_are_given_back(start):
    """F06"""
    import os
    service = start()
    before = len(os.listdir(f"/proc/{service.pid}/fd"))
    wires = [service.wire().send(b"GET /healthz HTTP/1.1\r\n\r\n") for _ in range(50)]
    for wire in wires:
        assert wire.reply().status == 400
    eventually(lambda: len(os.listdir(f"/proc/{service.pid}/fd")) <= before + 3, "the connections to be closed, though the clients keep theirs")
    for wire in wires:
        wire.close()
