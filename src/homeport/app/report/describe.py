"""How a running plane is: for `homeport status`, the live view and the answer to "why is it stuck"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from homeport.api.meta import Resource
from homeport.app.report.clusterstate import clusters_of
from homeport.app.report.description import ClusterState, ControllerState, Description, Finding, PartState, Unfinished
from homeport.app.report.part import Part
from homeport.app.report.progress import progress
from homeport.app.report.unmanaged import mark, unmanaged
from homeport.capi.shard import cluster_name
from homeport.client.protocol import Key
from homeport.runtime.clock import SystemClock
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.sim.state import SimulatorState


class Described(Protocol):
    """What another process of the plane reports."""

    @property
    def working(self) -> bool: ...
    @property
    def controllers(self) -> list[ControllerState]: ...
    @property
    def clusters(self) -> list[ClusterState]: ...
    @property
    def blind(self) -> dict[str, str]: ...


_SHOWN = 100  # unfinished objects per controller; their number is always shown


def describe(
    parts: Iterable[Part],
    managers: Iterable[Manager],
    *,
    objects: dict[str, int],
    revision: int = 0,
    requests: int = 0,
    simulators: Iterable[SimulatorState] = (),
    processes: Mapping[str, int] = MappingProxyType({}),
    standby: str = "",
    elsewhere: Iterable[Described] = (),
) -> Description:
    """`elsewhere`: what other processes of the plane report."""
    managers, states, elsewhere = list(managers), [describe_part(part) for part in parts], list(elsewhere)
    controllers = [describe_controller(each) for manager in managers for each in manager.controllers]
    controllers += merge_controllers(each for report in elsewhere for each in report.controllers)
    clusters = clusters_of(managers, SystemClock().now()) + _clusters(elsewhere)
    clusters.sort(key=lambda each: (each.namespace, each.name))
    blind = {what: why for each in managers for what, why in (each.health() | each.unreadable()).items()}
    blind |= {what: why for report in elsewhere for what, why in report.blind.items()}
    unfinished = [item for each in controllers for item in each.unfinished]
    clusters = mark(clusters, unfinished)
    stuck, under_way = progress(unfinished, clusters)
    return Description(
        revision,
        objects,
        requests,
        states,
        controllers,
        blind,
        list(simulators),
        clusters,
        [*_own(states, blind), *stuck],
        under_way,
        dict(processes),
        standby,
    )


def _clusters(reports: Iterable[Described]) -> list[ClusterState]:
    """One that ended reports what it worked on last: another process may have taken that over."""
    in_order = sorted(reports, key=lambda each: each.working)
    found = {(each.kind, each.namespace, each.name): each for report in in_order for each in report.clusters}
    return list(found.values())


def _own(parts: Iterable[PartState], blind: dict[str, str]) -> list[Finding]:
    """What is wrong with the plane itself: everything else may follow from it."""
    crashed = [
        Finding("Component", part.name, f"crashed, restarting in {part.retry_in:.0f} s: {part.error}")
        for part in parts
        if part.state == "waiting"
    ]
    return [*crashed, *(Finding("Watch", kind, why) for kind, why in blind.items())]


def describe_part(part: Part) -> PartState:
    return PartState(part.name, part.state, part.crashes, part.error, round(part.retry_in, 1))


def cached(managers: Iterable[Manager]) -> dict[str, int]:
    """Objects in the caches, by kind."""
    found: dict[str, int] = {}
    for manager in managers:
        for informer in manager.informers:
            name = informer.resource.qualified
            found[name] = max(found.get(name, 0), len(informer.cache))
    return found


def _unfinished(controller: Controller) -> list[Unfinished]:
    kind = controller.kind.kind if isinstance(controller.kind, Resource) else controller.kind.__resource__.kind
    # What failed last says more than what it waited for before that.
    found = {key: Unfinished(kind, str(key), "Failed", why, wrong=True) for key, why in controller.failed.items()}
    for key, wait in controller.waits.items():
        if key not in found and not wait.quiet:
            seconds = round(controller.unfinished.seconds(key), 1)
            found[key] = Unfinished(kind, str(key), wait.reason, wait.message, wait.warning, seconds)
    return list(found.values())


def describe_controller(controller: Controller) -> ControllerState:
    counts, unfinished = controller.metrics.counts, _unfinished(controller)
    return ControllerState(
        name=controller.name,
        queue=len(controller.queue),
        delayed=controller.queue.delayed,
        held=len(controller.held),
        reconciles=sum(counts.values()),
        errors=counts["error"],
        unfinished_count=len(unfinished),
        unfinished=[_with_cluster(controller, each) for each in unfinished[:_SHOWN]],
    )


def _with_cluster(controller: Controller, item: Unfinished) -> Unfinished:
    namespace, _, name = item.object.rpartition("/")
    obj = controller.cache().get(Key(namespace, name))
    cluster = cluster_name(obj) if obj is not None else ""
    if obj is None or not cluster:
        return item
    return msgspec.structs.replace(item, unmanaged=unmanaged(obj), cluster=f"{namespace}/{cluster}")


def merge_controllers(states: Iterable[ControllerState]) -> list[ControllerState]:
    """One for each name: workers run the same controllers on different objects."""
    found: dict[str, ControllerState] = {}
    for each in states:
        known = found.get(each.name)
        found[each.name] = each if known is None else _sum(known, each)
    return list(found.values())


def _sum(one: ControllerState, two: ControllerState) -> ControllerState:
    return ControllerState(
        name=one.name,
        queue=one.queue + two.queue,
        delayed=one.delayed + two.delayed,
        held=one.held + two.held,
        reconciles=one.reconciles + two.reconciles,
        errors=one.errors + two.errors,
        unfinished_count=one.unfinished_count + two.unfinished_count,
        unfinished=[*one.unfinished, *two.unfinished][:_SHOWN],
    )
