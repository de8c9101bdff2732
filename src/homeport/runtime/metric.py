"""Numbers about controllers, for Prometheus. Label children are looked up once: a count then costs next to nothing."""

from __future__ import annotations

import weakref
from collections.abc import Sized
from functools import cache
from typing import Protocol

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)
OUTCOMES = ("done", "wait", "error", "conflict", "terminal", "fenced")


@cache
def _families() -> tuple[Counter, Histogram, Gauge, Histogram, Counter, Gauge]:
    by = ["controller"]
    return (
        Counter("homeport_reconcile_total", "Reconciles by outcome", ["controller", "outcome"], registry=REGISTRY),
        Histogram("homeport_reconcile_seconds", "Duration of reconciles", by, buckets=_BUCKETS, registry=REGISTRY),
        Gauge("homeport_queue_depth", "Keys that are ready to be worked on", by, registry=REGISTRY),
        Histogram("homeport_queue_wait_seconds", "Time from ready to taken", by, buckets=_BUCKETS, registry=REGISTRY),
        Counter("homeport_queue_retries_total", "Keys that failed and come back later", by, registry=REGISTRY),
        Gauge("homeport_queue_held", "Keys whose last write is not in the cache yet", by, registry=REGISTRY),
    )


@cache
def _informer_families() -> tuple[Gauge, Counter]:
    return (
        Gauge("homeport_cache_objects", "Objects held in memory", ["kind"], registry=REGISTRY),
        Counter("homeport_informer_restarts_total", "Lists because the past was gone", ["kind"], registry=REGISTRY),
    )


class Measured(Protocol):
    @property
    def queue(self) -> Sized: ...
    @property
    def held(self) -> Sized: ...


class ControllerMetrics:
    def __init__(self, controller: str) -> None:
        total, seconds, depth, wait, retries, held = _families()
        self._outcomes = {outcome: total.labels(controller, outcome) for outcome in OUTCOMES}
        self._seconds = seconds.labels(controller)
        self._depth = depth.labels(controller)
        self._held = held.labels(controller)
        self.waited = wait.labels(controller).observe
        self.retried = retries.labels(controller).inc
        self.counts = dict.fromkeys(OUTCOMES, 0)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self.counts[outcome] += 1
        self._outcomes[outcome].inc()
        self._seconds.observe(seconds)

    def measure(self, what: Measured) -> None:
        """Counted when somebody asks, without keeping the controller alive for that."""
        found = weakref.ref(what)
        self._depth.set_function(lambda: float(len(known.queue)) if (known := found()) is not None else 0.0)
        self._held.set_function(lambda: float(len(known.held)) if (known := found()) is not None else 0.0)


class InformerMetrics:
    def __init__(self, kind: str) -> None:
        objects, restarts = _informer_families()
        self.holds = objects.labels(kind).set
        self.restarted = restarts.labels(kind).inc


@cache
def informer_metrics(kind: str) -> InformerMetrics:
    return InformerMetrics(kind)
