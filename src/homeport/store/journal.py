"""The kept changes in memory: where watches resume and past snapshots come from.

Each change holds the record before it, so the past is reached by undoing changes from the newest back.
The bytes are those of the records themselves; nothing is copied.
"""

from __future__ import annotations

from collections import deque

from homeport.store.record import Change, History, Record

# What a change costs in memory beside the bytes of its values: the change, a record, their queue slots.
_CHANGE_BYTES = 256
# Watchers ask for recent changes again and again; older ones must not pin decoded objects in memory.
_RECENT_CHANGES = 1024


def cost(change: Change) -> int:
    """The memory that only history keeps alive for this change."""
    total = _CHANGE_BYTES
    if change.previous is not None:
        total += change.previous.size
    if change.value is not None:
        total += len(change.value)
    return total


class Journal:
    """All kept changes in revision order, and again by bucket."""

    def __init__(self, limits: History, compacted: int) -> None:
        self.limits = limits
        self.compacted = compacted
        self.bytes = 0
        self._changes: deque[Change] = deque()
        self._times: deque[float] = deque()
        self._buckets: dict[str, deque[Change]] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change, committed_at: float) -> None:
        changes = self._changes
        changes.append(change)
        self._times.append(committed_at)
        self.bytes += cost(change)
        of_bucket = self._buckets.get(change.bucket)
        if of_bucket is None:
            of_bucket = self._buckets[change.bucket] = deque()
        of_bucket.append(change)
        if len(changes) > _RECENT_CHANGES:
            _forget_memos(changes[-_RECENT_CHANGES - 1])

    def all(self) -> list[Change]:
        return list(self._changes)

    def since(self, bucket: str, after: int, prefix: str) -> list[Change]:
        """The changes of a bucket with a revision greater than `after`, oldest first."""
        found: list[Change] = []
        for change in reversed(self._buckets.get(bucket, ())):
            if change.revision <= after:
                break
            if change.name.startswith(prefix):
                found.append(change)
        found.reverse()
        return found

    def cool(self, after: int, until: int) -> list[Record]:
        """Drops the memos of changes with these revisions. Gives the records that they have replaced."""
        found: list[Record] = []
        for change in reversed(self._changes):
            if change.revision <= after:
                break
            if change.revision <= until:
                _forget_memos(change)
                if change.previous is not None:
                    found.append(change.previous)
        return found

    def undo(self, bucket: str, revision: int) -> dict[str, Record | None]:
        """For each name of the bucket changed after `revision`: what it was at that revision."""
        before: dict[str, Record | None] = {}
        for change in reversed(self._buckets.get(bucket, ())):
            if change.revision <= revision:
                break
            before[change.name] = change.previous
        return before

    def trim(self, now: float) -> None:
        """Drop what exceeds the limits."""
        limits, times = self.limits, self._times
        oldest_time = now - limits.seconds
        while times and (len(times) > limits.revisions or self.bytes > limits.bytes or times[0] < oldest_time):
            self._drop()

    def compact(self, revision: int) -> None:
        """Drop the changes at or below `revision`."""
        while self._changes and self._changes[0].revision <= revision:
            self._drop()
        self.compacted = max(self.compacted, revision)

    def _drop(self) -> None:
        change = self._changes.popleft()
        self._times.popleft()
        self.bytes -= cost(change)
        of_bucket = self._buckets[change.bucket]
        of_bucket.popleft()
        if not of_bucket:
            del self._buckets[change.bucket]
        self.compacted = change.revision


def _forget_memos(change: Change) -> None:
    change.memo = None
    if change.previous is not None:
        change.previous.memo = None
