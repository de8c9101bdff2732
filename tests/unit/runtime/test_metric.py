from __future__ import annotations

import gc
import re
from pathlib import Path
from types import SimpleNamespace

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from homeport.apiserver.http.storage import StoreCollector
from homeport.runtime.telemetry.metric import METRICS, ControllerMetrics, Durations, EventMetrics, informer_metrics
from homeport.store import Store

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"


class Live:
    def __init__(self, depth: int, held: int, adds: int) -> None:
        class Queue(list[int]):
            stats = SimpleNamespace(adds=adds)

        self.queue = Queue(range(depth))
        self.held = range(held)


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_reconciles_are_counted_by_outcome_and_time() -> None:
    metrics = ControllerMetrics("t-reconcile")
    metrics.reconciled("done", 0.003)
    metrics.reconciled("done", 400.0)
    metrics.reconciled("error", 0.0)
    assert metrics.counts["done"] == 2
    assert value("homeport_reconcile_total", controller="t-reconcile", outcome="done") == 2
    assert value("homeport_reconcile_total", controller="t-reconcile", outcome="wait") == 0
    assert value("homeport_reconcile_seconds_bucket", controller="t-reconcile", le="0.005") == 2
    assert value("homeport_reconcile_seconds_bucket", controller="t-reconcile", le="300.0") == 2
    assert value("homeport_reconcile_seconds_count", controller="t-reconcile") == 3


def test_a_queue_is_asked_when_somebody_looks() -> None:
    metrics, live = ControllerMetrics("t-queue"), Live(3, 2, 7)
    metrics.measure(live)
    metrics.waited(0.2)
    metrics.retried()
    assert value("homeport_queue_depth", controller="t-queue") == 3
    assert value("homeport_queue_held", controller="t-queue") == 2
    assert value("homeport_queue_adds_total", controller="t-queue") == 7
    assert value("homeport_queue_retries_total", controller="t-queue") == 1
    assert value("homeport_queue_wait_seconds_sum", controller="t-queue") == 0.2


def test_a_controller_that_starts_again_counts_on_and_its_predecessor_is_not_kept() -> None:
    first = Live(3, 0, 7)
    ControllerMetrics("t-again").measure(first)
    second = Live(1, 0, 2)
    ControllerMetrics("t-again").measure(second)
    assert value("homeport_queue_adds_total", controller="t-again") == 9
    assert value("homeport_queue_depth", controller="t-again") == 1
    del second
    gc.collect()
    assert value("homeport_queue_depth", controller="t-again") == 0


def test_caches_and_watches_are_counted_by_kind() -> None:
    informer_metrics("gadgets").holds(12)
    informer_metrics("gadgets").restarted()
    assert value("homeport_cache_objects", kind="gadgets") == 12
    assert value("homeport_informer_restarts_total", kind="gadgets") == 1


def test_events_are_counted_by_what_became_of_them() -> None:
    before = value("homeport_events_total", result="dropped") or 0
    metrics = EventMetrics()
    metrics.drop()
    assert metrics.dropped == 1
    assert value("homeport_events_total", result="dropped") == before + 1


def test_a_value_on_the_edge_belongs_to_the_lower_bucket() -> None:
    durations = Durations()
    durations.observe(0.001)
    assert next(iter(durations.cumulative())) == ("0.001", 1)


async def test_every_metric_is_documented_and_nothing_else_is() -> None:
    registry = CollectorRegistry()
    registry.register(METRICS)
    store = await Store.open(None)
    registry.register(StoreCollector(store))
    offered = set(re.findall(r"^# TYPE (homeport_\S+)", generate_latest(registry).decode(), re.MULTILINE))
    await store.close()
    offered.add("homeport_http_connections")  # only a server that listens has it: tests/docs/test_alerts.py
    documented = set(re.findall(r"^\| `(homeport_\w+)`", REFERENCE.read_text(), re.MULTILINE))
    assert offered == documented
