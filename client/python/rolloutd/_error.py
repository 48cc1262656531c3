"""The one exception of this package."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional


class Error(Exception):
    """A refusal of the service, or the reason why it could not be asked.

    status: of HTTP; None where no reply came. code: the service's word for the reason, or `unreachable`, `no_reply`, `not_json`,
    `cut_off` from here. path: the offending field, None where there is none. request_id: names the request in the service's log.
    groups: of an acknowledgement that was refused: each group that the lease does not hold, with its state.
    """

    def __init__(self, status: Optional[int], code: str, message: str, path: Optional[str] = None,
                 request_id: Optional[str] = None) -> None:
        super().__init__(status, code, message, path, request_id)
        self.status, self.code, self.message, self.path, self.request_id = status, code, message, path, request_id
        self.groups: List[Dict[str, Any]] = []

    def __str__(self) -> str:
        where = f" at {self.path}" if self.path else ""
        return f"{self.status or 'no reply'} {self.code}{where}: {self.message}"

    @classmethod
    def of_reply(cls, status: int, body: bytes, request_id: Optional[str]) -> Error:
        """A refusal in the service's form, or whatever a proxy said instead."""
        try:
            error = json.loads(body)["error"]
            made = cls(status, str(error["code"]), str(error["message"]), error.get("path"), request_id)
            made.groups = list(error.get("groups") or ())
            return made
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(status, "not_json", body[:300].decode("utf-8", "replace"), None, request_id)
