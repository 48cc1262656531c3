"""A line on the terminal while a batch runs. Nothing where standard error is no terminal."""
from __future__ import annotations

import sys
from typing import Any, Mapping


class Progress:
    def __init__(self) -> None:
        self.shown = 0  # letters of the line that stands there

    def show(self, batch: Mapping[str, Any]) -> None:
        """batch: the reply about one that runs."""
        if not sys.stderr.isatty():
            return
        counts = batch["counts"]
        line = f"{batch['id']}: {counts['groups'] - counts.get('open_groups', 0)} of {counts['groups']} groups"
        line += f", {counts['done']} of {counts['rollouts']} rollouts"
        if counts.get("failed"):
            line += f", {counts['failed']} failed"
        if batch.get("waits_for"):
            line += f"; waits for {batch['waits_for']}"
        self.put(line)

    def groups(self, count: int) -> None:
        if sys.stderr.isatty():
            self.put(f"{count} groups")

    def put(self, line: str) -> None:
        print("\r" + line.ljust(self.shown), end="", file=sys.stderr, flush=True)
        self.shown = len(line)

    def end(self) -> None:
        if self.shown:
            print("\r" + " " * self.shown + "\r", end="", file=sys.stderr, flush=True)
        self.shown = 0
