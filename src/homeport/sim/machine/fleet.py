"""All machines of a simulation: power from hypervisors comes in, nodes of workload clusters come out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from homeport.runtime.clock import Clock
from homeport.sim.engine import guest
from homeport.sim.machine import sshd
from homeport.sim.machine.boot import boot
from homeport.sim.machine.image import Image, describe_image
from homeport.sim.machine.pace import QUICK, Pace
from homeport.sim.machine.vm import GIB, Machine
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kubelet import Heartbeats
from homeport.sim.machine.workload.pod.container import Programs
from homeport.sim.network import Network

log = structlog.get_logger(__name__)

Describe = Callable[[guest.Machine], Image]


def describe(machine: guest.Machine) -> Image:
    if not machine.image:
        return Image("the disk", bootable=False)
    return describe_image(
        machine.image,
        image_type=machine.image_type,
        family=machine.image_os,
        cni=machine.image_network != "none",
        programs=machine.image_programs,
        without=machine.image_without,
    )


class Fleet:
    """The `Guests` of any number of hypervisors.

    `images` says what is on an image; by default its name and its entry in the world do. `consoles` gets every line
    that a machine writes.
    `programs` brings containers of workload clusters to life; without it, Pods only seem to run. `databases` is the
    folder of hosted clusters: what they acknowledge is there at once; without it, it is in memory until the next save.
    """

    def __init__(
        self,
        network: Network,
        clock: Clock,
        *,
        pace: Pace = QUICK,
        images: Describe = describe,
        consoles: Callable[[str, str], None] | None = None,
        programs: Programs | None = None,
        databases: Path | None = None,
    ) -> None:
        self.network = network
        self.clock = clock
        self.pace = pace
        self.machines: dict[str, Machine] = {}
        self._by_host: dict[str, Machine] = {}
        self.hosted: dict[str, WorkloadCluster] = {}  # clusters whose control planes are Pods, by their datastore
        self.heart = Heartbeats(clock)
        self._images = images
        self._consoles = consoles
        self.programs = programs
        self.databases = databases
        self._bootstraps: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        network.follow(self._network_changed)

    # -- what hypervisors call ---------------------------------------------------------------------------------

    def powered_on(self, machine: guest.Machine) -> None:
        found = self.machines.get(machine.ext_id) or self._build(machine)
        if found.state != "off":
            return
        found.cpus, found.memory_bytes, found.uefi = machine.vcpus, machine.memory_bytes or 4 * GIB, machine.uefi
        found.system_uuid = machine.system_uuid
        if not found.provisioned:
            found.user_data, found.meta_data = machine.user_data, machine.meta_data
        found.lacks = frozenset(machine.lacks)
        found.state = "booting"
        self._address(found, machine.addresses)
        event = self._bootstraps.setdefault(found.id, asyncio.Event())
        found.task = self._spawn(boot(found, self._joined, event), f"boot of {found.name}")

    def powered_off(self, ext_id: str, *, crashed: bool) -> None:
        found = self.machines.get(ext_id)
        if found is None or found.state == "off":
            return
        found.stop()
        found.console.say("crashed" if crashed else "reboot: Power down")
        found.host.set_up(False)

    def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None:
        found = self.machines.get(ext_id)
        if found is not None:
            self._address(found, addresses)
            if found.kubelet is not None:
                found.kubelet.report_soon()

    def removed(self, ext_id: str) -> None:
        found = self.machines.pop(ext_id, None)
        if found is None:
            return
        found.stop()
        self._bootstraps.pop(ext_id, None)
        self._by_host.pop(found.host.name, None)
        self.network.detach(found.host)
        # A node that is gone goes on being missed: its Node stays until somebody deletes it.
        if found.cluster is not None and found.cluster.runs_on(found):
            self._spawn(found.cluster.lose(found), f"loss of {found.name}")

    # -- for whoever looks -------------------------------------------------------------------------------------

    def console(self, ext_id: str) -> str:
        found = self.machines.get(ext_id)
        return "" if found is None else found.console.text()

    def find(self, name: str) -> Machine | None:
        return next((machine for machine in self.machines.values() if machine.name == name), None)

    def clusters(self) -> list[WorkloadCluster]:
        found = {
            id(machine.cluster): machine.cluster for machine in self.machines.values() if machine.cluster is not None
        }
        found |= {id(cluster): cluster for cluster in self.hosted.values()}
        return [cluster for cluster in found.values() if not cluster.closed]

    def bootstrap(self, ext_id: str) -> None:
        """Talos' bootstrap call: this control plane is the first."""
        self._bootstraps.setdefault(ext_id, asyncio.Event()).set()

    async def settled(self) -> None:
        """Returns when no machine boots any more; one that waits for a configuration does not."""
        while tasks := [
            machine.task
            for machine in self.machines.values()
            if machine.task and not machine.task.done() and not machine.waiting
        ]:
            await asyncio.wait(tasks, timeout=self.pace.poll)
        for cluster in self.clusters():
            await cluster.controllers.idle()
            if cluster.k0s is not None:
                await cluster.k0s.idle()

    async def close(self) -> None:
        await self.heart.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for cluster in self.clusters():
            await cluster.close()

    # -- inside ------------------------------------------------------------------------------------------------

    def _build(self, machine: guest.Machine) -> Machine:
        return self.rebuild(machine.ext_id, machine.name, self._images(machine), machine.simulator, machine.platform)

    def rebuild(self, ext_id: str, called: str, image: Image, simulator: str, platform: str) -> Machine:
        """A machine that is off, with an empty disk."""
        name = called if self.network.host(called) is None else f"{called}-{ext_id[:8]}"
        host = self.network.attach(name)
        host.set_up(False)
        built = Machine(
            id=ext_id,
            name=called,
            image=image,
            host=host,
            network=self.network,
            clock=self.clock,
            pace=self.pace,
            spawn=self._spawn,
            platform=platform,
            simulator=simulator,
            sink=None if self._consoles is None else partial(self._consoles, ext_id),
        )
        if image.reader in ("cloud-init", "ignition"):
            host.listen(sshd.PORT, sshd.Sshd(ext_id, built.disk, self.clock, self._spawn))
        self.machines[ext_id] = self._by_host[name] = built
        return built

    def _address(self, machine: Machine, addresses: tuple[str, ...]) -> None:
        """Addresses that the hypervisor gives; virtual ones are held beside them."""
        virtual = machine.cluster.virtual_addresses() if machine.cluster is not None else frozenset()
        for address in tuple(machine.host.addresses):
            if address not in addresses and address not in virtual:
                machine.host.release(address)
        for address in addresses:
            if address not in machine.host.addresses:
                machine.host.assign(address)

    async def _joined(self, machine: Machine) -> None:
        if machine.cluster is not None:
            machine.cluster.containers.programs = self.programs
        if machine.kubelet is not None:
            self.heart.add(machine.kubelet)

    def _network_changed(self, hosts: frozenset[str] | None) -> None:
        if hosts is None:
            for cluster in self.clusters():
                cluster.refresh()
            return
        for name in hosts:
            machine = self._by_host.get(name)
            if machine is not None and machine.cluster is not None:
                machine.cluster.refresh()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a simulated machine failed", task=task.get_name(), exc_info=error)
