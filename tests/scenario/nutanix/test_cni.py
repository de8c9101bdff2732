"""Nodes of a cluster on Nutanix become ready with a network for Pods, whichever it is, and not without."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.addons.v1beta2 import ClusterResourceSet
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.machinery.condition import find
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import DAEMON_SET, NODE
from scenario.nutanix import cni, manifest
from scenario.nutanix.site import Site, nutanix_site

NAME, API = "one", "10.0.0.100"


def cluster_objects(label: str, *, kube_proxy: bool = True) -> list[dict[str, Any]]:
    objects = manifest.cluster_objects(NAME, 1, 1, API)
    for each in objects:
        if each["kind"] == "Cluster":
            each["metadata"]["labels"] = {cni.LABEL: label}
        if each["kind"] == "KubeadmControlPlane" and not kube_proxy:
            init = each["spec"]["kubeadmConfigSpec"]["initConfiguration"]
            each["spec"]["kubeadmConfigSpec"]["initConfiguration"] = {**init, "skipPhases": ["addon/kube-proxy"]}
    return objects


async def ready(site: Site) -> dict[str, str]:
    """What each Node says of itself."""
    (workload,) = site.fleet.clusters()
    nodes = (await workload.client().list(NODE)).items
    found = {node.name: next(c for c in node["status"]["conditions"] if c["type"] == "Ready") for node in nodes}
    return {name: each["status"] for name, each in found.items()}


async def has_kube_proxy(site: Site) -> bool:
    (workload,) = site.fleet.clusters()
    try:
        await workload.client().get(DAEMON_SET, Key("kube-system", "kube-proxy"))
    except NotFound:
        return False
    return True


@pytest.mark.parametrize(
    ("label", "objects", "kube_proxy"),
    [
        ("kindnet", cni.kindnet(), True),
        ("calico", cni.calico(), True),
        ("cilium", cni.cilium(), True),
        ("cilium-no-kubeproxy", cni.cilium(api=API), False),
        ("flannel", cni.flannel(), True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cni_that_a_resource_set_brings_makes_the_nodes_ready(
    label: str, objects: list[dict[str, Any]], kube_proxy: bool
) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(cni=False) as site:
            await site.have(*cni.delivered(label, objects), *cluster_objects(label, kube_proxy=kube_proxy))
            await site.running(NAME, 1, 1)
            assert set((await ready(site)).values()) == {"True"}
            assert await has_kube_proxy(site) is kube_proxy
            await site.condition(ClusterResourceSet, label, "ResourcesApplied", "True", "Applied")
            await site.condition(Cluster, NAME, "Available", "True")

    run()


@pytest.mark.parametrize(
    ("label", "objects", "kube_proxy"),
    [
        ("none", [], True),
        ("watcher", cni.watcher(), True),
        # Nobody answers at the address of the Service that it asks.
        ("cilium", cni.cilium(), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_without_a_network_the_nodes_stay_not_ready_and_the_cluster_says_why(
    label: str, objects: list[dict[str, Any]], kube_proxy: bool
) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(cni=False) as site:
            await site.have(
                *(cni.delivered(label, objects) if objects else []), *cluster_objects(label, kube_proxy=kube_proxy)
            )
            await site.condition(Cluster, NAME, "Available", "False", "cni plugin not initialized", timeout=900)
            await site.until(Machine, (await site.list(Machine))[0].metadata.name, lambda m: m.status.node_ref, 900)
            await site.plane.settle(quiet=120)
            assert set((await ready(site)).values()) == {"False"}
            await site.condition(Cluster, NAME, "NetworkPluginReady", "False", "NoNetworkPlugin", "ClusterAddon")
            if objects:
                await site.condition(ClusterResourceSet, label, "ResourcesApplied", "True", "Applied")

    run()


@virtual
async def test_a_network_that_comes_late_is_enough() -> None:
    async with nutanix_site(cni=False) as site:
        await site.have(*cluster_objects("late"))
        await site.condition(Cluster, NAME, "Available", "False", "cni plugin not initialized", timeout=900)
        await site.condition(Cluster, NAME, "NetworkPluginReady", "False", "NoNetworkPlugin", timeout=900)
        await site.have(*cni.delivered("late", cni.kindnet()))
        await site.running(NAME, 1, 1)
        await site.until(Cluster, NAME, lambda c: not find(c.status.conditions, "NetworkPluginReady"), 900)
