"""The loop of a Cluster API control plane: TenantControlPlane, endpoint, Secrets of the Cluster, status."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.steward.controlplane import Endpoint as WireEndpoint
from homeport.api.steward.controlplane import HostedControlPlane
from homeport.api.steward.v1alpha1 import AnyTenantControlPlane
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL, KUBECONFIG_SUFFIX, SECRET_TYPE, SECRET_VALUE, Condition
from homeport.capi.object.ownership import is_controlled_by, owner_of_kind, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote.pki import SECRET
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.hosted import name as names
from homeport.hosted.clusterapi.approval import Approver
from homeport.hosted.clusterapi.tenant import render_tenant, route_endpoint
from homeport.hosted.endpoint import Endpoint, parse_endpoint
from homeport.hosted.flavour import Flavour
from homeport.hosted.infracluster import publish_endpoint
from homeport.hosted.ownership import NameTaken
from homeport.hosted.scope import HostedPlaneScope
from homeport.hosted.secret import SecretKeeper, decoded
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_SERVING = ("Ready", "WriteLimited", "Upgrading", "Migrating")
_STARTED = ("Ready", "WriteLimited")
_RETRY_SECONDS = 10.0


class ControlPlaneScope(HostedPlaneScope[HostedControlPlane]):
    def __init__(self, obj: HostedControlPlane, cluster: Cluster | None, tenant: AnyTenantControlPlane | None) -> None:
        super().__init__(obj, cluster)
        self.tenant = tenant
        self.endpoint: Endpoint | None = None

    @property
    def state(self) -> str:
        return "" if self.tenant is None else self.tenant.status.kubernetes_resources.version.status


class HostedControlPlaneReconciler(CapiReconciler[HostedControlPlane, ControlPlaneScope]):
    condition = Condition.AVAILABLE

    def __init__(self, capi: Capi, flavour: Flavour) -> None:
        self.flavour = flavour
        self.kind = flavour.control_plane
        self.controller_name = f"{flavour.name}-controlplane"
        self.field_manager = f"homeport-{flavour.name}-control-plane"
        self.finalizer = f"{flavour.name}.controlplane.cluster.x-k8s.io"
        super().__init__(capi.manager)
        self._capi = capi
        self._clusters = capi.manager.informers.get(Cluster).cache
        self._tenants = capi.manager.informers.get(flavour.tenant).cache
        self._approver = Approver(capi, self._write, self.recorder, self.controller.wake)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._approver.forget(key)

    def load(self, obj: HostedControlPlane) -> ControlPlaneScope:
        owner = owner_of_kind(obj, Cluster.__resource__)
        cluster = self._clusters.get(Key(obj.metadata.namespace, owner["name"])) if owner is not None else None
        tenant = self._tenants.get(Key(obj.metadata.namespace, obj.metadata.name))
        return ControlPlaneScope(obj, cluster, tenant)

    def cluster_of(self, scope: ControlPlaneScope) -> Cluster | None:
        return scope.found_cluster

    def phases(self, scope: ControlPlaneScope) -> Sequence[Phase[ControlPlaneScope]]:
        if scope.deleting:
            return [self._remove_tenant, self.drop_finalizer]
        if scope.found_cluster is None:
            return [self._await_cluster]
        return [
            self.hold_finalizer,
            self._hold_tenant,
            self._await_endpoint,
            self._publish,
            self._hold_secrets,
            self._approve,
            self._await_ready,
        ]

    def expected(self, scope: ControlPlaneScope, error: Exception) -> Wait | None:
        if isinstance(error, NameTaken):
            return Wait("NameTaken", str(error), after=_RETRY_SECONDS, warning=True)
        return None

    # -- phases ------------------------------------------------------------------------------------------------

    async def _await_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        kind = self.kind.__resource__.kind
        text = f"no Cluster refers to it: set spec.controlPlaneRef of a Cluster to this {kind}"
        return Wait("WaitingForCluster", text)

    async def _hold_tenant(self, scope: ControlPlaneScope) -> Wait | None:
        tenant = scope.tenant
        if tenant is not None and not is_controlled_by(tenant, scope.object):
            text = f"TenantControlPlane {scope.key} exists and belongs to something else: delete or rename one of them"
            return self._failed(scope, "TenantControlPlaneCreated", Wait("NameTaken", text, warning=True))
        body = render_tenant(self.flavour, scope.object, scope.cluster)
        await self.client.apply(body, self._write, kind=self.flavour.tenant.__resource__, force=True)
        self._done(scope, "TenantControlPlaneCreated")
        return None

    async def _await_endpoint(self, scope: ControlPlaneScope) -> Wait | None:
        found = parse_endpoint(scope.tenant.status.control_plane_endpoint) if scope.tenant is not None else None
        if found is None:
            why = self._why(scope) or "it has just been created"
            text = f"TenantControlPlane {scope.key} has no endpoint yet: {why}"
            wait = Wait("WaitingForControlPlaneEndpoint", text)
            return self._failed(scope, "TenantControlPlaneAddressReady", wait)
        scope.endpoint = route_endpoint(scope.object) or found
        self._done(scope, "TenantControlPlaneAddressReady")
        return None

    async def _publish(self, scope: ControlPlaneScope) -> Wait | None:
        """Own endpoint, the infrastructure's, the Cluster's."""
        endpoint = scope.endpoint
        assert endpoint is not None
        wanted = WireEndpoint(host=endpoint.host, port=endpoint.port)
        if scope.object.spec.control_plane_endpoint != wanted:
            body = {"spec": {"controlPlaneEndpoint": {"host": endpoint.host, "port": endpoint.port}}}
            scope.update_metadata(await self.client.patch(self.kind, scope.key, MergePatch(body), self._write))
        self._done(scope, "ControlPlaneEndpointPatched")
        wait = await publish_endpoint(
            self._capi, self.client, scope.cluster, endpoint, self._write, managed_by=self.flavour.name
        )
        if wait is not None:
            return self._failed(scope, "InfrastructureClusterPatched", wait)
        self._done(scope, "InfrastructureClusterPatched")
        return None

    async def _hold_secrets(self, scope: ControlPlaneScope) -> Wait | None:
        """What everybody else reads of a Cluster: its CA and the administrator's kubeconfig."""
        namespace, cluster = scope.key.namespace, scope.cluster.metadata.name
        try:
            admin = await self.client.get(SECRET, Key(namespace, names.part(scope.key.name, names.ADMIN)))
            ca = await self.client.get(SECRET, Key(namespace, names.part(scope.key.name, names.CA)))
        except NotFound:
            wait = Wait("WaitingForKubeconfig", f"TenantControlPlane {scope.key} has no kubeconfig yet", after=2.0)
            return self._failed(scope, "KubeadmResourcesCreated", wait)
        content, authority = decoded(admin), decoded(ca)
        metadata = {
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "ownerReferences": [owner_reference(scope.object, controller=True)],
        }
        keeper = SecretKeeper(self.client, self._write, namespace, metadata)
        kubeconfig = {SECRET_VALUE: content["super-admin.conf"]}
        await keeper.hold_exact(f"{cluster}{KUBECONFIG_SUFFIX}", kubeconfig, type_=SECRET_TYPE)
        if cluster != scope.key.name:  # otherwise the Secret of the TenantControlPlane is that of the Cluster
            pair = {"tls.crt": authority["ca.crt"], "tls.key": authority["ca.key"]}
            await keeper.hold_exact(names.part(cluster, names.CA), pair, type_=SECRET_TYPE)
        self._done(scope, "KubeadmResourcesCreated")
        return None

    async def _approve(self, scope: ControlPlaneScope) -> Wait | None:
        given = scope.object.spec.addons.worker_bootstrap
        scope.timer = await self._approver.settle(scope.object, scope.cluster, given)
        return None

    async def _await_ready(self, scope: ControlPlaneScope) -> Wait | None:
        status, kind = scope.object.status, self.kind.__resource__.kind
        if scope.state in _STARTED:
            status.initialized = status.initialization.control_plane_initialized = True
        wait = Wait(
            "TenantControlPlaneNotReady", f"TenantControlPlane {scope.key} is {scope.state}: {self._why(scope)}"
        )
        if not status.initialized:
            return self._failed(scope, f"{kind}IsInitialized", wait)
        self._done(scope, f"{kind}IsInitialized")
        if scope.state not in _SERVING:
            return self._failed(scope, f"{kind}IsReady", wait)
        self._done(scope, f"{kind}IsReady")
        return None

    async def _remove_tenant(self, scope: ControlPlaneScope) -> Wait | None:
        found = await find_object(self.client, self.flavour.tenant, scope.key)
        if found is None:
            return None
        if not is_controlled_by(found, scope.object):
            return None
        if not found.metadata.deletion_timestamp:
            await self.client.delete(self.flavour.tenant, scope.key, uid=found.metadata.uid)
        text = f"TenantControlPlane {scope.key} is being deleted"
        return Wait("WaitingForTenantControlPlane", text, after=_RETRY_SECONDS)

    # -- reporting ---------------------------------------------------------------------------------------------

    def _why(self, scope: ControlPlaneScope) -> str:
        """What the TenantControlPlane itself waits for."""
        if scope.tenant is None:
            return ""
        found = condition.find(scope.tenant.status.conditions, "Ready") or {}
        return str(found.get("message") or found.get("reason") or "")

    def _done(self, scope: ControlPlaneScope, kind: str) -> None:
        scope.report(kind, "True", kind, "", rfc3339(self.clock.now()))

    def _failed(self, scope: ControlPlaneScope, kind: str, wait: Wait) -> Wait:
        scope.report(kind, "False", wait.reason, wait.message, rfc3339(self.clock.now()))
        return wait

    async def _store(self, scope: ControlPlaneScope) -> None:
        if not scope.deleting:
            self._fill(scope)
        await super()._store(scope)

    def _fill(self, scope: ControlPlaneScope) -> None:
        status, tenant = scope.object.status, scope.tenant
        status.external_managed_control_plane = True
        status.ready = status.initialized and scope.state in _SERVING
        if tenant is None:
            return
        resources = tenant.status.kubernetes_resources
        status.version = resources.version.version
        found = resources.deployment
        if found is None:
            return
        status.selector = found.selector
        status.replicas = found.replicas or 0
        status.ready_replicas = found.ready_replicas or 0
        status.updated_replicas = found.updated_replicas or 0
        status.unavailable_replicas = found.unavailable_replicas or 0
        status.available_replicas = found.available_replicas or 0
        status.up_to_date_replicas = found.updated_replicas or 0
