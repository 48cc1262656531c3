"""A reward function behind a URL, told by the completion how to behave: `say BODY` answers, every other first word is a bad end (ACTS)."""
import json
import socket
import threading


def head(status, length, *more):
    return ("\r\n".join([f"HTTP/1.1 {status} X", f"Content-Length: {length}", "Content-Type: application/json", *more]) + "\r\n\r\n").encode()


def length_of(reply):
    """The length in its head; None: none, or it has no head."""
    head, _, _ = reply.partition(b"\r\n\r\n")
    lines = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return int(lines[0]) if lines else None


def answer(body, status=200, *more):
    raw = body if isinstance(body, bytes) else body.encode()
    return head(status, len(raw), *more) + raw


def half(_):
    return head(200, 400) + b'{"score": 1}'


def without_length(_):
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"score": 1'


ACTS = {
    "say": answer,
    "status": lambda rest: answer('{"score": 1}', int(rest)),
    "tell": lambda rest: answer(json.dumps({"score": 0.25, "reason": "told", "version": "tables-7", "detail": {"rest": rest}})),
    "redirect": lambda rest: answer('{"score": 1}', 302, f"Location: {rest}"),
    "half": half,
    "unended": without_length,
    "huge": lambda _: answer('{"score": 1, "detail": {"x": "' + "x" * (2 << 20) + '"}}'),
    "endless": lambda _: head(200, 10 ** 15) + b" " * (3 << 20),
    "nonsense": lambda _: b"SSH-2.0-OpenSSH_9.2\r\n",
    "bytes": lambda _: answer(b'{"score": 1, "reason": "\xff"}'),
    "twice": lambda _: answer('{"score": 1}') + answer('{"score": 0}'),
}


def url_of(bound):
    return f"http://127.0.0.1:{bound.getsockname()[1]}"


class NobodyThere:
    """A port that refuses, and that nobody else gets meanwhile."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.url = url_of(self.socket)

    def close(self):
        self.socket.close()


class RewardServer:
    """Answers each request by `act(asked)`, which may be replaced; None closes the connection, HANG keeps it open. `asked` has what was asked."""
    HANG = object()

    def __init__(self, act=None):
        self.act = act or self.obey
        self.asked, self.heads, self.open, self.most_open = [], [], 0, 0
        self.lock, self.released = threading.Lock(), threading.Event()
        self.listen(0)

    def listen(self, port):
        self.socket = socket.create_server(("127.0.0.1", port), backlog=512)
        self.url = url_of(self.socket)
        threading.Thread(target=self.accept, args=(self.socket,), daemon=True).start()

    def come_back(self, port):
        """Leaves its port for that one."""
        self.socket.close()
        self.listen(port)

    @staticmethod
    def obey(asked):
        act, _, rest = asked["completion"].partition(" ")
        return RewardServer.HANG if act == "hang" else ACTS[act](rest) if act in ACTS else None

    def accept(self, listening):
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def read(self, connection, data):
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        raw, _, body = data.partition(b"\r\n\r\n")
        fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in raw.decode().split("\r\n")[1:]}
        while len(body) < int(fields.get("content-length", 0)):
            body += connection.recv(65536)
        return raw.decode().split("\r\n")[0], fields, body

    def serve(self, connection):
        try:
            while (request := self.read(connection, b"")) is not None:
                with self.lock:
                    self.asked.append(json.loads(request[2]))
                    self.heads.append((request[0], request[1]))
                    self.open += 1
                    self.most_open = max(self.open, self.most_open)
                reply = self.act(json.loads(request[2]))
                if reply is self.HANG:
                    self.released.wait()
                with self.lock:
                    self.open -= 1
                if reply is None or reply is self.HANG:
                    break
                connection.sendall(reply)
                if len(reply) - reply.find(b"\r\n\r\n") - 4 != length_of(reply):
                    break
        except OSError:
            pass
        finally:
            connection.close()

    def close(self):
        self.released.set()
        self.socket.close()
