"""A provider that knows nothing but the contract: GenericCluster, GenericMachine and its template.

Its machines are simulated ones, its load balancers live in the simulated network. Every decision is observable: what it
has made is in `Generic.machines` and `Generic.balancers`, by the object's UID.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import Fleet
from homeport.sim.network import Balancer, Network
from homeport.sim.network.address import Pool
from homeport.sim.network.book import Host

GROUP = "infrastructure.example.com"
CLUSTER = Resource(GROUP, "v1", "GenericCluster", "genericclusters")
MACHINE = Resource(GROUP, "v1", "GenericMachine", "genericmachines")
TEMPLATE = Resource(GROUP, "v1", "GenericMachineTemplate", "genericmachinetemplates")
CLUSTER_TEMPLATE = Resource(GROUP, "v1", "GenericClusterTemplate", "genericclustertemplates")
FINALIZER = "generic.infrastructure.example.com"
_CAPI = "cluster.x-k8s.io"
_SECRET = Resource("", "v1", "Secret", "secrets")
_OWNER = Resource(_CAPI, "v1beta2", "Machine", "machines")
_WRITE = Write(field_manager="generic-infrastructure")


def definition(resource: Resource, contract: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.qualified, "labels": {f"{_CAPI}/{contract}": resource.version}},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}
                    },
                }
            ],
        },
    }


def definitions(contract: str = "v1beta2") -> list[dict[str, Any]]:
    return [definition(each, contract) for each in (CLUSTER, MACHINE, TEMPLATE, CLUSTER_TEMPLATE)]


@dataclass
class Made:
    """A machine of this provider."""

    uid: str
    name: str
    cluster: str
    address: str
    control_plane: bool


class Generic:
    """One infrastructure: an address pool, load balancers and machines."""

    def __init__(self, network: Network, fleet: Fleet, contract: str = "v1beta2") -> None:
        self.network = network
        self.fleet = fleet
        self.contract = contract
        self.pool = Pool(["10.16.0.0/12"])
        self.virtual = Pool(["10.96.0.0/14"])
        self.machines: dict[str, Made] = {}
        self.created: list[str] = []  # names in the order of creation, for whoever counts
        self.balancers: dict[str, Balancer] = {}
        self.failure_domains: list[str] = []
        self.hold: set[str] = set()  # machines with these names don't come up
        self.broken = False  # machines get a disk that does not boot
        self.image = "ubuntu-22.04-kube-v1.30.0"
        self._guests: dict[str, guest.Machine] = {}
        self._hosts: dict[str, Host] = {}
        self._next = 0

    # -- the infrastructure itself -----------------------------------------------------------------------------

    def hold_endpoint(self, namespace: str, cluster: str, wanted: str, port: int) -> str:
        """The cluster's address, with a balancer listening on it."""
        key = f"{namespace}/{cluster}"
        if key not in self.balancers:
            address = wanted or self.virtual.take(key)
            host = self.network.attach(f"lb-{namespace}-{cluster}", [address])
            balancer = Balancer(self.network, host, [])
            host.listen(port, balancer)
            self.balancers[key], self._hosts[key] = balancer, host
        return next(iter(self._hosts[key].addresses))

    def drop_endpoint(self, namespace: str, cluster: str) -> None:
        key = f"{namespace}/{cluster}"
        self.balancers.pop(key, None)
        host = self._hosts.pop(key, None)
        if host is not None:
            self.network.detach(host)
        self.virtual.free(key)

    def _next_address(self) -> str:
        self._next += 1
        return f"10.{16 + (self._next >> 16)}.{self._next >> 8 & 255}.{self._next & 255}"

    def create(
        self, namespace: str, cluster: str, uid: str, name: str, user_data: bytes, *, control_plane: bool, version: str
    ) -> Made:
        """Idempotent by UID: a machine is never made twice."""
        found = self.machines.get(uid)
        if found is not None:
            return found
        made = Made(uid, name, f"{namespace}/{cluster}", self._next_address(), control_plane)
        self.machines[uid] = made
        self.created.append(name)
        if control_plane and (balancer := self.balancers.get(made.cluster)) is not None:
            balancer.backends.append((made.address, 6443))
        image = f"ubuntu-22.04-kube-{version}" if version else self.image
        self._guests[uid] = guest.Machine(
            ext_id=uid,
            name=name,
            cluster="generic",
            image="" if self.broken else image,
            image_type="DISK_IMAGE",
            vcpus=2,
            memory_bytes=4 << 30,
            user_data=user_data,
            meta_data=f"instance-id: {uid}\nlocal-hostname: {name}\n".encode(),
            addresses=(made.address,),
        )
        self.power_on(uid)
        return made

    def power_on(self, uid: str) -> None:
        self.fleet.powered_on(self._guests[uid])

    def destroy(self, uid: str) -> None:
        made = self.machines.pop(uid, None)
        self._guests.pop(uid, None)
        if made is None:
            return
        balancer = self.balancers.get(made.cluster)
        if balancer is not None and (made.address, 6443) in balancer.backends:
            balancer.backends.remove((made.address, 6443))
        self.fleet.removed(uid)


class ClusterReconciler:
    def __init__(self, manager: Manager, generic: Generic) -> None:
        self._client = manager.client
        self._objects = manager.informers.get(CLUSTER).cache
        self._generic = generic

    async def reconcile(self, key: Key) -> Wait | None:
        obj = self._objects.get(key)
        if obj is None:
            return None
        owner = _owner(obj, "Cluster")
        if obj.metadata.get("deletionTimestamp"):
            if FINALIZER in obj.metadata.get("finalizers", ()):
                self._generic.drop_endpoint(key.namespace, owner or key.name)
                await _finalize(self._client, CLUSTER, obj)
            return None
        if not owner:
            return Wait("WaitingForOwner", "no Cluster owns this yet")
        if f"{_CAPI}/managed-by" in (obj.metadata.get("annotations") or {}):
            return None  # somebody else keeps its status
        endpoint = (obj.get("spec") or {}).get("controlPlaneEndpoint") or {}
        port = int(endpoint.get("port") or 6443)
        address = self._generic.hold_endpoint(key.namespace, owner, endpoint.get("host", ""), port)
        patch: dict[str, Any] = {}
        if FINALIZER not in obj.metadata.get("finalizers", ()):
            patch["metadata"] = {"finalizers": [*obj.metadata.get("finalizers", ()), FINALIZER]}
        if endpoint.get("host") != address:
            patch["spec"] = {"controlPlaneEndpoint": {"host": address, "port": port}}
        if patch:
            await self._client.patch(CLUSTER, key, MergePatch(patch), _WRITE)
        status = self._status()
        if (obj.get("status") or {}) != status:
            await self._client.patch(CLUSTER, key, MergePatch({"status": status}), _WRITE, subresource="status")
        return None

    def _status(self) -> dict[str, Any]:
        names = self._generic.failure_domains
        if self._generic.contract == "v1beta1":
            domains: Any = {name: {"controlPlane": True} for name in names}
            return {"ready": True, **({"failureDomains": domains} if names else {})}
        domains = [{"name": name, "controlPlane": True} for name in names]
        return {"initialization": {"provisioned": True}, **({"failureDomains": domains} if names else {})}


class MachineReconciler:
    def __init__(self, manager: Manager, generic: Generic) -> None:
        self._client = manager.client
        self._objects = manager.informers.get(MACHINE).cache
        self._owners = manager.informers.get(_OWNER).cache
        self._generic = generic

    async def reconcile(self, key: Key) -> Wait | None:
        obj = self._objects.get(key)
        if obj is None:
            return None
        if obj.metadata.get("deletionTimestamp"):
            if FINALIZER in obj.metadata.get("finalizers", ()):
                self._generic.destroy(obj.uid)
                await _finalize(self._client, MACHINE, obj)
            return None
        owner = self._owners.get(Key(key.namespace, _owner(obj, "Machine")))
        if owner is None:
            return Wait("WaitingForOwner", "no Machine owns this yet")
        secret_name = ((owner["spec"].get("bootstrap")) or {}).get("dataSecretName")
        if not secret_name:
            return Wait("WaitingForBootstrapData", f"Machine {owner.name} has no bootstrap data yet")
        if key.name in self._generic.hold:
            return await self._refuse(key, obj)
        if FINALIZER not in obj.metadata.get("finalizers", ()):
            finalizers = [*obj.metadata.get("finalizers", ()), FINALIZER]
            body = {"metadata": {"finalizers": finalizers, "resourceVersion": obj.resource_version}}
            obj = await self._client.patch(MACHINE, key, MergePatch(body), _WRITE)
        await self._converge(key, obj, owner, secret_name)
        return None

    async def _refuse(self, key: Key, obj: Unstructured) -> Wait:
        """As a provider says what it can't do: in the layout of its contract."""
        text = f"VM {key.name}: the quota of the project is used up"
        said = {"type": "Ready", "status": "False", "reason": "QuotaExceeded", "message": text}
        said["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status: dict[str, Any] = {"conditions": [said]}
        if self._generic.contract == "v1beta1":
            status = {"ready": False, "conditions": [{**said, "severity": "Error"}]}
        if (obj.get("status") or {}) != status:
            await self._client.patch(MACHINE, key, MergePatch({"status": status}), _WRITE, subresource="status")
        return Wait("QuotaExceeded", text)

    async def _converge(self, key: Key, obj: Unstructured, owner: Unstructured, secret_name: str) -> None:
        made = self._generic.machines.get(obj.uid)
        if made is None:
            secret = await self._client.get(_SECRET, Key(key.namespace, secret_name))
            made = self._generic.create(
                key.namespace,
                owner["spec"]["clusterName"],
                obj.uid,
                key.name,
                _decoded(secret["data"]["value"]),
                control_plane=f"{_CAPI}/control-plane" in owner.metadata.get("labels", {}),
                version=owner["spec"].get("version", ""),
            )
        if not (obj.get("spec") or {}).get("providerID"):
            body = {"spec": {"providerID": f"generic://{obj.uid}"}}
            obj = await self._client.patch(MACHINE, key, MergePatch(body), _WRITE)
        status: dict[str, Any] = {"addresses": [{"type": "InternalIP", "address": made.address}]}
        domain = owner["spec"].get("failureDomain")
        if self._generic.contract == "v1beta1":
            status["ready"] = True
        else:
            status["initialization"] = {"provisioned": True}
            if domain:
                status["failureDomain"] = domain
        if (obj.get("status") or {}) != status:
            await self._client.patch(MACHINE, key, MergePatch({"status": status}), _WRITE, subresource="status")


def install(manager: Manager, generic: Generic) -> None:
    manager.add(Controller("genericcluster", CLUSTER, ClusterReconciler(manager, generic)))
    machines = Controller("genericmachine", MACHINE, MachineReconciler(manager, generic))
    manager.add(machines.map(_OWNER, _infra_key))


def _infra_key(machine: Unstructured) -> list[Key]:
    ref = machine["spec"].get("infrastructureRef") or {}
    return [Key(machine.namespace, ref["name"])] if ref.get("kind") == MACHINE.kind else []


def _owner(obj: Unstructured, kind: str) -> str:
    owners = obj.metadata.get("ownerReferences") or ()
    return next((str(o["name"]) for o in owners if o["kind"] == kind and o["apiVersion"].startswith(_CAPI)), "")


async def _finalize(client: Any, resource: Resource, obj: Unstructured) -> None:
    left = [each for each in obj.metadata.get("finalizers", ()) if each != FINALIZER]
    body = {"metadata": {"finalizers": left, "resourceVersion": obj.resource_version}}
    try:
        await client.patch(resource, Key(obj.namespace, obj.name), MergePatch(body), _WRITE)
    except NotFound:
        return
    await asyncio.sleep(0)


def _decoded(text: str) -> bytes:
    import base64

    return base64.b64decode(text)
