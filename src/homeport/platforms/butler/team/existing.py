"""What exists for teams, as the Cluster API objects of their clusters show it, whatever TenantClusters say.

A Machine stays until its VM is gone, and no role of a team may write Cluster API objects. So a team that deletes a
TenantCluster in mode Observe, or writes a smaller size into one that is not reconciled, goes on using its quota.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.name import CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL
from homeport.client.protocol import Client, Key, Query
from homeport.platforms.butler.name import ENVIRONMENT_LABEL, SOURCE_NAMESPACE_LABEL
from homeport.platforms.butler.normal.sizes import GIB, MIB
from homeport.platforms.butler.normal.tenant import PoolModel
from homeport.platforms.butler.team.demand import Demand, total
from homeport.platforms.butler.tenant.name import MACHINE_SIZE, PROVIDER_CONFIG, source_of, tenant_namespace
from homeport.runtime.informers import Informers

_CONTROL_PLANE = ""  # in the place of the name of a MachineDeployment


@dataclass(frozen=True, slots=True)
class Existing:
    """A Cluster that was made for a TenantCluster."""

    source: Key  # the TenantCluster; it may be gone
    namespace: str  # of the Cluster
    demand: Demand
    environment: str = ""
    provider: str = ""  # namespace/name of its ProviderConfig

    def belongs_to(self, tenant: TenantCluster) -> bool:
        meta = tenant.metadata
        if self.source != Key(meta.namespace, meta.name):
            return False
        return self.namespace in (tenant.status.tenant_namespace, tenant_namespace(meta.name, meta.uid))


def render_size(pool: PoolModel) -> str:
    """The value of the annotation on machines, and on what makes them."""
    return f"cpu={pool.cpu},memoryMiB={pool.memory_mib},diskGiB={pool.disk_gib}"


def _parse_size(annotations: Mapping[str, str]) -> Demand | None:
    """None: a machine of an earlier release, whose MachineDeployment was not written since."""
    found = dict(each.partition("=")[::2] for each in annotations.get(MACHINE_SIZE, "").split(","))
    try:
        cpu, memory, disk = (int(found[each]) for each in ("cpu", "memoryMiB", "diskGiB"))
    except (KeyError, ValueError):
        return None
    return Demand(nodes=1, cpu=cpu, memory=memory * MIB, storage=disk * GIB)


@dataclass(frozen=True, slots=True)
class _Group:
    """Machines that are wanted: of a MachineDeployment or of a control plane."""

    replicas: int
    size: Demand


def measure(
    cluster: Cluster,
    deployments: Iterable[MachineDeployment],
    plane: KubeadmControlPlane | None,
    machines: Iterable[Machine],
) -> Existing | None:
    """All of it is of the namespace of the Cluster. None: the Cluster was made for something else."""
    source = source_of(cluster.metadata.labels)
    if source is None:
        return None
    groups = {
        each.metadata.name: _Group(each.spec.replicas or 0, _size(each.metadata.annotations))
        for each in deployments
        if not each.metadata.deletion_timestamp
    }
    if plane is not None and not plane.metadata.deletion_timestamp:
        groups[_CONTROL_PLANE] = _Group(plane.spec.replicas or 0, _size(plane.metadata.annotations))
    notes = cluster.metadata.annotations
    return Existing(
        source,
        cluster.metadata.namespace,
        total([Demand(clusters=1), *_machines(groups, machines)]),
        notes.get(ENVIRONMENT_LABEL, ""),
        notes.get(PROVIDER_CONFIG, ""),
    )


def _size(annotations: Mapping[str, str]) -> Demand:
    return _parse_size(annotations) or Demand(nodes=1)


def _machines(groups: Mapping[str, _Group], machines: Iterable[Machine]) -> Iterator[Demand]:
    """Those that exist, and those that are still to be made."""
    counted: Counter[str] = Counter()
    for each in machines:
        labels = each.metadata.labels
        group = _CONTROL_PLANE if CONTROL_PLANE_LABEL in labels else labels.get(DEPLOYMENT_NAME_LABEL, "?")
        known = groups.get(group)
        yield _parse_size(each.metadata.annotations) or (known.size if known else Demand(nodes=1))
        counted[group] += 1
    for name, wanted in groups.items():
        yield from [wanted.size] * max(0, wanted.replicas - counted[name])


class ExistingView:
    """From the caches of a manager."""

    def __init__(self, informers: Informers) -> None:
        self._clusters = informers.get(Cluster).cache
        self._deployments = informers.get(MachineDeployment).cache
        self._planes = informers.get(KubeadmControlPlane).cache
        self._machines = informers.get(Machine).cache

    def of(self, team: str) -> Sequence[Existing]:
        clusters = [each for each in self._clusters if each.metadata.labels.get(SOURCE_NAMESPACE_LABEL) == team]
        spaces = {each.metadata.namespace for each in clusters}
        deployments, planes, machines = (
            _by_namespace(cache, spaces) for cache in (self._deployments, self._planes, self._machines)
        )
        found = (
            measure(each, deployments[space], next(iter(planes[space]), None), machines[space])
            for each in clusters
            for space in (each.metadata.namespace,)
        )
        return [each for each in found if each is not None]

    def team_of(self, machine: Machine) -> str:
        """'' if it was made for no TenantCluster."""
        meta = machine.metadata
        cluster = self._clusters.get(Key(meta.namespace, machine.spec.cluster_name))
        return cluster.metadata.labels.get(SOURCE_NAMESPACE_LABEL, "") if cluster is not None else ""


def _by_namespace(objects: Iterable[Any], spaces: set[str]) -> Mapping[str, list[Any]]:
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for each in objects:
        if each.metadata.namespace in spaces:
            found[each.metadata.namespace].append(each)
    return found


async def observe_existing(client: Client, team: str) -> Sequence[Existing]:
    """From the API server: admission may not count from a cache that is late."""
    query = Query(labels=f"{SOURCE_NAMESPACE_LABEL}={team}")
    found = []
    for cluster in (await client.list(Cluster, query)).items:
        here = Query(namespace=cluster.metadata.namespace)
        planes = (await client.list(KubeadmControlPlane, here)).items
        found.append(
            measure(
                cluster,
                (await client.list(MachineDeployment, here)).items,
                next(iter(planes), None),
                (await client.list(Machine, here)).items,
            )
        )
    return [each for each in found if each is not None]
