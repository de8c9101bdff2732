"""Numbers about controllers, caches and events, for Prometheus.

Counting costs a list index; everything else happens when somebody scrapes. A process has one set of numbers, `METRICS`:
controllers that are started again after a crash count on. Names and meanings: docs/reference/metrics.md.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import cache
from typing import Any, Protocol

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)
OUTCOMES = ("done", "wait", "error", "conflict", "terminal", "fenced")


class Durations:
    """A histogram: how many fell into each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    def cumulative(self) -> Iterator[tuple[str, float]]:
        total = 0
        for bound, number in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            total += number
            yield bound, total


class Measured(Protocol):
    """A controller, as far as it is asked at scrape time."""

    @property
    def queue(self) -> Sized: ...
    @property
    def held(self) -> Sized: ...


class _Controller:
    """The numbers of all controllers of one name that this process has had."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.seconds = Durations()
        self.waiting = Durations()
        self.retries = 0
        self.adds_before = 0  # of queues that are gone
        self.live: Callable[[], Measured | None] = lambda: None

    def asked(self, read: Callable[[Any], float]) -> float:
        known = self.live()
        return read(known) if known is not None else 0.0

    @property
    def adds(self) -> float:
        return self.adds_before + self.asked(_adds)


def _adds(controller: Any) -> float:
    return float(controller.queue.stats.adds)


class _Informer:
    def __init__(self) -> None:
        self.objects = 0.0
        self.unreadable = 0.0
        self.restarts = 0


class _Events:
    def __init__(self) -> None:
        self.told = 0
        self.written = 0
        self.dropped = 0


class RuntimeMetrics(Collector):
    def __init__(self) -> None:
        self.controllers: dict[str, _Controller] = {}
        self.informers: dict[str, _Informer] = {}
        self.events = _Events()

    def describe(self) -> Iterable[Metric]:
        return ()  # tells the registry not to collect while registering

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_reconciles()
        yield from self._collect_queues()
        yield from self._collect_informers()
        events = CounterMetricFamily(
            "homeport_events", "Events recorded, written to the API and dropped.", labels=["result"]
        )
        for result in ("told", "written", "dropped"):
            events.add_metric([result], getattr(self.events, result))
        yield events

    def _collect_reconciles(self) -> Iterator[Metric]:
        total = CounterMetricFamily("homeport_reconcile", "Reconciles by outcome.", labels=["controller", "outcome"])
        for name, each in self.controllers.items():
            for outcome, number in each.outcomes.items():
                total.add_metric([name, outcome], number)
        yield total
        yield self._histogram("homeport_reconcile_seconds", "Duration of reconciles.", lambda c: c.seconds)

    def _collect_queues(self) -> Iterator[Metric]:
        yield self._histogram(
            "homeport_queue_wait_seconds", "Time from a key being ready to a worker taking it.", lambda c: c.waiting
        )
        yield self._counter("homeport_queue_adds", "Keys added, those already waiting included.", lambda c: c.adds)
        yield self._counter("homeport_queue_retries", "Keys that failed and come back later.", lambda c: c.retries)
        yield self._gauge("homeport_queue_depth", "Keys that are ready to be worked on.", lambda c: len(c.queue))
        yield self._gauge(
            "homeport_queue_held", "Keys whose last write is not in the caches yet.", lambda c: len(c.held)
        )

    def _collect_informers(self) -> Iterator[Metric]:
        objects = GaugeMetricFamily("homeport_cache_objects", "Objects held in memory.", labels=["kind"])
        restarts = CounterMetricFamily(
            "homeport_informer_restarts",
            "Number of full lists because the resource version had expired.",
            labels=["kind"],
        )
        unreadable = GaugeMetricFamily(
            "homeport_unreadable_objects", "Objects that don't fit their type and are not acted on.", labels=["kind"]
        )
        for kind, each in self.informers.items():
            objects.add_metric([kind], each.objects)
            unreadable.add_metric([kind], each.unreadable)
            restarts.add_metric([kind], each.restarts)
        yield objects
        yield unreadable
        yield restarts

    def _histogram(self, name: str, text: str, read: Callable[[_Controller], Durations]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=["controller"])
        for controller, each in self.controllers.items():
            family.add_metric([controller], buckets=list(read(each).cumulative()), sum_value=read(each).sum)
        return family

    def _counter(self, name: str, text: str, read: Callable[[_Controller], float]) -> Metric:
        family = CounterMetricFamily(name, text, labels=["controller"])
        for controller, each in self.controllers.items():
            family.add_metric([controller], read(each))
        return family

    def _gauge(self, name: str, text: str, read: Callable[[Any], float]) -> Metric:
        family = GaugeMetricFamily(name, text, labels=["controller"])
        for controller, each in self.controllers.items():
            family.add_metric([controller], each.asked(read))
        return family


METRICS = RuntimeMetrics()
REGISTRY.register(METRICS)


class ControllerMetrics:
    """One controller's way to count. `counts` are its own alone."""

    def __init__(self, controller: str) -> None:
        self._numbers = METRICS.controllers.setdefault(controller, _Controller())
        self.waited = self._numbers.waiting.observe
        self.counts = dict.fromkeys(OUTCOMES, 0)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self.counts[outcome] += 1
        self._numbers.outcomes[outcome] += 1
        self._numbers.seconds.observe(seconds)

    def retried(self) -> None:
        self._numbers.retries += 1

    def measure(self, what: Measured) -> None:
        """Counted when somebody asks, without keeping the controller alive for that."""
        numbers = self._numbers
        numbers.adds_before = int(numbers.adds)
        numbers.live = weakref.ref(what)


class InformerMetrics:
    def __init__(self, kind: str) -> None:
        self._numbers = METRICS.informers.setdefault(kind, _Informer())

    def holds(self, objects: float) -> None:
        self._numbers.objects = objects

    def cannot_read(self, objects: float) -> None:
        self._numbers.unreadable = objects

    def restarted(self) -> None:
        self._numbers.restarts += 1


@cache
def informer_metrics(kind: str) -> InformerMetrics:
    return InformerMetrics(kind)


class EventMetrics:
    """One recorder's way to count. `dropped` is its own alone."""

    def __init__(self) -> None:
        self.dropped = 0

    def tell(self) -> None:
        METRICS.events.told += 1

    def write(self) -> None:
        METRICS.events.written += 1

    def drop(self) -> None:
        self.dropped += 1
        METRICS.events.dropped += 1
