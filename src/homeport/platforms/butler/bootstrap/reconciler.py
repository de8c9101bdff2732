"""ClusterBootstrap: one object that becomes a management cluster: machines, Talos, etcd, add-ons and the platform.

Every phase looks at what there is and does what is missing, so that it does not matter where the last attempt ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.api.butler.v1alpha1.part import LocalRef
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.environment import Prepare, PrepareError
from homeport.capi.name import KUBECONFIG_SUFFIX
from homeport.capi.shard import cluster_shard
from homeport.client.errors import ApiError, BadRequest, Forbidden, Invalid
from homeport.client.protocol import Key
from homeport.platforms.butler.bootstrap import state
from homeport.platforms.butler.bootstrap.composition import Composition, is_own
from homeport.platforms.butler.bootstrap.name import BOOTSTRAP_LABEL, PIVOT_ANNOTATION, PIVOT_DONE, talosconfig_secret
from homeport.platforms.butler.bootstrap.node import Nodes
from homeport.platforms.butler.bootstrap.preparation import Preparation
from homeport.platforms.butler.bootstrap.removal import Removal
from homeport.platforms.butler.bootstrap.scope import BootstrapScope, Children
from homeport.platforms.butler.bootstrap.secret import Secrets
from homeport.platforms.butler.bootstrap.talos import Talos
from homeport.platforms.butler.name import finalizer
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_RESYNC_SECONDS = 600.0
_RETRY_SECONDS = 30.0
_CONNECT_SECONDS = 10.0


class ClusterBootstrapReconciler(ButlerReconciler[ClusterBootstrap, BootstrapScope]):
    controller_name = "butler-clusterbootstrap"
    kind = ClusterBootstrap
    finalizer = finalizer("ClusterBootstrap")
    waits_are_events = False
    workers = 2

    def __init__(
        self,
        capi: Capi,
        preparation: Preparation,
        composition: Composition,
        secrets: Secrets,
        talos: Talos,
        prepare: Prepare | None,
        nodes: Nodes,
    ) -> None:
        super().__init__(capi.manager)
        self._remotes = capi.remotes
        informers = capi.manager.informers
        self._machines = informers.get(MachineRequest).cache
        self._clusters = informers.get(Cluster).cache
        self._addons = informers.get(ClusterAddon).cache
        self._preparation = preparation
        self._composition = composition
        self._secrets = secrets
        self._talos = talos
        self._prepare = prepare
        self._nodes = nodes
        self._prepared: dict[Key, str] = {}  # UIDs of Clusters that have the platform
        self._removal = Removal(capi.manager.client, nodes)

    def shard_of(self, key: Key, obj: ClusterBootstrap | None) -> str | None:
        named = obj.spec.cluster.name if obj is not None and obj.spec.cluster is not None else ""
        return cluster_shard(Key(key.namespace, named or key.name))

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._composition.forget(key)
        self._prepared.pop(key, None)

    # -- what is there -----------------------------------------------------------------------------------------

    def load(self, obj: ClusterBootstrap) -> BootstrapScope:
        meta, name = obj.metadata, cluster_name(obj)
        machines = {each.metadata.name: each for each in self._machines.list(meta.namespace) if is_own(each, meta.uid)}
        cluster = self._clusters.get(Key(meta.namespace, name))
        if cluster is not None and not is_own(cluster, meta.uid):
            cluster = None
        addons = [
            each
            for each in self._addons.list(meta.namespace)
            if each.spec.cluster_name == name and each.metadata.labels.get(BOOTSTRAP_LABEL) == meta.name
        ]
        return BootstrapScope(obj, Children(machines, cluster, addons))

    def pause(self, scope: BootstrapScope) -> bool:
        return super().pause(scope) or (scope.object.spec.paused and not scope.deleting)

    def expected(self, scope: BootstrapScope, error: Exception) -> Wait | None:
        """What the API server refuses stays refused until somebody changes something."""
        if not isinstance(error, Invalid | Forbidden | BadRequest):
            return None
        scope.failed = True
        return Wait("Refused", str(error), after=_RETRY_SECONDS, warning=True)

    def phases(self, scope: BootstrapScope) -> Sequence[Phase[BootstrapScope]]:
        if scope.pivoting:
            return [self._await_pivot, self.drop_finalizer] if scope.deleting else [self._await_pivot]
        if scope.deleting:
            return [self._removal.drop_machines, self._removal.drop_cluster, self.drop_finalizer]
        return [
            self._preparation.read,
            self.hold_finalizer,
            self._preparation.find_provider,
            self._preparation.choose_image,
            self._composition.hold_cluster,
            self._secrets.hold_bundle,
            self._composition.hold_machines,
            self._talos.configure,
            self._secrets.hold_authority,
            self._composition.hold_endpoint,
            self._talos.start_etcd,
            self._connect,
            self._install,
        ]

    # -- the cluster -------------------------------------------------------------------------------------------

    async def _connect(self, scope: BootstrapScope) -> Wait | None:
        """Its API server answers, and a control plane is a Node."""
        scope.remote = self._remotes.get(scope.cluster_key)
        names = {each.name for each in scope.control_planes}
        if scope.remote is None:
            why = self._remotes.why(scope.cluster_key)
            finding = Finding(state.CONTROL_PLANE, "WaitingForApiServer", f"{scope.endpoint}: {why}")
        elif not any(each.name in names for each in scope.remote.nodes):
            finding = Finding(state.CONTROL_PLANE, "WaitingForNodes", "no control plane is a Node yet")
        else:
            await self._composition.hold_initialized(scope)
            finding = Finding(state.CONTROL_PLANE)
        wait = scope.note(finding, self._now())
        self._summarise(scope)
        return None if wait is None else Wait(wait.reason, wait.message, after=_CONNECT_SECONDS)

    async def _install(self, scope: BootstrapScope) -> Wait | None:
        """Add-ons, the Nodes that need them to be ready, and the platform: none waits for the other."""
        assert scope.remote is not None
        addresses = [scope.children.machines[each.name].status.ip_address for each in scope.control_planes]
        await self._secrets.hold_talosconfig(scope, addresses)
        nodes = {each.name: each for each in scope.remote.nodes}
        findings = [
            state.nodes_ready(scope.plans, nodes),
            await self._composition.hold_addons(scope),
            await self._install_platform(scope),
        ]
        self._summarise(scope)
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        waits = [scope.note(each, self._now()) for each in findings]
        return next((each for each in waits if each is not None), None)

    async def _install_platform(self, scope: BootstrapScope) -> Finding:
        """Definitions and namespaces of the platform, so that its objects can be moved there."""
        given, uid = scope.model.addons.butler_controller, scope.cluster.metadata.uid
        if self._prepare is None or (given is not None and given.enabled is False):
            return Finding(state.PLATFORM, message="not wanted: spec.addons.butlerController.enabled is false")
        assert scope.remote is not None
        if self._prepared.get(scope.key) != uid:
            try:
                await self._prepare(scope.remote.client)
            except (ApiError, PrepareError) as error:
                scope.later = Wait("Retry", after=_RETRY_SECONDS, quiet=True)
                return Finding(state.PLATFORM, "InstallFailed", str(error))
            self._prepared[scope.key] = uid
        return Finding(state.PLATFORM)

    def _summarise(self, scope: BootstrapScope) -> None:
        status, key = scope.object.status, scope.cluster_key
        nodes = {each.name: each for each in scope.remote.nodes} if scope.remote is not None else {}
        status.machines = state.machine_states(scope.plans, scope.children.machines, nodes)
        if scope.initialized:
            status.kubeconfig_secret_ref = LocalRef(name=f"{key.name}{KUBECONFIG_SUFFIX}")
            status.talosconfig_secret_ref = LocalRef(name=talosconfig_secret(key).name)

    # -- pivot -------------------------------------------------------------------------------------------------

    async def _await_pivot(self, scope: BootstrapScope) -> Wait | None:
        """Its objects are on their way, or have left: nothing is created or deleted for it any more."""
        await self._nodes.let_go(scope.children.machines.values())  # where they go, no one would do it
        if scope.object.metadata.annotations[PIVOT_ANNOTATION] == PIVOT_DONE:
            text = "the objects of this plane have moved into the cluster"
            scope.note(Finding(state.PIVOTED, message=text), self._now())
            return None
        text = (
            "the objects of this plane are moving into the cluster: run 'homeport bootstrap' again to continue. After "
            f"'homeport move --abort', remove the annotation {PIVOT_ANNOTATION}"
        )
        scope.note(Finding(state.PIVOTED, "Pivoting", text), self._now())
        return Wait("Pivoting", text, quiet=True)

    def _now(self) -> str:
        return rfc3339(self.clock.now())


def cluster_name(bootstrap: ClusterBootstrap) -> str:
    cluster = bootstrap.spec.cluster
    return (cluster.name if cluster is not None else "") or bootstrap.metadata.name
