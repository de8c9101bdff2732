"""Ports of Pods, as the kubelet of their node reaches them: on the machine itself."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import orjson

from homeport.sim.machine.workload.kind import Json
from homeport.sim.network import Host

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster


class PodDialer:
    """Dials for pods/portforward. Pods of the host's network share its ports; the others listen nowhere."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster

    async def dial(self, pod: Json, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        pod = self._current(pod)
        host = self._host(pod)
        if not pod["spec"].get("hostNetwork"):
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connection refused: {_address(pod)} port {port}")
        network = self._cluster.network
        sock = await network.connect(host.name, self._own_address(host), port)
        try:
            return await asyncio.open_connection(sock=sock)
        except BaseException:
            sock.close()
            raise

    def _current(self, pod: Json) -> Json:
        """The Pod as it is now: a forward outlives the look at it that opened it."""
        meta = pod["metadata"]
        record = self._cluster.server.store.get("pods", f"{meta['namespace']}/{meta['name']}")
        found: Json = orjson.loads(record.value) if record is not None else {}
        if not found or found["metadata"]["uid"] != meta["uid"]:
            raise OSError(errno.ENOENT, f"pod not found: {meta['namespace']}/{meta['name']} was deleted")
        phase = (found.get("status") or {}).get("phase") or "Pending"
        if phase != "Running":
            raise OSError(errno.ENOTCONN, f"pod is not running: its phase is {phase}")
        return found

    def _host(self, pod: Json) -> Host:
        """The machine of the Pod's node, if an API server reaches its kubelet."""
        cluster, node = self._cluster, pod["spec"]["nodeName"]
        kubelet = cluster.kubelets.get(node)
        if kubelet is None:
            raise OSError(errno.EHOSTUNREACH, f"no route to host: no kubelet answers for node {node}")
        host = kubelet.guest.host
        reached = any(cluster.network.reaches(plane.guest.host.name, host.name) for plane in cluster.serving())
        if not kubelet.guest.running or not reached:
            raise TimeoutError(errno.ETIMEDOUT, f"i/o timeout: the kubelet of node {node} does not answer")
        return host

    def _own_address(self, host: Host) -> str:
        """An address at which the machine itself answers, and not somebody else who claims it, too."""
        for address in host.addresses:
            if self._cluster.network.holder(address) is host:
                return address
        raise OSError(errno.ENETUNREACH, f"network is unreachable: {host.name} has no address")


def _address(pod: Json) -> str:
    return str((pod.get("status") or {}).get("podIP") or "the pod")
