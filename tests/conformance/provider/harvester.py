"""The KubeVirt provider, with a simulated Harvester."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from conformance.provider.vendor import Found, Json, Undo, Verb, cannot
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Object, Resource, Unstructured
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.client.dial import DIRECT
from homeport.client.protocol import Key, MergePatch
from homeport.providers.harvester.component import COMPONENT
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLUSTER_UID,
    DATA_VOLUME,
    IMAGE,
    MACHINE_NAME,
    MACHINE_UID,
    NODE,
    VM,
    VMI,
)
from homeport.providers.harvester.install import CONDITIONS
from homeport.providers.harvester.machine.observation import Machine, addresses_of
from homeport.runtime.clock import Clock
from homeport.runtime.testing import shared_pki
from homeport.sim.engine.fault import AddressLate, Delay, Drop, Effect, Fault, Match, Status, Throttle
from homeport.sim.engine.journal import Journal
from homeport.sim.harvester.gate import KubernetesGate, RevisionHistory
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.manifest import image as image_manifest
from homeport.sim.harvester.pace import Pace

_IMAGE = "rocky-9-cloud"
_MACHINE = "11111111-2222-4333-8444-555555555555"
_VERBS = {"create": "create", "delete": "delete", "read": "get"}


class HarvesterVendor:
    cluster_kind: type[Object] = KubevirtCluster
    machine_kind: type[Object] = KubevirtMachine
    component = COMPONENT
    conditions = CONDITIONS
    dial = DIRECT  # the kubeconfig has the CA of the server
    free_addresses = ("10.40.1.10", "10.40.1.11")

    def __init__(self, harvester: Harvester, url: str, journal: Journal) -> None:
        self.harvester = harvester
        self.created: list[str] = []
        self._url = url
        self._journal = journal
        self._planted: set[str] = set()
        self._client = harvester.client(field_manager="somebody")
        self._accept("password")
        harvester.core.mirror.on(VM, self._note)

    def _note(self, key: str, new: Json | None, old: Json | None) -> None:
        if old is None and new is not None and new["metadata"]["name"] not in self._planted:
            self.created.append(new["metadata"]["name"])

    # -- manifests ---------------------------------------------------------------------------------------------

    def credentials(self, password: str = "") -> Json:
        ca = self.harvester.server.pki.ca_pem
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "h", "cluster": {"server": self._url, "certificate-authority-data": _base64(ca)}}],
            "users": [{"name": "u", "user": {"token": password or "password"}}],
            "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u", "namespace": "default"}}],
            "current-context": "c",
        }
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "harvester", "namespace": "default"},
            "stringData": {"kubeconfig": json.dumps(config)},
        }

    def infra_cluster(self, name: str) -> Json:
        number = sum(ord(letter) for letter in name) % 50
        return {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "KubevirtCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "controlPlaneEndpoint": {"host": f"10.40.0.{200 + number}", "port": 6443},
                "controlPlaneServiceTemplate": {"spec": {"type": "ClusterIP"}},
                "infraClusterSecretRef": {"name": "harvester"},
            },
        }

    def infra_machine(self, name: str) -> Json:
        inner = {
            "domain": {"cpu": {"cores": 2}, "memory": {"guest": "4Gi"}},
            "networks": [{"name": "nic-0", "multus": {"networkName": "default/workloads"}}],
        }
        return {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "KubevirtMachine",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "virtualMachineTemplate": {"spec": {"template": {"spec": inner}}},
                "bootDisk": {"image": f"default/{_IMAGE}", "size": "40Gi"},
                "virtualMachineBootstrapCheck": {"checkStrategy": "none"},  # nothing runs in these VMs
            },
        }

    def platform_part(self) -> Json:
        return {"namespace": "default", "networkName": "default/workloads", "imageName": f"default/{_IMAGE}"}

    # -- state of the vendor -----------------------------------------------------------------------------------

    def machines(self) -> list[Found]:
        mirror = self.harvester.core.mirror
        found = []
        for vm in mirror.all(VM):
            vmi = mirror.get(VMI, f"{vm['metadata']['namespace']}/{vm['metadata']['name']}")
            machine = Machine(Unstructured(vm), Unstructured(vmi) if vmi is not None else None)
            on = vmi is not None and (vmi.get("status") or {}).get("phase") == "Running"
            addresses = tuple(addresses_of(machine, virtual="", first=0))
            found.append(Found(vm["metadata"]["uid"], vm["metadata"]["name"], on, addresses))
        return found

    def cluster_objects(self, cluster: str) -> list[str]:
        mirror, store = self.harvester.core.mirror, self.harvester.server.store
        left = [f"Service {each.name}" for each in store.range("services") if each.name.endswith(f"/{cluster}-lb")]
        left += [f"Secret {each.name}" for each in store.range("secrets") if each.name.endswith("-cloud-init")]
        return left + [f"{kind.kind} {each}" for kind in (CLAIM, DATA_VOLUME) for each in mirror.all(kind)]

    def require_cluster_objects(self) -> None:
        """A Service."""

    def requests(self) -> int:
        return self._journal.total

    # -- faults ------------------------------------------------------------------------------------------------

    def _fault(self, effect: Effect, *, times: int | None = None, **match: Any) -> None:
        self.harvester.faults.add(Fault(effect, Match(**match), times=times))

    def _on(self, verb: Verb | Literal[""]) -> dict[str, str]:
        if not verb:
            return {}
        known = _VERBS.get(verb)
        return {"verb": known or cannot(f"there is no request to {verb} a VM"), "resource": VM.plural}

    def refuse(self, status: int, verb: Verb | Literal[""] = "", *, times: int | None = None) -> None:
        self._fault(Status(status), times=times, **self._on(verb))

    def throttle(self, seconds: float, *, times: int) -> None:
        self._fault(Throttle(seconds), times=times)

    def lose_reply(self, verb: Verb, when: Literal["before", "after"], *, times: int = 1) -> None:
        self._fault(Drop(when), times=times, **self._on(verb))

    def delay_reply(self, verb: Verb, seconds: float) -> None:
        self._fault(Delay(seconds), times=1, **self._on(verb))

    def fail_operation(self, verb: Verb, message: str, *, times: int | None = None) -> None:
        cannot("requests are answered when they are done: nothing is started that fails later")

    def hang_operation(self, verb: Verb, seconds: float | None) -> None:
        cannot("requests are answered when they are done: nothing is started that hangs")

    def delay_address(self, seconds: float | None) -> None:
        self._fault(AddressLate(seconds), kind="vm")

    def clear_faults(self) -> None:
        self.harvester.faults.set(())

    # -- changes by others -------------------------------------------------------------------------------------

    def slow_operations(self, seconds: float) -> None:
        self.harvester.core.pace = Pace(launch=seconds, shutdown=seconds)

    async def create_foreign(self, name: str) -> str:
        if any(each.name == name for each in self.machines()) or name == "a":
            cannot("VMs of one namespace can't have the same name")
        return await self._plant(name, {})

    async def create_orphan(self, cluster: Object, name: str) -> str:
        labels = {MACHINE_NAME: name, MACHINE_UID: _MACHINE, CLUSTER_UID: cluster.metadata.uid}
        return await self._plant(name, labels)

    async def _plant(self, name: str, labels: dict[str, str]) -> str:
        self._planted.add(name)
        spec = {
            "runStrategy": "Halted",
            "template": {"spec": {"domain": {"devices": {}, "resources": {"limits": {"memory": "1Gi"}}}}},
        }
        body = {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
        return (await self._client.create(body, kind=VM)).uid

    async def delete_machine(self, name: str) -> None:
        await self._client.delete(VM, _key(name))
        await self.harvester.settled()

    async def power_off(self, name: str) -> None:
        await self._patch(VM, name, {"spec": {"runStrategy": "Halted"}})

    async def power_on(self, name: str) -> None:
        await self._patch(VM, name, {"spec": {"runStrategy": "Always"}})

    async def _patch(self, kind: Resource, name: str, body: Json) -> None:
        await self._client.patch(kind, _key(name) if kind.namespaced else Key("", name), MergePatch(body))
        await self.harvester.settled()

    async def change_address(self, name: str, *, lost: bool = False) -> None:
        vmi = self.harvester.core.mirror.get(VMI, _key(name))
        assert vmi is not None
        boot = self.harvester.instances.boots[vmi["metadata"]["uid"]]
        boot.readdress.append((self.harvester.core.clock.now(), lost))
        self.harvester.loops["instance"].add(str(_key(name)))
        await self.harvester.settled()

    async def fill_hosts(self) -> Undo:
        async def cordon(value: bool) -> None:
            for node in self.harvester.core.mirror.all(NODE):
                await self._patch(NODE, node["metadata"]["name"], {"spec": {"unschedulable": value}})

        await cordon(True)
        return partial(cordon, False)

    async def remove_image(self) -> Undo:
        await self._client.delete(IMAGE, _key(_IMAGE))

        async def bring_back() -> None:
            (entry,) = [each for each in self.harvester.world.images if each.name == _IMAGE]
            body, kind = image_manifest(entry)
            await self._client.create(body, kind=kind)

        return bring_back

    async def restart(self) -> None:
        http = self.harvester.server.http
        assert http is not None
        await http.stop()
        await self.harvester.serve(port=int(self._url.rpartition(":")[2]))
        assert self.harvester.server.http is not None
        self.harvester.server.http.gate = http.gate

    async def change_password(self, password: str) -> None:
        self._accept(password)

    def _accept(self, password: str) -> None:
        authenticator = self.harvester.server.authenticator
        user = User("harvester-admin", ("system:masters",), "1")
        authenticator._static = {hashlib.sha256(password.encode()).digest(): authenticated(user)}
        authenticator._tokens._entries.clear()


def _key(name: str) -> Key:
    return Key("default", name)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@asynccontextmanager
async def open_harvester(clock: Clock) -> AsyncIterator[HarvesterVendor]:
    harvester = await Harvester.open(shared_pki(), clock=clock)
    try:
        url = await harvester.serve()
        journal = Journal()
        assert harvester.server.http is not None
        past = RevisionHistory(harvester.server.store, clock)
        harvester.server.http.gate = KubernetesGate(harvester.faults, journal, past, clock)
        yield HarvesterVendor(harvester, url, journal)
    finally:
        await harvester.close()
