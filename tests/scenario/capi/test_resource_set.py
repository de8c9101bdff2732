"""ClusterResourceSets: manifests reach the clusters they are for, say what went wrong, and are never taken away."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from capikit import manifest
from capikit.harness import NAMESPACE, Harness, harness
from homeport.api.addons.v1beta2 import ClusterResourceSet, ClusterResourceSetBinding
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch
from homeport.machinery import yaml
from homeport.runtime.testing import virtual
from scenario.capi.look import says, workload

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
WIDGET = Resource("example.com", "v1", "Widget", "widgets")
APPLIED = says("ResourcesApplied", status="True")


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def addon(name: str, *objects: dict[str, Any], **more: str) -> dict[str, Any]:
    """A ConfigMap of the management cluster that holds objects for others."""
    text = "---\n".join(yaml.dump(each) for each in objects)
    return config_map(name, **({"objects.yaml": text} if objects else {}), **more)


def resource_set(name: str, *resources: str, strategy: str = "") -> dict[str, Any]:
    refs = [dict(zip(("kind", "name"), each.split("/"), strict=True)) for each in resources]
    spec: dict[str, Any] = {"clusterSelector": {"matchLabels": {"cni": "ours"}}, "resources": refs}
    if strategy:
        spec["strategy"] = strategy
    return {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


async def labelled(h: Harness, name: str = "one", workers: int = 0) -> None:
    first, *others = manifest.cluster_objects(name, 1, workers)
    first["metadata"]["labels"] = {"cni": "ours"}
    await h.plane.have(first, *others)


async def data(client: Client, name: str, namespace: str = "default") -> Any:
    return (await client.get(CONFIG_MAP, Key(namespace, name)))["data"]


@virtual
async def test_a_cluster_gets_what_is_written_for_it_as_soon_as_it_answers() -> None:
    async with harness() as h:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
        # The Namespace comes last in the text and has to be created first.
        await h.plane.have(addon("net", config_map("inside", "extra", a="1"), space))
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "key"},
            "type": "addons.cluster.x-k8s.io/resource-set",
            "data": {"one.yaml": base64.b64encode(yaml.dump(config_map("from-secret", b="2")).encode()).decode()},
        }
        await h.plane.have(secret, resource_set("first", "ConfigMap/net", "Secret/key"))
        found = await h.until(ClusterResourceSet, "first", says("ResourcesApplied", "no Cluster matches"))
        assert found.spec.strategy == "ApplyOnce"
        await labelled(h)
        await h.until(ClusterResourceSet, "first", says("ResourcesApplied", "Cluster one: ", status="False"))
        await h.until(ClusterResourceSet, "first", says("ResourcesApplied", "True Applied: ", status="True"))
        client = workload(h)
        assert await data(client, "inside", "extra") == {"a": "1"}
        assert await data(client, "from-secret") == {"b": "2"}
        binding = await h.client.get(ClusterResourceSetBinding, Key(NAMESPACE, "one"))
        (entry,) = binding.spec.bindings
        assert entry.cluster_resource_set_name == "first"
        assert [(each.kind, each.name, each.applied) for each in entry.resources] == [
            ("ConfigMap", "net", True),
            ("Secret", "key", True),
        ]
        assert [each.kind for each in binding.metadata.owner_references] == ["ClusterResourceSet"]
        owned = await h.client.get(CONFIG_MAP, Key(NAMESPACE, "net"))
        assert [each["name"] for each in owned.metadata["ownerReferences"]] == ["first"]


@virtual
async def test_apply_once_is_once_and_reconcile_follows_what_is_written() -> None:
    async with harness() as h:
        await labelled(h)
        await h.plane.have(addon("once", config_map("a", x="1")), addon("again", config_map("b", x="1")))
        await h.plane.have(resource_set("s-once", "ConfigMap/once"))
        await h.plane.have(resource_set("s-again", "ConfigMap/again", strategy="Reconcile"))
        for name in ("s-once", "s-again"):
            await h.until(ClusterResourceSet, name, lambda s: APPLIED(s) and "no Cluster" not in str(s.status))
        client = workload(h)
        await client.patch(CONFIG_MAP, Key("default", "b"), _merge({"data": {"others": "own"}}))
        before = await h.client.get(ClusterResourceSetBinding, Key(NAMESPACE, "one"))
        for name, inner in (("once", "a"), ("again", "b")):
            changed = addon(name, config_map(inner, x="2"))
            await h.client.patch(CONFIG_MAP, Key(NAMESPACE, name), _merge({"data": changed["data"]}))
        # Told by watch: nobody waits for a poll.
        await h.until(ClusterResourceSetBinding, "one", lambda b: b.spec != before.spec, timeout=5)
        assert await data(client, "b") == {"x": "2", "others": "own"}
        await h.plane.settle(quiet=600)
        assert await data(client, "a") == {"x": "1"}


@virtual
async def test_what_fails_is_named_with_its_resource_and_heals_by_itself() -> None:
    async with harness() as h:
        await labelled(h)
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "nowhere"},
            "spec": {},
        }
        wrong = config_map("Wrong_Name", x="1")
        await h.plane.have(addon("mixed", config_map("good", x="1"), wrong, widget))
        await h.plane.have(resource_set("set", "ConfigMap/mixed", "ConfigMap/missing"))
        found = await h.until(
            ClusterResourceSet,
            "set",
            says(
                "ResourcesApplied",
                "NotApplied",
                "Cluster one: ConfigMap mixed: ConfigMap default/Wrong_Name: ",
                "Cluster one: ConfigMap mixed: Widget nowhere/w: the cluster serves no Widget of example.com/v1",
                "ConfigMap missing: it does not exist in namespace default",
            ),
        )
        assert "good" not in str(found.status.conditions)
        assert await data(workload(h), "good") == {"x": "1"}
        binding = await h.client.get(ClusterResourceSetBinding, Key(NAMESPACE, "one"))
        assert [each.applied for each in binding.spec.bindings[0].resources] == [False]
        fixed = addon("mixed", config_map("good", x="1"), config_map("right-name", x="1"))
        await h.client.patch(CONFIG_MAP, Key(NAMESPACE, "mixed"), _merge({"data": fixed["data"]}))
        await h.plane.have(addon("missing", config_map("late", x="1")))
        await h.until(ClusterResourceSet, "set", APPLIED, timeout=5)
        assert await data(workload(h), "late") == {"x": "1"}


@virtual
async def test_custom_resources_follow_their_definition() -> None:
    async with harness() as h:
        await labelled(h)
        definition = {
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
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await h.plane.have(addon("both", widget, definition), resource_set("set", "ConfigMap/both"))
        await h.until(ClusterResourceSet, "set", lambda s: APPLIED(s) and "no Cluster" not in str(s.status))
        assert (await workload(h).get(WIDGET, Key("default", "w"))).name == "w"


@virtual
async def test_a_set_that_is_deleted_leaves_the_clusters_as_they_are() -> None:
    async with harness() as h:
        await labelled(h)
        await h.plane.have(addon("net", config_map("a", x="1")), addon("more", config_map("b", x="1")))
        await h.plane.have(resource_set("first", "ConfigMap/net"), resource_set("second", "ConfigMap/more"))
        for name in ("first", "second"):
            await h.until(ClusterResourceSet, name, lambda s: APPLIED(s) and "no Cluster" not in str(s.status))
        client = workload(h)
        await h.delete(ClusterResourceSet, "first")
        await h.gone(ClusterResourceSet, "first")
        binding = await h.client.get(ClusterResourceSetBinding, Key(NAMESPACE, "one"))
        assert [each.cluster_resource_set_name for each in binding.spec.bindings] == ["second"]
        assert [each.name for each in binding.metadata.owner_references] == ["second"]
        await h.gone(CONFIG_MAP, "net")  # it belonged to the set
        await h.delete(ClusterResourceSet, "second")
        await h.gone(ClusterResourceSet, "second")
        await h.gone(ClusterResourceSetBinding, "one")
        assert (await data(client, "a"), await data(client, "b")) == ({"x": "1"}, {"x": "1"})


@virtual
async def test_a_binding_goes_with_its_cluster() -> None:
    async with harness() as h:
        await labelled(h)
        await h.plane.have(addon("net", config_map("a", x="1")), resource_set("set", "ConfigMap/net"))
        await h.until(ClusterResourceSetBinding, "one", lambda b: bool(b.spec.bindings))
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await h.gone(ClusterResourceSetBinding, "one")
        await h.until(ClusterResourceSet, "set", says("ResourcesApplied", "no Cluster matches"))


@virtual
async def test_a_paused_cluster_gets_nothing_until_it_is_resumed() -> None:
    async with harness() as h:
        await labelled(h)
        await h.available("one")
        await h.patch(Cluster, "one", {"spec": {"paused": True}})
        await h.plane.have(addon("net", config_map("a", x="1")), resource_set("set", "ConfigMap/net"))
        await h.until(ClusterResourceSet, "set", says("ResourcesApplied", "Cluster one: it is paused", status="False"))
        with pytest.raises(NotFound):
            await data(workload(h), "a")
        await h.patch(Cluster, "one", {"spec": {"paused": False}})
        await h.until(ClusterResourceSet, "set", APPLIED)
        assert await data(workload(h), "a") == {"x": "1"}


@virtual
async def test_a_restart_and_idle_time_write_nothing() -> None:
    async with harness() as h:
        await labelled(h)
        await h.plane.have(addon("net", config_map("a", x="1")))
        await h.plane.have(resource_set("set", "ConfigMap/net", strategy="Reconcile"))
        await h.until(ClusterResourceSet, "set", lambda s: APPLIED(s) and "no Cluster" not in str(s.status))
        await h.plane.settle(quiet=60)

        async def versions() -> tuple[str, ...]:
            found = [
                await h.client.get(kind, Key(NAMESPACE, name))
                for kind, name in ((ClusterResourceSet, "set"), (ClusterResourceSetBinding, "one"))
            ]
            inner = await workload(h).get(CONFIG_MAP, Key("default", "a"))
            return (*(each.metadata.resource_version for each in found), inner.resource_version)

        before = await versions()
        await h.restart()
        await asyncio.sleep(1800)
        assert await versions() == before


def _merge(body: dict[str, Any]) -> MergePatch:
    return MergePatch(body)
