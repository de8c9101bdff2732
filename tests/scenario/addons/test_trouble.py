"""What goes wrong with add-ons is named, and heals by itself."""

from __future__ import annotations

import asyncio

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.runtime.testing import virtual
from scenario.addons.port import Port, port
from scenario.addons.stage import CONFIG_MAP, DEPLOYMENT, SECRET, addon, config_map, data, deployment, exists, text
from scenario.capi.look import says

APP = Key("default", "app")
RECORDS = Query(labels="owner=helm")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
WIDGET = Resource("example.com", "v1", "Widget", "widgets")
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
READY = says("Ready", status="True")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def widget(name: str) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}}


async def until(p: Port, *said: str, status: str = "", timeout: float = 60) -> ClusterAddon:
    found: ClusterAddon = await p.plane.until(ClusterAddon, APP, says("Ready", *said, status=status), timeout)
    return found


@virtual
async def test_a_definition_and_an_object_of_its_kind_come_together_without_an_alarm() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", widget("w"), DEFINITION))
        await until(p, status="True")
        assert await exists(p.of("one"), WIDGET, "w")
        await p.plane.settle(quiet=30)
        told = [each for each in (await p.client.list(EVENT)).items if each.get("type") == "Warning"]
        assert not told


@virtual
async def test_a_definition_stays_while_somebody_has_objects_of_its_kind() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", widget("ours"), DEFINITION))
        await until(p, status="True")
        client = p.of("one")
        await client.create(widget("theirs"), kind=WIDGET)
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 60)
        assert not await exists(client, WIDGET, "ours")
        assert await exists(client, WIDGET, "theirs")


@virtual
async def test_objects_that_never_become_ready_are_named_and_reported_as_failed_in_time() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        start = p.plane.clock.now()
        await p.plane.have(addon("app", deployment("web"), timeout="5m"))
        found = await until(p, "WaitingForObjects", "Deployment default/web")
        assert found.status.phase == "Installing"
        found = await until(p, "Timeout", "Deployment default/web", timeout=900)
        assert found.status.phase == "Failed"
        assert 290 <= p.plane.clock.now() - start <= 400
        # Nobody runs controllers in this cluster: the Deployment becomes ready by hand.
        client = p.of("one")
        live = await client.get(DEPLOYMENT, Key("default", "web"))
        status = {
            "observedGeneration": live.metadata["generation"],
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}],
        }
        await client.patch(DEPLOYMENT, Key("default", "web"), MergePatch({"status": status}), subresource="status")
        found = await until(p, status="True", timeout=5)
        assert found.status.phase == "Installed"


@virtual
async def test_a_cluster_that_stops_answering_is_named_and_the_removal_may_let_go_of_it() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", config_map("a", x="1")))
        await until(p, status="True")
        p.lines["one"].cut.set()
        await p.client.delete(ClusterAddon, APP)
        await until(p, "WaitingForCluster", "set spec.deletionPolicy to Orphan", timeout=300)
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"deletionPolicy": "Orphan"}}))
        await p.plane.gone(ClusterAddon, APP, 10)
        p.lines["one"].cut.clear()
        assert await exists(p.of("one"), CONFIG_MAP, "a")


@virtual
async def test_a_lost_inventory_is_made_again_and_a_release_is_still_known_as_ours() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        client = p.of("one")
        await p.plane.stop()
        await client.delete(CONFIG_MAP, Key("kube-system", "homeport-addon-app"))
        await p.client.delete(ClusterAddon, APP)
        await p.start()
        await p.plane.gone(ClusterAddon, APP, 60)
        assert not (await client.list(SECRET, Query(labels="owner=helm"))).items


@virtual
async def test_a_release_whose_records_are_deleted_is_recorded_again() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        client = p.of("one")
        [record] = (await client.list(SECRET, RECORDS)).items
        await client.delete(SECRET, Key(record.namespace, record.name))
        await asyncio.sleep(30)
        assert [each.name for each in (await client.list(SECRET, RECORDS)).items] == [record.name]
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 60)
        assert not (await client.list(DEPLOYMENT, Query(namespace="flux-system"))).items


@virtual
async def test_an_add_on_whose_records_are_deleted_is_removed_all_the_same_and_nothing_else() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        client = p.of("one")
        await p.plane.stop()
        [record] = (await client.list(SECRET, RECORDS)).items
        await client.delete(SECRET, Key(record.namespace, record.name))
        marks = {"meta.helm.sh/release-name": "flux", "meta.helm.sh/release-namespace": "elsewhere"}
        other = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": marks}
        await client.create(
            {"metadata": {"name": "other", "namespace": "flux-system", **other}, "data": {"a": "b"}}, kind=CONFIG_MAP
        )
        assert (await client.list(DEPLOYMENT, Query(namespace="flux-system"))).items
        await p.client.delete(ClusterAddon, APP)
        await p.start()
        await p.plane.gone(ClusterAddon, APP, 60)
        assert not (await client.list(DEPLOYMENT, Query(namespace="flux-system"))).items
        assert await client.get(CONFIG_MAP, Key("flux-system", "other"))


@virtual
async def test_a_chart_that_is_changed_before_its_objects_are_watched_is_repaired() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("connected", config_map("a", x="1")))
        await p.plane.until(ClusterAddon, Key("default", "connected"), READY, 60)
        p.lines["one"].watchable.clear()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        client = p.of("one")
        one, other = (each.name for each in (await client.list(DEPLOYMENT, Query(namespace="flux-system"))).items[:2])
        await client.patch(DEPLOYMENT, Key("flux-system", one), MergePatch({"spec": {"replicas": 5}}))
        await replace(client, Key("flux-system", other))
        p.lines["one"].watchable.set()
        await p.plane.settle(quiet=30)
        for name in (one, other):
            assert (await client.get(DEPLOYMENT, Key("flux-system", name)))["spec"]["replicas"] == 1


@virtual
async def test_a_chart_is_repaired_when_an_object_is_deleted_and_created_again_at_once() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        client = p.of("one")
        key = Key("flux-system", (await client.list(DEPLOYMENT, Query(namespace="flux-system"))).items[0].name)
        await p.plane.settle(quiet=30)
        await replace(client, key)
        await p.plane.settle(quiet=30)
        assert (await client.get(DEPLOYMENT, key))["spec"]["replicas"] == 1


async def replace(client: Client, key: Key) -> None:
    """Somebody's own Deployment in the place of the chart's, in its first generation as that one was."""
    live = await client.get(DEPLOYMENT, key)
    await client.delete(DEPLOYMENT, key)
    meta = {name: live.metadata[name] for name in ("name", "namespace", "labels", "annotations")}
    await client.create({**live, "metadata": meta, "spec": {**live["spec"], "replicas": 5}}, kind=DEPLOYMENT)


@virtual
async def test_a_release_of_somebody_else_is_left_alone() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", addon="flux", wait=False))
        await until(p, status="True")
        await p.plane.have(addon("twice", addon="flux", wait=False))
        told = says("Ready", "ObjectNotOwned", "release flux-system/flux already exists")
        await p.plane.until(ClusterAddon, Key("default", "twice"), told, 60)
        await p.client.delete(ClusterAddon, Key("default", "twice"))
        await p.plane.gone(ClusterAddon, Key("default", "twice"), 60)
        assert len((await p.of("one").list(SECRET, Query(labels="owner=helm"))).items) == 1


@virtual
async def test_a_value_that_does_not_exist_is_not_written_into_the_cluster() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        body = addon("app")
        body["spec"]["manifests"] = [
            {"template": True, "inline": text(config_map("a", host="{{ .Facts.hots }}"))},
        ]
        await p.plane.have(body)
        await until(p, "InvalidTemplate", "spec.manifests[0]", "does not exist")
        assert not await exists(p.of("one"), CONFIG_MAP, "a")


@virtual
async def test_values_come_from_a_secret_and_follow_it() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        more = {"valuesFrom": [{"secretRef": {"name": "values"}}], "wait": False}
        await p.plane.have(addon("app", addon="flannel", **more))  # type: ignore[arg-type]
        await until(p, "SourceNotFound", "spec.valuesFrom[0]: Secret default/values does not exist")
        values = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "values"}}
        await p.plane.have({**values, "stringData": {"values.yaml": "podCidr: 10.1.0.0/16"}})
        await until(p, status="True")
        client = p.of("one")
        assert "10.1.0.0/16" in (await data(client, "kube-flannel-cfg", "kube-flannel"))["net-conf.json"]
        patch = MergePatch({"stringData": {"values.yaml": "podCidr: 10.2.0.0/16"}})
        await p.client.patch(SECRET, Key("default", "values"), patch)
        await p.plane.settle(quiet=10)
        assert "10.2.0.0/16" in (await data(client, "kube-flannel-cfg", "kube-flannel"))["net-conf.json"]


@virtual
async def test_a_definition_that_vanishes_comes_back_with_the_objects_of_the_add_on() -> None:
    """Deleting a CustomResourceDefinition deletes all objects of its kind, and ends every watch of it."""
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", widget("w"), DEFINITION, config_map("c", a="1")))
        await until(p, status="True")
        client = p.of("one")
        await p.plane.settle(quiet=30)
        before = await client.get(WIDGET, Key("default", "w"))
        await client.delete(CRD, Key("", "widgets.example.com"))
        await p.plane.settle(quiet=60)
        await until(p, status="True", timeout=300)
        after = await client.get(WIDGET, Key("default", "w"))
        assert after.uid != before.uid
        # It is watched again, too.
        await client.delete(WIDGET, Key("default", "w"))
        await p.plane.settle(quiet=60)
        assert await exists(client, WIDGET, "w")


@virtual
async def test_an_add_on_is_removed_though_its_definitions_vanished() -> None:
    async with port() as p:
        await p.open("one")
        await p.start()
        await p.plane.have(addon("app", widget("w"), DEFINITION, config_map("c", a="1")))
        await until(p, status="True")
        client = p.of("one")
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"paused": True}}))
        await p.plane.settle(quiet=10)
        await client.delete(CRD, Key("", "widgets.example.com"))
        await p.plane.settle(quiet=10)
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"paused": None}}))
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 120)
        assert not await exists(client, CONFIG_MAP, "c")
