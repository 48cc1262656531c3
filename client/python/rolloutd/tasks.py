"""Task sets from the files that trainers have.

    found = rolloutd.tasks.from_jsonl(client, "gsm8k", "train.jsonl", {"prompt": "question", "reference": "answer"}, verifiers=[{"name": "math"}])
    found.unreadable    # [("17", "reference_unreadable: …"), …]: tasks whose reference no verifier can read
"""
from __future__ import annotations

import mmap
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._client import Client
from ._link import encode, word

CHUNK = 256  # references in one request
Mapped = Mapping[str, Union[str, Callable[[Mapping[str, Any]], Any]]]


@dataclass
class Filled:
    name: str
    tasks: int
    sha256: str
    unreadable: List[Tuple[str, str]] = field(default_factory=list)  # (task, why)


def from_rows(client: Client, name: str, rows: Iterable[Mapping[str, Any]], mapping: Optional[Mapped] = None,
              verifiers: Optional[Sequence[Mapping[str, Any]]] = None) -> Filled:
    """mapping: for each field of a task (`task`, `prompt`, `messages`, `reference`, `split`, `tags`, `metadata`) the name of a column, or a
    function of the row; None: the rows are tasks. A row without a `task` is named by its number. verifiers: tells which references
    they cannot read. The same rows under the same name change nothing; others are an Error `state_conflict`."""
    with tempfile.TemporaryFile() as file:
        unreadable: List[Tuple[str, str]] = []
        for chunk in chunks(tasks_of(rows, mapping)):
            for task in chunk:
                file.write(encode(task) + b"\n")
            unreadable += unreadable_of(client, chunk, verifiers) if verifiers else []
        file.flush()
        if file.tell() == 0:
            raise ValueError(f"task set {name}: there is no row")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            reply = client._link.request("PUT", f"/v1/tasksets/{word(name)}", content, {"Content-Type": "application/x-ndjson"}).json()
    return Filled(reply["set"], reply["tasks"], reply["sha256"], unreadable)


def from_jsonl(client: Client, name: str, path: str, mapping: Optional[Mapped] = None,
               verifiers: Optional[Sequence[Mapping[str, Any]]] = None) -> Filled:
    """A file with one JSON object a line."""
    import json

    with open(path, encoding="utf-8") as file:
        return from_rows(client, name, (json.loads(line) for line in file if line.strip()), mapping, verifiers)


def from_hf(client: Client, name: str, dataset: Iterable[Mapping[str, Any]], mapping: Mapped,
            verifiers: Optional[Sequence[Mapping[str, Any]]] = None) -> Filled:
    """A dataset of the library `datasets`, streaming or not."""
    return from_rows(client, name, dataset, mapping, verifiers)


VERL: Mapped = {
    "task": lambda row: "-".join(str(part) for part in (row["data_source"], extra(row).get("split"), extra(row).get("index")) if part is not None),
    "messages": lambda row: [dict(message) for message in row["prompt"]],
    "reference": lambda row: row["reward_model"]["ground_truth"],
    "split": lambda row: extra(row).get("split"),
    "tags": lambda row: {"source": row["data_source"]},
}


def from_verl(client: Client, name: str, path: str, verifiers: Optional[Sequence[Mapping[str, Any]]] = None) -> Filled:
    """A parquet file in verl's form. Needs pyarrow."""
    import pyarrow.parquet

    batches = pyarrow.parquet.ParquetFile(path).iter_batches(1024)
    return from_rows(client, name, (row for batch in batches for row in batch.to_pylist()), VERL, verifiers)


def extra(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row.get("extra_info") or {}


def tasks_of(rows: Iterable[Mapping[str, Any]], mapping: Optional[Mapped]) -> Iterator[Dict[str, Any]]:
    for number, row in enumerate(rows):
        task = dict(row) if mapping is None else {}
        for name, column in (mapping or {}).items():
            value = column(row) if callable(column) else row[column]
            if value is not None:
                task[name] = value
        task["task"] = str(task.get("task", number))
        yield task


def chunks(tasks: Iterator[Dict[str, Any]]) -> Iterator[List[Dict[str, Any]]]:
    chunk: List[Dict[str, Any]] = []
    for task in tasks:
        chunk.append(task)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def unreadable_of(client: Client, tasks: Sequence[Mapping[str, Any]], verifiers: Sequence[Mapping[str, Any]]) -> List[Tuple[str, str]]:
    """An empty completion is judged against each reference: a failure is the reference's."""
    items = [{"id": task["task"], "completion": "", **{name: task[name] for name in ("reference", "prompt") if name in task}}
             for task in tasks]
    return [(item["id"], f"{item['failure']['code']}: {item['failure']['message']}") for item in client.verify(verifiers, items)
            if item["failure"]]
