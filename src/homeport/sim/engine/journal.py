"""What was asked and what was answered, the newest few thousand of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

DEFAULT_SIZE = 5_000


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    number: int
    time: float
    method: str
    path: str
    query: str
    route: str
    user: str
    status: int  # 0: the connection was dropped
    seconds: float
    request_id: str = ""
    faults: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line of a log."""
        query = f"?{self.query}" if self.query else ""
        struck = f" faults: {', '.join(self.faults)}" if self.faults else ""
        status = self.status or "dropped"
        return f"{self.method} {self.path}{query} {status} {self.seconds * 1000:.1f} ms {self.user or '-'}{struck}"


class Journal:
    """The requests that a simulator answered, the newest ones. `on_entry` is called with each new entry."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self.total = 0
        self.on_entry: Callable[[Entry], None] = lambda entry: None

    def add(self, entry: Entry) -> None:
        self.total += 1
        entry = msgspec.structs.replace(entry, number=self.total)
        self._entries.append(entry)
        self.on_entry(entry)

    def newest(self, limit: int) -> list[Entry]:
        return list(self._entries)[-limit:] if limit > 0 else []

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
