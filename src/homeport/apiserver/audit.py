"""The audit log: who asked for what and how it ended, one JSON line per request. Off unless a path is given.

A request only puts an Entry into a queue; encoding, writing and rotating happen in a thread of their own. When the disk
can't keep up or is full, entries are dropped and counted, and requests go on.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import structlog

from homeport.apiserver.request import User

log = structlog.get_logger(__name__)

QUEUE_LIMIT = 50_000
MAX_BYTES = 100 * 1024 * 1024
KEEP = 10

_SECRET_PARAMETER = re.compile(
    r"(?i)([?&][^=&]*(?:token|password|passwd|secret|authorization|credential|signature|api-?key)[^=&]*=)[^&]*"
)


@dataclass(slots=True)
class Entry:
    """One finished request. Times are seconds since 1970."""

    audit_id: str
    uri: str
    verb: str
    user: User
    source: str
    code: int
    received: float
    finished: float
    user_agent: str = ""
    impersonated: User | None = None
    group: str = ""
    version: str = ""
    resource: str = ""  # '' for non-resource paths
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    reason: str = ""  # of a refusal
    message: str = ""
    decision: str = ""  # allow, forbid
    decision_reason: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


def redacted(uri: str) -> str:
    """The address without the values of parameters that look like secrets."""
    return _SECRET_PARAMETER.sub(r"\1REDACTED", uri) if "?" in uri else uri


def as_event(entry: Entry) -> dict[str, Any]:
    """An audit.k8s.io/v1 Event of level Metadata."""
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": entry.audit_id,
        "stage": "ResponseComplete",
        "requestURI": redacted(entry.uri),
        "verb": entry.verb,
        "user": _user(entry.user),
    }
    if entry.impersonated is not None:
        event["impersonatedUser"] = _user(entry.impersonated)
    event["sourceIPs"] = [entry.source] if entry.source else []
    if entry.user_agent:
        event["userAgent"] = entry.user_agent
    if entry.resource:
        event["objectRef"] = _reference(entry)
    event["responseStatus"] = _status(entry)
    event["requestReceivedTimestamp"] = _time(entry.received)
    event["stageTimestamp"] = _time(entry.finished)
    annotations = dict(entry.annotations)
    if entry.decision:
        annotations["authorization.k8s.io/decision"] = entry.decision
        annotations["authorization.k8s.io/reason"] = entry.decision_reason
    if annotations:
        event["annotations"] = annotations
    return event


def _user(user: User) -> dict[str, Any]:
    raw: dict[str, Any] = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    raw["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {key: value for key, value in raw.items() if value}


def _reference(entry: Entry) -> dict[str, str]:
    raw = {
        "resource": entry.resource,
        "namespace": entry.namespace,
        "name": entry.name,
        "apiGroup": entry.group,
        "apiVersion": entry.version,
        "subresource": entry.subresource,
    }
    return {key: value for key, value in raw.items() if value}


def _status(entry: Entry) -> dict[str, Any]:
    status: dict[str, Any] = {"metadata": {}}
    if entry.code >= 400:
        status["status"] = "Failure"
        status.update({k: v for k, v in (("message", entry.message), ("reason", entry.reason)) if v})
    status["code"] = entry.code
    return status


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class AuditLog:
    """`write` from the event loop, `close` at the end. Raises OSError at once if the file can't be opened."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self.dropped = 0
        self._file = _RotatingFile(path, max_bytes, keep)
        self._queue: queue.Queue[Entry | None] = queue.Queue(QUEUE_LIMIT)
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def write(self, entry: Entry) -> None:
        """Never waits and never fails."""
        try:
            self._queue.put_nowait(entry)
        except queue.Full:
            self._drop(1, "the queue is full")

    def close(self) -> None:
        """Writes what is queued and closes the file."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
            self._file.close()

    def _drop(self, count: int, why: str) -> None:
        if not self.dropped:
            log.error("audit entries are being dropped", why=why)
        self.dropped += count

    def _run(self) -> None:
        while True:
            batch, last = self._take()
            if batch:
                lines = [orjson.dumps(as_event(entry), default=str) + b"\n" for entry in batch]
                try:
                    self._file.write(lines)
                except OSError as failed:
                    self._drop(len(lines), str(failed))
            if last:
                return

    def _take(self) -> tuple[list[Entry], bool]:
        """All that is queued, at least one."""
        batch: list[Entry] = []
        entry = self._queue.get()
        while entry is not None:
            batch.append(entry)
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True


class _RotatingFile:
    """A file that is renamed when full; `keep` renamed ones stay."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._open()

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        os.chmod(self._path, 0o600)
        self._size = os.fstat(self._handle).st_size
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self._put(b"\n")  # a crash cut the last line off, and the next one must not become part of it

    def write(self, lines: list[bytes]) -> None:
        chunk: list[bytes] = []
        size = 0
        for line in lines:
            if self._size + size + len(line) > self._max_bytes and self._size + size:
                self._put(b"".join(chunk))
                chunk, size = [], 0
                self._rotate()
            chunk.append(line)
            size += len(line)
        self._put(b"".join(chunk))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._handle, view)
            self._size += written
            view = view[written:]

    def _rotate(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        full = self._handle
        stem = f"{self._path.stem}-{now():%Y-%m-%dT%H-%M-%S.%f}"
        with contextlib.suppress(FileNotFoundError):  # somebody else put it aside already
            os.replace(self._path, self._path.with_name(f"{stem}{self._path.suffix}"))
        old = sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"))
        for path in old[: max(0, len(old) - self._keep)]:
            path.unlink(missing_ok=True)
        self._open()
        os.close(full)  # only now: until there is a new file, the old one is better than none

    def close(self) -> None:
        os.close(self._handle)
