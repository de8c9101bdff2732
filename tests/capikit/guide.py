"""The cluster of Nutanix' guide, for our controllers and for upstream's, and the moment at which it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, MergePatch, Query
from homeport.infra.cluster.vip import MANIFEST, VirtualAddress, render_manifest
from scenario.nutanix import manifest

NAME = "my-nutanix-cluster"
CONTROL_PLANE, WORKERS = Key("default", f"{NAME}-kcp"), Key("default", f"{NAME}-md-0")
NEWER, NEWER_IMAGE = "v1.29.0", "ubuntu-22.04-kube-v1.29.0"
_CONDITIONS = frozenset({"Available", "Ready", "UpToDate"})


def for_upstream(control_planes: int, workers: int, port: int) -> list[dict[str, Any]]:
    """The same objects, and what upstream leaves to its users.

    Its control planes hold no virtual address unless a file says so. And its clients of Prism Central know no proxy, so
    the name of the guide, which leads nowhere, is an address here.
    """
    objects = manifest.cluster_objects(NAME, control_planes, workers)
    for obj in objects:
        if obj["kind"] == "NutanixCluster":
            obj["spec"]["prismCentral"].update(address="127.0.0.1", port=port)
            endpoint = obj["spec"]["controlPlaneEndpoint"]
    address = VirtualAddress(endpoint["host"], endpoint["port"], "eth0")
    for obj in objects:
        if obj["kind"] == "KubeadmControlPlane":
            content = render_manifest(address, super_admin=False)
            file = {"path": MANIFEST, "owner": "root:root", "permissions": "0600", "content": content}
            obj["spec"]["kubeadmConfigSpec"]["files"] = [file]
    return objects


async def until_machines(
    client: Any, fits: Callable[[dict[str, Machine]], bool], timeout: float, explain: Callable[[], str]
) -> dict[str, Machine]:
    """The Machines, by name, as soon as they are as wanted; fails with their phases and what `explain` has to say."""
    machines: dict[str, Machine] = {}
    try:
        async with asyncio.timeout(timeout):
            while True:
                machines.clear()
                async with client.watch(Machine, Query(namespace="default"), initial_events=True) as events:
                    listed = False
                    async for event in events:
                        listed = listed or event.initial_events_end
                        if event.type == "DELETED":
                            machines.pop(event.object.metadata.name, None)
                        elif event.type != "BOOKMARK":
                            machines[event.object.metadata.name] = event.object
                        if listed and fits(machines):
                            return machines
    except TimeoutError:
        phases = {name: each.status.phase for name, each in machines.items()}
        raise AssertionError(f"not within {timeout:g} s; Machines are {phases}\n{explain()}") from None


def all_running(count: int) -> Callable[[dict[str, Machine]], bool]:
    def fits(machines: dict[str, Machine]) -> bool:
        return len(machines) == count and all(m.status.phase == "Running" for m in machines.values())

    return fits


def in_order(count: int, version: str = manifest.VERSION) -> Callable[[dict[str, Machine]], bool]:
    """So many Machines, all of them running, available and as their owners want them."""

    def fits(machines: dict[str, Machine]) -> bool:
        return len(machines) == count and all(
            m.status.phase == "Running"
            and m.spec.version == version
            and {c["type"] for c in m.status.conditions if c["status"] == "True"} >= _CONDITIONS
            for m in machines.values()
        )

    return fits


def planes_in_order(count: int, version: str) -> Callable[[dict[str, Machine]], bool]:
    """The same of control planes alone."""

    def fits(machines: dict[str, Machine]) -> bool:
        planes = {k: m for k, m in machines.items() if "cluster.x-k8s.io/control-plane" in m.metadata.labels}
        return in_order(count, version)(planes)

    return fits


async def upgrade_control_plane(client: Any) -> None:
    await _newer_template(client, "cp-newer")
    spec = {"version": NEWER, "machineTemplate": {"spec": {"infrastructureRef": {"name": "cp-newer"}}}}
    await client.patch(KubeadmControlPlane, CONTROL_PLANE, MergePatch({"spec": spec}))


async def upgrade_workers(client: Any) -> None:
    await _newer_template(client, "worker-newer")
    spec = {"version": NEWER, "infrastructureRef": {"name": "worker-newer"}}
    await client.patch(MachineDeployment, WORKERS, MergePatch({"spec": {"template": {"spec": spec}}}))


async def _newer_template(client: Any, name: str) -> None:
    body = manifest.template(name, manifest.machine_spec(image={"type": "name", "name": NEWER_IMAGE}))
    await client.create(body, kind=NutanixMachineTemplate.__resource__)
