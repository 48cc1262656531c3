"""A small HTTP/1.1 server on asyncio: keep-alive, pipelining, Content-Length bodies, and replies that can be sent badly.

The handler is a plain function from a Request to a Reply; most replies are written before it returns, so that a thousand
connections cost little. A Reply with `transport` set is sent by a task of its own; when the client hangs up, the task is
cancelled and the request counts as aborted.
"""
import asyncio
import json
import sys
from dataclasses import dataclass, field

HEAD_LIMIT = 64 << 10
BODY_LIMIT = 64 << 20
PIPELINE_LIMIT = BODY_LIMIT + HEAD_LIMIT
REASONS = {100: "Continue", 200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required",
           413: "Content Too Large", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
           501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: bytes
    keep_alive: bool


@dataclass
class Transport:
    """How a reply is sent, where it is not simply sent at once."""
    delay: float = 0.0             # seconds before the first byte
    hang: bool = False             # never a byte
    until: asyncio.Event = None    # no byte before it
    close_after: float = None      # this part of the bytes, then the connection is closed
    stall_after: float = None      # this part of the bytes, then nothing more
    bytes_per_second: float = None


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict = field(default_factory=dict)
    transport: Transport = None
    close: bool = False


def json_reply(value, status=200, **headers):
    return Reply(status, json.dumps(value).encode(), headers=headers)


class BadRequest(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


@dataclass
class Counters:
    connections: int = 0
    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    aborted: int = 0


class Connection(asyncio.Protocol):
    def __init__(self, handler, counters):
        self.handler = handler
        self.counters = counters
        self.buffer = bytearray()
        self.task = None
        self.running = None  # the request a task is answering
        self.continue_sent = False

    def connection_made(self, transport):
        self.transport = transport
        self.counters.connections += 1

    def connection_lost(self, error):
        self.counters.connections -= 1
        if self.task:
            self.task.cancel()

    def data_received(self, data):
        self.buffer += data
        if len(self.buffer) > PIPELINE_LIMIT:
            self.transport.abort()
        elif not self.task:
            self.advance()

    def advance(self):
        """Answers what is complete, in order, one at a time."""
        while not self.task and not self.transport.is_closing():
            try:
                request = self.take_request()
            except BadRequest as problem:
                self.write(json_reply({"detail": str(problem)}, problem.status), keep_alive=False)
                return
            if not request:
                return
            self.answer(request)

    def answer(self, request):
        counters = self.counters
        counters.requests += 1
        counters.in_flight += 1
        counters.max_in_flight = max(counters.max_in_flight, counters.in_flight)
        try:
            reply = self.handler(request)
        except Exception as problem:  # a fault of this program must not look like a hang
            print(f"{request.method} {request.path}: {problem!r}", file=sys.stderr, flush=True)
            reply = json_reply({"error": {"message": repr(problem), "type": "InternalServerError", "param": None, "code": 500}}, 500)
        if reply.transport:
            self.task = asyncio.ensure_future(self.send_badly(request, reply))
        else:
            counters.in_flight -= 1
            self.write(reply, request.keep_alive)

    def take_request(self):
        """The next whole request of the buffer, or None while bytes are missing."""
        end = self.buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(self.buffer) >= HEAD_LIMIT:
                raise BadRequest(431, "the head of the request is too long")
            return None
        method, path, version, headers = parse_head(bytes(self.buffer[:end]))
        length = body_length(headers)
        whole = end + 4 + length
        if len(self.buffer) < whole:
            if headers.get("expect", "").lower() == "100-continue" and not self.continue_sent:
                self.continue_sent = True
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body = bytes(self.buffer[end + 4:whole])
        del self.buffer[:whole]
        self.continue_sent = False
        wish = headers.get("connection", "").lower()
        keep_alive = wish != "close" if version == "HTTP/1.1" else wish == "keep-alive"
        return Request(method, path, headers, body, keep_alive)

    def write(self, reply, keep_alive):
        keep_alive = keep_alive and not reply.close
        self.transport.write(reply_bytes(reply, keep_alive))
        if not keep_alive:
            self.transport.close()

    async def send_badly(self, request, reply):
        how = reply.transport
        try:
            if how.hang:
                await asyncio.Event().wait()
            if how.until:
                await how.until.wait()
            if how.delay:
                await asyncio.sleep(how.delay)
            await self.send_parts(reply_bytes(reply, request.keep_alive), how)
            if not request.keep_alive:
                self.transport.close()
        except asyncio.CancelledError:
            self.counters.aborted += 1
        finally:
            self.counters.in_flight -= 1
            self.task = None
        self.advance()

    async def send_parts(self, data, how):
        for part, then in ((how.close_after, self.transport.close), (how.stall_after, None)):
            if part is None:
                continue
            self.transport.write(data[:int(len(data) * part)])
            if not then:
                await asyncio.Event().wait()
            then()
            return
        if not how.bytes_per_second:
            self.transport.write(data)
            return
        step = max(1, int(how.bytes_per_second / 20))
        for start in range(0, len(data), step):
            self.transport.write(data[start:start + step])
            await asyncio.sleep(step / how.bytes_per_second)


def parse_head(head):
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "not an HTTP/1.1 request line")
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or (name == "content-length" and name in headers):
            raise BadRequest(400, "a malformed header line")
        headers[name] = value.strip()
    return words[0], words[1].partition("?")[0], words[2], headers


def body_length(headers):
    if "transfer-encoding" in headers:
        raise BadRequest(501, "send a Content-Length: transfer codings are not spoken here")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(400, "Content-Length is not a number")
    if int(length) > BODY_LIMIT:
        raise BadRequest(413, "the body is too large")
    return int(length)


def reply_bytes(reply, keep_alive):
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}", f"Content-Type: {reply.content_type}",
             f"Content-Length: {len(reply.body)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if not keep_alive or reply.close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + reply.body


async def listen(handler, counters, host, port):
    """Starts the server; gives (server, port)."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(handler, counters), host, port, backlog=4096)
    return server, server.sockets[0].getsockname()[1]
