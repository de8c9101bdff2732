"""Our data in machines that boot: `kubeadm init` and `kubeadm join` succeed with what we tell them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from homeport import bootstrap
from homeport.bootstrap.token import SECRET
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.definition import establish
from homeport.runtime.testing import plane, virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.kind import NODE
from homeport.sim.network import Network
from reconcile.bootstrap.bootstrap_kit import CLUSTER, Bench, crds, kubeadm

ADDRESS = "10.1.2.3"  # of the first machine, and so the endpoint
NAME = "{{ ds.meta_data.hostname }}"


class Hall:
    """Simulated machines, and the bootstrap controller at work."""

    def __init__(self, bench: Bench, fleet: Fleet) -> None:
        self.bench = bench
        self.fleet = fleet
        self._count = 0

    async def data(self, key: Key) -> bytes:
        """As soon as they are there; nobody looks again by itself."""
        started = self.bench.plane.clock.monotonic()
        secret = await self.bench.plane.until(SECRET, key, lambda each: "value" in each.get("data", {}), 10)
        assert self.bench.plane.clock.monotonic() - started < 1
        return base64.b64decode(secret["data"]["value"])

    async def boot(self, name: str, image: str, *, address: str = "") -> str:
        self._count += 1
        ext_id = f"{self._count:08d}-0000-0000-0000-000000000000"
        self.fleet.powered_on(
            guest.Machine(
                ext_id=ext_id,
                name=name,
                cluster="pe",
                image=image,
                image_type="DISK_IMAGE",
                vcpus=4,
                memory_bytes=8 * 1024**3,
                user_data=await self.data(Key("default", name)),
                meta_data=yaml.safe_dump({"hostname": name, "uuid": ext_id}).encode(),
                addresses=(address or f"10.1.2.{10 + self._count}",),
            )
        )
        await self.fleet.settled()
        return self.fleet.console(ext_id)

    async def node(self, name: str) -> Any:
        return await self.fleet.clusters()[0].client().get(NODE, Key("", name))

    async def initialized(self) -> None:
        """What the controllers of control plane and Cluster do when the API answers."""
        text = "apiVersion: v1\nkind: Config\n"
        await self.bench.plane.have(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "one-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "one"}},
                "type": "cluster.x-k8s.io/secret",
                "data": {"value": base64.b64encode(text.encode()).decode()},
            }
        )
        kind = self.bench.plane.resource({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"})
        patch = MergePatch({"status": {"initialization": {"controlPlaneInitialized": True}}})
        await self.bench.client.patch(kind, CLUSTER, patch, subresource="status")


@asynccontextmanager
async def hall() -> AsyncIterator[Hall]:
    network = Network()
    async with plane(crds=crds()) as p:
        fleet = Fleet(network, p.clock, pace=Pace(poll=1.0, patience=20.0))

        def connect(*given: Any) -> Any:
            return fleet.clusters()[0].client("capi")

        try:
            capi = Capi.make(p.manager, connect=connect)
            bootstrap.install(p.manager, capi)
            await p.start()
            yield Hall(Bench(p, capi=capi), fleet)
        finally:
            await p.stop()
            await fleet.close()


@pytest.mark.parametrize("format", ["cloud-config", "ignition"])
@pytest.mark.parametrize("version", ["v1.30.2", "v1.33.1"])
def test_machines_boot_with_our_data(version: str, format: str) -> None:
    _boot(version, format)


@virtual
async def _boot(version: str, format: str) -> None:
    # Ignition knows no expressions: there the name is the machine's own.
    registration = {"nodeRegistration": {"name": NAME}} if format == "cloud-config" else {}
    spec: dict[str, Any] = {"format": format}
    if registration:
        spec |= {"initConfiguration": registration, "joinConfiguration": registration}
    image = f"ubuntu-22.04-kube-{version}" if format == "cloud-config" else f"flatcar-stable-kube-{version}"
    async with hall() as h:
        await h.bench.cluster()
        await h.bench.machine("cp-0", spec, control_plane=True, version=version)
        console = await h.boot("cp-0", image, address=ADDRESS)
        assert "initialized successfully" in console, console
        machine = h.fleet.find("cp-0")
        assert machine is not None
        assert machine.disk.text("/run/cluster-api/bootstrap-success.complete") == "success\n"

        await h.bench.machine("cp-1", spec, control_plane=True, version=version)
        await h.bench.machine("w-0", spec, version=version)
        await h.initialized()
        console = await h.boot("cp-1", image)
        assert await h.node("cp-1"), console
        console = await h.boot("w-0", image)
        worker = await h.node("w-0")
        assert {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"} in [
            {"key": each["key"], "effect": each["effect"]} for each in worker["spec"]["taints"]
        ], console
        assert "node-role.kubernetes.io/control-plane" in (await h.node("cp-1"))["metadata"]["labels"]


@virtual
async def test_a_config_written_in_v1beta1_reaches_kubeadm_in_its_own_words() -> None:
    hooks = Hooks()
    conversion.register(hooks)
    bootstrap.register(hooks)
    async with plane() as p:
        install_hooks(hooks, p.server)
        await establish(p.client, *crds())
        b = Bench(p)
        await b.cluster()
        key = await b.machine("cp", control_plane=True, version="v1.28.0")
        kind = p.resource({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig"})
        external = {"cloud-provider": "external"}
        spec = {
            "clusterConfiguration": {"apiServer": {"extraArgs": external, "timeoutForControlPlane": "5m0s"}},
            "initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": external}},
        }
        await b.client.patch(kind, key, MergePatch({"spec": spec}))
        await b.reconcile(key)
        found = kubeadm(await b.data(key))
        assert found["ClusterConfiguration"]["apiVersion"] == "kubeadm.k8s.io/v1beta3"
        assert found["ClusterConfiguration"]["apiServer"] == {"extraArgs": external, "timeoutForControlPlane": "5m0s"}
        assert found["InitConfiguration"]["nodeRegistration"]["kubeletExtraArgs"] == external
