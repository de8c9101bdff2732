"""Planes, and namespaces of a plane, that share a Prism Central and use the same names: each keeps to its own."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.client.protocol import Key, Query
from homeport.providers.nutanix.plan import CLUSTER_MARK
from homeport.runtime.testing import virtual
from scenario.move.pair import Pair, pair
from scenario.nutanix import manifest
from scenario.nutanix.site import Site

NAME = "one"
OTHER = "10.0.0.101"
# What nobody may be told about VMs, categories and tasks that belong to others.
ADVICE = (
    "delete the vm",
    "delete vm",
    "delete those",
    "remove the vm",
    "remove vm",
    "power off",
    "delete the category",
)


async def uid(site: Site, namespace: str = "default") -> str:
    found = await site.client.get(NutanixCluster, Key(namespace, NAME))
    return str(found.metadata.uid)


def belongings(site: Site, owner: str) -> dict[str, Any]:
    """The VMs of a cluster as Prism Central has them: identity, marks, categories and power."""
    mark = f"{CLUSTER_MARK}:{owner}"
    return {
        each.name: (each.ext_id, each.attributes, each.description, each.categories, each.power)
        for each in site.vms()
        if mark in each.attributes or mark in each.description
    }


async def said(site: Site) -> list[str]:
    """Every message of conditions that a user can read."""
    clusters = (await site.client.list(Cluster, Query())).items
    infra = (await site.client.list(NutanixCluster, Query())).items
    found = [*(each.status.conditions for each in clusters), *(each.status.conditions for each in infra)]
    return [str(one.get("message") or "") for conditions in found for one in conditions]


def check_advice(messages: list[str]) -> None:
    for text in messages:
        assert not any(each in text.lower() for each in ADVICE), text


async def both(two: Pair) -> None:
    await two.source.have(*manifest.cluster_objects(NAME, 1, 1))
    await two.source.running(NAME, 1, 1)
    await two.target.have(*manifest.cluster_objects(NAME, 1, 1, OTHER))
    await two.target.running(NAME, 1, 1)


@pytest.mark.parametrize("first", ["source", "target"])
def test_two_planes_with_a_cluster_of_the_same_name_delete_theirs_alone(first: str) -> None:
    @virtual
    async def run() -> None:
        async with pair() as two:
            await both(two)
            site = two.source if first == "source" else two.target
            other = two.target if first == "source" else two.source
            kept = belongings(other, await uid(other))
            assert (len(kept), len(other.vms())) == (2, 4)
            assert site.categories() == [NAME], "equal names share the category that Cluster API prescribes"
            await asyncio.sleep(900)  # long enough for every look at what nobody owns
            for each in (site, other):
                await each.condition(NutanixCluster, NAME, "NoOrphanedMachines", "True")
            await site.delete(Cluster, NAME)
            texts = []
            for _ in itertools.repeat(None, 20):
                texts += await said(site)
                await asyncio.sleep(5)
            check_advice(texts)
            await site.gone(Cluster, NAME)
            assert belongings(other, await uid(other)) == kept
            assert other.categories() == [NAME]
            await other.running(NAME, 1, 1)
            await other.delete(Cluster, NAME)
            await other.gone(Cluster, NAME)
            assert (other.vms(), other.categories()) == ([], [])

    run()
