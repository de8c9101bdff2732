"""The Clusters of a plane, one line each, from the caches of its managers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.report.description import ClusterState, Machines
from homeport.capi.name import NEGATIVE, Condition
from homeport.machinery import condition
from homeport.runtime.clock import parse_time
from homeport.runtime.manager import Manager

_BULLET = re.compile(r"^\* +")
# Deleting says more than the scaling down that it causes.
_UNDER_WAY = (
    Condition.DELETING,
    Condition.REMEDIATING,
    Condition.ROLLING_OUT,
    Condition.SCALING_UP,
    Condition.SCALING_DOWN,
)
assert NEGATIVE.issuperset(_UNDER_WAY)


def clusters_of(managers: Iterable[Manager], now: float) -> list[ClusterState]:
    """Those that need attention first."""
    found = {
        obj.metadata.uid: obj
        for manager in managers
        for informer in manager.informers
        if informer.resource.kind == Cluster.__resource__.kind
        for obj in informer.cache
        if isinstance(obj, Cluster)
    }
    states = [describe_cluster(cluster, now) for cluster in found.values()]
    return sorted(states, key=lambda state: (state.fine, state.namespace, state.name))


def describe_cluster(cluster: Cluster, now: float) -> ClusterState:
    status = cluster.status
    available = condition.find(status.conditions, Condition.AVAILABLE) or {}
    since = available.get("lastTransitionTime") or cluster.metadata.creation_timestamp
    good = available.get("status") == "True"
    return ClusterState(
        namespace=cluster.metadata.namespace,
        name=cluster.metadata.name,
        health=_health(cluster, str(available.get("status") or "Unknown")),
        version=_version(cluster),
        paused=condition.is_true(status.conditions, Condition.PAUSED),
        control_plane=Machines(status.control_plane.ready_replicas or 0, status.control_plane.desired_replicas or 0),
        workers=Machines(status.workers.ready_replicas or 0, status.workers.desired_replicas or 0),
        cause="" if good else _first_line(available.get("message") or "it has not been reconciled yet"),
        seconds=max(0.0, now - parse_time(since)) if since else 0.0,
        under_way=list(dict.fromkeys(_under_way(cluster))),
    )


def _health(cluster: Cluster, available: str) -> str:
    if cluster.metadata.deletion_timestamp:
        return "Deleting"
    return {"True": "Available", "False": "NotAvailable"}.get(available, "Unknown")


def _version(cluster: Cluster) -> str:
    """`v1.29.0`, and `v1.29.0 > v1.30.0` while an upgrade runs."""
    status = cluster.status
    found = [each.version for each in [*status.control_plane.versions, *status.workers.versions]]
    return " > ".join(sorted(set(found), key=_numbers)[:2])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _under_way(cluster: Cluster) -> Iterator[str]:
    for kind in _UNDER_WAY:
        found = condition.find(cluster.status.conditions, kind)
        if found is None or found.get("status") != "True":
            continue
        for line in _points(found.get("message") or ""):
            named = _BULLET.match(line) is not None
            yield _BULLET.sub("", line) if named else f"Cluster {cluster.metadata.name}: {line}"
        if kind == Condition.DELETING:
            return


def _points(message: str) -> Iterator[str]:
    """The items of a list; an item with items of its own is shown with the first of them."""
    lines = message.split("\n")
    for number, line in enumerate(lines):
        if not line or line.startswith((" ", "and ")):
            continue
        below = lines[number + 1].strip() if line.endswith(":") and number + 1 < len(lines) else ""
        yield f"{line} {_BULLET.sub('', below)}" if below else line


def _first_line(message: str) -> str:
    lines = (_BULLET.sub("", line.strip()) for line in message.split("\n"))
    return next((line for line in lines if line), "").rstrip(".")
