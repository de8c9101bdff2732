"""Creates the objects of a management cluster. What exists under their names and is not its own is never touched."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import MachineRequest
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi.object.ownership import controller_of
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.machinery.talos.config import API_PORT
from homeport.platforms.butler.bootstrap import state
from homeport.platforms.butler.bootstrap.addon import bootstrap_addons
from homeport.platforms.butler.bootstrap.node import Nodes
from homeport.platforms.butler.bootstrap.plan import MachinePlan
from homeport.platforms.butler.bootstrap.render import render_addon, render_cluster, render_endpoint, render_machine
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.platforms.butler.bootstrap.secret import Secrets
from homeport.platforms.butler.tenant.name import addon_name
from homeport.platforms.butler.tenant.state import Finding, addon_ready, addons_ready
from homeport.runtime.applier import Applier
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait

Json = dict[str, Any]


class Taken(Exception):
    """An object of that name belongs to something else."""


class Composition:
    def __init__(
        self, client: Client, write: Write, applier: Applier, secrets: Secrets, nodes: Nodes, clock: Clock
    ) -> None:
        self._client = client
        self._write = write
        self._applier = applier
        self._secrets = secrets
        self._nodes = nodes
        self._clock = clock

    def forget(self, key: Key) -> None:
        self._applier.forget(key)

    # -- cluster ---------------------------------------------------------------------------------------------------

    async def hold_cluster(self, scope: BootstrapScope) -> Wait | None:
        """A phase."""
        if scope.children.cluster is None:
            try:
                scope.cluster = await self._create(scope, Cluster, render_cluster(scope.object, scope.model))
            except Taken as taken:
                scope.failed = True
                text = f"{taken}: choose another name in spec.cluster.name"
                return Wait("NameTaken", text, warning=True)
        if scope.cluster.metadata.deletion_timestamp:
            return Wait("ClusterDeleting", f"Cluster {scope.cluster_key} is being deleted", warning=True)
        return None

    async def hold_endpoint(self, scope: BootstrapScope) -> Wait | None:
        """A phase: from now on the Cluster has a kubeconfig, and is connected as soon as it answers."""
        scope.object.status.control_plane_endpoint = f"{scope.endpoint}:{API_PORT}"
        if not scope.cluster.spec.control_plane_endpoint.host:
            body = MergePatch({"metadata": {"uid": scope.cluster.metadata.uid}, **render_endpoint(scope.endpoint)})
            scope.cluster = await self._client.patch(Cluster, scope.cluster_key, body, self._write)
        return None

    async def hold_initialized(self, scope: BootstrapScope) -> None:
        """Cluster API learns this from Machines or a control plane, and this Cluster has neither."""
        if not scope.initialized:
            body = {"status": {"initialization": {"controlPlaneInitialized": True}}}
            patch = MergePatch({"metadata": {"uid": scope.cluster.metadata.uid}, **body})
            scope.cluster = await self._client.patch(
                Cluster, scope.cluster_key, patch, self._write, subresource="status"
            )

    # -- machines --------------------------------------------------------------------------------------------------

    async def hold_machines(self, scope: BootstrapScope) -> Wait | None:
        """A phase."""
        for plan in scope.plans:
            wait = await self._hold_machine(scope, plan)
            if wait is not None:
                scope.failed = wait.warning
                return self._note(scope, Finding(state.MACHINES, wait.reason, wait.message)) and wait
        return self._note(scope, state.machines_ready(scope.plans, scope.children.machines))

    async def _hold_machine(self, scope: BootstrapScope, plan: MachinePlan) -> Wait | None:
        known = scope.children.machines.get(plan.name)
        if known is not None:
            return await self._nodes.hold(scope, plan, known)
        if plan.control_plane and scope.etcd_mark:
            text = (
                f"MachineRequest {plan.name} of the control plane was deleted after etcd had started: its member is "
                "still in the list of etcd. Remove it there (talosctl etcd remove-member), or delete this "
                "ClusterBootstrap and create it again"
            )
            return Wait("ControlPlaneMachineMissing", text, warning=True)
        sent = not scope.model.vip and plan.control_plane  # gets its configuration when its address is known
        if not sent and not scope.endpoint:
            return Wait("WaitingForEndpoint", f"{plan.name} is created when the control plane has an address")
        wait = None if sent else await self._secrets.hold_config(scope, plan)
        if wait is not None:
            return wait
        provider = key_of(scope.provider.config)
        body = render_machine(scope.object, scope.model, plan, provider, scope.image, data=not sent)
        try:
            await self._create(scope, MachineRequest, body)
        except Taken as taken:
            return Wait("NameTaken", f"{taken}: delete it, or choose another name in spec.cluster.name", warning=True)
        return None

    # -- add-ons ---------------------------------------------------------------------------------------------------

    async def hold_addons(self, scope: BootstrapScope) -> Finding:
        requests = bootstrap_addons(scope.model)
        known = {each.metadata.name: each for each in scope.children.addons}
        for each in requests:
            body = render_addon(scope.object, scope.model, each, scope.cluster)
            cached = known.get(body["metadata"]["name"])
            await self._applier.hold(scope.key, body, ClusterAddon.__resource__, cached=cached, watched=True)
        names = [addon_name(scope.model.name, each.addon) for each in requests]
        for name, addon in known.items():
            if name not in names and not addon.metadata.deletion_timestamp:
                await self._delete(addon)
        scope.object.status.addons_installed = {each.spec.addon: addon_ready(each) for each in scope.children.addons}
        return addons_ready(scope.children.addons, names)

    async def _delete(self, addon: ClusterAddon) -> None:
        await drop_object(self._client, ClusterAddon, key_of(addon), uid=addon.metadata.uid)

    # -- all -------------------------------------------------------------------------------------------------------

    async def _create(self, scope: BootstrapScope, kind: type[Any], body: Json) -> Any:
        """The cache may be late: what exists is read, and counts if it is our own. Raises Taken."""
        try:
            return await self._client.create(msgspec.convert(body, kind, strict=False), self._write)
        except AlreadyExists:
            name = body["metadata"]["name"]
            found: Object = await self._client.get(kind, Key(scope.key.namespace, name))
        if not is_own(found, scope.object.metadata.uid):
            raise Taken(f"{kind.__resource__.kind} {key_of(found)} exists and belongs to something else")
        return found

    def _note(self, scope: BootstrapScope, finding: Finding) -> Wait | None:
        return scope.note(finding, rfc3339(self._clock.now()))


def is_own(obj: Object, uid: str) -> bool:
    found = controller_of(obj)
    return found is not None and found["uid"] == uid
