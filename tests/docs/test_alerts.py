"""Each alert rule fires on metrics of the real registries when what it is about happens, and none fires on a healthy plane."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from docs.promql import Query, Scrape, Vector
from homeport.apiserver.http.storage import StoreCollector
from homeport.apiserver.metrics import Labels as Request
from homeport.apiserver.metrics import Metrics
from homeport.runtime.queue import QueueStats
from homeport.runtime.telemetry.metric import METRICS, ControllerMetrics, EventMetrics, informer_metrics
from homeport.store import Store
from homeport.store.stats import BATCH_BOUNDS, SECONDS_BOUNDS, Histogram, Stats

ROOT = Path(__file__).resolve().parents[2]
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "config/observability/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
CONTROLLER, KIND = "alerts-under-test", "AlertsUnderTest"
# Gauges that the HTTP server registers when it starts.
CONNECTIONS = {"homeport_http_connections", "apiserver_current_inflight_requests"}
_GET = Request("GET", resource="secrets")


class _Counted(list[int]):
    """A queue, as far as it is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = QueueStats()


class _Store:
    """The numbers of a store, without one."""

    def __init__(self) -> None:
        histograms = {"batch_sizes": Histogram(BATCH_BOUNDS), "commit_seconds": Histogram(SECONDS_BOUNDS)}
        numbers: dict[str, Any] = {each.name: 0 for each in fields(Stats)}
        self.now = Stats(
            **{**numbers, "objects": {"clusters.cluster.x-k8s.io": 1}, "object_bytes": {"secrets": 9}, **histograms}
        )

    def stats(self) -> Stats:
        return self.now


class Plane:
    """The registries of a plane, and what happens to it."""

    def __init__(self) -> None:
        self.store, self.queue, self.held = _Store(), _Counted(), _Counted()
        self.metrics = Metrics()
        self.metrics.started(_GET)
        self.metrics.registry.register(METRICS)
        self.metrics.registry.register(StoreCollector(cast(Store, self.store)))
        self.controller = ControllerMetrics(CONTROLLER)
        self.controller.measure(self)
        self.informer = informer_metrics(KIND)
        self.informer.cannot_read(0)
        self.events = EventMetrics()
        self.answers = True

    def work(self) -> None:
        """A healthy minute."""
        for _ in range(60):
            self.controller.reconciled("done", 0.01)
            self.controller.waited(0.001)
            self.metrics.observe(_GET, 200, 0.01)
            self.store.now.commit_seconds.observe(0.001)

    def scrape(self, at: float) -> Scrape:
        if not self.answers:
            return Scrape(at, {("up", frozenset({("job", "homeport")})): 0.0})
        return Scrape.read(at, self.metrics.render().decode())


def stop(plane: Plane) -> None:
    plane.answers = False


def fail_commits(plane: Plane) -> None:
    plane.store.now = replace(plane.store.now, failed_commits=plane.store.now.failed_commits + 1)


def slow_commits(plane: Plane) -> None:
    for _ in range(30):
        plane.store.now.commit_seconds.observe(0.4)


def fail_requests(plane: Plane) -> None:
    for _ in range(10):
        plane.metrics.observe(_GET, 500, 0.01)


def fail_reconciles(plane: Plane) -> None:
    for _ in range(6):
        plane.controller.reconciled("error", 0.01)


def give_up(plane: Plane) -> None:
    plane.controller.reconciled("terminal", 0.01)


def leave_unreadable(plane: Plane) -> None:
    plane.informer.cannot_read(1)


def fill_queue(plane: Plane) -> None:
    plane.queue[:] = range(200)


def wait_long(plane: Plane) -> None:
    for _ in range(60):
        plane.controller.waited(40.0)


def hold_back(plane: Plane) -> None:
    plane.held[:] = [1]


def restart_informer(plane: Plane) -> None:
    plane.informer.restarted()


def drop_events(plane: Plane) -> None:
    for _ in range(20):
        plane.events.drop()


def use_descriptors(plane: Plane) -> None:
    """As few are allowed as are open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 2, hard))


HAPPENS: dict[str, Callable[[Plane], None]] = {
    "HomeportDown": stop,
    "HomeportWritesFail": fail_commits,
    "HomeportDiskSlow": slow_commits,
    "HomeportRequestsFail": fail_requests,
    "HomeportReconcilesFail": fail_reconciles,
    "HomeportObjectsGivenUp": give_up,
    "HomeportObjectsUnreadable": leave_unreadable,
    "HomeportWorkPilesUp": fill_queue,
    "HomeportWorkWaits": wait_long,
    "HomeportCachesLate": hold_back,
    "HomeportHistoryTooShort": restart_informer,
    "HomeportEventsDropped": drop_events,
    "HomeportFileDescriptorsRunOut": use_descriptors,
}


@pytest.fixture(autouse=True)
def _limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def minutes(plane: Plane, number: int, happens: Callable[[Plane], None] | None = None) -> list[list[Scrape]]:
    """What Prometheus has after each minute."""
    scrapes: list[Scrape] = []
    states = []
    for minute in range(number):
        plane.work()
        if happens is not None and minute >= 5:
            happens(plane)
        scrapes.append(plane.scrape(minute * 60.0))
        states.append(list(scrapes))
    return states


def firing(rule: dict[str, Any], states: list[list[Scrape]]) -> Vector:
    """Series of which the expression was true for as long as the rule says, up to the last scrape."""
    wait = int(re.fullmatch(r"(\d+)m", rule["for"])[1]) if "for" in rule else 0  # type: ignore[index]
    last = [Query.run(rule["expr"], each)[0] for each in states[-(wait + 1) :]]
    return {labels: value for labels, value in last[-1].items() if all(labels in each for each in last)}


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_fires_when_it_happens_and_not_before(alert: str) -> None:
    rule = RULES[alert]
    assert not firing(rule, minutes(Plane(), 40)), "it fires on a healthy plane"
    states = minutes(Plane(), 40, HAPPENS[alert])
    assert not firing(rule, states[:5])
    found = firing(rule, states)
    assert found, "it does not fire"
    named = {name for labels in found for name, _ in labels}
    used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) - {"instance"}
    assert used <= named, "the text names a label that the alert does not have"


def test_a_metric_is_not_asked_for_that_is_not_exported() -> None:
    scrapes = minutes(Plane(), 2)[-1]
    exported = {name for name, _ in scrapes[-1].series}
    for alert, rule in RULES.items():
        _, asked = Query.run(rule["expr"], scrapes)
        assert asked <= exported, f"{alert} asks for {asked - exported}"


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for alert, rule in RULES.items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), alert
        assert all(rule["annotations"][each].strip() for each in ("summary", "description", "cure")), alert
        assert alert in HAPPENS


DASHBOARD: dict[str, Any] = json.loads((ROOT / "config/observability/dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_of_the_dashboard_asks_for_metrics_that_are_exported(panel: dict[str, Any]) -> None:
    plane = Plane()
    scrapes = minutes(plane, 3)[-1]
    exported = {name for name, _ in scrapes[-1].series} | CONNECTIONS
    for target in panel["targets"]:
        found, asked = Query.run(target["expr"], scrapes)
        assert asked <= exported, f"not exported: {asked - exported}"
        labels = {name for each in found for name, _ in each} | {"instance"}
        used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert not found or used <= labels, f"the legend names labels that the result does not have: {used - labels}"
    assert panel["title"].strip()
    assert panel["targets"]
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_metric_and_alert_is_on_its_page() -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text()
    shown = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    exported = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name, _ in minutes(Plane(), 2)[-1][-1].series}
    ours = {name for name in exported if name.startswith(("homeport_", "apiserver_"))} | CONNECTIONS
    assert shown == ours | set(RULES)
