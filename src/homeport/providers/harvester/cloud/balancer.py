"""Load balancers for Services of a workload cluster: LoadBalancers of Harvester, or Services of KubeVirt's cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured, Taken
from homeport.providers.harvester.cloud.config import CloudConfig
from homeport.providers.harvester.endpoint import address_of, balancer_kind, said
from homeport.providers.harvester.infracluster.belonging import holder_of
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLUSTER_UID,
    LOAD_BALANCER,
    MACHINE_NAMESPACE,
    SERVICE_UID,
)
from homeport.runtime.cache import deleting, labels_of
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

IPAM = "cloudprovider.harvesterhci.io/ipam"  # as Harvester's own manager names it
IP_POOL = "ccm.homeport.dev/ip-pool"
SERVICE_NAME = "ccm.homeport.dev/service"
_AGAIN_SECONDS = 5.0


class HarvesterBalancer:
    def __init__(self, config: CloudConfig, connect: Callable[[], Awaitable[HarvesterSession]]) -> None:
        self._config = config
        self._connect = connect

    async def ensure(self, service: Unstructured) -> str | Wait:
        session = await self._connect()
        kind, key = balancer_kind(session), self._key(service)
        wanted = self._render(kind, key, service)
        found = await session.get(kind, key)
        if found is None:
            found = await session.create(kind, wanted)
        elif deleting(found):
            return Wait("Deleting", f"{kind.kind} {key} is being deleted", after=_AGAIN_SECONDS)
        else:
            found = await self._update(session, kind, found, wanted, service)
        address = address_of(kind, found)
        if address and address != "0.0.0.0":  # noqa: S104  (a DHCP server was asked, and has not answered)
            return address
        text = f"{kind.kind} {key} has no address yet{said(found)}"
        return Wait("WaitingForLoadBalancer", text, after=_AGAIN_SECONDS)

    async def remove(self, service: Unstructured) -> Wait | None:
        session = await self._connect()
        kind, key = balancer_kind(session), self._key(service)
        found = await session.get(kind, key)
        if found is None or not _is_of(found, service):
            return None
        if not deleting(found):
            await session.delete(kind, found)
        return Wait("Deleting", f"{kind.kind} {key} is being deleted", after=1.0)

    async def _update(
        self, session: HarvesterSession, kind: Resource, found: Unstructured, wanted: Json, service: Unstructured
    ) -> Unstructured:
        if not _is_of(found, service):
            raise Taken(
                f"{kind.kind} {found.namespace}/{found.name} exists and is not that of this Service: it "
                f"{holder_of(found)}: create the Service again, which gives it another name"
            )
        held = found.get("spec") or {}
        spec = {name: value for name, value in wanted["spec"].items() if not _contains(held.get(name), value)}
        labels = {k: v for k, v in wanted["metadata"]["labels"].items() if labels_of(found).get(k) != v}
        if kind is LOAD_BALANCER and "healthCheck" in held and "healthCheck" not in wanted["spec"]:
            spec["healthCheck"] = None
        if not spec and not labels:
            return found
        meta: Json = {"uid": found.uid, **({"labels": labels} if labels else {})}
        body = {"metadata": meta, **({"spec": spec} if spec else {})}
        return await session.patch(kind, Key(found.namespace, found.name), body)

    def _key(self, service: Unstructured) -> Key:
        return Key(self._config.namespaces[0], f"svc-{service.uid}")

    def _render(self, kind: Resource, key: Key, service: Unstructured) -> Json:
        labels = {CLUSTER_NAME_LABEL: self._config.cluster, SERVICE_UID: service.uid}
        if self._config.cluster_uid:
            labels[CLUSTER_UID] = self._config.cluster_uid
        meta: Json = {
            "name": key.name,
            "namespace": key.namespace,
            "labels": labels,
            "annotations": {SERVICE_NAME: f"{service.namespace}/{service.name}"},
        }
        spec = self._balancer(service) if kind is LOAD_BALANCER else self._service(service)
        return {**kind.type_meta, "metadata": meta, "spec": spec}

    def _machines(self) -> dict[str, str]:
        """Labels of all VMs of the cluster."""
        made = {CLUSTER_NAME_LABEL: self._config.cluster}
        if self._config.cluster_namespace:
            made[MACHINE_NAMESPACE] = self._config.cluster_namespace
        return made

    def _balancer(self, service: Unstructured) -> Json:
        annotations: Mapping[str, str] = service.metadata.get("annotations") or {}
        ipam = annotations.get(IPAM) or self._config.ipam
        if ipam not in ("pool", "dhcp"):
            raise Misconfigured(f"annotation {IPAM}: must be pool or dhcp, not {ipam!r}")
        spec: Json = {
            "workloadType": "vm",
            "ipam": ipam,
            "listeners": [
                {"name": name, "port": port, "protocol": protocol, "backendPort": node_port}
                for name, protocol, port, node_port in _ports(service)
            ],
            "backendServerSelector": {name: [value] for name, value in self._machines().items()},
        }
        pool = annotations.get(IP_POOL) or self._config.ip_pool
        if ipam == "pool" and pool:
            spec["ipPool"] = pool
        # Machines that don't answer get no connections, nor those without a Pod under externalTrafficPolicy: Local.
        probed = next((each[3] for each in _ports(service) if each[1] == "TCP"), None)
        if probed is not None:
            spec["healthCheck"] = {
                "port": probed,
                "successThreshold": 1,
                "failureThreshold": 3,
                "periodSeconds": 5,
                "timeoutSeconds": 3,
            }
        return spec

    def _service(self, service: Unstructured) -> Json:
        ports = [
            {"name": name, "port": port, "protocol": protocol, "targetPort": node_port}
            for name, protocol, port, node_port in _ports(service)
        ]
        return {"type": "LoadBalancer", "selector": self._machines(), "ports": ports}


def _is_of(found: Unstructured, service: Unstructured) -> bool:
    return labels_of(found).get(SERVICE_UID) == service.uid


def _ports(service: Unstructured) -> list[tuple[str, str, int, int]]:
    """Name, protocol, port and node port."""
    made = []
    for number, each in enumerate((service.get("spec") or {}).get("ports") or ()):
        protocol, port = str(each.get("protocol") or "TCP"), int(each["port"])
        if protocol not in ("TCP", "UDP"):
            raise Misconfigured(f"spec.ports[{number}].protocol: load balancers support TCP and UDP, not {protocol}")
        if not each.get("nodePort"):
            raise Misconfigured(
                f"spec.ports[{number}] has no nodePort, which the load balancer leads to: set "
                "spec.allocateLoadBalancerNodePorts to true"
            )
        made.append((f"{protocol.lower()}-{port}", protocol, port, int(each["nodePort"])))
    return made


def _contains(held: Any, wanted: Any) -> bool:
    """Whether `held` has all of `wanted`: servers add defaults."""
    if isinstance(wanted, dict):
        return isinstance(held, dict) and all(_contains(held.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        same_length = isinstance(held, list) and len(held) == len(wanted)
        return same_length and all(_contains(one, other) for one, other in zip(held, wanted, strict=True))
    return bool(held == wanted)
