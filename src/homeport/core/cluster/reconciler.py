"""Cluster: takes its infrastructure and its control plane into its hands, learns its endpoint, and goes in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import (
    APIEndpoint,
    Cluster,
    ClusterClass,
    FailureDomain,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
)
from homeport.capi import contract
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, OK_TO_DELETE, Condition, Reason
from homeport.capi.object.ownership import owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote import kubeconfig, pki
from homeport.capi.unreadable import WORKERS, await_readable
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.core.cluster import deletion
from homeport.core.cluster.observed import Descendants, RefusedEndpoint
from homeport.core.cluster.part import parts
from homeport.core.cluster.scope import ClusterScope
from homeport.core.index import by_cluster
from homeport.core.machine.observed import Connection
from homeport.core.related import hold_related, note_failure, observe_related
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Phase

MANAGER = "homeport-cluster"
# A user's own authority need not have the label by which Secrets are watched.
_CA_SECONDS = 30.0


class ClusterReconciler(CapiReconciler[Cluster, ClusterScope]):
    controller_name = "cluster"
    kind = Cluster
    field_manager = MANAGER
    condition = Condition.AVAILABLE
    finalizer = CLUSTER_FINALIZER
    workers = 16
    own_writes_wake = False
    rests = True
    pace = Pace(1.0)

    def __init__(self, capi: Capi, *, topology_hooks: bool = False, paced: bool = True) -> None:
        super().__init__(capi.manager, paced=paced)
        self.capi = capi
        self._topology_hooks = topology_hooks  # somebody asks extensions before a managed Cluster may go
        informers = capi.manager.informers
        self._classes = informers.get(ClusterClass).cache
        self._machines = by_cluster(informers.get(Machine).cache)
        self._sets = by_cluster(informers.get(MachineSet).cache)
        self._deployments = by_cluster(informers.get(MachineDeployment).cache)
        self._pools = by_cluster(informers.get(MachinePool).cache)
        self._peaks: dict[str, int] = {}  # by uid of a Cluster that goes: the most machines there were

    def load(self, obj: Cluster) -> ClusterScope:
        return ClusterScope(obj)

    def cluster_of(self, scope: ClusterScope) -> Cluster:
        return scope.object

    def phases(self, scope: ClusterScope) -> Sequence[Phase[ClusterScope]]:
        hold = [self._observe, self._hold_related, self._hold_cluster]
        if scope.deleting:
            return [*hold, self._release, self.drop_finalizer, self._end]
        return [*hold, self._await_parts]

    # -- reading -----------------------------------------------------------------------------------------------

    async def _observe(self, scope: ClusterScope) -> None:
        cluster, seen, key = scope.object, scope.seen, scope.key
        kind = Cluster.__resource__
        seen.infrastructure = await observe_related(
            self.capi, cluster.spec.infrastructure_ref, key, watcher=self.controller, owner_kind=kind
        )
        seen.control_plane = await observe_related(
            self.capi, cluster.spec.control_plane_ref, key, watcher=self.controller, owner_kind=kind
        )
        seen.descendants = Descendants(self._machines(key), self._sets(key), self._deployments(key), self._pools(key))
        ref = cluster.spec.topology.class_ref
        if ref is not None:
            seen.cluster_class = self._classes.get(Key(ref.namespace or key.namespace, ref.name))
        remotes = self.capi.remotes
        up = remotes.get(key) is not None
        seen.connection = Connection(
            up, "" if up else remotes.why(key), remotes.last_probe(key), remotes.silent_since(key)
        )

    # -- taking hold -------------------------------------------------------------------------------------------

    async def _hold_related(self, scope: ClusterScope) -> None:
        cluster = scope.object
        # Only what a topology made is ours alone.
        owner = owner_reference(cluster, controller=cluster.spec.topology.class_ref is not None)
        labels = {CLUSTER_NAME_LABEL: cluster.metadata.name}
        for related in (scope.seen.infrastructure, scope.seen.control_plane):
            await hold_related(
                self.capi, related, owner, scope.key, self._write, watcher=self.controller, labels=labels
            )

    def _take_infrastructure(self, scope: ClusterScope) -> None:
        cluster, related = scope.object, scope.seen.infrastructure
        state = cluster.status.initialization
        if related.ref is None:
            if not scope.deleting and cluster.spec.topology.class_ref is None:
                state.infrastructure_provisioned = True
            return
        note_failure(cluster, related)
        if related.object is None or related.deleting:
            return
        if not state.infrastructure_provisioned and not contract.infra_cluster.provisioned(
            related.object, related.contract
        ):
            return
        self._take_endpoint(cluster, contract.infra_cluster.endpoint(related.object))
        cluster.status.failure_domains = [
            FailureDomain(name=d.name, control_plane=d.control_plane, attributes=dict(d.attributes))
            for d in contract.infra_cluster.failure_domains(related.object, related.contract)
        ]
        if not state.infrastructure_provisioned:
            state.infrastructure_provisioned = True
            self.recorder.record(cluster, "InfrastructureReady", f"{related} is provisioned")

    def _take_control_plane(self, scope: ClusterScope) -> None:
        cluster, related = scope.object, scope.seen.control_plane
        if related.object is None:
            return
        note_failure(cluster, related)
        if related.deleting:
            return
        self._take_endpoint(cluster, contract.control_plane.endpoint(related.object))
        state = cluster.status.initialization
        if not state.control_plane_initialized and contract.control_plane.initialized(related.object, related.contract):
            state.control_plane_initialized = True
            self.recorder.record(cluster, "ControlPlaneInitialized", f"{related} is initialized")

    def _take_endpoint(self, cluster: Cluster, found: contract.Endpoint | None) -> None:
        known = cluster.spec.control_plane_endpoint
        if found is not None and not (known.host and known.port):
            cluster.spec.control_plane_endpoint = APIEndpoint(host=found.host, port=found.port)

    async def _hold_cluster(self, scope: ClusterScope) -> None:
        namespace = scope.key.namespace
        scope.seen.parts = parts(scope.seen, lambda ref: self.capi.externals.cached(ref, namespace))
        self._take_infrastructure(scope)
        self._take_control_plane(scope)
        try:
            await self._patch_cluster(scope)
        except Invalid as error:
            if scope.object.spec.control_plane_endpoint == scope.read.spec.control_plane_endpoint:
                raise
            _refuse_endpoint(scope, error)
            await self._patch_cluster(scope)

    async def _patch_cluster(self, scope: ClusterScope) -> None:
        patch = cluster_patch(scope.read, scope.object, deleting=scope.deleting)
        if patch:
            scope.update_metadata(await self.client.patch(Cluster, scope.key, MergePatch(patch), self._write))

    async def _hold_kubeconfig(self, scope: ClusterScope) -> Wait | None:
        """Where a control plane provider is, it does this."""
        cluster, now = scope.object, self.clock.now()
        endpoint = cluster.spec.control_plane_endpoint
        if cluster.spec.control_plane_ref is not None or cluster.spec.topology.class_ref is not None:
            return None
        if not endpoint.host or not endpoint.port:
            return None
        try:
            found = await pki.lookup(self.client, scope.key, ("ca",), now=now)
        except pki.PkiError as error:
            return Wait("CertificatesNotUsable", str(error), after=_CA_SECONDS)
        if "ca" not in found:
            name = pki.secret_name(scope.key.name, "ca")
            return Wait("WaitingForCertificates", f"Secret {name} does not exist yet", after=_CA_SECONDS)
        secret = await kubeconfig.ensure(
            self.client,
            scope.key,
            server=kubeconfig.server_url(endpoint.host, endpoint.port),
            ca=found["ca"],
            owner=owner_reference(cluster, controller=True),
            now=now,
            options=self._write,
            proxy=self.capi.proxy,
        )
        due = kubeconfig.renew_at(kubeconfig.value(secret))
        return None if due is None else Wait("KubeconfigIsGood", after=max(1.0, due - now), quiet=True)

    # -- going -------------------------------------------------------------------------------------------------

    async def _release(self, scope: ClusterScope) -> Wait | None:
        scope.seen.deletion = await self._delete_parts(scope)
        return scope.seen.deletion

    async def _delete_parts(self, scope: ClusterScope) -> Wait | None:
        cluster, seen = scope.object, scope.seen
        if (
            self._topology_hooks
            and cluster.spec.topology.class_ref
            and OK_TO_DELETE not in cluster.metadata.annotations
        ):
            return Wait(
                Reason.WAITING_FOR_BEFORE_DELETE_HOOK, "waiting for the BeforeClusterDelete extensions to allow it"
            )
        uid = cluster.metadata.uid
        peak = max(self._peaks.get(uid, 0), deletion.count(cluster, seen.descendants))
        self._peaks[uid] = peak
        step = deletion.plan(cluster, seen.descendants, seen.control_plane, seen.infrastructure, peak)
        for obj in step.delete.objects:
            await self._delete(type(obj), key_of(obj), obj.metadata.uid)
        # The control plane and the infrastructure go only after machines that really are gone.
        unreadable = await_readable(self.capi.manager.informers, scope.key.namespace, *WORKERS)
        if unreadable is not None:
            return unreadable
        related = step.delete.related
        if related is not None and related.object is not None:
            await self._delete(related.resource, key_of(related.object), related.object.uid)
        return step.wait

    async def _end(self, scope: ClusterScope) -> None:
        """Finalizers of others may be left, but nothing to report on."""
        scope.released = True
        self._peaks.pop(scope.object.metadata.uid, None)

    async def _delete(self, kind: Any, key: Key, uid: str) -> None:
        try:
            await self.client.delete(kind, key, uid=uid)
        except NotFound:
            return  # its event comes

    # -- waiting -----------------------------------------------------------------------------------

    async def _await_parts(self, scope: ClusterScope) -> Wait | None:
        wait = await self._hold_kubeconfig(scope)
        return self._missing_part(scope) or wait

    def _missing_part(self, scope: ClusterScope) -> Wait | None:
        cluster, seen = scope.object, scope.seen
        state = cluster.status.initialization
        for related in (seen.infrastructure, seen.control_plane):
            if related.trouble:
                return Wait("ReferenceNotUsable", related.trouble)
            if related.missing:
                return Wait(Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")
        if seen.refused is not None:
            return Wait(Reason.ENDPOINT_NOT_USABLE, seen.refused.message, warning=True)
        if not state.infrastructure_provisioned:
            if seen.infrastructure.ref is None:
                return Wait("WaitingForInfrastructure", "waiting for spec.infrastructureRef to be set")
            return Wait("WaitingForInfrastructure", f"waiting for {seen.infrastructure} to be provisioned")
        if not state.control_plane_initialized and not any(m.status.node_ref for m in seen.descendants.control_plane):
            waited = seen.control_plane if seen.control_plane.ref is not None else "a control plane machine"
            return Wait(Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, f"waiting for {waited} to be initialized")
        return None


def _refuse_endpoint(scope: ClusterScope, error: Invalid) -> None:
    """The Cluster can't have the endpoint that a provider offers: nothing starts before that is corrected."""
    cluster, seen = scope.object, scope.seen
    offered = cluster.spec.control_plane_endpoint
    infrastructure = seen.infrastructure.object
    found = contract.infra_cluster.endpoint(infrastructure) if infrastructure is not None else None
    same = found is not None and (found.host, found.port) == (offered.host, offered.port)
    source = seen.infrastructure if same else seen.control_plane
    why = "; ".join(f"{each.field}: {each.message}" for each in error.causes) or error.message
    text = (
        f"{source} offers the endpoint {offered.host}:{offered.port}, which the Cluster can't use: {why}. Correct the "
        f"endpoint of {source}, or spec.clusterNetwork of the Cluster"
    )
    seen.refused = RefusedEndpoint(source, text)
    cluster.spec.control_plane_endpoint = scope.read.spec.control_plane_endpoint
    before = scope.read.status.initialization.infrastructure_provisioned
    cluster.status.initialization.infrastructure_provisioned = before


def cluster_patch(stored: Cluster, wanted: Cluster, *, deleting: bool) -> dict[str, Any]:
    """The merge patch of metadata and spec; {} when all is as it should be."""
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    if not deleting and CLUSTER_FINALIZER not in stored.metadata.finalizers:
        metadata["finalizers"] = [*stored.metadata.finalizers, CLUSTER_FINALIZER]
    endpoint = wanted.spec.control_plane_endpoint
    if endpoint != stored.spec.control_plane_endpoint:
        spec["controlPlaneEndpoint"] = {"host": endpoint.host, "port": endpoint.port}
    if not metadata and not spec:
        return {}
    state = {"uid": stored.metadata.uid, "resourceVersion": stored.metadata.resource_version}
    return {"metadata": {**metadata, **state}, **({"spec": spec} if spec else {})}
