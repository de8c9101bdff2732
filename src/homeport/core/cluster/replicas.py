"""How many machines a Cluster has and wants, and their versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ClusterControlPlaneStatus, Machine, StatusVersion, WorkersStatus
from homeport.capi import contract
from homeport.capi.name import Condition
from homeport.capi.version import is_valid, parse
from homeport.core.cluster.observed import Descendants, counted
from homeport.core.related import Related


def control_plane(cluster: Cluster, related: Related, machines: Sequence[Machine]) -> ClusterControlPlaneStatus:
    before = cluster.status.control_plane
    if related.ref is None and cluster.spec.topology.class_ref is None:
        made = _of_machines(machines)
        made.upgrade_plan = before.upgrade_plan
        return made
    obj = related.object
    if obj is None:
        return ClusterControlPlaneStatus(upgrade_plan=before.upgrade_plan)
    reader, kind = contract.control_plane, related.contract
    return ClusterControlPlaneStatus(
        desired_replicas=reader.replicas(obj),
        replicas=reader.status_replicas(obj, kind),
        ready_replicas=reader.ready_replicas(obj, kind),
        available_replicas=reader.available_replicas(obj, kind),
        up_to_date_replicas=reader.up_to_date_replicas(obj, kind),
        versions=[
            StatusVersion(version=v.version, replicas=v.replicas or 0) for v in reader.status_versions(obj, kind)
        ],
        upgrade_plan=before.upgrade_plan,
    )


def _of_machines(machines: Sequence[Machine]) -> ClusterControlPlaneStatus:
    """Without a control plane provider each machine is wanted by being there."""
    if not machines:
        return ClusterControlPlaneStatus()
    return ClusterControlPlaneStatus(
        desired_replicas=len(machines),
        replicas=len(machines),
        ready_replicas=counted(machines, Condition.READY),
        available_replicas=counted(machines, Condition.AVAILABLE),
        up_to_date_replicas=counted(machines, Condition.UP_TO_DATE),
        versions=versions_of(machines),
    )


def workers(cluster: Cluster, found: Descendants) -> WorkersStatus:
    sets, machines = found.alone(cluster)
    groups: list[Any] = [*found.pools, *found.deployments, *sets]
    made = WorkersStatus(
        desired_replicas=_sum([g.spec.replicas for g in groups], len(machines)),
        replicas=_sum([g.status.replicas for g in groups], len(machines)),
        ready_replicas=_sum([g.status.ready_replicas for g in groups], counted(machines, Condition.READY)),
        available_replicas=_sum([g.status.available_replicas for g in groups], counted(machines, Condition.AVAILABLE)),
        up_to_date_replicas=_sum(
            [g.status.up_to_date_replicas for g in groups], counted(machines, Condition.UP_TO_DATE)
        ),
        versions=merged([*(v for g in groups for v in g.status.versions), *versions_of(machines)]),
        upgrade_plan=cluster.status.workers.upgrade_plan,
    )
    if not groups and not machines:
        return WorkersStatus(upgrade_plan=made.upgrade_plan)
    return made


def _sum(counts: Sequence[int | None], more: int) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) + more if known or more else None


def versions_of(machines: Iterable[Machine]) -> list[StatusVersion]:
    """What their kubelets are; those that do not run yet do not count."""
    kubelets = [m.status.node_info.kubelet_version for m in machines]
    return merged(StatusVersion(version=version, replicas=1) for version in kubelets if version)


def merged(versions: Iterable[StatusVersion]) -> list[StatusVersion]:
    """One entry for each version, oldest first."""
    counts: dict[str, int] = {}
    for each in versions:
        counts[each.version] = counts.get(each.version, 0) + each.replicas
    ordered = sorted(
        counts, key=lambda text: (not is_valid(text), parse(text).build_key if is_valid(text) else (), text)
    )
    return [StatusVersion(version=text, replicas=counts[text]) for text in ordered]
