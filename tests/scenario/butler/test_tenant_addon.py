"""TenantAddons: add-ons of tenant clusters from the catalogue or any chart, in order, with true status, and gone again."""

from __future__ import annotations

from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import AddonDefinition, TenantAddon
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.butler.stage import SPACE, Stage, butler, tenants
from scenario.capi.fault import Killer

CLUSTER = {"clusterRef": {"name": "shop"}}
SMALL = {"workers": {"replicas": 1}}


def addon(name: str, **spec: Any) -> dict[str, Any]:
    return butler("TenantAddon", name, SPACE, {**CLUSTER, **spec})


async def until(stage: Stage, name: str, phase: str, *words: str, timeout: float = 900.0) -> TenantAddon:
    def fits(obj: TenantAddon) -> bool:
        found = condition.find(obj.status.conditions, "Ready") or {}
        said = f"{found.get('reason')}: {found.get('message')}"
        return obj.status.phase == phase and all(word in said for word in words)

    found: TenantAddon = await stage.plane.until(TenantAddon, Key(SPACE, name), fits, timeout, what=f"{phase} {words}")
    return found


async def installed(stage: Stage, name: str) -> TenantAddon:
    found = await until(stage, name, "Installed")
    for kind in ("Ready", "ClusterReady", "DependenciesMet", "Installed", "Healthy"):
        assert condition.is_true(found.status.conditions, kind), kind
    return found


async def children(stage: Stage) -> set[str]:
    return {each.metadata.name for each in (await stage.client.list(ClusterAddon, Query())).items}


@virtual
async def test_an_add_on_waits_for_its_cluster_is_installed_and_removed() -> None:
    async with tenants() as stage:
        await stage.have(addon("metrics", addon="metrics-server", values={"replicas": 1}))
        await until(stage, "metrics", "Pending", "ClusterNotFound", "default/shop does not exist: create it")
        await stage.have(stage.tenant("shop", **SMALL))
        await stage.ready("shop")
        found = await installed(stage, "metrics")
        assert found.status.installed_version == catalogue()["metrics-server"].newest
        assert found.status.helm_release is not None
        assert found.status.helm_release.name == "metrics-server"
        child = await stage.client.get(ClusterAddon, Key(await stage.namespace("shop"), "shop-ta-metrics"))
        assert child.spec.values == {"replicas": 1}
        await stage.client.delete(TenantAddon, Key(SPACE, "metrics"))
        await stage.plane.gone(TenantAddon, Key(SPACE, "metrics"), 600)
        assert "shop-ta-metrics" not in await children(stage)
        assert (await stage.ready("shop")).status.phase == "Ready"


@virtual
async def test_add_ons_come_in_the_order_of_their_dependencies() -> None:
    async with tenants() as stage:
        await stage.have(stage.tenant("shop", **SMALL))
        await stage.have(addon("metrics", addon="metrics-server", dependsOn=[{"name": "certs"}]))
        await stage.ready("shop")
        await until(stage, "metrics", "Pending", "DependencyNotFound", "create a TenantAddon for it")
        await stage.have(addon("certs", addon="cert-manager", dependsOn=[{"name": "cilium"}]))
        await installed(stage, "certs")
        await installed(stage, "metrics")
        namespace = await stage.namespace("shop")
        child = await stage.client.get(ClusterAddon, Key(namespace, "shop-ta-metrics"))
        assert [each.name for each in child.spec.depends_on] == ["shop-ta-certs"]
        own = await stage.client.get(ClusterAddon, Key(namespace, "shop-ta-certs"))
        assert [each.name for each in own.spec.depends_on] == ["shop-cilium"]


@virtual
async def test_mistakes_are_reported_on_the_add_on_with_what_to_do() -> None:
    async with tenants() as stage:
        await stage.have(stage.tenant("shop", **SMALL))
        await stage.ready("shop")
        await stage.have(addon("typo", addon="metric-server"))
        await until(stage, "typo", "Failed", "UnknownAddon", "metrics-server")
        await stage.client.patch(TenantAddon, Key(SPACE, "typo"), MergePatch({"spec": {"addon": "metrics-server"}}))
        await installed(stage, "typo")
        await stage.have(addon("paused", addon="cert-manager", paused=True))
        await until(stage, "paused", "Pending", "Paused")


@virtual
async def test_the_catalogue_is_there_comes_back_and_takes_entries_of_users() -> None:
    async with tenants() as stage:
        for name in catalogue():
            await stage.plane.until(AddonDefinition, Key("", name), lambda obj: True, 60)
        found = (await stage.client.list(AddonDefinition, Query())).items
        assert {each.metadata.name for each in found} == set(catalogue())
        assert {each.metadata.labels["butler.butlerlabs.dev/source"] for each in found} == {"builtin"}
        await stage.client.delete(AddonDefinition, Key("", "cilium"))
        await stage.plane.until(AddonDefinition, Key("", "cilium"), lambda obj: not obj.metadata.deletion_timestamp, 60)
        spec = {
            "displayName": "Metrics of the house",
            "description": "metrics-server with our values",
            "category": "observability",
            "chart": {
                "repository": catalogue()["metrics-server"].chart.repository,
                "name": "metrics-server",
                "defaultVersion": catalogue()["metrics-server"].newest,
            },
            "defaults": {"namespace": "house", "releaseName": "house", "values": {"a": {"b": 1, "c": 2}}},
            "dependsOn": ["cert-manager"],
        }
        await stage.have(butler("AddonDefinition", "house-metrics", "", spec))
        await stage.plane.until(
            AddonDefinition,
            Key("", "house-metrics"),
            lambda obj: condition.is_true(obj.status.conditions, "Ready"),
            60,
        )
        await stage.have(stage.tenant("shop", **SMALL), addon("house", addon="house-metrics", values={"a": {"b": 3}}))
        await stage.ready("shop")
        await until(stage, "house", "Pending", "DependencyNotFound", "AddonDefinition house-metrics needs")
        await stage.have(addon("certs", addon="cert-manager"))
        await installed(stage, "certs")
        child = await stage.plane.until(
            ClusterAddon, Key(await stage.namespace("shop"), "shop-ta-house"), lambda obj: True, 60
        )
        assert child.spec.values == {"a": {"b": 3, "c": 2}}
        assert (child.spec.namespace, child.spec.release_name) == ("house", "house")
        assert [each.name for each in child.spec.depends_on] == ["shop-ta-certs"]


@virtual
async def test_add_ons_go_with_their_cluster() -> None:
    async with tenants() as stage:
        await stage.have(stage.tenant("shop", **SMALL), addon("metrics", addon="metrics-server"))
        await stage.ready("shop")
        await installed(stage, "metrics")
        await stage.delete("shop")
        await stage.gone("shop")
        await stage.plane.gone(TenantAddon, Key(SPACE, "metrics"), 60)
        assert await children(stage) == set()


def test_kills_leave_one_add_on_and_remove_it() -> None:
    @virtual
    async def run() -> None:
        lives = iter([0, 40, 25, 3, 2, 2, 1, 1, 1, 0])
        killer = Killer(lambda: next(lives, 0))
        async with tenants(wrap=killer.wrap) as stage:
            await stage.have(stage.tenant("shop", **SMALL))
            await stage.ready("shop")
            await stage.restart()
            await stage.have(addon("metrics", addon="metrics-server"))
            while await killer.death(within=250):
                await stage.restart()
            await installed(stage, "metrics")
            assert {each for each in await children(stage) if "-ta-" in each} == {"shop-ta-metrics"}
            await stage.client.delete(TenantAddon, Key(SPACE, "metrics"))
            while await killer.death(within=250):
                await stage.restart()
            await stage.plane.gone(TenantAddon, Key(SPACE, "metrics"), 600)
            assert killer.kills > 1

    run()
