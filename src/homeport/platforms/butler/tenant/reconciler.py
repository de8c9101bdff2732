"""TenantCluster: one object that becomes a cluster with network, storage and load balancers, and stays so.

Everything that it is made of is applied as objects of Cluster API and ClusterAddons; what they report becomes its own
conditions. It decides by what it observes: never by what it wrote into its own status before.
"""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.butler.v1alpha1.part import LocalRef
from homeport.api.butler.v1alpha1.tenantcluster import ObservedState, ObservedWorkers
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.capi.name import KUBECONFIG_SUFFIX
from homeport.capi.object.paused import has_annotation
from homeport.client.errors import BadRequest, Forbidden, Invalid
from homeport.client.protocol import Key
from homeport.platforms.butler.name import finalizer
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.addresses import Addresses
from homeport.platforms.butler.tenant.composition import Composition
from homeport.platforms.butler.tenant.name import source_of, tenant_namespace
from homeport.platforms.butler.tenant.preparation import Preparation
from homeport.platforms.butler.tenant.provider import DELETING
from homeport.platforms.butler.tenant.removal import NAMESPACE, Removal
from homeport.platforms.butler.tenant.scope import Children, TenantScope
from homeport.platforms.butler.tenant.shard import tenant_shard
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, run_phases

_RESYNC_SECONDS = 600.0
_REFUSED_SECONDS = 60.0
_SOURCE_INDEX = "butler.source"
_HANDS_OFF = ("Observe", "GitOps")  # modes in which nothing is written


class TenantClusterReconciler(ButlerReconciler[TenantCluster, TenantScope]):
    controller_name = "butler-tenantcluster"
    kind = TenantCluster
    finalizer = finalizer("TenantCluster")
    waits_are_events = False
    workers = 16

    def __init__(
        self, manager: Manager, composition: Composition, preparation: Preparation, addresses: Addresses
    ) -> None:
        super().__init__(manager)
        informers = manager.informers
        self._namespaces = informers.get(NAMESPACE).cache
        self._clusters = informers.get(Cluster).cache
        self._clusters.add_index(_SOURCE_INDEX, lambda cluster: [str(source_of(cluster.metadata.labels))])
        self._hosted = informers.get(StewardControlPlane).cache
        self._kubeadm = informers.get(KubeadmControlPlane).cache
        self._deployments = informers.get(MachineDeployment).cache
        self._addons = informers.get(ClusterAddon).cache
        self._preparation = preparation
        self._addresses = addresses
        self._removal = Removal(manager.client, self._write)
        self._composition = composition

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._composition.forget(key)

    # -- what is there -----------------------------------------------------------------------------------------

    def load(self, obj: TenantCluster) -> TenantScope:
        name, meta = self._namespace_of(obj), obj.metadata
        key, obj_key = Key(name, meta.name), Key(meta.namespace, meta.name)
        cluster = self._clusters.get(key)
        ours = [each for each in self._deployments.list(name) if each.spec.cluster_name == meta.name]
        addons = [each for each in self._addons.list(name) if each.spec.cluster_name == meta.name]
        children = Children(
            namespace=self._namespaces.get(Key("", name)),
            cluster=cluster,
            control_plane=self._hosted.get(key) or self._kubeadm.get(key),
            deployments=sorted(ours, key=lambda each: each.metadata.name),
            addons=[each for each in addons if source_of(each.metadata.labels)],
            namesakes=[
                each for each in self._clusters.by(_SOURCE_INDEX, str(obj_key)) if each.metadata.namespace != name
            ],
        )
        return TenantScope(obj, name, children)

    def shard_of(self, key: Key, obj: TenantCluster | None) -> str | None:
        return tenant_shard(obj)

    def _namespace_of(self, obj: TenantCluster) -> str:
        """A TenantCluster that was moved here has another UID, and brings its namespace along."""
        meta = obj.metadata
        known = self._namespaces.get(Key("", obj.status.tenant_namespace)) if obj.status.tenant_namespace else None
        if known is not None and source_of(_labels(known)) == Key(meta.namespace, meta.name):
            return known.name
        return tenant_namespace(meta.name, meta.uid)

    # -- phases ------------------------------------------------------------------------------------------------

    def expected(self, scope: TenantScope, error: Exception) -> Wait | None:
        """What the API server refuses stays refused until somebody changes something."""
        if not isinstance(error, Invalid | Forbidden | BadRequest):
            return None
        scope.failed = True
        return Wait("Refused", str(error), after=_REFUSED_SECONDS, warning=True)

    def pause(self, scope: TenantScope) -> bool:
        if not has_annotation(scope.object):
            return False
        scope.note_paused(rfc3339(self.clock.now()))  # `homeport move` waits for it
        return True

    def phases(self, scope: TenantScope) -> Sequence[Phase[TenantScope]]:
        policy = scope.object.spec.management_policy
        if scope.deleting and policy is not None and policy.mode in _HANDS_OFF:
            return [self.drop_finalizer]  # what it only looked at stays
        if scope.deleting:
            return [
                self._removal.drop_addons,
                self._removal.drop_cluster,
                self._removal.drop_namespace,
                self._addresses.release,
                self.drop_finalizer,
            ]
        return [self.hold_finalizer, self._converge]

    async def _converge(self, scope: TenantScope) -> Wait | None:
        """A cluster that exists is reported on, whatever stands in the way of changing it."""
        blocked = await run_phases(scope, self._preparation.phases())
        if blocked is None and not scope.observed_only:
            shown = await self._composition.apply(scope)
            blocked = None if shown else Wait("Applying", "the objects of the cluster are being written")
        elif blocked is not None:
            scope.failed = blocked.warning
        if blocked is not None and scope.children.cluster is None:
            return blocked  # there is nothing to report on
        waiting = self._observe(scope)
        return blocked or waiting

    def _observe(self, scope: TenantScope) -> Wait | None:
        """Conditions from the objects. The first that is not True is what the cluster waits for."""
        findings = self._findings(scope)
        now = rfc3339(self.clock.now())
        for each in findings:
            scope.note(each, now)
        scope.note_paused(now)
        self._summarise(scope)
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        bad = next((each for each in findings if not each.good), None)
        if bad is not None and not scope.provider_state.good and scope.provider_state.reason != DELETING:
            bad = scope.provider_state  # the cause of what does not work, with the cure
        return None if bad is None else Wait(bad.reason, bad.message)

    def _findings(self, scope: TenantScope) -> list[Finding]:
        children, blueprint = scope.children, scope.blueprint
        if children.cluster is None:
            return [
                Finding(
                    state.INFRASTRUCTURE,
                    "ClusterNotFound",
                    f"Cluster {scope.namespace}/{scope.key.name} does not exist",
                )
            ]
        version = blueprint.control_plane.version if blueprint is not None else children.version
        pools = len(blueprint.workers) if blueprint is not None else len(children.deployments)
        known = [each.metadata.name for each in children.addons]
        wanted = known if blueprint is None else list(blueprint.addon_names)
        return [
            state.infrastructure_ready(children.cluster),
            state.control_plane_ready(children.cluster, version, children.version),
            state.workers_ready(children.deployments, pools),
            state.addons_ready(children.addons, wanted),
        ]

    def _summarise(self, scope: TenantScope) -> None:
        status, children = scope.object.status, scope.children
        status.tenant_namespace = scope.namespace
        endpoint = children.cluster.spec.control_plane_endpoint if children.cluster is not None else None
        status.control_plane_endpoint = f"{endpoint.host}:{endpoint.port}" if endpoint and endpoint.host else ""
        if status.control_plane_endpoint:
            status.kubeconfig_secret_ref = LocalRef(name=f"{scope.key.name}{KUBECONFIG_SUFFIX}")
        status.worker_nodes_desired = sum(each.spec.replicas or 0 for each in children.deployments)
        status.worker_nodes_ready = sum(each.status.ready_replicas or 0 for each in children.deployments)
        status.worker_selector = f"cluster.x-k8s.io/cluster-name={scope.key.name}"
        status.observed_state = ObservedState(
            kubernetes_version=children.version,
            workers=ObservedWorkers(desired=status.worker_nodes_desired, ready=status.worker_nodes_ready),
            addons=state.observed_addons(children.addons),
        )


def _labels(obj: Unstructured) -> dict[str, str]:
    return obj.metadata.get("labels") or {}
