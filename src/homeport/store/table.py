"""The current objects of one bucket in memory, in name order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping

from homeport.store.record import Record

_LAST_CODE_POINT = 0x10FFFF


def beyond(prefix: str) -> str | None:
    """The smallest string greater than everything that starts with `prefix`; None if there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < _LAST_CODE_POINT:
            return prefix[: end - 1] + chr(code + 1)
    return None


class Table:
    """A dict for lookups beside a sorted list of names for ranges.

    Inserting into the list moves pointers only: about a microsecond at ten thousand names.
    """

    __slots__ = ("_names", "_records", "bytes", "revision")

    def __init__(self, records: dict[str, Record] | None = None) -> None:
        self._records: dict[str, Record] = records or {}
        self._names = sorted(self._records)
        self.revision = max((record.revision for record in self._records.values()), default=0)  # of the newest record
        self.bytes = sum(record.size for record in self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def get(self, name: str) -> Record | None:
        return self._records.get(name)

    def put(self, record: Record) -> None:
        old = self._records.get(record.name)
        if old is None:
            insort(self._names, record.name)
        else:
            self.bytes -= old.size
        self.bytes += record.size
        self._records[record.name] = record
        self.revision = record.revision

    def remove(self, name: str) -> None:
        self.bytes -= self._records.pop(name).size
        del self._names[bisect_left(self._names, name)]

    def count(self, prefix: str = "") -> int:
        if not prefix:
            return len(self._records)
        first, last = self._span(prefix, "")
        return last - first

    def changed(self, after: int, until: int) -> list[Record]:
        """The records that were written at one of these revisions, in no order."""
        if self.revision <= after:
            return []
        return [record for record in self._records.values() if after < record.revision <= until]

    def range(self, prefix: str, after: str, limit: int) -> list[Record]:
        first, last = self._span(prefix, after)
        if limit > 0:
            last = min(last, first + limit)
        records = self._records
        return [records[name] for name in self._names[first:last]]

    def range_before(self, undo: Mapping[str, Record | None], prefix: str, after: str, limit: int) -> list[Record]:
        """The same range in the past; `undo` says for each name changed since what it was (None: absent)."""
        first, last = self._span(prefix, after)
        names = [name for name in self._names[first:last] if name not in undo]
        names += [
            name for name, record in undo.items() if record is not None and name.startswith(prefix) and name > after
        ]
        names.sort()
        if limit > 0:
            del names[limit:]
        return [undo.get(name) or self._records[name] for name in names]

    def _span(self, prefix: str, after: str) -> tuple[int, int]:
        names = self._names
        first = bisect_right(names, after) if after >= prefix and after else bisect_left(names, prefix)
        end = beyond(prefix)
        last = len(names) if end is None else bisect_left(names, end)
        return first, max(first, last)
