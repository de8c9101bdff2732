"""The control plane's endpoint: an address that the user chose, a LoadBalancer of Harvester, or a Service."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.kubevirt.v1alpha1 import ClusterSpec, KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, label_value
from homeport.client.protocol import Key
from homeport.infra.error import Denied, Misconfigured, Missing, Taken
from homeport.infra.protocol import ClusterScope
from homeport.machinery import condition
from homeport.providers.harvester.infracluster.belonging import holder_of
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLUSTER_UID,
    LOAD_BALANCER,
    MACHINE_NAMESPACE,
    ROLE,
    SERVICE,
    VM,
)
from homeport.providers.harvester.machine.observation import HARVESTER, KUBEVIRT
from homeport.runtime.cache import deleting, labels_of
from homeport.runtime.outcome import Wait

Json = dict[str, Any]
Scope = ClusterScope[KubevirtCluster, HarvesterSession]
FindMachines = Callable[[str], Iterable[KubevirtMachine]]  # of a namespace

AVAILABLE = "LoadBalancerAvailable"
PORT = 6443
VIP_INTERFACE = "enp1s0"
_AGAIN_SECONDS = 10.0


def vip_interface(infra: KubevirtCluster) -> str:
    """Where control planes announce the endpoint themselves; '': something in front of them does."""
    return "" if _front(infra.spec) is not None else VIP_INTERFACE


def _front(spec: ClusterSpec) -> Resource | None:
    if spec.control_plane_load_balancer is not None:
        return LOAD_BALANCER
    return SERVICE if spec.control_plane_service_template is not None else None


def balancer_kind(session: HarvesterSession) -> Resource:
    """What a Service of type LoadBalancer of the workload cluster gets."""
    return LOAD_BALANCER if session.harvester else SERVICE


def front(scope: Scope) -> Resource | None:
    """What is in front of the control plane; None: its machines announce the address, or somebody else supplies it."""
    spec = scope.infra.spec
    supplied = scope.plan.endpoint_supplied or bool(spec.control_plane_endpoint.host)
    return _front(spec) or (None if scope.session.harvester or supplied else SERVICE)


async def converge(scope: Scope, machines: FindMachines) -> Wait | None:
    """None: the endpoint is known, or somebody else supplies it."""
    spec = scope.infra.spec
    front = _front(spec)
    if front is None and scope.session.harvester:
        if not spec.control_plane_endpoint.host and not scope.plan.endpoint_supplied:
            raise Misconfigured(
                "spec.controlPlaneEndpoint.host: set a free address of the VM network, or set "
                "spec.controlPlaneLoadBalancer or spec.controlPlaneServiceTemplate"
            )
        return None
    if front is None and (spec.control_plane_endpoint.host or scope.plan.endpoint_supplied):
        return None
    kind = front or SERVICE  # upstream's default on KubeVirt
    if kind is LOAD_BALANCER and not scope.session.harvester:
        raise Misconfigured(
            "spec.controlPlaneLoadBalancer: needs Harvester, and this is KubeVirt without it: use "
            "spec.controlPlaneServiceTemplate"
        )
    found = await _hold(scope, kind, machines)
    if spec.control_plane_endpoint.host or address_of(kind, found):
        scope.report(AVAILABLE, True, "Succeeded", "")
        return None
    text = f"{kind.kind} {found.namespace}/{found.name} has no address yet{said(found)}"
    scope.report(AVAILABLE, False, "LoadBalancerProvisioningFailed", text)
    return Wait("WaitingForLoadBalancer", text, after=_AGAIN_SECONDS)


async def endpoint(scope: Scope) -> tuple[str, int] | None:
    spec, held = scope.infra.spec, scope.infra.spec.control_plane_endpoint
    if held.host:
        return None if held.port else (held.host, PORT)
    if scope.plan.endpoint_supplied and _front(spec) is None:
        return None
    kind = _front(spec) or SERVICE
    found = await scope.session.get(kind, front_key(scope, kind))
    host = address_of(kind, found) if found is not None else ""
    return (host, PORT) if host else None


async def release(scope: Scope, machines: FindMachines) -> Wait | None:
    """None: it was seen to be gone."""
    for kind in (LOAD_BALANCER, SERVICE):
        try:
            found = await scope.session.get(kind, front_key(scope, kind))
        except Denied:
            if kind is front(scope):
                raise
            continue  # an account that may not see this kind created none of it
        if found is None or not await _is_ours(scope, kind, found, machines):
            continue
        if not deleting(found):
            await scope.session.delete(kind, found)
        return Wait("Deleting", f"{kind.kind} {found.namespace}/{found.name} is being deleted", after=2.0)
    return None


async def _hold(scope: Scope, kind: Resource, machines: FindMachines) -> Unstructured:
    key = front_key(scope, kind)
    found = await scope.session.get(kind, key)
    if found is None:
        try:
            return await scope.session.create(kind, _render(scope, kind, key))
        except Taken:
            raise Missing(f"{kind.kind} {key} was created a moment ago: trying again") from None
    if not await _is_ours(scope, kind, found, machines):
        raise Taken(
            f"{kind.kind} {key} exists and was not created for this cluster: it {holder_of(found)}: rename this "
            "Cluster, or use another namespace of the infrastructure cluster"
        )
    if labels_of(found).get(CLUSTER_UID) != scope.infra.metadata.uid:  # the objects were moved to this plane
        body = {"metadata": {"uid": found.uid, "labels": {CLUSTER_UID: scope.infra.metadata.uid}}}
        return await scope.session.patch(kind, key, body)
    return found


async def _is_ours(scope: Scope, kind: Resource, found: Unstructured, machines: FindMachines) -> bool:
    labels = labels_of(found)
    before = labels.get(CLUSTER_UID, "")
    if before == scope.infra.metadata.uid:
        return True
    held = scope.infra.spec.control_plane_endpoint.host
    same_name = labels.get(CLUSTER_NAME_LABEL) == label_value(scope.name)
    if not same_name or not held or address_of(kind, found) != held:
        return False
    return await _moved_here(scope, before, machines)


async def _moved_here(scope: Scope, before: str, machines: FindMachines) -> bool:
    """Whether the machines of the cluster came along with the object: a copy of it must not take the original's."""
    if not before:
        return True  # upstream's, which has no such label
    vms = await scope.session.list(VM, scope.session.namespace, f"{CLUSTER_UID}={before}")
    known = {machine.spec.provider_id for machine in machines(scope.infra.metadata.namespace)}
    return all({f"{HARVESTER}{vm.uid}", f"{KUBEVIRT}{vm.uid}", f"{KUBEVIRT}{vm.name}"} & known for vm in vms)


def front_key(scope: Scope, kind: Resource) -> Key:
    template = scope.infra.spec.control_plane_service_template
    own = str(template.metadata.get("namespace") or "") if template is not None and kind is SERVICE else ""
    return Key(own or scope.session.namespace, f"{scope.name}-lb")


def _render(scope: Scope, kind: Resource, key: Key) -> Json:
    labels = {CLUSTER_NAME_LABEL: label_value(scope.name), CLUSTER_UID: scope.infra.metadata.uid}
    # Clusters of other namespaces may have the same name.
    chosen = {
        CLUSTER_NAME_LABEL: label_value(scope.name),
        MACHINE_NAMESPACE: label_value(scope.infra.metadata.namespace),
        ROLE: "control-plane",
    }
    meta: Json = {"name": key.name, "namespace": key.namespace, "labels": labels}
    if kind is LOAD_BALANCER:
        balancer = scope.infra.spec.control_plane_load_balancer
        assert balancer is not None
        spec: Json = {
            "workloadType": "vm",
            "ipam": balancer.ipam,
            "listeners": [{"name": "api", "port": PORT, "protocol": "TCP", "backendPort": PORT}],
            "backendServerSelector": {name: [value] for name, value in chosen.items()},
            "healthCheck": {
                "port": PORT,
                "successThreshold": 1,
                "failureThreshold": 3,
                "periodSeconds": 5,
                "timeoutSeconds": 3,
            },
        }
        if balancer.ip_pool:
            spec["ipPool"] = balancer.ip_pool
        return {**kind.type_meta, "metadata": meta, "spec": spec}
    template = scope.infra.spec.control_plane_service_template
    if template is not None:
        meta["labels"] = {**(template.metadata.get("labels") or {}), **labels}
        meta["annotations"] = dict(template.metadata.get("annotations") or {})
    ports = [{"name": "api", "port": PORT, "protocol": "TCP", "targetPort": PORT}]
    service: Json = {"selector": chosen, "ports": ports}
    if template is not None and template.spec.type:
        service["type"] = template.spec.type
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}


def address_of(kind: Resource, found: Unstructured) -> str:
    status, spec = found.get("status") or {}, found.get("spec") or {}
    if kind is LOAD_BALANCER:
        # Its condition waits for machines behind it, and machines wait for the address: the address alone counts.
        return str(status.get("address") or (status.get("allocatedAddress") or {}).get("ip") or "")
    if spec.get("type") == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or [{}]
        return str(ingress[0].get("ip") or ingress[0].get("hostname") or "")
    address = str(spec.get("clusterIP") or "")
    return "" if address == "None" else address


def said(found: Unstructured) -> str:
    told = condition.find((found.get("status") or {}).get("conditions") or [], "Ready")
    text = str((told or {}).get("message") or "")
    return f": {text}" if text else ""
