"""A Pod's place on the simulated network: what its containers listen on, there and on this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import weakref
from collections.abc import Mapping

from homeport.runtime.clock import Clock
from homeport.runtime.workload.runner import Launch
from homeport.sim.machine.console import Console
from homeport.sim.network import Host, Network, Service
from homeport.sim.network.book import OUTSIDE
from homeport.sim.network.service import connections

_LOCAL = ("127.0.0.1", "localhost", "::1")
_COPY = re.compile(r"\bcp (?:-\w+ )*(\S+)/\*(?:\.\*)? (\S+)")


class PodHost:
    """Shared by the containers of a Pod. A `Guest` of the cluster that it serves."""

    def __init__(self, network: Network, launch: Launch, clock: Clock) -> None:
        meta = launch.pod["metadata"]
        self.namespace: str = meta["namespace"]
        self.name: str = meta["name"]
        self.uid: str = meta["uid"]
        self.address = launch.address
        self.console = Console(clock)
        self.cni = True
        self.running = True
        self.containers = 0
        self.files: dict[str, bytes] = {}  # of all containers that were started, init containers included
        self.sockets: dict[str, Service] = {}  # by path: what containers of the Pod offer each other
        self._network = network
        self.host: Host = network.attach(f"pod {self.namespace}/{self.name} {self.uid[:8]}", [self.address])
        self._ports: dict[int, _Port] = {}

    def pull_problem(self, image: str) -> str:
        """No kubelet runs in a Pod."""
        return ""

    def find(self, host: str, port: int) -> Service:
        """What answers a container of this Pod at host:port. Raises OSError as dialling would."""
        if host in _LOCAL:
            found = self.host.service(port)
            if found is None:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "connect: connection refused")
            return found
        for name in (host, f"{host}.{self.namespace}.svc", f"{host}.svc"):
            with contextlib.suppress(socket.gaierror):
                return self._network.find(self.host.name, name, port)[2]
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    def copy(self, script: str) -> None:
        """What an init container's `cp FOLDER/*.* TARGET` leaves behind."""
        for source, target in _COPY.findall(script):
            for path, content in list(self.files.items()):
                if path.rpartition("/")[0] == source:
                    self.files[f"{target.rstrip('/')}/{path.rpartition('/')[2]}"] = content

    async def listen(self, port: int, service: Service) -> None:
        """On both networks. Raises OSError if the port is taken."""
        opened = _Port(self.address, port, service)
        await opened.start()
        self._ports[port] = opened
        self.host.listen(port, service)

    async def unlisten(self, port: int) -> None:
        self.host.unlisten(port)
        opened = self._ports.pop(port, None)
        if opened is not None:
            await opened.close()

    def leave(self) -> None:
        self.running = False
        self._network.detach(self.host)


class _Port:
    """A real listener, for probes and for programs outside the simulation."""

    def __init__(self, host: str, port: int, service: Service) -> None:
        self._at = (host, port)
        self._service = service
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def start(self) -> None:
        listener = socket.create_server(self._at, backlog=256)
        listener.setblocking(False)
        self._listener = listener
        self._accepting = asyncio.create_task(self._accept(listener), name=f"port {self._at[1]} of a Pod")

    async def _accept(self, listener: socket.socket) -> None:
        async for sock in connections(listener):
            try:
                await self._service.accept(sock, OUTSIDE)
            except OSError:
                sock.close()
                continue
            self._open.add(sock)

    async def close(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        for sock in tuple(self._open):
            if sock.fileno() >= 0:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


class Pods:
    """All Pods that have a container here, by UID."""

    def __init__(self, network: Network, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._pods: dict[str, PodHost] = {}

    def enter(self, launch: Launch) -> PodHost:
        uid = launch.pod["metadata"]["uid"]
        found = self._pods.get(uid)
        if found is None:
            found = self._pods[uid] = PodHost(self._network, launch, self._clock)
        found.containers += 1
        found.files |= launch.files
        return found

    def leave(self, pod: PodHost) -> None:
        """The Pod stays on the network until it is deleted: containers restart."""
        pod.containers -= 1

    def forget(self, uid: str) -> None:
        found = self._pods.pop(uid, None)
        if found is not None:
            found.leave()

    def all(self) -> Mapping[str, PodHost]:
        return self._pods


def find_volume(pod: PodHost, launch: Launch, folder: str) -> tuple[str, str]:
    """Where data of this folder are, and in which claim. Members of a StatefulSet share what they hold."""
    for mount in launch.mounts:
        if folder == mount.path or folder.startswith(f"{mount.path.rstrip('/')}/"):
            if mount.kind == "claim":
                base, _, ordinal = mount.name.rpartition("-")
                shared = base if ordinal.isdigit() and base else mount.name
                return f"claim:{pod.namespace}/{shared}", f"{pod.namespace}/{mount.name}"
            if mount.kind == "host":
                return f"host:{mount.name}".replace(" ", "_"), ""
    return f"pod:{pod.uid}", ""
