"""What a workload cluster reports about machines at the vendor: which of them are its Nodes or run its etcd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.family import canonical
from homeport.capi.name import NODE_OWNER_KIND, NODE_OWNER_NAME
from homeport.capi.remote.workload import NODE
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, Query
from homeport.infra.protocol import Owned

_POD = Resource("", "v1", "Pod", "pods")
_ETCD_PODS = Query(namespace="kube-system", labels="component=etcd")
_CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class Role:
    """What a machine is in its workload cluster."""

    node: str = ""
    control_plane: bool = False
    etcd: bool = False
    version: str = ""  # of the kubelet
    provider_id: str = ""
    owner_kind: str = ""  # of the Machine, as the Node's annotations say
    owner_name: str = ""

    def __str__(self) -> str:
        if not self.node:
            return "runs etcd of the workload cluster"
        return f"is Node {self.node} of the workload cluster" + (", with etcd" if self.etcd else "")


@dataclass(frozen=True, slots=True)
class Statement:
    """`silent`: why the cluster could not be asked; '' when it answered. `roles`: by the machine's id."""

    silent: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)


class Witness:
    """Asks workload clusters. Without `capi` none can be asked."""

    def __init__(self, capi: Capi | None) -> None:
        self._capi = capi

    async def ask(self, cluster: Key, machines: Sequence[Owned]) -> Statement:
        """Reads from the cluster itself, not from a cache."""
        if self._capi is None:
            return Statement("no connection to workload clusters")
        remote = self._capi.remotes.get(cluster)
        if remote is None:
            return Statement(self._capi.remotes.why(cluster) or "no connection to the workload cluster")
        try:
            nodes = (await remote.client.list(NODE, Query())).items
            pods = (await remote.client.list(_POD, _ETCD_PODS)).items
        except ApiError as error:
            return Statement(str(error))
        found = ((each.id, role_of(each, nodes, pods)) for each in machines)
        return Statement(roles={id_: role for id_, role in found if role is not None})

    def etcd_members(self, cluster: Key, since: float) -> frozenset[str] | None:
        """Names and addresses of etcd's members, asked after that moment; None: not known."""
        return self._capi.members.since(cluster, since) if self._capi is not None else None


def role_of(machine: Owned, nodes: Sequence[Unstructured], pods: Sequence[Unstructured]) -> Role | None:
    """By anything that the two have in common: one match is enough to keep a machine."""
    addresses = {canonical(each) for each in machine.addresses}
    node = next((each for each in nodes if _matches(machine, addresses, each)), None)
    named = {machine.name, node.name if node is not None else machine.name}
    etcd = any(_runs_on(pod, named, addresses) for pod in pods)
    if node is None:
        return Role(etcd=True) if etcd else None
    meta, spec, info = node.metadata, node.get("spec") or {}, (node.get("status") or {}).get("nodeInfo") or {}
    annotations = meta.get("annotations") or {}
    return Role(
        node=node.name,
        control_plane=etcd or _CONTROL_PLANE_ROLE in (meta.get("labels") or {}),
        etcd=etcd,
        version=str(info.get("kubeletVersion") or ""),
        provider_id=str(spec.get("providerID") or ""),
        owner_kind=str(annotations.get(NODE_OWNER_KIND) or ""),
        owner_name=str(annotations.get(NODE_OWNER_NAME) or ""),
    )


def _matches(machine: Owned, addresses: set[str], node: Unstructured) -> bool:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    ids = {
        str(spec.get("providerID") or "").rpartition("/")[2].lower(),
        str((status.get("nodeInfo") or {}).get("systemUUID") or "").lower(),
    }
    held = {canonical(str(each.get("address") or "")) for each in status.get("addresses") or ()}
    return machine.id.lower() in ids or node.name == machine.name or not addresses.isdisjoint(held)


def _runs_on(pod: Mapping[str, Any], nodes: set[str], addresses: set[str]) -> bool:
    status = pod.get("status") or {}
    hosts = {canonical(str(each)) for each in (status.get("hostIP"), status.get("podIP")) if each}
    return (pod.get("spec") or {}).get("nodeName") in nodes or not addresses.isdisjoint(hosts)
