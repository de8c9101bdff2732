"""The clusters of a plane, one line each, from the caches of its managers: TenantClusters and ClusterDeployments where
there are such, and the other Clusters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.cluster.v1beta2.shape import ReplicaCounts
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.meta import Object
from homeport.app.report.description import ClusterState, Machines
from homeport.app.report.unmanaged import unmanaged
from homeport.capi.name import NEGATIVE, Condition
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.platforms.butler.tenant.name import source_of
from homeport.platforms.k0rdent.name import RELEASE_NAME_LABEL, RELEASE_NAMESPACE_LABEL
from homeport.runtime.clock import parse_time
from homeport.runtime.manager import Manager

O = TypeVar("O", bound=Object)

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
    managers = list(managers)
    platforms: list[TenantCluster | ClusterDeployment] = [*_cached(managers, TenantCluster)]
    platforms += _cached(managers, ClusterDeployment)
    return states_of(_cached(managers, Cluster), platforms, now)


def states_of(
    clusters: Iterable[Cluster], platforms: Iterable[TenantCluster | ClusterDeployment], now: float
) -> list[ClusterState]:
    """Those that need attention first; a Cluster that a platform created is shown as the platform's object."""
    states = {_source(cluster): describe_cluster(cluster, now) for cluster in clusters}
    for platform in platforms:
        if isinstance(platform, ClusterDeployment) and platform.spec.dry_run:
            continue
        source = platform.__resource__.kind, Key(platform.metadata.namespace, platform.metadata.name)
        states[source] = describe_platform(platform, states.get(source), now)
    return sorted(states.values(), key=lambda state: (state.fine, state.namespace, state.name))


def _cached(managers: Iterable[Manager], kind: type[O]) -> list[O]:
    """Each object once: several managers may watch a kind."""
    found = {
        obj.metadata.uid: obj
        for manager in managers
        for informer in manager.informers
        if informer.resource.qualified == kind.__resource__.qualified
        for obj in informer.cache
        if isinstance(obj, kind)
    }
    return list(found.values())


def _source(cluster: Cluster) -> tuple[str, Key]:
    """The object that users know the cluster by."""
    meta = cluster.metadata
    if tenant := source_of(meta.labels):
        return "TenantCluster", tenant
    if release := meta.labels.get(RELEASE_NAME_LABEL):
        return "ClusterDeployment", Key(meta.labels.get(RELEASE_NAMESPACE_LABEL, meta.namespace), release)
    return "Cluster", Key(meta.namespace, meta.name)


def describe_platform(
    platform: TenantCluster | ClusterDeployment, below: ClusterState | None, now: float
) -> ClusterState:
    """`below`: its Cluster, if there is one already. The cause is that of the platform, which knows more."""
    meta, ready = platform.metadata, condition.find(platform.status.conditions, "Ready") or {}
    good = ready.get("status") == "True"
    health = "Deleting" if meta.deletion_timestamp else "Ready" if good else "NotReady"
    since = ready.get("lastTransitionTime") or meta.creation_timestamp
    return msgspec.structs.replace(
        below or ClusterState(meta.namespace, meta.name, health),
        namespace=meta.namespace,
        name=meta.name,
        kind=platform.__resource__.kind,
        cluster=f"{below.namespace}/{below.name}" if below is not None else "",
        health=health,
        cause="" if good else _first_line(ready.get("message") or "it has not been reconciled yet"),
        seconds=max(0.0, now - parse_time(since)) if since else 0.0,
    )


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
        control_plane=_machines(status.control_plane),
        workers=_machines(status.workers),
        cause="" if good else _first_line(available.get("message") or "it has not been reconciled yet"),
        seconds=max(0.0, now - parse_time(since)) if since else 0.0,
        under_way=list(dict.fromkeys(_under_way(cluster))),
        unmanaged=unmanaged(cluster),
    )


def _machines(found: ReplicaCounts) -> Machines:
    return Machines(found.ready_replicas or 0, found.desired_replicas or 0, found.up_to_date_replicas)


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
