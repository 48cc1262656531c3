"""JSON over HTTP for the demo's clients: one kept connection, and errors that name what failed."""
import http.client
import json
import urllib.parse


class ServiceError(Exception):
    """The service or the engine could not be used, or refused; the text says which and why."""


class Service:
    def __init__(self, name, url, timeout_s=120):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ServiceError(f"{name}: not an http URL: {url}")
        self.name, self.url = name, url
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_s)

    def call(self, method, path, body=None):
        """The reply's JSON. Statuses outside 2xx raise."""
        text = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, text, {"Content-Type": "application/json"} if text is not None else {})
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as problem:
            self.connection.close()
            raise ServiceError(f"{self.name}: {method} {self.url}{path}: {problem or type(problem).__name__}") from None
        if response.status // 100 != 2:
            raise ServiceError(f"{self.name}: {method} {path} answered {response.status}: {error_text(data)}")
        try:
            return json.loads(data) if data else None
        except ValueError:
            raise ServiceError(f"{self.name}: {method} {path} answered {response.status} with something that is not JSON") from None

    def close(self):
        self.connection.close()

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)

    def put(self, path, body):
        return self.call("PUT", path, body)


def error_text(data):
    text = data.decode("utf-8", "replace")
    try:
        error = json.loads(text)["error"]
        where = f" at {error['path']}" if error.get("path") else ""
        return f"{error.get('code')}{where}: {error.get('message')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return text[:300]
