"""Numbers about controllers, for Prometheus. Label children are looked up once: a count then costs next to nothing."""

from __future__ import annotations

from functools import cache

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)


@cache
def _families() -> tuple[Counter, Histogram, Gauge]:
    return (
        Counter("homeport_reconcile_total", "Reconciles by outcome", ["controller", "outcome"], registry=REGISTRY),
        Histogram(
            "homeport_reconcile_seconds", "Duration of reconciles", ["controller"], buckets=_BUCKETS, registry=REGISTRY
        ),
        Gauge("homeport_queue_depth", "Keys that are ready to be worked on", ["controller"], registry=REGISTRY),
    )


class ControllerMetrics:
    def __init__(self, controller: str) -> None:
        total, seconds, depth = _families()
        outcomes = ("done", "wait", "error", "conflict", "terminal")
        self._outcomes = {outcome: total.labels(controller, outcome) for outcome in outcomes}
        self._seconds = seconds.labels(controller)
        self._depth = depth.labels(controller)
        self.counts = dict.fromkeys(outcomes, 0)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self.counts[outcome] += 1
        self._outcomes[outcome].inc()
        self._seconds.observe(seconds)

    def depth(self, keys: int) -> None:
        self._depth.set(keys)
