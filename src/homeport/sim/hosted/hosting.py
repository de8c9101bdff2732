"""Everything that runs hosted control planes in simulation: registered with the plane's runners, kept over restarts.

    FOLDER/etcd.json     simulated etcds: users, roles, keys that no cluster has taken up

What a client of etcd or of a hosted cluster is told to be stored is on disk by then. Which clusters there are is kept
with the machines: see `sim/machine/snapshot.py`.
"""

from __future__ import annotations

import asyncio
import datetime
import shlex
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.runtime.clock import Clock
from homeport.runtime.task import uninterrupted
from homeport.runtime.workload.coroutine import ContainerHandle, CoroutineContainer, CoroutineRunner
from homeport.runtime.workload.runner import Launch, Runners
from homeport.sim.hosted.apiserver import first, listen, run_apiserver
from homeport.sim.hosted.cluster import HostedClusters, Save
from homeport.sim.hosted.companion import run_controller_manager, run_kine, run_konnectivity, run_scheduler
from homeport.sim.hosted.datastore import Datastores
from homeport.sim.hosted.etcd import EtcdPort, client_ports, metric_ports
from homeport.sim.hosted.health import HealthPort, self_signed
from homeport.sim.hosted.k0s import run_k0s
from homeport.sim.hosted.pod import PodHost, Pods, find_volume
from homeport.sim.hosted.program import Program, ProgramError
from homeport.sim.machine.fleet import Fleet

Run = Callable[[PodHost, Launch, ContainerHandle], Awaitable[None]]


class HostingError(Exception):
    """What was kept can't be read; the text names the file."""


class Hosting:
    """`register` its runners, `load` what was kept. `save_fleet` writes the fleet, with the clusters that are new."""

    def __init__(self, fleet: Fleet, clock: Clock, folder: Path | None = None, save_fleet: Save | None = None) -> None:
        self._fleet = fleet
        self._clock = clock
        self._folder = folder
        self.pods = Pods(fleet.network, clock)
        self.datastores = Datastores(fleet)
        self.datastores.keep = self.save
        self.clusters = HostedClusters(fleet, self.datastores, clock, save_fleet or self.save)
        self._written: tuple[object, ...] = ()
        self._saving = asyncio.Lock()

    @cached_property
    def _health(self) -> HealthPort:
        return HealthPort(self_signed(datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC)))

    def register(self, runners: Runners) -> None:
        for name, run, images in (
            ("kube-apiserver", self._apiserver, ["*kube-apiserver:*", "*kube-apiserver@*"]),
            ("kube-controller-manager", self._manager, ["*kube-controller-manager:*", "*kube-controller-manager@*"]),
            ("kube-scheduler", self._scheduler, ["*kube-scheduler:*", "*kube-scheduler@*"]),
            ("konnectivity", self._konnectivity, ["*proxy-server:*", "*konnectivity*"]),
            ("kine", self._kine, ["*kine:*"]),
            ("k0s", self._k0s, ["*k0s:*", "*k0s@*"]),
            ("etcd", self._etcd, ["*etcd:*", "*etcd@*"]),
        ):
            runners.register(f"simulated-{name}", _Runner(self, run), images=images)

    # -- programs ----------------------------------------------------------------------------------------------

    async def _apiserver(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        await run_apiserver(self.clusters, pod, Program(launch), inside)

    async def _manager(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        await run_controller_manager(self.clusters, pod, Program(launch), inside, self._health)

    async def _scheduler(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        await run_scheduler(self.clusters, pod, Program(launch), inside, self._health)

    async def _konnectivity(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        await run_konnectivity(pod, Program(launch), inside)

    async def _kine(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        await run_kine(pod, Program(launch), inside)

    async def _k0s(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        words = _words(launch, "k0s")
        if not words or words[0] != "controller":
            raise ProgramError(f'unknown command {" ".join(words)!r} for "k0s"')
        program = Program(launch, words[1:], files=pod.files)
        await run_k0s(self.clusters, pod, program, inside)

    async def _etcd(self, pod: PodHost, launch: Launch, inside: ContainerHandle) -> None:
        program = Program(launch, _words(launch, "etcd"), env="ETCD_")
        name, claim = find_volume(pod, launch, program.flag("data-dir", "default.etcd"))
        port = EtcdPort(self.datastores, name, program)
        if claim and claim not in port.keyspace.claims:
            port.keyspace.claims.append(claim)
        opened = [*client_ports(program), *metric_ports(program)]
        try:
            for number in client_ports(program):
                await listen(pod, number, port)
            for number in metric_ports(program):
                await listen(pod, number, HealthPort(body=b'{"health":"true"}'))
            launch.log(f"ready to serve client requests, {len(port.keyspace.users)} users")
            inside.ready()
            await first(inside.stopping)
        finally:
            for number in opened:
                await pod.unlisten(number)

    # -- kept --------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Raises HostingError."""
        if self._folder is None:
            return
        file = self._folder / "etcd.json"
        try:
            self.datastores.load(file.read_bytes())
            self._written = self.datastores.version()
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError) as error:
            raise HostingError(f"{file}: can't be read ({error})") from error

    async def save(self) -> None:
        """Returns when everything that happened before is on disk."""
        if self._folder is not None and self.datastores.version() != self._written:
            await uninterrupted(self._save(self._folder))

    async def _save(self, folder: Path) -> None:
        async with self._saving:
            version = self.datastores.version()
            if version == self._written:
                return
            make_private_dir(folder)
            await asyncio.to_thread(write_private, folder / "etcd.json", self.datastores.dump())
            self._written = version

    async def close(self) -> None:
        await self.datastores.close()

    async def copy(self, target: Path) -> None:
        """Everything as it is now, in a new folder."""
        make_private_dir(target)
        await asyncio.to_thread(write_private, target / "etcd.json", self.datastores.dump())
        for cluster in self._fleet.hosted.copy().values():
            if cluster.database is not None:
                await cluster.server.store.backup(target / cluster.database.name)

    def forget(self, uid: str) -> None:
        """The Pod is deleted: what was in its own volumes is gone."""
        self.pods.forget(uid)
        self.datastores.drop(f"pod:{uid}")

    def forget_claim(self, namespace: str, name: str) -> None:
        """The data of several members are gone with the last of their claims."""
        for each in list(self.datastores.etcds.values()):
            claim = f"{namespace}/{name}"
            if claim in each.claims:
                each.claims.remove(claim)
                if not each.claims:
                    self.datastores.drop(each.name)


class _Runner:
    def __init__(self, hosting: Hosting, run: Run) -> None:
        self._hosting = hosting
        self._inner = CoroutineRunner(self._main, ready_at_start=False)
        self._run = run

    async def run(self, launch: Launch) -> CoroutineContainer:
        return await self._inner.run(launch)

    async def _main(self, launch: Launch, inside: ContainerHandle) -> int:
        pod = self._hosting.pods.enter(launch)
        try:
            if _is_init(launch):
                for word in launch.command:
                    pod.copy(word)
                return 0
            await self._run(pod, launch, inside)
        except ProgramError as error:
            launch.log(f'E run.go:72] "command failed" err="{error}"')
            return 1
        finally:
            self._hosting.pods.leave(pod)
        return 0

    def forget(self, uid: str) -> None:
        self._hosting.forget(uid)

    def forget_claim(self, namespace: str, name: str) -> None:
        self._hosting.forget_claim(namespace, name)


def _is_init(launch: Launch) -> bool:
    inits = launch.pod["spec"].get("initContainers") or ()
    return any(each["name"] == launch.container["name"] and each.get("restartPolicy") != "Always" for each in inits)


def _words(launch: Launch, program: str) -> list[str]:
    """The arguments of `program`, which the last line of a shell script may start."""
    command = list(launch.command)
    if len(command) > 1 and command[0].rpartition("/")[2] in ("sh", "bash"):
        script = command[2] if command[1].startswith("-") and len(command) > 2 else ""
        if not command[1].startswith("-"):
            script = launch.files.get(command[1], b"").decode(errors="replace")
        command = shlex.split(script.rstrip().rpartition("\n")[2].removeprefix("exec "))
    names = [at for at, word in enumerate(command) if word.rpartition("/")[2] == program]
    return command[names[0] + 1 :] if names else command
