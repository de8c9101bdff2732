"""`homeport up --kubeconfig --webhook-url`: the webhooks of every replica, asked by a real kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from capikit.world import WorldProcess
from e2e.test_homeport_on_cluster import Replica, fetch
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.app.components import COMPONENTS
from homeport.app.definition import install_definitions
from homeport.app.kubernetes.webhook import webhook_objects, with_conversion
from homeport.app.platform import Platform
from homeport.client import kubeconfig
from homeport.client.errors import ApiError, Invalid
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.runtime.webhook.configuration import MUTATING, VALIDATING
from present import present
from realkube import RealKube, free_port
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(900)]

SYSTEM = "homeport-system"
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
KCP = KubeadmControlPlane.__resource__
OLD_KCP = f"{KCP.plural}.v1beta1.{KCP.group}"
NAME = "my-nutanix-cluster"
KEPT = (
    "core",
    "ipam",
    "kubeadm-bootstrap",
    "kubeadm-control-plane",
    "nutanix",
)  # what the manifest needs; fewer start sooner
PLATFORM = Platform(tuple(each for each in COMPONENTS if each.name in KEPT))
WITHOUT = [f"--without={each.name}" for each in COMPONENTS if each.name not in KEPT]
SECONDS = 180.0


class Balancer:
    """Stands for the Service: one address in front of all replicas that take connections."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in self._ports:
            with contextlib.suppress(OSError):
                other = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_copy(reader, other[1]), _copy(other[0], writer))
                return
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()


class Site:
    """A real API server that is told to ask our webhooks, a simulated Prism Central, and replicas."""

    def __init__(self, kube: RealKube, client: HttpClient, world: WorldProcess) -> None:
        self.kube = kube
        self.client = client
        self.world = world
        self.ports: tuple[int, ...] = (free_port(), free_port())
        self.balancer = Balancer(*self.ports)
        self.replicas: list[Replica] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.balancer.port}"

    async def prepare(self) -> None:
        """What `homeport install` does for a process outside the cluster."""
        await self.client.create({"metadata": {"name": SYSTEM}}, kind=NAMESPACE)
        definitions = [with_conversion(each, SYSTEM, url=self.url) for each in PLATFORM.definitions()]
        await install_definitions(self.client, definitions)
        for each in webhook_objects(PLATFORM.components, SYSTEM, url=self.url):
            kind = MUTATING if each["kind"] == MUTATING.kind else VALIDATING
            await self.client.apply(each, Write(field_manager="install"), kind=kind, force=True)

    def start(self) -> Replica:
        listen = f"127.0.0.1:{self.ports[len(self.replicas)]}"
        options = ("--namespace", SYSTEM, "--proxy", self.world.proxy, "--trust", str(self.world.authority))
        hooks = ("--webhook-listen", listen, "--webhook-url", self.url, "--health", "127.0.0.1:0")
        made = Replica("--kubeconfig", str(self.kube.kubeconfig), *options, *hooks, *WITHOUT)
        self.replicas.append(made)
        return made

    async def ready(self, replica: Replica) -> None:
        line = await asyncio.to_thread(replica.until, "health: ", seconds=120)
        url = present(re.search(r"http://\S+", line))[0]

        async def answers() -> bool:
            return (await asyncio.to_thread(fetch, url))[0] == 200

        await self.until("the replica is ready", answers)

    async def kubectl(self, *args: str, stdin: str | None = None) -> str:
        done = await asyncio.to_thread(self.kube.kubectl, *args, stdin=stdin)
        return done.stdout + done.stderr

    async def until(self, what: str, holds: Callable[[], Any]) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    with contextlib.suppress(ApiError):
                        if await holds():
                            return
                    await asyncio.sleep(0.2)
        except TimeoutError:
            said = "".join("".join(each.said[-40:]) for each in self.replicas)
            pytest.fail(f"not within {SECONDS:g} s: {what}\n{said}")


@pytest.fixture
async def site(kube: RealKube) -> AsyncIterator[Site]:
    with WorldProcess() as world:
        async with HttpClient(kubeconfig.load(kube.kubeconfig)) as client:
            made = Site(kube, client, world)
            async with made.balancer.serving():
                try:
                    await made.prepare()
                    yield made
                finally:
                    for each in made.replicas:
                        each.end()


def guide() -> str:
    """Ours, which says the same as the guide; or the file that HOMEPORT_REFERENCE names, as it stands."""
    reference = os.environ.get("HOMEPORT_REFERENCE", "")
    return Path(reference).read_text() if reference else yaml.safe_dump_all(manifest.cluster_objects())


async def spec(site: Site) -> Any:
    return (await site.client.get(KCP, Key("default", f"{NAME}-kcp")))["spec"]


async def test_an_older_manifest_becomes_a_cluster_and_what_is_unsafe_is_refused(site: Site) -> None:
    first, second = site.start(), site.start()
    for each in (first, second):
        await site.ready(each)

    applied = await site.kubectl("apply", "-f", "-", stdin=guide())
    assert f"cluster.cluster.x-k8s.io/{NAME} created" in applied, applied
    held = await spec(site)
    assert held["machineTemplate"]["spec"]["infrastructureRef"]["kind"] == "NutanixMachineTemplate"

    # A write in the older version keeps everything, also what only the newer version knows.
    key = Key("default", f"{NAME}-kcp")
    await site.client.patch(KCP, key, MergePatch({"spec": {"rollout": {"before": {"certificatesExpiryDays": 30}}}}))
    before = await spec(site)
    assert before != held
    said = await site.kubectl("annotate", f"{OLD_KCP}/{NAME}-kcp", "team=blue")
    assert "annotated" in said, said
    assert await spec(site) == before
    old = await site.client.get(msgspec.structs.replace(KCP, version="v1beta1"), key)
    assert old["apiVersion"].endswith("/v1beta1")
    assert old["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["apiServer"]["extraArgs"]["cloud-provider"]

    async def available() -> bool:
        found = await site.client.get(Cluster, Key("default", NAME))
        return (condition.find(found.status.conditions, "Available") or {}).get("status") == "True"

    async def complete() -> bool:
        return bool((await site.client.get(KCP, key)).get("status", {}).get("readyReplicas") == 3)

    async def refuses(patch: MergePatch, words: str) -> bool:
        with pytest.raises(Invalid, match=words):
            await site.client.patch(KCP, key, patch)
        return True

    await site.until("the cluster is Available", available)
    await site.until("the control plane has three machines", complete)  # Available needs fewer

    # Replicas come and go: the name stays, and so do the checks.
    os.kill(first.pid, signal.SIGKILL)
    for change, words in (
        ({"replicas": 2}, "etcd"),
        ({"version": "v1.26.0"}, "v1.26.0"),
        ({"version": "v1.31.0"}, "minor"),
    ):
        # A request on a connection of the killed replica is not accepted either, but says nothing of the change.
        await site.until(f"{change} is refused", partial(refuses, MergePatch({"spec": change}), words))
    old_patch = json.dumps({"spec": {"replicas": 2}})
    assert "etcd" in await site.kubectl("patch", f"{OLD_KCP}/{NAME}-kcp", "--type=merge", "-p", old_patch)
    assert len(site.world.state()["vms"]) == 6

    # Without any replica nothing slips through, and nothing is lost: reads and status need no webhook.
    os.kill(second.pid, signal.SIGKILL)
    with pytest.raises(ApiError, match="failed calling webhook"):
        await site.client.patch(KCP, key, MergePatch({"spec": {"replicas": 5}}))
    assert (await spec(site))["replicas"] == 3
    await site.client.create({"metadata": {"name": "unrelated"}}, kind=NAMESPACE)
    site.ports = (*site.ports, site.ports[0])
    await site.ready(site.start())
    await site.client.delete(Cluster, Key("default", NAME))

    async def gone() -> bool:
        return not (await site.client.list(Cluster)).items

    await site.until("the cluster is deleted", gone)
    assert site.world.state()["vms"] == []
