"""Nodes of workload clusters: each gets the provider id of its VM, unless a cloud controller manager was faster."""

from __future__ import annotations

from collections.abc import Callable

from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.remote.workload import NODE, Remote
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.protocol import Instance
from homeport.providers.harvester.machine.plan import Scope
from homeport.runtime.outcome import Wait

_WRITE = Write(field_manager="homeport-harvester")


class Nodes:
    """Without `capi` no workload cluster is asked: whoever runs there does all this."""

    def __init__(self, capi: Capi | None) -> None:
        self._capi = capi
        self._wakes: dict[tuple[Key, str], Callable[[], None]] = {}
        if capi is not None:
            capi.remotes.on_node(self._changed)

    def _changed(self, cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        del old
        wake = self._wakes.pop((cluster, new.name), None) if new is not None else None
        if wake is not None:
            wake()

    def remote(self, scope: Scope) -> Remote | None:
        if self._capi is None or not scope.cluster:
            return None
        return self._capi.remotes.get(_cluster(scope))

    def find(self, scope: Scope) -> Unstructured | None:
        remote = self.remote(scope)
        return remote.nodes.get(Key("", scope.name)) if remote is not None else None

    async def converge(self, scope: Scope, instance: Instance) -> Wait | None:
        """Never holds up the machine: a Node that is not there yet wakes it when it comes."""
        status = scope.infra.status
        node, remote = self.find(scope), self.remote(scope)
        if node is None or remote is None:
            self._wakes[_cluster(scope), scope.name] = scope.wake
            return None
        if (node.get("spec") or {}).get("providerID"):
            status.nodeupdated = True
            return None
        body = {"metadata": {"uid": node.uid}, "spec": {"providerID": instance.provider_id}}
        try:
            await remote.client.patch(NODE, Key("", node.name), MergePatch(body), _WRITE)
        except ApiError as error:
            text = f"Node {node.name} could not be given its provider id: {error.message}"
            return Wait("WaitingForNode", text, after=10.0)
        status.nodeupdated = True
        return None


def _cluster(scope: Scope) -> Key:
    return Key(scope.infra.metadata.namespace, scope.cluster)
