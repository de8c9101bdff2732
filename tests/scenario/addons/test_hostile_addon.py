"""Add-ons that fight: over a release, an object, a field or an order. Nothing is lost, and every fight has an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from scenario.addons.port import Port, port
from scenario.addons.stage import CONFIG_MAP, DEPLOYMENT, SECRET, addon, config_map, data, deployment, exists
from scenario.capi.look import says

AUTOSCALER = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
READY = says("Ready", status="True")
HOUR = 3600.0


def key(name: str) -> Key:
    return Key("default", name)


async def until(p: Port, name: str, *said: str, status: str = "", timeout: float = 120) -> ClusterAddon:
    found: ClusterAddon = await p.plane.until(ClusterAddon, key(name), says("Ready", *said, status=status), timeout)
    return found


async def revisions(p: Port) -> list[tuple[str, str]]:
    found = (await p.of("one").list(SECRET, Query(labels="owner=helm"))).items
    return [(each.name, each.metadata["labels"].get("addons.homeport.dev/addon", "")) for each in found]


async def writes_within(p: Port, seconds: float) -> tuple[int, int]:
    """How much is written to the workload cluster and to the plane in this time."""
    stores = p.servers["one"].store, p.plane.server.store
    before = [each.revision for each in stores]
    await asyncio.sleep(seconds)
    after = [each.revision for each in stores]
    return after[0] - before[0], after[1] - before[1]


# -- who owns what -----------------------------------------------------------------------------------------------------


@virtual
async def test_two_add_ons_that_begin_one_release_at_the_same_time_do_not_take_it_from_each_other() -> None:
    async with port() as p:
        await p.open("one")
        for name in ("left", "right"):
            await p.plane.have(addon(name, addon="flux", wait=False, values={"name": name}))
        await p.start()
        await asyncio.sleep(300)
        (made,) = await revisions(p)
        owner = made[1]
        other = "right" if owner == "left" else "left"
        await until(p, owner, status="True")
        await until(p, other, "ObjectNotOwned", f"belongs to ClusterAddon {owner}")
        await p.client.delete(ClusterAddon, key(other))
        await p.plane.gone(ClusterAddon, key(other), 60)
        assert await revisions(p) == [made]
        await until(p, owner, status="True")


@virtual
async def test_adoption_does_not_take_from_an_add_on_that_exists() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        for name in ("left", "right"):
            more: dict[str, Any] = {"conflictPolicy": "Adopt", "wait": False}
            await p.plane.have(addon(name, addon="flux", values={"name": name}, **more))
            await p.plane.have(addon(f"{name}-map", config_map("shared", of=name), **more))
            if name == "left":
                await until(p, "left", status="True")
                await until(p, "left-map", status="True")
        await until(p, "right", "ObjectNotOwned", "belongs to ClusterAddon left")
        await until(p, "right-map", "ObjectNotOwned", "belongs to ClusterAddon default/left-map")
        assert await data(p.of("one"), "shared") == {"of": "left"}
        for name in ("left", "left-map"):
            await p.client.delete(ClusterAddon, key(name))
            await p.plane.gone(ClusterAddon, key(name), 60)
        await until(p, "right", status="True")
        await until(p, "right-map", status="True")
        assert await data(p.of("one"), "shared") == {"of": "right"}


@virtual
async def test_an_adopted_release_that_needs_no_change_is_removed_with_its_add_on() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("first", addon="flux", wait=False, deletionPolicy="Orphan"))
        await until(p, "first", status="True")
        await p.client.delete(ClusterAddon, key("first"))
        await p.plane.gone(ClusterAddon, key("first"), 60)
        await p.plane.have(addon("second", addon="flux", wait=False, conflictPolicy="Adopt"))
        await until(p, "second", status="True")
        assert [owner for _, owner in await revisions(p)] == ["second"]
        await p.client.delete(ClusterAddon, key("second"))
        await p.plane.gone(ClusterAddon, key("second"), 60)
        assert await revisions(p) == []


@virtual
async def test_a_foreign_object_in_the_place_of_the_inventory_is_neither_changed_nor_deleted() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        client = p.of("one")
        await client.create(config_map("homeport-addon-app", "kube-system", mine="yes"), kind=CONFIG_MAP)
        await p.plane.have(addon("app", config_map("a", x="1")))
        await until(p, "app", "ObjectNotOwned", "ConfigMap kube-system/homeport-addon-app", "rename")
        assert not await exists(client, CONFIG_MAP, "a")
        await p.client.delete(ClusterAddon, key("app"))
        await p.plane.gone(ClusterAddon, key("app"), 60)
        assert await data(client, "homeport-addon-app", "kube-system") == {"mine": "yes"}


@virtual
async def test_one_object_written_twice_is_refused() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        with pytest.raises(Invalid, match="ConfigMap default/a is there twice"):
            await p.plane.have(addon("app", config_map("a", x="1"), config_map("a", x="2")))
        names = ("left", "right")
        for name in names:
            text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: {name}}}"
            await p.plane.have(config_map(name, **{"a.yaml": text}))
        await p.plane.have(addon("app", manifests=[{"configMapRef": {"name": name}} for name in names]))
        await until(p, "app", "InvalidManifest", "ConfigMap a is there twice")


@virtual
async def test_add_ons_of_a_circle_can_all_be_deleted() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("a", config_map("a", x="1")))
        await p.plane.have(addon("b", config_map("b", x="1"), dependsOn=[{"name": "a"}]))
        await until(p, "b", status="True")
        await p.client.patch(ClusterAddon, key("a"), MergePatch({"spec": {"dependsOn": [{"name": "b"}]}}))
        await until(p, "a", "DependencyCycle")
        for name in ("a", "b"):
            await p.client.delete(ClusterAddon, key(name))
        for name in ("a", "b"):
            await p.plane.gone(ClusterAddon, key(name), 120)
        assert not await exists(p.of("one"), CONFIG_MAP, "a")


# -- idle --------------------------------------------------------------------------------------------------------------


@virtual
async def test_an_idle_add_on_writes_nothing() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", config_map("a", x="1"), deployment("web"), wait=False))
        await p.plane.have(addon("cert-manager", addon="cert-manager", wait=False))
        for name in ("app", "cert-manager"):
            await until(p, name, status="True")
        await asyncio.sleep(120)
        assert await writes_within(p, HOUR) == (0, 0)
        await p.start()  # a restart finds everything as it left it
        await asyncio.sleep(120)
        assert await writes_within(p, HOUR) == (0, 0)


def autoscaler(target: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": target, "namespace": namespace},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, "maxReplicas": 9},
    }


async def scale(p: Port, name: str, namespace: str, replicas: int) -> None:
    patch = MergePatch({"spec": {"replicas": replicas}})
    await p.of("one").patch(DEPLOYMENT, Key(namespace, name), patch, subresource="scale")


async def replicas(p: Port, name: str, namespace: str = "default") -> int:
    return int((await p.of("one").get(DEPLOYMENT, Key(namespace, name)))["spec"]["replicas"])


@virtual
async def test_replicas_belong_to_an_autoscaler_where_there_is_one() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", deployment("web"), wait=False))
        await p.plane.have(addon("flux", addon="flux", wait=False))
        for name in ("app", "flux"):
            await until(p, name, status="True")
        for name, namespace in (("web", "default"), ("source-controller", "flux-system")):
            await scale(p, name, namespace, 3)
            await asyncio.sleep(120)
            assert await replicas(p, name, namespace) == 1, "nobody but the add-on says how many"
            await p.of("one").create(autoscaler(name, namespace), kind=AUTOSCALER)
            await scale(p, name, namespace, 3)
            await asyncio.sleep(120)
            assert await replicas(p, name, namespace) == 3
            image = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7, "hostNetwork": True}}}}
            await p.of("one").patch(DEPLOYMENT, Key(namespace, name), MergePatch(image))
            await asyncio.sleep(120)
            assert await replicas(p, name, namespace) == 3
        assert await writes_within(p, HOUR) == (0, 0)


@virtual
async def test_somebody_who_changes_an_object_again_and_again_is_named_and_the_repair_slows_down() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", config_map("a", x="1")))
        await p.plane.have(addon("flux", addon="flux", wait=False))
        for name in ("app", "flux"):
            await until(p, name, status="True")
        client, fights = p.of("one"), 0
        end = p.plane.clock.now() + HOUR
        while p.plane.clock.now() < end:
            if await data(client, "a") == {"x": "1"}:
                await client.patch(CONFIG_MAP, key("a"), MergePatch({"data": {"x": "2"}}))
                fights += 1
            await asyncio.sleep(1)
        assert 3 <= fights <= 40
        found = await p.client.get(ClusterAddon, key("app"))
        told = next(each for each in found.status.conditions if each["type"] == "Ready")
        assert (told["reason"], told["status"]) == ("DriftRepeats", "False")
        assert "ConfigMap default/a" in told["message"]
        assert "spec.driftIgnore" in told["message"]
        await asyncio.sleep(2 * HOUR)
        await until(p, "app", status="True")
        assert await data(client, "a") == {"x": "1"}
