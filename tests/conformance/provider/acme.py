"""The provider of the guide "Add a provider", with its simulated Acme."""

from __future__ import annotations

import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from conformance.provider.vendor import Found, Json, Undo, Verb, cannot
from homeport.api.meta import Object
from homeport.client.dial import DialOptions
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
from homeport.sim.engine.tls import Authority

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/05-provider-acme"))

from acme.api import AcmeCluster, AcmeMachine
from acme.component import COMPONENT, CONDITIONS
from acme_sim.server import Server
from acme_sim.world import IMAGES, Machine, World

API_VERSION = "infrastructure.cluster.x-k8s.io/v1alpha1"
_ROUTES: Mapping[Verb, tuple[str, str]] = {
    "create": ("POST", "/v1/machines"),
    "power-on": ("POST", "/v1/machines/*/start"),
    "delete": ("DELETE", "/v1/machines/*"),
    "read": ("GET", "/v1/machines/*"),
}


class Acme:
    component = COMPONENT
    conditions = CONDITIONS
    cluster_kind: type[Object] = AcmeCluster
    machine_kind: type[Object] = AcmeMachine

    def __init__(self, server: Server, port: int, tls: ssl.SSLContext, dial: DialOptions) -> None:
        self.server = server
        self.world: World = server.world
        self.dial = dial
        self.created: list[str] = []
        self._port = port
        self._tls = tls
        self._token = self.world.token
        self.world.created = lambda machine: self.created.append(machine.name)

    # -- manifests ---------------------------------------------------------------------------------------------

    def credentials(self, password: str = "") -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "credentials", "namespace": "default"},
            "stringData": {"token": password or self._token},
        }

    def infra_cluster(self, name: str) -> Json:
        number = sum(ord(letter) for letter in name) % 50
        return {
            "apiVersion": API_VERSION,
            "kind": "AcmeCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "endpoint": f"127.0.0.1:{self._port}",
                "credentialsSecret": "credentials",
                "controlPlaneEndpoint": {"host": f"10.20.0.{10 + number}", "port": 6443},
            },
        }

    def infra_machine(self, name: str) -> Json:
        return {
            "apiVersion": API_VERSION,
            "kind": "AcmeMachine",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": IMAGES[0], "network": "machines"},
        }

    @property
    def free_addresses(self) -> tuple[str, ...]:
        cannot("Acme assigns the addresses of machines itself")

    def platform_part(self) -> Json:
        cannot("Acme serves no platform")

    # -- state of the vendor -----------------------------------------------------------------------------------

    def machines(self) -> list[Found]:
        self.world.settle()
        return [
            Found(each.id, each.name, each.state == "running", each.addresses)
            for each in self.world.machines.values()
            if each.state != "creating"
        ]

    def cluster_objects(self, cluster: str) -> list[str]:
        return []

    def require_cluster_objects(self) -> None:
        cannot("a cluster on Acme has nothing besides its machines")

    def requests(self) -> int:
        return self.server.journal.total

    # -- faults ------------------------------------------------------------------------------------------------

    def _fault(self, effect: Effect, *, times: int | None = None, **match: Any) -> None:
        self.world.faults.add(Fault(effect, Match(**match), times=times))

    def _on(self, verb: Verb | Literal[""]) -> dict[str, str]:
        return dict(zip(("method", "route"), _ROUTES[verb], strict=True)) if verb else {}

    def _job(self, verb: Verb) -> str:
        return verb if verb in ("create", "delete") else cannot(f"Acme has no job to {verb} a machine")

    def refuse(self, status: int, verb: Verb | Literal[""] = "", *, times: int | None = None) -> None:
        self._fault(Status(status), times=times, **self._on(verb))

    def throttle(self, seconds: float, *, times: int) -> None:
        self._fault(Throttle(seconds), times=times)

    def lose_reply(self, verb: Verb, when: Literal["before", "after"], *, times: int = 1) -> None:
        self._fault(Drop(when), times=times, **self._on(verb))

    def delay_reply(self, verb: Verb, seconds: float) -> None:
        self._fault(Delay(seconds), times=1, **self._on(verb))

    def fail_operation(self, verb: Verb, message: str, *, times: int | None = None) -> None:
        self._fault(TaskFailure(message=message), times=times, operation=self._job(verb))

    def hang_operation(self, verb: Verb, seconds: float | None) -> None:
        self._fault(TaskHang(seconds), times=1, operation=self._job(verb))

    def delay_address(self, seconds: float | None) -> None:
        self._fault(AddressLate(seconds), kind="machine")

    def clear_faults(self) -> None:
        self.world.faults.set(())

    # -- changes by others -------------------------------------------------------------------------------------

    def slow_operations(self, seconds: float) -> None:
        self.world.job_seconds = seconds

    async def create_foreign(self, name: str) -> str:
        return self.world.add(name, state="stopped").id

    async def create_orphan(self, cluster: Object, name: str) -> str:
        labels = {
            "homeport-machine": "11111111-2222-4333-8444-555555555555",
            "homeport-cluster": cluster.metadata.uid,
        }
        return self.world.add(name, labels=labels, state="stopped").id

    def _machine(self, name: str) -> Machine:
        (only,) = [each for each in self.world.machines.values() if each.name == name]
        return only

    async def delete_machine(self, name: str) -> None:
        self.world.remove(self._machine(name))

    async def power_off(self, name: str) -> None:
        self.world.stop(self._machine(name))

    async def power_on(self, name: str) -> None:
        self.world.start(self._machine(name))

    async def change_address(self, name: str, *, lost: bool = False) -> None:
        self.world.change_address(self._machine(name), lost=lost)

    async def fill_hosts(self) -> Undo:
        before, self.world.memory_gib = self.world.memory_gib, 0

        async def make_room() -> None:
            self.world.memory_gib = before

        return make_room

    async def remove_image(self) -> Undo:
        (id_,) = [id_ for id_, name in self.world.images.items() if name == IMAGES[0]]
        name = self.world.images.pop(id_)

        async def bring_back() -> None:
            self.world.images[id_] = name

        return bring_back

    async def restart(self) -> None:
        await self.server.close()
        await self.server.start(port=self._port, tls=self._tls)

    async def change_password(self, password: str) -> None:
        self.world.token = password


@asynccontextmanager
async def open_acme(clock: Clock) -> AsyncIterator[Acme]:
    server = Server(World(clock), journal_size=50_000)
    with tempfile.TemporaryDirectory(prefix="homeport-acme-") as folder:
        # Certificates are verified by OpenSSL, which knows the real time alone.
        authority = Authority.ensure(Path(folder), SystemClock())
        called = authority.called("server", ("localhost", "127.0.0.1"), SystemClock())
        port = await server.start(tls=called.context)
        try:
            yield Acme(server, port, called.context, DialOptions(ca_pem=authority.path.read_bytes()))
        finally:
            await server.close()
