"""A plane that runs hosted control planes in simulation, in virtual time, and the simulated machines beside it."""

from __future__ import annotations

import contextlib
import datetime
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from capikit.handmade import HandmadeEtcd, HandmadePlane, Json
from homeport.api.meta import Resource
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.pki import PKI
from homeport.builtin.workload.address import ADDRESS_ANNOTATION, Pool, ServiceOptions
from homeport.capi.remote.pki import KeyPair
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.hosted.etcd.client import Etcd
from homeport.hosted.etcd.dial import Access, connect
from homeport.runtime.workload.runner import Runners
from homeport.sim.hosted.hosting import Hosting
from homeport.sim.hosted.keyspace import READ_WRITE, Permission
from homeport.sim.hosted.site import ServiceSite
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.snapshot import Snapshot
from homeport.sim.network import Network, Proxy
from scenario.builtin.plane import Plane, plane

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
SERVICE = Resource("", "v1", "Service", "services")
_KINDS = {
    "Secret": Resource("", "v1", "Secret", "secrets"),
    "Service": SERVICE,
    "Deployment": DEPLOYMENT,
    "StatefulSet": STATEFUL_SET,
}


class Stage:
    """One simulated site. `plane` is the management plane on it; `leave` and `enter` restart both.

    With `databases`, hosted clusters are on disk, as for users.
    """

    def __init__(self, plane: Plane, folder: Path, pool: Pool | None = None, *, databases: bool = False) -> None:
        self.plane = plane
        self._pool = pool  # of addresses for Services; by default that of the simulated network
        self._folder = folder
        self.databases = databases
        self._clients: list[HttpClient] = []
        self.now = datetime.datetime.fromtimestamp(plane.clock.now(), datetime.UTC)
        self.etcd = HandmadeEtcd(self.now)

    async def enter(self) -> None:
        self.network = Network()
        self.proxy = Proxy(self.network)
        await self.proxy.start()
        databases = self._folder / "hosted" if self.databases else None
        self.fleet = Fleet(self.network, self.plane.clock, databases=databases)
        self.hosting = Hosting(self.fleet, self.plane.clock, self._folder / "hosted", self.save)
        self._machines = Snapshot(self._folder / "machine")
        await self._machines.load(self.fleet)
        await self.hosting.load()
        self.plane.runners = Runners()
        self.hosting.register(self.plane.runners)
        self.plane.services = ServiceOptions(site=ServiceSite(self.network), pool=self._pool)
        await self.plane.start()

    async def leave(self) -> None:
        for client in self._clients:
            await client.close()
        self._clients.clear()
        await self.plane.stop()
        await self.save()
        await self.proxy.close()
        await self.hosting.close()
        await self.fleet.close()

    async def save(self) -> None:
        await self._machines.save(self.fleet)
        await self.hosting.save()

    async def die(self) -> None:
        """The process of the site is killed now, and started again: it finds the files as they are at this moment."""
        parts = [self._folder / each for each in ("hosted", "machine")]
        for part in parts:
            _copy_files(part, part.with_suffix(".killed"))
        await self.leave()
        for part in parts:
            shutil.rmtree(part)
            part.with_suffix(".killed").rename(part)
        await self.enter()

    def kind(self, obj: Json) -> Resource:
        return _KINDS[obj["kind"]]

    # -- a user ------------------------------------------------------------------------------------------------

    async def have(self, *objects: Json) -> None:
        for obj in objects:
            await self.plane.client.create(obj, kind=_KINDS[obj["kind"]])

    async def datastore(self) -> str:
        """An etcd that runs; the URL of its Service."""
        name = self.etcd.name
        secret, service, stateful = self.etcd.objects()
        await self.have(service)
        address = await self.local(name)
        self.etcd.hosts = (address,)
        secret, _, stateful = self.etcd.objects()
        await self.have(secret, stateful)
        await self.plane.until(lambda: self.ready(STATEFUL_SET, name, 1), "etcd is ready")
        return f"https://{address}:2379"

    @contextlib.asynccontextmanager
    async def root(self, server: str) -> AsyncIterator[Etcd]:
        """A client of the etcd at this URL who may do everything."""
        certificate, key = self.etcd.client("root")
        authority = certs.certificate_pem(self.etcd.issuer.certificate)
        async with connect(Access("datastore", (server,), authority, KeyPair(certificate, key))) as client:
            yield client

    def admit(self, user: str, prefix: str) -> None:
        """What whoever manages the datastore does for a tenant."""
        keys = next(iter(self.hosting.datastores.etcds.values()))
        if not keys.enabled:
            keys.add_user("root", "")
            keys.grant_role("root", "root")
            keys.enable()
        keys.add_user(user, "")
        keys.add_role(user)
        keys.grant(user, Permission(READ_WRITE, f"{prefix}/".encode(), f"{prefix}0".encode()))
        keys.grant_role(user, user)

    async def control_plane(self, name: str, etcd_server: str, **more: Any) -> HandmadePlane:
        """A control plane with its Service; ready."""
        made = HandmadePlane(name, self.etcd, etcd_server, **more)
        self.admit(name, made.prefix)
        await self.have(made.service())
        made.address = await self.address(name)
        await self.have(*made.objects())
        await self.plane.until(lambda: self.ready(DEPLOYMENT, name, made.replicas), f"{name} is ready", seconds=120)
        return made

    def client(self, control_plane: HandmadePlane) -> HttpClient:
        """As kubectl on the user's machine, through the proxy."""
        server = f"https://{control_plane.address}:{control_plane.port}"
        text = control_plane.admin(server, self.proxy.url())
        made = HttpClient(resolve(merge([parse(text, self._folder / "kubeconfig")])))
        self._clients.append(made)
        return made

    # -- looking -----------------------------------------------------------------------------------------------

    async def ready(self, kind: Resource, name: str, replicas: int) -> bool:
        found = await self.plane.get(kind, name)
        status = found.get("status") or {}
        current = status.get("observedGeneration") == found.metadata["generation"]
        settled = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "readyReplicas")]
        return current and settled == [replicas] * 3

    async def address(self, name: str) -> str:
        async def found() -> str:
            status = (await self.plane.get(SERVICE, name)).get("status") or {}
            return next((each["ip"] for each in (status.get("loadBalancer") or {}).get("ingress") or ()), "")

        await self.plane.until(found, f"an address of Service {name}")
        return await found()

    async def local(self, name: str) -> str:
        async def found() -> str:
            meta = (await self.plane.get(SERVICE, name)).metadata
            return str((meta.get("annotations") or {}).get(ADDRESS_ANNOTATION, ""))

        await self.plane.until(found, f"a loopback address of Service {name}")
        return await found()

    def pods(self, app: str) -> list[Json]:
        return [pod for pod in self.plane.objects("pods") if pod["metadata"]["labels"].get("app") == app]

    def log(self, app: str, container: str) -> str:
        logs = self.plane.server.builtin.logs
        lines = []
        for pod in self.pods(app):
            for previous in (True, False):
                with contextlib.suppress(KeyError, LookupError, ApiError):
                    found = logs.find(
                        pod["metadata"]["namespace"], pod["metadata"]["name"], container, previous=previous
                    )
                    lines += [line.text for line in found.lines()] if found is not None else []
        return "\n".join(lines)


def _copy_files(source: Path, target: Path) -> None:
    target.mkdir()
    for file in source.iterdir():
        with contextlib.suppress(FileNotFoundError):  # removed just now, by a thread
            shutil.copy2(file, target)


@contextlib.asynccontextmanager
async def stage(folder: Path, pool: Pool | None = None, *, databases: bool = False) -> AsyncIterator[Stage]:
    async with plane(PKI.ensure(folder / "pki"), running=False) as made:
        found = Stage(made, folder, pool, databases=databases)
        await found.enter()
        try:
            yield found
        finally:
            await found.leave()
