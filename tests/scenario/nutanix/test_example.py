"""The example for a real Prism Central: what is to be changed in it is marked, and it brings a network for Pods."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.ccm.deploy import IMAGE_OF_CLUSTER
from homeport.ccm.manifest import DEPLOYMENT, IMAGE, NAME
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import yaml
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.ccm.cloud import workload
from scenario.nutanix import cni
from scenario.nutanix.site import Site, nutanix_site

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FOLDER = EXAMPLES / "02-cluster"
FILES = sorted([*FOLDER.glob("*.yaml"), *(EXAMPLES / "04-clusterclass").glob("*.yaml")])
CLUSTER = "harbour"
# What only the simulated site has, and what depends on a user's network and images.
THEIRS = re.compile(
    r"nutanix-cluster-\d|vm-network|ubuntu-22\.04-kube|prism-central\.example\.com|\b10\.0\.\d+\.\d+|cidrBlocks: "
    r"|\bversion: v|\"password\": "
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_value_that_a_user_has_to_change_is_marked(file: Path) -> None:
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        if file.stem == "class" and "default: " not in line:
            continue  # its templates hold placeholders, which variables replace
        if THEIRS.search(line.partition("#")[0]):
            # A block of text can't hold a mark: it stands above.
            assert any("# yours" in each for each in lines[max(0, number - 2) : number + 1]), f"{number + 1}: {line}"


def objects(image: str, version: str) -> list[dict[str, Any]]:
    text = (FOLDER / "cluster.yaml").read_text()
    text = text.replace("ubuntu-22.04-kube-v1.29.0", image).replace("v1.29.0", version)
    return yaml.load_all(text.replace("replicas: 3", "replicas: 1"))


def network() -> list[dict[str, Any]]:
    """As `kubectl create configmap --from-file` does it with a released manifest."""
    (brought,) = yaml.load_all((FOLDER / "network.yaml").read_text())
    text = "---\n".join(yaml.dump(each) for each in cni.flannel())
    name = brought["spec"]["resources"][0]["name"]
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"cni.yaml": text}}, brought]


async def ready(site: Site) -> set[str]:
    nodes = (await workload(site).client().list(NODE)).items
    return {each["status"] for node in nodes for each in node["status"]["conditions"] if each["type"] == "Ready"}


@virtual
async def test_on_an_image_without_a_network_the_example_waits_for_the_one_that_it_brings() -> None:
    async with nutanix_site() as site:
        await site.have(*objects("rocky-9-kube-v1.30.0-no-cni", "v1.30.0"))
        await site.condition(Cluster, CLUSTER, "Available", "False", "cni plugin not initialized", timeout=900)
        assert await ready(site) == {"False"}
        await site.have(*network())
        await site.condition(Cluster, CLUSTER, "Available", "True", timeout=900)
        assert await ready(site) == {"True"}


@virtual
async def test_on_an_image_with_a_network_nodes_are_ready_without_another() -> None:
    async with nutanix_site() as site:
        await site.have(*objects("ubuntu-22.04-kube-v1.30.0", "v1.30.0"))
        await site.condition(Cluster, CLUSTER, "Available", "True", timeout=900)
        assert await ready(site) == {"True"}


@virtual
async def test_the_image_of_the_cloud_controller_manager_can_be_chosen_per_cluster() -> None:
    async with nutanix_site() as site:
        await site.have(*objects("ubuntu-22.04-kube-v1.30.0", "v1.30.0"))
        await site.condition(Cluster, CLUSTER, "Available", "True", timeout=900)

        async def image() -> str:
            found = await workload(site).client().get(DEPLOYMENT, Key("kube-system", NAME))
            return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

        assert await image() == IMAGE
        annotations = {IMAGE_OF_CLUSTER: "registry.example.com/mirror/ccm:1"}
        await site.client.patch(
            Cluster, Key("default", CLUSTER), MergePatch({"metadata": {"annotations": annotations}})
        )
        await asyncio.sleep(10)  # of virtual time
        assert await image() == annotations[IMAGE_OF_CLUSTER]
