"""Compresses what has not changed for a while: most objects are written for minutes, and then not even read for days.

All of it stays in memory. Objects of one bucket resemble each other, so that each is compressed by comparison with
one of them: to a tenth of its size, where it does not consist of keys and certificates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context

from homeport.store.journal import Journal
from homeport.store.record import Record
from homeport.store.table import Table

COLD_SECONDS = 20.0
# A turn takes a few milliseconds, and others have theirs in between.
_RECORDS_AT_ONCE = 50
_PAUSE_SECONDS = 0.01


class Cooling:
    """Of one store. Sleeps while nothing is written. `cooled` is called for each current record that is cold."""

    def __init__(
        self, tables: Mapping[str, Table], journal: Journal, newest: Callable[[], int], cooled: Callable[[Record], None]
    ) -> None:
        self._tables = tables
        self._journal = journal
        self._newest = newest
        self._cooled = cooled
        self._samples: dict[str, tuple[int, bytes]] = {}  # by bucket: out of how many it was chosen, and its bytes
        self._done = 0  # everything up to this revision was looked at
        self._waiting: list[Record] = []
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Something was written, or read from the file."""
        if self._timer is None:
            # Without the context of whoever writes at this moment, which would be held until nobody writes any more.
            loop, empty = asyncio.get_running_loop(), Context()
            self._timer = loop.call_later(COLD_SECONDS, self._collect, self._newest(), context=empty)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting = []

    def _collect(self, until: int) -> None:
        """What was not written since this timer was set."""
        found = {bucket: table.changed(self._done, until) for bucket, table in self._tables.items()}
        for bucket, records in found.items():
            self._choose_sample(bucket, records)
            for record in records:
                self._cooled(record)
        past = self._journal.cool(self._done, until)
        self._waiting = [record for records in (*found.values(), past) for record in records]
        self._done = until
        self._compress_some()

    def _choose_sample(self, bucket: str, records: list[Record]) -> None:
        """Again when there are many more: the first objects of a bucket are not like those that users make."""
        known = self._samples.get(bucket)
        count = len(self._tables[bucket])
        if records and (known is None or count >= 2 * known[0]):
            self._samples[bucket] = count, records[len(records) // 2].value

    def _compress_some(self) -> None:
        for record in self._waiting[:_RECORDS_AT_ONCE]:
            _, sample = self._samples.get(record.bucket, (0, b""))
            record.compress(sample)
        del self._waiting[:_RECORDS_AT_ONCE]
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._compress_some)
        elif self._newest() > self._done:
            self.begin()
