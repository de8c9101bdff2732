"""Many clusters and add-ons: one that is broken delays only itself, and a process that dies at any write changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from scenario.addons.port import Port, port
from scenario.addons.stage import CONFIG_MAP, SECRET, addon, config_map, data, exists, text
from scenario.capi.look import says

CLUSTERS = 50
ADDONS = 5
QUIET = 200.0


def everywhere(name: str, *objects: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return addon(name, *objects, cluster="", clusterSelector={"matchLabels": {"team": "quay"}}, **spec)


async def state(p: Port) -> dict[str, bool]:
    found = (await p.client.list(ClusterAddon, Query(namespace="default"))).items
    return {each.metadata.name: says("Ready", status="True")(each) for each in found}


@virtual
async def test_fifty_clusters_get_five_add_ons_and_a_broken_one_delays_only_itself() -> None:
    async with port() as p:
        names = [f"c{number:02}" for number in range(CLUSTERS)]
        await p.open(*names, team="quay")
        broken = names[7]
        p.lines[broken].cut.set()
        await p.start()
        start = p.plane.clock.now()
        for number in range(ADDONS):
            needs = [{"name": f"a{number - 1}"}] if number else []
            await p.plane.have(everywhere(f"a{number}", config_map(f"m{number}", x="1"), dependsOn=needs))
        last = f"{CLUSTERS - 1} of {CLUSTERS} Clusters are Ready"
        await p.plane.until(ClusterAddon, Key("default", "a4"), says("Ready", "WaitingForClusters", last), 120)
        assert p.plane.clock.now() - start < 60
        found = await state(p)
        assert len(found) == ADDONS * (CLUSTERS + 1)
        waiting = {name for name, ready in found.items() if not ready}
        assert waiting == {f"a{number}{suffix}" for number in range(ADDONS) for suffix in ("", f"-{broken}")}
        for name in names:
            assert await exists(p.of(name), CONFIG_MAP, "m4") == (name != broken)
        p.lines[broken].cut.clear()
        for number in range(ADDONS):
            await p.plane.until(ClusterAddon, Key("default", f"a{number}"), says("Ready", status="True"), 300)
        # Everything is at rest: nothing is written, to no cluster.
        await p.plane.settle(quiet=QUIET)
        before = {name: p.servers[name].store.revision for name in names}
        await p.plane.settle(quiet=3600)
        assert {name: p.servers[name].store.revision for name in names} == before


@virtual
async def test_a_cluster_that_no_longer_matches_loses_the_add_on_unless_it_is_kept() -> None:
    async with port() as p:
        await p.open("one", "two", team="quay")
        await p.start()
        await p.plane.have(everywhere("gone", config_map("g", x="1")))
        await p.plane.have(everywhere("stays", config_map("s", x="1"), keepOnSelectorMismatch=True))
        for name in ("gone", "stays"):
            await p.plane.until(ClusterAddon, Key("default", name), says("Ready", status="True"), 120)
        await p.client.patch(Cluster, Key("default", "two"), MergePatch({"metadata": {"labels": {"team": "other"}}}))
        await p.plane.gone(ClusterAddon, Key("default", "gone-two"), 120)
        assert not await exists(p.of("two"), CONFIG_MAP, "g")
        assert await exists(p.of("one"), CONFIG_MAP, "g")
        await p.plane.settle(quiet=60)
        assert await exists(p.of("two"), CONFIG_MAP, "s")
        for name in ("gone", "stays"):
            await p.client.delete(ClusterAddon, Key("default", name))
            await p.plane.gone(ClusterAddon, Key("default", name), 120)
        assert await state(p) == {}
        assert not await exists(p.of("two"), CONFIG_MAP, "s")


@virtual
async def test_a_circle_is_named_on_everybody_in_it_and_ends_when_it_is_broken() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        for name, needs in (("a", "b"), ("b", "c"), ("c", "a")):
            await p.plane.have(addon(name, config_map(name, x="1"), dependsOn=[{"name": needs}]))
        for name, way in (("a", "a -> b -> c -> a"), ("b", "b -> c -> a -> b")):
            await p.plane.until(ClusterAddon, Key("default", name), says("Ready", "DependencyCycle", way), 60)
        await p.client.patch(ClusterAddon, Key("default", "c"), MergePatch({"spec": {"dependsOn": None}}))
        for name in ("a", "b", "c"):
            await p.plane.until(ClusterAddon, Key("default", name), says("Ready", status="True"), 60)


@virtual
async def test_an_add_on_that_others_need_is_not_removed_before_them() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("base", config_map("base", x="1")))
        await p.plane.have(addon("user", config_map("user", x="1"), dependsOn=[{"name": "base"}]))
        await p.plane.until(ClusterAddon, Key("default", "user"), says("Ready", status="True"), 60)
        await p.client.delete(ClusterAddon, Key("default", "base"))
        told = says("Ready", "WaitingForDependents", "ClusterAddon user depends on this one")
        await p.plane.until(ClusterAddon, Key("default", "base"), told, 60)
        assert await exists(p.of("one"), CONFIG_MAP, "base")
        await p.client.delete(ClusterAddon, Key("default", "user"))
        await p.plane.gone(ClusterAddon, Key("default", "base"), 60)
        assert not await exists(p.of("one"), CONFIG_MAP, "base")


async def survive(p: Port, writes: int) -> int:
    """Processes that die after so many writes each, until nothing is left to write. Gives their number."""
    lives = 0
    while True:
        await p.start(writes)
        lives += 1
        assert lives < 200, "it never comes to its end"
        if not await p.died(within=QUIET):
            return lives


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_process_that_dies_after_every_write_installs_upgrades_and_removes_all_the_same(writes: int) -> None:
    @virtual
    async def run() -> None:
        async with port() as p:
            await p.open("one")
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "v"}}
            copied: dict[str, Any] = {"secrets": [{"name": "key"}]}
            await p.plane.have(secret, addon("app", config_map("a", x="1"), config_map("b", x="1"), **copied))
            await p.plane.have(addon("flux", addon="flux", wait=False))
            lives = await survive(p, writes)
            assert lives > 2
            client = p.of("one")
            assert await state(p) == {"app": True, "flux": True}
            assert await data(client, "a") == {"x": "1"}
            assert len((await client.list(SECRET, Query(labels="owner=helm"))).items) == 1, "one revision, not many"
            new = [{"inline": text(config_map("a", x="2"), config_map("c", x="1"))}]
            await p.client.patch(ClusterAddon, Key("default", "app"), MergePatch({"spec": {"manifests": new}}))
            await survive(p, writes)
            assert await data(client, "a") == {"x": "2"}
            assert not await exists(client, CONFIG_MAP, "b")
            assert await exists(client, CONFIG_MAP, "c")
            for name in ("app", "flux"):
                await p.client.delete(ClusterAddon, Key("default", name))
            await survive(p, writes)
            assert await state(p) == {}
            left = {each.name for each in (await client.list(CONFIG_MAP)).items}
            assert not {"a", "c", "homeport-addon-app", "homeport-addon-flux"} & left
            assert not (await client.list(SECRET)).items

    run()


@virtual
async def test_a_restored_management_cluster_finds_its_add_ons_and_prunes_what_it_knows() -> None:
    """The backup knows nothing of the last change: what the cluster has too much is found by its inventory."""
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", config_map("a", x="1"), config_map("b", x="1")))
        await p.plane.until(ClusterAddon, Key("default", "app"), says("Ready", status="True"), 60)
        await p.plane.stop()
        # The object is created again, with another UID and without status: as a restore does.
        await p.client.patch(ClusterAddon, Key("default", "app"), MergePatch({"metadata": {"finalizers": None}}))
        await p.client.delete(ClusterAddon, Key("default", "app"))
        await p.plane.have(addon("app", config_map("a", x="1")))
        await p.start()
        await p.plane.until(ClusterAddon, Key("default", "app"), says("Ready", status="True"), 60)
        assert await exists(p.of("one"), CONFIG_MAP, "a")
        assert not await exists(p.of("one"), CONFIG_MAP, "b")
