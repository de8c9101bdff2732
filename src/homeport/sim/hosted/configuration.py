"""The configuration of k0s in a Pod: it is published in its cluster and followed there, charts among it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport.sim.hosted.pod import PodHost
from homeport.sim.hosted.program import Program
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.k0s.agent import Agent

# etcd, upgrades and folders of manifests are the business of the Pod's owner.
_LEFT_OUT = frozenset({"etcd", "autopilot", "applier-manager"})


class PodProgram:
    """The `Host` of an agent that runs in a Pod."""

    def __init__(self, pod: PodHost, program: Program, version: str) -> None:
        self.guest = pod
        self.disk = Disk()
        self._log = program.launch.log
        self._version = version

    def version(self) -> str:
        return self._version

    def fetch(self, url: str) -> bytes:
        raise OSError(f"{url}: the program of a container is in its image")

    def reach(self, url: str) -> None:
        """Pods of the plane reach everything that the simulated network has."""

    async def upgrade(self, content: bytes) -> None:
        raise NotImplementedError("the Pod is replaced instead")

    def log(self, level: str, message: str, component: str) -> None:
        self._log(f"level={level} component={component} {message}")


@asynccontextmanager
async def configured(
    cluster: WorkloadCluster, pod: PodHost, program: Program, config: dict[str, Any], version: str
) -> AsyncIterator[None]:
    """As long as the Pod runs."""
    platform = cluster.k0s
    assert platform is not None
    agent = Agent(
        name=pod.name,
        host=PodProgram(pod, program, version),
        controller=True,
        address=pod.address,
        config=config,
        dynamic=program.switch("enable-dynamic-config"),
        disabled=_LEFT_OUT,
    )
    await platform.attach(agent)
    try:
        yield
    finally:
        if platform.agents.get(pod.name) is agent:
            del platform.agents[pod.name]
