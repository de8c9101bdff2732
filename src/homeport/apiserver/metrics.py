"""What the API server counts, under the names that Kubernetes dashboards ask for.

A request costs two dictionary look-ups and a bisection; everything else happens when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")


class Labels(NamedTuple):
    """What a request was about. Made only of names that we serve, so nobody can make up series."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


class _Durations:
    """One histogram: how many fell into each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0


class Metrics(Collector):
    """`gauges` are read at scrape time: name > (help, function giving label value > number)."""

    def __init__(self) -> None:
        self._requests: dict[tuple[Labels, int], int] = {}
        self._durations: dict[Labels, _Durations] = {}
        self._running: dict[Labels, int] = {}
        self._gauges: dict[str, tuple[str, str, Callable[[], Mapping[str, float]]]] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def observe(self, labels: Labels, code: int, seconds: float) -> None:
        """A finished request."""
        key = (labels, code)
        requests = self._requests
        requests[key] = requests.get(key, 0) + 1
        durations = self._durations.get(labels)
        if durations is None:
            durations = self._durations[labels] = _Durations()
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.sum += seconds

    @property
    def total(self) -> int:
        """Requests that were answered."""
        return sum(self._requests.values())

    def requests(self) -> dict[str, int]:
        """How often what was asked: `get pods/log` > number."""
        counted: dict[str, int] = {}
        for (labels, _), number in self._requests.items():
            parts = (part for part in (labels.resource, labels.subresource) if part)
            asked = f"{labels.verb} {'/'.join(parts)}".rstrip()
            counted[asked] = counted.get(asked, 0) + number
        return counted

    def started(self, labels: Labels) -> None:
        """A watch or another request that stays open."""
        self._running[labels] = self._running.get(labels, 0) + 1

    def ended(self, labels: Labels, code: int) -> None:
        self._running[labels] = self._running.get(labels, 0) - 1
        key = (labels, code)
        self._requests[key] = self._requests.get(key, 0) + 1

    def gauge(self, name: str, help_text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """`read` gives the value for each value of `label`; without a label name, the one under ''."""
        self._gauges[name] = (help_text, label, read)

    def render(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)

    def describe(self) -> Iterable[Metric]:
        return ()  # tells the registry not to collect while registering

    def collect(self) -> Iterator[Metric]:
        yield self._collect_requests()
        yield self._collect_durations()
        yield self._collect_running()
        for name, (help_text, label, read) in self._gauges.items():
            gauge = GaugeMetricFamily(name, help_text, labels=[label] if label else None)
            for value, number in read().items():
                gauge.add_metric([value] if label else [], number)
            yield gauge

    def _collect_requests(self) -> Metric:
        family = CounterMetricFamily(
            "apiserver_request_total",
            "Requests by verb, group, version, resource, scope and HTTP code.",
            labels=[*_LABELS, "component", "code"],
        )
        for (labels, code), number in self._requests.items():
            family.add_metric([*labels, "apiserver", str(code)], number)
        return family

    def _collect_durations(self) -> Metric:
        family = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Time to answer, without watches, by verb, group, version, resource and scope.",
            labels=[*_LABELS, "component"],
        )
        for labels, durations in self._durations.items():
            family.add_metric([*labels, "apiserver"], buckets=list(_cumulative(durations)), sum_value=durations.sum)
        return family

    def _collect_running(self) -> Metric:
        family = GaugeMetricFamily(
            "apiserver_longrunning_requests",
            "Watches and other requests that stay open.",
            labels=[*_LABELS, "component"],
        )
        for labels, number in self._running.items():
            family.add_metric([*labels, "apiserver"], number)
        return family


def _cumulative(durations: _Durations) -> Iterator[tuple[str, float]]:
    total = 0
    for bound, number in zip((*map(str, BUCKETS), "+Inf"), durations.counts, strict=True):
        total += number
        yield bound, total
