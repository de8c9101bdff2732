"""A ClusterBootstrap goes: its machines, then the Cluster with add-ons and Secrets. Nothing else is touched."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import MachineRequest
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key
from homeport.machinery import condition
from homeport.platforms.butler.bootstrap.node import Nodes
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 10.0


class Removal:
    """What the scope has as children carries the UID of the ClusterBootstrap: it is its own."""

    def __init__(self, client: Client, nodes: Nodes) -> None:
        self._client = client
        self._nodes = nodes

    async def drop_machines(self, scope: BootstrapScope) -> Wait | None:
        found = scope.children.machines
        await self._nodes.let_go(found.values())  # the Nodes go with the cluster
        for each in found.values():
            await self._delete(MachineRequest, each)
        if not found:
            return None
        lines = [_line(each) for each in found.values()]
        return Wait("DeletingMachines", "\n".join([f"{len(found)} machines remain", *lines]), after=_LOOK_SECONDS)

    async def drop_cluster(self, scope: BootstrapScope) -> Wait | None:
        cluster = scope.children.cluster
        if cluster is None:
            return None
        await self._delete(Cluster, cluster)
        name = f"{cluster.metadata.namespace}/{cluster.metadata.name}"
        return Wait("DeletingCluster", f"Cluster {name} is being deleted", after=_LOOK_SECONDS)

    async def _delete(self, kind: type[Object], obj: Object) -> None:
        meta = obj.metadata
        if meta.deletion_timestamp:
            return
        await drop_object(self._client, kind, Key(meta.namespace, meta.name), uid=meta.uid)


def _line(request: MachineRequest) -> str:
    found = condition.find(request.status.conditions, "Ready") or {}
    said = found.get("message") or found.get("reason") or "waiting"
    return f"{request.metadata.name}: {said}"
