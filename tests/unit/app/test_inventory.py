"""clusterctl's inventory: what it lists on a plane of ours, and what it leaves as it is."""

from __future__ import annotations

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import chosen
from homeport.capi.definition.inventory import NAMESPACE, is_inventory
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import Plane, establish, plane


async def published(p: Plane) -> dict[str, str]:
    await publish_inventory(p.client, chosen().inventory())
    found = (await p.client.list(Provider, Query(namespace=NAMESPACE))).items
    return {each.metadata.name: each.version for each in found}


async def test_every_provider_that_we_stand_for_is_listed_once() -> None:
    async with plane() as p:
        await establish(p.client, *(crd for crd in chosen().definitions() if is_inventory(crd)))
        names = {
            "cluster-api",
            "bootstrap-k0sproject-k0smotron",
            "bootstrap-kubeadm",
            "control-plane-kubeadm",
            "control-plane-kamaji",
            "control-plane-k0sproject-k0smotron",
            "control-plane-steward",
            "infrastructure-k0sproject-k0smotron",
            "infrastructure-kubevirt",
            "infrastructure-nutanix",
            "ipam-in-cluster",
        }
        assert (await published(p)).keys() == names
        revision = p.server.store.revision
        assert (await published(p)).keys() == names
        assert p.server.store.revision == revision


async def test_an_older_version_is_raised_and_a_newer_one_stays() -> None:
    async with plane() as p:
        await establish(p.client, *(crd for crd in chosen().definitions() if is_inventory(crd)))
        ours = await published(p)
        for name, version in (
            ("cluster-api", "v99.0.0"),
            ("bootstrap-kubeadm", "v1.0.0"),
            ("control-plane-kubeadm", ""),
        ):
            await p.client.patch(Provider, Key(NAMESPACE, name), MergePatch({"version": version}))
        assert await published(p) == {**ours, "cluster-api": "v99.0.0"}
