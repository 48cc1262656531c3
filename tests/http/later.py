"""A request that is sent beside the test."""
import contextlib
import http.client
import threading


class Later:
    """A request whose answer comes when something else has happened."""

    def __init__(self, call, *args, **fields):
        self.reply = None
        self.thread = threading.Thread(target=self.run, args=(call, args, fields), daemon=True)
        self.thread.start()

    def run(self, call, args, fields):
        with contextlib.suppress(http.client.HTTPException, OSError):  # the service was killed
            self.reply = call(*args, **fields)

    def result(self):
        self.thread.join(120)
        assert self.reply is not None, "it was never answered"
        return self.reply
