"""The Nutanix provider, with a simulated Prism Central of either API."""

from __future__ import annotations

import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from conformance.provider.vendor import Found, Json, Undo, Verb, cannot
from homeport.api.meta import Object
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.client.dial import DialOptions
from homeport.providers.nutanix.component import COMPONENT
from homeport.providers.nutanix.install import CONDITIONS
from homeport.runtime.clock import Clock, SystemClock
from homeport.sim.engine.fault import (
    AddressLate,
    Delay,
    Drop,
    Effect,
    Fault,
    Match,
    Status,
    TaskFailure,
    TaskHang,
    Throttle,
)
from homeport.sim.engine.progress import Progress
from homeport.sim.engine.tls import Authority
from homeport.sim.prism import v3
from homeport.sim.prism.entity import Image, Vm
from homeport.sim.prism.pace import Pace
from homeport.sim.prism.power import addresses_of
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.site import Routes
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import default_world

T = TypeVar("T")

IMAGE = "ubuntu-22.04-kube-v1.30.0"
ELEMENT = "nutanix-cluster-1"
_CATEGORY = "KubernetesClusterName"
_V4 = "/api/vmm/*/ahv/config/vms"
_V3 = "/api/nutanix/v3/vms"
_ROUTES: Mapping[str, Mapping[Verb, tuple[str, str]]] = {
    "v4": {
        "create": ("POST", _V4),
        "power-on": ("POST", f"{_V4}/*/$actions/power-on"),
        "delete": ("DELETE", f"{_V4}/*"),
        "read": ("GET", f"{_V4}/*"),
    },
    "v3": {
        "create": ("POST", _V3),
        "delete": ("DELETE", f"{_V3}/*"),
        "read": ("GET", f"{_V3}/*"),
    },
}
_OPERATIONS: Mapping[str, Mapping[Verb, str]] = {
    "v4": {"create": "kVmCreate", "power-on": "kVmPowerOn", "delete": "kVmDelete"},
    "v3": {"create": "kVmCreate", "delete": "kVmDelete"},
}


class Nutanix:
    cluster_kind: type[Object] = NutanixCluster
    machine_kind: type[Object] = NutanixMachine
    component = COMPONENT
    conditions = CONDITIONS
    free_addresses = ("10.0.0.20", "10.0.0.21")

    def __init__(self, wire: Wire, port: int, tls: ssl.SSLContext, dial: DialOptions, version: str) -> None:
        self.prism = prism = wire.prism
        self.dial = dial
        self.version = version
        self.created: list[str] = []
        self._wire = wire
        self._port = port
        self._tls = tls
        self._known: set[str] = set()
        prism.journal.on_entry = lambda entry: self._note()

    def _note(self) -> None:
        for vm in self.prism.world.vms:
            if vm.ext_id not in self._known:
                self._known.add(vm.ext_id)
                self.created.append(vm.name)

    # -- manifests ---------------------------------------------------------------------------------------------

    def credentials(self, password: str = "") -> Json:
        data = {"prismCentral": {"username": "admin", "password": password or "password"}}
        listed = json.dumps([{"type": "basic_auth", "data": data}])
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "credentials", "namespace": "default"},
            "stringData": {"credentials": listed},
        }

    def infra_cluster(self, name: str) -> Json:
        number = sum(ord(letter) for letter in name) % 50
        return {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "NutanixCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "controlPlaneEndpoint": {"host": f"10.0.0.{30 + number}", "port": 6443},
                "prismCentral": {
                    "address": "127.0.0.1",
                    "port": self._port,
                    "credentialRef": {"kind": "Secret", "name": "credentials"},
                },
            },
        }

    def infra_machine(self, name: str) -> Json:
        return {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "NutanixMachine",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "vcpuSockets": 2,
                "vcpusPerSocket": 1,
                "memorySize": "4Gi",
                "systemDiskSize": "40Gi",
                "image": IMAGE,
                "cluster": ELEMENT,
                "subnet": ["vm-network"],
            },
        }

    def platform_part(self) -> Json:
        return {
            "prismCentral": {"address": "127.0.0.1", "port": self._port},
            "cluster": {"name": ELEMENT},
            "subnet": {"name": "vm-network"},
            "image": {"name": IMAGE},
        }

    # -- state of the vendor -----------------------------------------------------------------------------------

    def machines(self) -> list[Found]:
        self.prism.settle()
        return [
            Found(vm.ext_id, vm.name, vm.power == "ON", addresses_of(vm))
            for vm in self.prism.world.vms
            if not vm.name.startswith("filler-")
        ]

    def cluster_objects(self, cluster: str) -> list[str]:
        found = [each for each in self.prism.world.categories if (each.key, each.value) == (_CATEGORY, cluster)]
        return [f"category {each.key}:{each.value}" for each in found]

    def require_cluster_objects(self) -> None:
        """A category."""

    def requests(self) -> int:
        return self.prism.journal.total

    # -- faults ------------------------------------------------------------------------------------------------

    def _fault(self, effect: Effect, *, times: int | None = None, **match: Any) -> None:
        self.prism.faults.add(Fault(effect, Match(**match), times=times))
        self.prism.core.on_change()

    def _on(self, verb: Verb | Literal[""]) -> dict[str, str]:
        if not verb:
            return {}
        method, route = self._known_verb(_ROUTES, verb)
        return {"method": method, "route": route}

    def _known_verb(self, table: Mapping[str, Mapping[Verb, T]], verb: Verb) -> T:
        found = table[self.version].get(verb)
        return found if found is not None else cannot(f"API {self.version} has no separate request to {verb} a VM")

    def refuse(self, status: int, verb: Verb | Literal[""] = "", *, times: int | None = None) -> None:
        self._fault(Status(status), times=times, **self._on(verb))

    def throttle(self, seconds: float, *, times: int) -> None:
        self._fault(Throttle(seconds), times=times)

    def lose_reply(self, verb: Verb, when: Literal["before", "after"], *, times: int = 1) -> None:
        self._fault(Drop(when), times=times, **self._on(verb))

    def delay_reply(self, verb: Verb, seconds: float) -> None:
        self._fault(Delay(seconds), times=1, **self._on(verb))

    def fail_operation(self, verb: Verb, message: str, *, times: int | None = None) -> None:
        self._fault(TaskFailure(message=message), times=times, operation=self._known_verb(_OPERATIONS, verb))

    def hang_operation(self, verb: Verb, seconds: float | None) -> None:
        self._fault(TaskHang(seconds), times=1, operation=self._known_verb(_OPERATIONS, verb))

    def delay_address(self, seconds: float | None) -> None:
        self._fault(AddressLate(seconds), kind="vm")

    def clear_faults(self) -> None:
        self.prism.faults.set(())
        self.prism.core.on_change()

    # -- changes by others -------------------------------------------------------------------------------------

    def slow_operations(self, seconds: float) -> None:
        self.prism.core.pace = Pace(default=Progress(seconds=seconds))

    async def create_foreign(self, name: str) -> str:
        return self._plant(name).ext_id

    def _plant(self, name: str, **more: Any) -> Vm:
        core = self.prism.core
        (element,) = [each for each in core.world.clusters if each.name == ELEMENT]
        vm = Vm(ext_id=core.new_id(), name=name, cluster=element.ext_id, memory_bytes=2**30, **more)
        self._known.add(vm.ext_id)
        return core.put(core.world.vms, vm)

    async def create_orphan(self, cluster: Object, name: str) -> str:
        marks = ("homeport-machine:11111111-2222-4333-8444-555555555555", f"homeport-cluster:{cluster.metadata.uid}")
        (category,) = [
            each for each in self.prism.world.categories if (each.key, each.value) == (_CATEGORY, cluster.metadata.name)
        ]
        return self._plant(name, categories=(category.ext_id,), attributes=marks, description="\n".join(marks)).ext_id

    def _vm(self, name: str) -> Vm:
        (only,) = [vm for vm in self.prism.world.vms if vm.name == name]
        return only

    async def delete_machine(self, name: str) -> None:
        self.prism.machines.delete(self._vm(name), "admin")
        self.prism.settle()

    async def power_off(self, name: str) -> None:
        self.prism.power.off(self._vm(name).ext_id)

    async def power_on(self, name: str) -> None:
        self.prism.power.on(self._vm(name).ext_id)

    async def change_address(self, name: str, *, lost: bool = False) -> None:
        self.prism.power._readdress(self._vm(name), lost=lost)

    async def fill_hosts(self) -> Undo:
        core = self.prism.core
        (element,) = [each for each in core.world.clusters if each.name == ELEMENT]
        full = tuple(msgspec.structs.replace(host, maintenance=True) for host in element.hosts)
        core.put(core.world.clusters, element, hosts=full)

        async def make_room() -> None:
            core.put(core.world.clusters, element, hosts=element.hosts)

        return make_room

    async def remove_image(self) -> Undo:
        core = self.prism.core
        (image,) = [each for each in core.world.images if each.name == IMAGE]
        core.world.images.drop(image.ext_id)

        async def bring_back() -> None:
            core.put(core.world.images, image)

        assert isinstance(image, Image)
        return bring_back

    async def restart(self) -> None:
        self.prism.sessions.end_all()
        await self._wire.close()
        await self._wire.start(port=self._port, tls=self._tls)

    async def change_password(self, password: str) -> None:
        core = self.prism.core
        user = core.world.user("admin")
        assert user is not None
        core.put(core.world.users, user, passwords=(password,))
        self.prism.sessions.end_all()


@asynccontextmanager
async def open_nutanix(clock: Clock, version: str) -> AsyncIterator[Nutanix]:
    prism = Prism(default_world(), clock=clock, journal_size=50_000)
    if version == "v3":
        routes = Routes()
        v3.add_routes(routes)
        prism.router = routes.router  # as releases before 2024 are
    with tempfile.TemporaryDirectory(prefix="homeport-prism-") as folder:
        # Certificates are verified by OpenSSL, which knows the real time alone.
        authority = Authority.ensure(Path(folder), SystemClock())
        called = authority.called("server", ("localhost", "127.0.0.1"), SystemClock())
        wire = Wire(prism)
        port = await wire.start(tls=called.context)
        try:
            yield Nutanix(wire, port, called.context, DialOptions(ca_pem=authority.path.read_bytes()), version)
        finally:
            await wire.close()
