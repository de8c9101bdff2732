"""TenantControlPlane: the loop.

DataStore > Service > endpoint > certificates > kubeconfigs > schema and user > Deployment > content of the cluster
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.v1alpha1 import (
    AnyTenantControlPlane,
    ConfigMapState,
    DeploymentState,
    ServiceState,
    VersionState,
)
from homeport.capi.definition.inventory import NAMESPACE as SYSTEM_NAMESPACE
from homeport.capi.object.ownership import is_controlled_by
from homeport.capi.remote.pki import PkiError
from homeport.capi.remote.workload import NODE, Connect
from homeport.capi.version import is_valid, parse
from homeport.client.absence import find_object
from homeport.client.config import ConfigError
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, Query
from homeport.hosted import name as names
from homeport.hosted.connection import Connections
from homeport.hosted.datastore.driver import CanRun, check_driver
from homeport.hosted.datastore.provision import DefaultDatastore
from homeport.hosted.endpoint import Pending, ingress_hosts, node_address, resolve_endpoint
from homeport.hosted.etcd.dial import DatastoreError, connect
from homeport.hosted.flavour import Flavour
from homeport.hosted.ownership import NameTaken
from homeport.hosted.tenant.credential import AuthorityLost, Credentials
from homeport.hosted.tenant.deployment import render_deployment, render_tenant_service
from homeport.hosted.tenant.egress import render_egress_selector
from homeport.hosted.tenant.exposure import Exposure
from homeport.hosted.tenant.podinputs import EGRESS_FILE
from homeport.hosted.tenant.rollout import is_available, is_rolled_out, progress, refuse_version, state_of
from homeport.hosted.tenant.scope import TenantScope
from homeport.hosted.tenant.setup import DEFAULT, RETRY_SECONDS, Setup
from homeport.hosted.tenant.setup import Connect as DatastoreConnect
from homeport.hosted.tenant.workload import Workload
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait, sooner
from homeport.runtime.reconciler import Phase
from homeport.runtime.skeleton import ObjectReconciler

MANAGER = "homeport-hosted"
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
SERVICE = Resource("", "v1", "Service", "services")
POD = Resource("", "v1", "Pod", "pods")
_LONG_SECONDS = 86_400.0  # a timer further away than that is set again later


class TenantControlPlaneReconciler(ObjectReconciler[AnyTenantControlPlane, TenantScope]):
    field_manager = MANAGER
    condition = "Ready"
    workers = 16

    def __init__(
        self,
        manager: Manager,
        flavour: Flavour,
        *,
        connect_tenant: Connect | None = None,
        connect_datastore: DatastoreConnect = connect,
        proxy: str = "",
        provision: DefaultDatastore | None = None,
        can_run: CanRun,
    ) -> None:
        """`provision`: makes the DataStore `default` where nobody else does; None: users bring it."""
        self.flavour = flavour
        self.kind = flavour.tenant
        self.controller_name = f"{flavour.name}-tenantcontrolplane"
        self.finalizer = flavour.finalizer
        super().__init__(manager)
        self._datastores = manager.informers.get(flavour.datastore).cache
        ours = Query(labels=flavour.project_label)
        self._services = manager.informers.get(SERVICE, ours).cache
        self._deployments = manager.informers.get(DEPLOYMENT, ours).cache
        self._provision = provision
        self._can_run = can_run
        self.connections = Connections(manager, connect=connect_tenant, proxy=proxy)
        self._credentials = Credentials(self.client, self._write, proxy)
        self._setup = Setup(self.client, self._write, self.recorder, self._datastores, connect_datastore)
        self._exposure = Exposure(self.client, self._write)
        self._workload = Workload(self.connections, self._write, self.controller.wake)

    def load(self, obj: AnyTenantControlPlane) -> TenantScope:
        return TenantScope(obj, self.flavour, self.clock.now())

    async def gone(self, key: Key) -> Wait | None:
        self._setup.forget(key)
        await self._workload.forget(key)
        return None

    async def leave(self, key: Key) -> None:
        await super().leave(key)
        await self.gone(key)

    def phases(self, scope: TenantScope) -> Sequence[Phase[TenantScope]]:
        if scope.deleting:
            return [self._stop, self._setup.remove, self.drop_finalizer]
        return [
            self.hold_finalizer,
            self._check_version,
            self._await_datastore,
            self._hold_service,
            self._await_endpoint,
            self._credentials.hold_certificates,
            self._credentials.hold_kubeconfigs,
            self._setup.hold,
            self._hold_konnectivity,
            self._hold_deployment,
            self._await_rollout,
            self._workload.hold,
            self._setup.finish_migration,
            self._note_installed,
            self._exposure.hold,
            self._report_datastore,
        ]

    # -- phases ------------------------------------------------------------------------------------------------

    async def _check_version(self, scope: TenantScope) -> Wait | None:
        """Admission refuses this; an object that came around it waits here, and its Pods stay as they are."""
        installed = scope.object.status.kubernetes_resources.version.version
        why = refuse_version(installed, scope.spec.kubernetes.version)
        if not why:
            return None
        scope.findings.refused = True
        return Wait("VersionRefused", f"spec.kubernetes.version: {why}", warning=True)

    async def _await_datastore(self, scope: TenantScope) -> Wait | None:
        """The DataStore `default` is made when it is needed for the first time."""
        name = scope.spec.data_store or DEFAULT
        known = self._datastores.get(Key("", name))
        if known is not None:
            check_driver(known, self._can_run)
        if self._provision is None or name != DEFAULT:
            return None
        return await self._provision.ensure(self.flavour, known)

    async def _hold_service(self, scope: TenantScope) -> Wait | None:
        body = render_tenant_service(scope.pod_inputs())
        body["metadata"] |= {"ownerReferences": scope.metadata()["ownerReferences"]}
        found = await self._own(SERVICE, body, scope)
        if isinstance(found, Wait):
            return found
        scope.findings.service = found
        return None

    async def _await_endpoint(self, scope: TenantScope) -> Wait | None:
        service, network = scope.findings.service, scope.object.spec.network_profile
        assert service is not None
        if wait := self._await_chosen_address(scope, service):
            return wait
        node = ""
        if (service.get("spec") or {}).get("type") == "NodePort" and not network.address:
            node = await self._node_address()
        found = resolve_endpoint(service, names.API_PORT_NAME, address=network.address, node_address=node)
        if isinstance(found, Pending):
            after = RETRY_SECONDS if found.reason == "WaitingForNodeAddress" else None
            return Wait(found.reason, found.message, after=after)
        scope.findings.endpoint = found
        scope.object.status.control_plane_endpoint = str(found)
        return None

    async def _node_address(self) -> str:
        nodes = (await self.client.list(NODE)).items
        if nodes or self._provision is None:
            return node_address(nodes)
        # A plane without Nodes says on its Pods where their ports are reached.
        pods = (await self.client.list(POD, Query(namespace=SYSTEM_NAMESPACE))).items
        found = (str((each.get("status") or {}).get("hostIP") or "") for each in pods)
        return next((each for each in found if each), "")

    def _await_chosen_address(self, scope: TenantScope, service: Unstructured) -> Wait | None:
        """An address that the load balancer has not given us may be another control plane's."""
        network = scope.object.spec.network_profile
        balanced = (service.get("spec") or {}).get("type") == "LoadBalancer"
        if not balanced or not network.address or network.allow_address_as_external_ip or ingress_hosts(service):
            return None
        others = (each for each in self._services if each.uid != service.uid)
        taken = any(network.address in ingress_hosts(each) for each in others)
        where = f"spec.networkProfile.address: {network.address}"
        if taken:
            text = f"{where} is the address of another control plane: choose another one, or remove the field"
            return Wait("AddressTaken", text, after=RETRY_SECONDS, warning=True)
        text = f"{where}: the load balancer did not give it to Service {scope.key} yet; `kubectl describe` shows why"
        return Wait("WaitingForLoadBalancer", text)

    async def _hold_konnectivity(self, scope: TenantScope) -> Wait | None:
        """The Pods stay as they are where its program can't run: with it they would never start."""
        if scope.spec.addons.konnectivity is None:
            return None
        image = scope.spec.addons.konnectivity.server.image
        if not self._can_run(f"{image}:latest"):
            text = (
                f"spec.addons.konnectivity: this plane can't run {image}: put the program proxy-server into the folder "
                "of --hosted-binaries and restart the plane, or remove the field: nodes that are reached directly do "
                "not need konnectivity"
            )
            return Wait("KonnectivityNotSupported", text, warning=True)
        name = scope.part(names.EGRESS_SELECTOR)
        await self._credentials.keeper(scope).hold_config(name, {EGRESS_FILE: render_egress_selector()})
        state = scope.object.status.addons.konnectivity
        if state is not None:
            state.config_map = ConfigMapState(name=name)
        return None

    async def _hold_deployment(self, scope: TenantScope) -> Wait | None:
        body = render_deployment(scope.pod_inputs(scope.findings.storage))
        body["metadata"] |= {"ownerReferences": scope.metadata()["ownerReferences"]}
        found = await self._own(DEPLOYMENT, body, scope)
        if isinstance(found, Wait):
            return found
        scope.findings.deployment = found
        return None

    async def _await_rollout(self, scope: TenantScope) -> Wait | None:
        deployment = scope.findings.deployment
        assert deployment is not None
        scope.findings.rolled_out = is_rolled_out(deployment)
        scope.findings.available = is_available(deployment)
        if int((deployment.get("spec") or {}).get("replicas", 1)) == 0:
            return Wait("Sleeping", "spec.controlPlane.deployment.replicas is 0: scale up to wake the control plane")
        if scope.findings.rolled_out:
            return None
        return Wait("WaitingForPods", progress(deployment) + await self._pod_trouble(scope))

    async def _note_installed(self, scope: TenantScope) -> Wait | None:
        wanted, served = scope.spec.kubernetes.version, scope.findings.served
        if is_valid(served) and parse(served) != parse(wanted):
            text = (
                f"spec.kubernetes.version is {wanted}, and the API server reports {served}: use images or programs of "
                f"{wanted}; the folder of --hosted-binaries may have a folder v{wanted.removeprefix('v')} for them"
            )
            self.recorder.record(scope.object, "VersionDiffers", text, warning=True)
        scope.object.status.kubernetes_resources.version.version = wanted
        return None

    async def _report_datastore(self, scope: TenantScope) -> Wait | None:
        """API servers may answer while no write succeeds: what is known of the DataStore is said here, too."""
        found = self._datastores.get(Key("", scope.spec.data_store or DEFAULT))
        known = condition.find(found.status.conditions, "Ready") if found is not None else None
        if known is None or known.get("status") != "False":
            return None
        return Wait(str(known.get("reason")), str(known.get("message")), warning=True)

    async def _stop(self, scope: TenantScope) -> Wait | None:
        """No API server may write while its data is being removed."""
        await self._workload.forget(scope.key)
        self._setup.forget(scope.key)
        found = await find_object(self.client, DEPLOYMENT, scope.key)
        if found is not None and is_controlled_by(found, scope.object):
            if not found.metadata.get("deletionTimestamp"):
                await self.client.delete(DEPLOYMENT, scope.key, uid=found.uid, propagation="Foreground")
            return Wait("WaitingForPods", f"Deployment {scope.key} is being deleted", after=RETRY_SECONDS)
        pods = await self._pods(scope)
        if pods:
            text = f"{len(pods)} Pods of the control plane are still running: {', '.join(each.name for each in pods)}"
            return Wait("WaitingForPods", text, after=RETRY_SECONDS)
        return None

    # -- children ----------------------------------------------------------------------------------------------

    async def _own(self, kind: Resource, body: dict[str, Any], scope: TenantScope) -> Unstructured | Wait:
        """Applies an object of the control plane. One of the same name that belongs to another owner is left alone."""
        cache = self._services if kind is SERVICE else self._deployments
        known = cache.get(scope.key)
        if known is None:
            known = await find_object(self.client, kind, scope.key)
        if known is not None and not is_controlled_by(known, scope.object):
            text = f"{kind.kind} {scope.key} exists and belongs to something else: delete or rename one of them"
            return Wait("NameTaken", text, warning=True)
        try:
            return await self.client.apply(body, self._write, kind=kind, force=True)
        except Invalid as error:  # a node port that is taken, a volume without a name, ...
            reason = "ServiceRefused" if kind is SERVICE else "DeploymentRefused"
            return Wait(reason, str(error), after=60.0, warning=True)

    async def _pods(self, scope: TenantScope) -> list[Unstructured]:
        selector = names.selector(self.flavour.group, scope.name)
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        return list((await self.client.list(POD, Query(namespace=scope.key.namespace, labels=labels))).items)

    async def _pod_trouble(self, scope: TenantScope) -> str:
        """What a Pod says about why it does not run: the first that says anything."""
        for pod in await self._pods(scope):
            status = pod.get("status") or {}
            for each in status.get("containerStatuses") or ():
                waiting = (each.get("state") or {}).get("waiting") or {}
                if waiting.get("message"):
                    return f"; Pod {pod.name}: {each.get('name', '')}: {waiting['message']}"
            for each in status.get("conditions") or ():
                if each.get("type") == "PodScheduled" and each.get("status") == "False":
                    return f"; Pod {pod.name}: {each.get('message', '')}"
            if status.get("message"):
                return f"; Pod {pod.name}: {status['message']}"
        return ""

    # -- reporting ---------------------------------------------------------------------------------------------

    def expected(self, scope: TenantScope, error: Exception) -> Wait | None:
        if isinstance(error, DatastoreError):
            return Wait(error.reason, str(error), after=RETRY_SECONDS, warning=True)
        if isinstance(error, NameTaken):
            return Wait("NameTaken", str(error), after=60.0, warning=True)
        if isinstance(error, AuthorityLost):
            return Wait("CertificateLost", str(error), after=60.0, warning=True)
        if isinstance(error, PkiError):
            return Wait("InvalidCertificate", str(error), after=60.0, warning=True)
        if isinstance(error, ConfigError):
            return Wait("InvalidKubeconfig", str(error), after=60.0, warning=True)
        return None

    async def _store(self, scope: TenantScope) -> None:
        if not scope.deleting:
            self._report(scope)
        await super()._store(scope)

    def _report(self, scope: TenantScope) -> None:
        findings, resources = scope.findings, scope.object.status.kubernetes_resources
        if findings.service is not None:
            resources.service = _service_state(findings.service, scope.spec.network_profile.port)
        deployment = findings.deployment
        if deployment is not None:
            resources.deployment = _deployment_state(deployment)
        known = self._deployments.get(scope.key) if deployment is None else deployment
        replicas = scope.spec.control_plane.deployment.replicas
        state = state_of(
            installed=resources.version.version,
            wanted=resources.version.version if findings.refused else scope.spec.kubernetes.version,
            replicas=replicas,
            rolled_out=findings.rolled_out,
            available=known is not None and is_available(known),
            migrating=findings.migrating,
            limited=scope.limited,
        )
        resources.version = VersionState(status=state, version=resources.version.version)

    def next_look(self, scope: TenantScope, wait: Wait | None) -> Wait | None:
        if scope.findings.renewals and not scope.deleting:
            after = min(_LONG_SECONDS, max(1.0, min(scope.findings.renewals) - scope.now))
            wait = sooner(wait, Wait("Renewal", "certificates are renewed before they expire", after=after, quiet=True))
        return super().next_look(scope, wait)


def _service_state(service: Unstructured, port: int) -> ServiceState:
    status = service.get("status") or {}
    return ServiceState(
        name=service.name,
        namespace=service.namespace,
        port=port,
        load_balancer=status.get("loadBalancer") or {},
        conditions=status.get("conditions") or [],
    )


def _deployment_state(deployment: Unstructured) -> DeploymentState:
    status = deployment.get("status") or {}
    selector = (deployment.get("spec") or {}).get("selector") or {}
    return DeploymentState(
        name=deployment.name,
        namespace=deployment.namespace,
        selector=str(from_label_selector(selector)),
        replicas=status.get("replicas"),
        ready_replicas=status.get("readyReplicas"),
        available_replicas=status.get("availableReplicas"),
        updated_replicas=status.get("updatedReplicas"),
        unavailable_replicas=status.get("unavailableReplicas"),
        terminating_replicas=status.get("terminatingReplicas"),
        collision_count=status.get("collisionCount"),
        observed_generation=status.get("observedGeneration"),
        conditions=status.get("conditions") or [],
    )
