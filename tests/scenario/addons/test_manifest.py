"""Manifests of add-ons: they reach their cluster, stay as written, are pruned and removed, and nothing else is."""

from __future__ import annotations

from typing import Any

from capikit.harness import Harness
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from scenario.addons.stage import (
    CONFIG_MAP,
    DEPLOYMENT,
    SECRET,
    addon,
    cluster,
    config_map,
    data,
    deployment,
    exists,
    ready,
    stage,
    text,
)
from scenario.capi.look import says, workload


async def rewrite(h: Harness, name: str, *objects: dict[str, Any], **spec: Any) -> None:
    await h.patch(ClusterAddon, name, {"spec": {"manifests": [{"inline": text(*objects)}], **spec}})


@virtual
async def test_manifests_reach_their_cluster_and_are_ready_when_their_workloads_are() -> None:
    async with stage() as h:
        await h.plane.have(addon("app", config_map("a", "apps", x="1"), deployment("web", "apps"), namespace="apps"))
        await h.until(ClusterAddon, "app", says("Ready", "ClusterNotFound", "Cluster default/one does not exist"))
        await cluster(h)
        await h.until(ClusterAddon, "app", says("Ready", "WaitingForCluster"))
        found = await ready(h, "app")
        assert (found.status.phase, found.status.object_count) == ("Installed", 2)
        client = workload(h)
        assert await data(client, "a", "apps") == {"x": "1"}
        web = await client.get(DEPLOYMENT, Key("apps", "web"))
        assert web["status"]["readyReplicas"] == 1
        assert web.metadata["annotations"]["addons.homeport.dev/owner"] == "default/app"


@virtual
async def test_a_changed_object_is_repaired_by_watch_and_a_deleted_one_comes_back() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("app", config_map("a", x="1"), config_map("b", x="1")))
        await ready(h, "app")
        client = workload(h)
        await h.plane.settle(quiet=120)
        await client.patch(CONFIG_MAP, Key("default", "a"), MergePatch({"data": {"x": "2", "own": "kept"}}))
        await client.delete(CONFIG_MAP, Key("default", "b"))
        start = h.clock.now()
        while await data(client, "a") != {"x": "1", "own": "kept"} or not await exists(client, CONFIG_MAP, "b"):
            await h.plane.settle(quiet=0.5)
            assert h.clock.now() < start + 10, "drift is repaired by watch, not by a poll"


@virtual
async def test_an_object_that_is_no_longer_written_is_pruned_and_nothing_else() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("app", config_map("a", x="1"), config_map("b", x="1")))
        await ready(h, "app")
        client = workload(h)
        await client.create(config_map("c", x="1"), kind=CONFIG_MAP)
        # Somebody takes an object over: it has no mark of ours any more, so it is not ours to delete.
        await rewrite(h, "app", config_map("a", x="2"))
        await ready(h, "app")
        assert await data(client, "a") == {"x": "2"}
        assert not await exists(client, CONFIG_MAP, "b")
        assert await exists(client, CONFIG_MAP, "c")


@virtual
async def test_an_object_of_somebody_else_is_neither_changed_nor_deleted() -> None:
    async with stage() as h:
        await cluster(h)
        await h.available("one")
        client = workload(h)
        await client.create(config_map("a", theirs="1"), kind=CONFIG_MAP)
        await h.plane.have(addon("app", config_map("a", x="1"), config_map("b", x="1")))
        refused = says("Ready", "ObjectNotOwned", "ConfigMap default/a", "spec.conflictPolicy")
        await h.until(ClusterAddon, "app", refused)
        assert await data(client, "a") == {"theirs": "1"}
        await h.delete(ClusterAddon, "app")
        await h.gone(ClusterAddon, "app")
        assert await data(client, "a") == {"theirs": "1"}
        assert not await exists(client, CONFIG_MAP, "b")


@virtual
async def test_an_object_may_be_adopted_and_is_then_removed_with_the_add_on() -> None:
    async with stage() as h:
        await cluster(h)
        await h.available("one")
        client = workload(h)
        await client.create(config_map("a", theirs="1"), kind=CONFIG_MAP)
        await h.plane.have(addon("app", config_map("a", x="1"), conflictPolicy="Adopt"))
        await ready(h, "app")
        assert await data(client, "a") == {"theirs": "1", "x": "1"}
        await h.delete(ClusterAddon, "app")
        await h.gone(ClusterAddon, "app")
        assert not await exists(client, CONFIG_MAP, "a")


@virtual
async def test_deletion_leaves_nothing_of_the_add_on_unless_it_is_orphaned() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("gone", config_map("a", x="1")))
        await h.plane.have(addon("left", config_map("b", x="1"), deletionPolicy="Orphan"))
        await ready(h, "gone")
        await ready(h, "left")
        client = workload(h)
        for name in ("gone", "left"):
            await h.delete(ClusterAddon, name)
            await h.gone(ClusterAddon, name)
        assert not await exists(client, CONFIG_MAP, "a")
        assert not await exists(client, CONFIG_MAP, "homeport-addon-gone", "kube-system")
        assert await exists(client, CONFIG_MAP, "b")


@virtual
async def test_add_ons_do_not_hold_the_deletion_of_their_cluster() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("app", config_map("a", x="1")))
        await ready(h, "app")
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await h.until(ClusterAddon, "app", says("Ready", "ClusterNotFound"))
        await h.delete(ClusterAddon, "app")
        await h.gone(ClusterAddon, "app", timeout=5)


@virtual
async def test_fields_that_others_may_change_keep_their_value() -> None:
    async with stage() as h:
        await cluster(h)
        rules = [{"kind": "Deployment", "paths": ["/spec/replicas"]}]
        await h.plane.have(addon("app", deployment("web"), driftIgnore=rules))
        await ready(h, "app")
        client = workload(h)
        await client.patch(DEPLOYMENT, Key("default", "web"), MergePatch({"spec": {"replicas": 3, "paused": False}}))
        await h.plane.settle(quiet=60)
        changed = deployment("web")
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = "example/c:2"
        await rewrite(h, "app", changed)
        await ready(h, "app")
        spec = (await client.get(DEPLOYMENT, Key("default", "web")))["spec"]
        assert (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (3, "example/c:2")


@virtual
async def test_with_on_change_the_cluster_may_differ_until_the_add_on_changes() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("app", config_map("a", x="1"), syncPolicy="OnChange"))
        await ready(h, "app")
        client = workload(h)
        await client.patch(CONFIG_MAP, Key("default", "a"), MergePatch({"data": {"x": "other"}}))
        await h.plane.settle(quiet=3600)
        assert await data(client, "a") == {"x": "other"}
        await rewrite(h, "app", config_map("a", x="2"))
        await ready(h, "app")
        assert await data(client, "a") == {"x": "2"}


@virtual
async def test_a_secret_is_brought_along_and_follows_its_source() -> None:
    async with stage() as h:
        await cluster(h)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prism"}, "stringData": {"key": "one"}}
        copied = [{"name": "prism", "targetName": "ntnx", "targetNamespace": "kube-system"}]
        await h.plane.have(addon("app", config_map("a", x="1"), secrets=copied))
        await h.until(ClusterAddon, "app", says("Ready", "SourceNotFound", "spec.secrets[0]: Secret default/prism"))
        await h.plane.have(secret)
        await ready(h, "app")
        client = workload(h)
        found = await client.get(SECRET, Key("kube-system", "ntnx"))
        assert found["data"] == {"key": "b25l"}
        await h.client.patch(SECRET, Key("default", "prism"), MergePatch({"stringData": {"key": "two"}}))
        await h.plane.settle(quiet=5)
        assert (await client.get(SECRET, Key("kube-system", "ntnx")))["data"] == {"key": "dHdv"}


@virtual
async def test_templates_know_the_facts_of_the_cluster() -> None:
    async with stage() as h:
        await cluster(h)
        made = "{apiVersion: v1, kind: ConfigMap, metadata: {name: f}, data: {name: '{{ .Facts.name }}'}}"
        body = addon("app")
        body["spec"]["manifests"] = [{"inline": made, "template": True}]
        await h.plane.have(body)
        await ready(h, "app")
        assert await data(workload(h), "f") == {"name": "one"}


@virtual
async def test_a_paused_add_on_is_left_alone_and_resumes() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(addon("app", config_map("a", x="1")))
        await ready(h, "app")
        await rewrite(h, "app", config_map("a", x="2"), paused=True)
        await h.plane.settle(quiet=600)
        assert await data(workload(h), "a") == {"x": "1"}
        found = await h.client.get(ClusterAddon, Key("default", "app"))
        assert found.status.phase == "Paused"
        await h.patch(ClusterAddon, "app", {"spec": {"paused": False}})
        await ready(h, "app")
        assert await data(workload(h), "a") == {"x": "2"}
