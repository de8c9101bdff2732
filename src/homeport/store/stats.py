"""Numbers about the store, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

BATCH_BOUNDS: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SECONDS_BOUNDS: tuple[float, ...] = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.1,
    0.5,
    2.5,
)


class Histogram:
    """Counts by upper bound; the last count is for everything above the last bound."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def copy(self) -> Histogram:
        twin = Histogram(self.bounds)
        twin.counts = list(self.counts)
        twin.sum = self.sum
        return twin


@dataclass(frozen=True, slots=True)
class Stats:
    """A moment of the store. `database_bytes` includes the write-ahead log; 0 for a store in memory."""

    revision: int
    compacted: int
    objects: dict[str, int]
    object_bytes: dict[str, int]
    history_changes: int
    history_bytes: int
    watches: int
    pending_writes: int
    database_bytes: int
    commits: int
    failed_commits: int
    batch_sizes: Histogram
    commit_seconds: Histogram
