"""State as plain records in tables. Records never change: a change puts a new one in the place of the old.

So a snapshot is a copy of a few dictionaries, and the past stays readable for as long as it is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

PAST_KEPT = 2_000
PAST_SECONDS = 600.0  # stale reads don't go further back


class Record(Protocol):
    @property
    def ext_id(self) -> str: ...


R = TypeVar("R", bound=Record)
Change = tuple[float, str, str, Record | None]  # when, table, id, what stood there before


class ChangeHistory:
    """The newest changes, which reads of an earlier state undo."""

    def __init__(self, size: int = PAST_KEPT) -> None:
        self._changes: deque[Change] = deque(maxlen=size)
        self.now = 0.0  # set by the caller before changes
        self.total = 0  # of all changes, those that were forgotten too

    def add(self, table: str, ext_id: str, before: Record | None) -> None:
        self.total += 1
        while self._changes and self._changes[0][0] < self.now - PAST_SECONDS:
            self._changes.popleft()
        self._changes.append((self.now, table, ext_id, before))

    def since(self, moment: float) -> Iterator[Change]:
        """Changes after a moment, newest first."""
        for change in reversed(self._changes):
            if change[0] <= moment:
                return
            yield change

    def clear(self) -> None:
        self._changes.clear()


class Table(Generic[R]):
    """Records by id, in the order in which they were made."""

    def __init__(self, name: str, past: ChangeHistory, records: Iterable[R] = ()) -> None:
        self.name = name
        self._past = past
        self._records: dict[str, R] = {record.ext_id: record for record in records}

    def get(self, ext_id: str) -> R | None:
        return self._records.get(ext_id)

    def put(self, record: R) -> R:
        self._past.add(self.name, record.ext_id, self._records.get(record.ext_id))
        self._records[record.ext_id] = record
        return record

    def drop(self, ext_id: str) -> R | None:
        before = self._records.pop(ext_id, None)
        if before is not None:
            self._past.add(self.name, ext_id, before)
        return before

    def as_of(self, moment: float) -> Table[R]:
        """A copy of the table as it was; changing it changes nothing else."""
        then: dict[str, R] = dict(self._records)
        for _, table, ext_id, before in self._past.since(moment):
            if table == self.name:
                if before is None:
                    then.pop(ext_id, None)
                else:
                    then[ext_id] = before  # type: ignore[assignment]  # the table holds one kind of record
        return Table(self.name, ChangeHistory(0), then.values())

    def view(self) -> Mapping[str, R]:
        return self._records

    def __iter__(self) -> Iterator[R]:
        return iter(tuple(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, ext_id: object) -> bool:
        return ext_id in self._records
