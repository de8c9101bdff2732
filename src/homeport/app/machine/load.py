"""The machines of a plane with what they have at their provider and what they use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from homeport.api.meta import Unstructured
from homeport.app.machine.find import MACHINE
from homeport.app.machine.size import Size, size_of, total
from homeport.app.machine.usage import Measured, Usage, read_usage
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.client.restmapper import RestMapper

_INFRASTRUCTURE = (
    ("infrastructure.cluster.x-k8s.io/v1beta1", "NutanixMachine"),
    ("infrastructure.cluster.x-k8s.io/v1alpha1", "KubevirtMachine"),
)


class MachineLoad(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    machine: str
    cluster: str
    node: str = ""
    size: Size = Size()
    used: Usage | None = None  # None: unknown


class ClusterLoad(msgspec.Struct, frozen=True, rename="camel"):
    """The sums of a cluster's machines. `measured`: of how many of them the usage is known."""

    namespace: str
    cluster: str
    machines: int
    size: Size
    measured: int = 0
    used: Usage = Usage()
    unmeasured: str = ""  # why the usage is not known; '': it is


async def read_load(client: Client, namespace: str, proxy: str = "") -> tuple[list[MachineLoad], dict[Key, Measured]]:
    """Of all Machines of a namespace ('': of all namespaces), and what each cluster answered."""
    sizes = await _sizes(client, namespace)
    machines = (await client.list(MACHINE, Query(namespace=namespace))).items
    used = await read_usage(client, {_cluster(each) for each in machines}, proxy)
    return [_load(each, sizes, used) for each in machines], used


async def _sizes(client: Client, namespace: str) -> dict[tuple[str, str, str], Size]:
    kinds = RestMapper(client)
    found: dict[tuple[str, str, str], Size] = {}
    for api, kind in _INFRASTRUCTURE:
        try:
            listed = await client.list(await kinds.find(api, kind), Query(namespace=namespace))
        except NotFound:
            continue  # its provider is not installed
        found |= {(kind, each.namespace, each.name): size_of({**each, "kind": kind}) for each in listed.items}
    return found


def _load(machine: Unstructured, sizes: dict[tuple[str, str, str], Size], used: dict[Key, Measured]) -> MachineLoad:
    ref = (machine.get("spec") or {}).get("infrastructureRef") or {}
    size = sizes.get((str(ref.get("kind")), machine.namespace, str(ref.get("name"))), Size())
    node = str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
    cluster = _cluster(machine)
    usage = used[cluster].nodes.get(node) if node else None
    return MachineLoad(machine.namespace, machine.name, cluster.name, node, size, usage)


def _cluster(machine: Unstructured) -> Key:
    return Key(machine.namespace, str((machine.get("spec") or {}).get("clusterName") or ""))


def sum_clusters(machines: Iterable[MachineLoad], measured: dict[Key, Measured]) -> list[ClusterLoad]:
    """The largest memory first."""
    groups: dict[Key, list[MachineLoad]] = defaultdict(list)
    for each in machines:
        groups[Key(each.namespace, each.cluster)].append(each)
    made = [_sum(key, mine, measured.get(key, Measured())) for key, mine in groups.items()]
    return sorted(made, key=lambda each: (-each.size.memory_bytes, each.namespace, each.cluster))


def _sum(cluster: Key, machines: Sequence[MachineLoad], measured: Measured) -> ClusterLoad:
    known = [each.used for each in machines if each.used is not None]
    why = measured.why or ("" if known else "its Nodes have not been measured yet")
    sizes = total(each.size for each in machines)
    return ClusterLoad(cluster.namespace, cluster.name, len(machines), sizes, len(known), sum(known, Usage()), why)
