"""Makes k0s of a machine known to its cluster: after a join, and after every start of the machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.download import DownloadError, check_reach, fetch_k0s
from homeport.sim.machine.k0s import release
from homeport.sim.machine.k0s.config import read_config
from homeport.sim.machine.k0s.journal import Journal
from homeport.sim.machine.k0s.unit import Unit
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.shell.flag import parse_flags
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.k0s.agent import Agent
from homeport.sim.machine.workload.kind import NODE, Json


@dataclass(slots=True)
class MachineHost:
    """The `Host` of an agent."""

    guest: Machine
    unit: Unit

    @property
    def disk(self) -> Disk:
        return self.guest.disk

    def version(self) -> str:
        return f"v{self.guest.k0s}"

    def fetch(self, url: str) -> bytes:
        try:
            return fetch_k0s(self.guest, url)
        except DownloadError as failed:
            raise OSError(str(failed)) from failed

    def reach(self, url: str) -> None:
        try:
            check_reach(self.guest, url)
        except DownloadError as failed:
            raise OSError(str(failed)) from failed

    async def upgrade(self, content: bytes) -> None:
        machine = self.guest
        machine.disk.rewrite(self.unit.program, content)
        if (entry := machine.disk.entry(self.unit.program)) is not None:
            entry.mode = 0o755
        machine.k0s = release.version_of(content).removeprefix("v")
        machine.installed = machine.k0s.partition("+")[0]
        Journal(machine, self.unit.name).systemd("Scheduled restart job, restart counter is at 1.")
        cluster = machine.cluster
        if cluster is None:
            return
        version = release.kubernetes(machine.k0s)
        for plane in cluster.control_planes.values():
            if plane.guest is machine:
                plane.version = version
                await _restart(machine, cluster, plane)
        if machine.kubelet is not None:
            patch = MergePatch({"status": {"nodeInfo": {"kubeletVersion": version}}})
            with contextlib.suppress(NotFound):
                key = Key("", machine.kubelet.node)
                await cluster.client("kubelet").patch(NODE, key, patch, subresource="status")

    def log(self, level: str, message: str, component: str) -> None:
        journal = Journal(self.guest, self.unit.name)
        write = {"info": journal.info, "warning": journal.warn}.get(level, journal.error)
        write(message, component=component)


async def _restart(machine: Machine, cluster: WorkloadCluster, plane: ControlPlane) -> None:
    """etcd and the API server are away for a moment; at once with the quickest machines."""
    if machine.pace.kubelet:
        plane.stopped = True
        cluster.refresh()
        try:
            await machine.pace.take(machine.pace.kubelet)
        finally:
            plane.stopped = False
    cluster.refresh()


async def attach(machine: Machine, unit: Unit) -> None:
    """Idempotent. Does nothing without a cluster, or while its API does not answer."""
    cluster = machine.cluster
    if cluster is None or cluster.k0s is None or cluster.closed:
        return
    await cluster.k0s.attach(_agent(machine, unit))


def _agent(machine: Machine, unit: Unit) -> Agent:
    host = MachineHost(machine, unit)
    arguments = parse_flags(unit.flag("kubelet-extra-args").split())[1]
    node = (arguments.get("hostname-override") or machine.hostname.lower()) if unit.has_worker else ""
    if unit.role == "worker":
        return Agent(unit.env.get("AUTOPILOT_HOSTNAME") or node, host, controller=False, node=node)
    try:
        config: Json = read_config(machine, unit)
    except KubeadmError:
        config = {}  # the file was changed since it was installed: what is in the API counts
    planes = machine.cluster.control_planes.values() if machine.cluster is not None else ()
    plane = next((each for each in planes if each.guest is machine), None)
    return Agent(
        name=unit.env.get("AUTOPILOT_HOSTNAME") or machine.hostname.lower(),
        host=host,
        controller=True,
        member=plane.node if plane is not None else "",
        address=plane.address if plane is not None else machine.address,
        config=config,
        dynamic=unit.has("enable-dynamic-config"),
        disabled=frozenset(unit.listed("disable-components")),
        node=node,
    )
