"""What health and metrics tell about the store."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from homeport.store import Histogram, Stats, Store


class StoreCheck:
    """A health check: fails once writes failed and none has succeeded since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failed = 0
        self._commits = 0
        self._wrong = ""

    def __call__(self) -> str:
        stats = self._store.stats()
        if stats.failed_commits > self._failed:
            self._wrong = "the last write could not be stored: see the server's log"
        elif stats.commits > self._commits:
            self._wrong = ""
        self._failed, self._commits = stats.failed_commits, stats.commits
        return self._wrong


class StoreCollector(Collector):
    """One look at the store per scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        return []  # tells the registry not to collect while registering

    def collect(self) -> Iterator[Metric]:
        stats = self._store.stats()
        yield _by_resource("apiserver_storage_objects", "Stored objects by resource.", stats.objects)
        yield _by_resource("homeport_store_object_bytes", "Size of stored objects by resource.", stats.object_bytes)
        yield from _gauges(stats)
        failed = CounterMetricFamily("homeport_store_failed_commits", "Writes that could not be stored.")
        failed.add_metric([], stats.failed_commits)
        yield failed
        yield _histogram("homeport_store_commit_seconds", "Time of a commit to disk.", stats.commit_seconds)
        yield _histogram("homeport_store_batch_size", "Writes in one commit.", stats.batch_sizes)


def _gauges(stats: Stats) -> Iterator[Metric]:
    numbers = (
        ("homeport_store_revision", "The newest revision.", stats.revision),
        ("homeport_store_compacted_revision", "History up to this revision is gone.", stats.compacted),
        ("homeport_store_history_changes", "Changes kept for watches.", stats.history_changes),
        ("homeport_store_history_bytes", "Size of objects that only history keeps.", stats.history_bytes),
        ("homeport_store_watches", "Open watches, those of our own controllers included.", stats.watches),
        ("homeport_store_pending_writes", "Writes that wait for the disk.", stats.pending_writes),
        ("apiserver_storage_size_bytes", "Size of the database on disk.", stats.database_bytes),
    )
    for name, text, value in numbers:
        gauge = GaugeMetricFamily(name, text)
        gauge.add_metric([], value)
        yield gauge


def _by_resource(name: str, text: str, numbers: dict[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=["resource"])
    for bucket, number in numbers.items():
        gauge.add_metric([bucket], number)
    return gauge


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(name, text)
    total, buckets = 0, []
    for bound, number in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        total += number
        buckets.append((bound, float(total)))
    family.add_metric([], buckets=buckets, sum_value=histogram.sum)
    return family
