"""The Node of a worker whose VM is gone: it is deleted before the machine is made again, which has the same name.

The MachineRequest of a worker has a finalizer of the bootstrap. So it is still there, with its last state, when its VM
has been deleted, and whoever continues after a crash finds the same proof.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.butler.v1alpha1 import MachineRequest
from homeport.api.meta import Unstructured
from homeport.capi.remote.remotes import Remotes
from homeport.capi.remote.workload import NODE, provider_id_forms
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.platforms.butler.bootstrap.plan import MachinePlan
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.platforms.butler.bootstrap.state import node_ready
from homeport.platforms.butler.name import NODE_FINALIZER, PROVIDER_FINALIZER_PREFIX, VM_GONE_ANNOTATION
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 10.0
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


class Nodes:
    def __init__(self, client: Client, write: Write, remotes: Remotes) -> None:
        self._client = client
        self._write = write
        self._remotes = remotes

    async def hold(self, scope: BootstrapScope, plan: MachinePlan, request: MachineRequest) -> Wait | None:
        """A worker that is deleted takes its Node with it. Not a control plane, which may be a member of etcd."""
        if plan.control_plane:
            return None
        held = NODE_FINALIZER in request.metadata.finalizers
        if not request.metadata.deletion_timestamp:
            if not held:
                await self._write_finalizers(request, [*request.metadata.finalizers, NODE_FINALIZER])
            return None
        if not held or _held_by_provider(request):
            return None  # its change brings us back
        # Without a VM there is no Node of it, nor before the cluster began.
        asked = scope.initialized and request.status.provider_id
        wait = await self._drop_node(scope, request) if asked else None
        if wait is None:
            await self.let_go([request])
        return wait

    async def let_go(self, requests: Iterable[MachineRequest]) -> None:
        """Nothing is done for their Nodes any more."""
        for each in requests:
            found = each.metadata.finalizers
            if NODE_FINALIZER in found:
                await self._write_finalizers(each, [name for name in found if name != NODE_FINALIZER])

    async def _drop_node(self, scope: BootstrapScope, request: MachineRequest) -> Wait | None:
        name, remote = request.metadata.name, self._remotes.get(scope.cluster_key)
        if remote is None:
            text = f"the VM of {name} is gone; its Node is deleted when the cluster answers"
            return Wait("WaitingForApiServer", f"{text}: {self._remotes.why(scope.cluster_key)}", after=_LOOK_SECONDS)
        try:
            node = await remote.client.get(NODE, Key("", name))  # not from the cache, which may be late
            if is_other(node, request):
                return None
            wait = judge(node, request)
            if wait is None:
                version = node.resource_version  # a kubelet that reports meanwhile proves that we are wrong
                await remote.client.delete(NODE, Key("", name), uid=node.uid, resource_version=version)
        except NotFound:
            return None
        except ApiError as error:
            return Wait("WaitingForApiServer", f"Node {name} can't be deleted: {error}", after=_LOOK_SECONDS)
        return wait

    async def _write_finalizers(self, request: MachineRequest, finalizers: list[str]) -> None:
        """Others may come and go: the list is written for this very state of the object."""
        meta = request.metadata
        body = {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers}
        try:
            await self._client.patch(MachineRequest, key_of(request), MergePatch({"metadata": body}), self._write)
        except NotFound:
            return


def _held_by_provider(request: MachineRequest) -> bool:
    return any(each.startswith(PROVIDER_FINALIZER_PREFIX) for each in request.metadata.finalizers)


def is_other(node: Unstructured, request: MachineRequest) -> bool:
    """Whether the Node is known to be of another machine that has this name."""
    seen = str((node.get("spec") or {}).get("providerID") or "")
    known = request.status.provider_id
    return bool(seen and known) and not {*provider_id_forms(seen)} & {*provider_id_forms(known)}


def judge(node: Unstructured, request: MachineRequest) -> Wait | None:
    """Why the Node stays for now. None: it may be deleted."""
    name = request.metadata.name
    if _CONTROL_PLANE_LABEL in (node.metadata.get("labels") or {}):
        return _remains(name, "it has the label of a control plane")
    if VM_GONE_ANNOTATION not in request.metadata.annotations:
        return _remains(name, "the finalizer of its MachineRequest was removed before the provider deleted the VM")
    if node_ready(node):
        text = f"the VM of {name} is gone; its Node is deleted when it is no longer Ready"
        return Wait("WaitingForNodeToStop", text, after=_LOOK_SECONDS)
    return None


def _remains(name: str, why: str) -> Wait:
    text = (
        f"Node {name} is not deleted, because {why}: if its VM is gone, run 'kubectl delete node {name}' in the cluster"
    )
    return Wait("NodeRemains", text, after=_LOOK_SECONDS, warning=True)
