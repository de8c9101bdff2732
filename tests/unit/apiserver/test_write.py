"""Writes through a client in the server's process: what is refused, what is told, and who owns what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from homeport.api.meta import Resource
from homeport.apiserver.crds.served import build_served
from homeport.apiserver.kinds import builtin_kinds
from homeport.apiserver.local import LocalClient
from homeport.apiserver.registry import Registry
from homeport.apiserver.resource import Catalog
from homeport.apiserver.verb.admission import Admission
from homeport.client.errors import BadRequest, Conflict, Invalid
from homeport.client.protocol import JsonPatch, Key, MergePatch, Write
from homeport.store import Store

Json = dict[str, Any]
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
CRATES = Resource("example.com", "v1", "Crate", "crates")
OLD_CRATES = Resource("example.com", "v1beta1", "Crate", "crates")
A = Key("default", "a")
ONE, TWO = Write(field_manager="one"), Write(field_manager="two")


def _version(name: str, *fields: str, storage: bool = False) -> Json:
    text, number = {"type": "string"}, {"type": "integer"}
    spec: Json = {"type": "object", "properties": {**dict.fromkeys(fields, text), "count": number}}
    status: Json = {"type": "object", "properties": {"count": number}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }


DEFINITION: Json = {
    "metadata": {"name": "crates.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crates", "kind": "Crate"},
        "versions": [_version("v1", "color", storage=True), _version("v1beta1", "color", "shade")],
    },
}


@pytest_asyncio.fixture
async def client() -> AsyncIterator[LocalClient]:
    store = await Store.open(None)
    catalog = Catalog()
    for served in [*builtin_kinds(), build_served(DEFINITION)]:
        catalog.add(served)
    yield LocalClient(Registry(store, catalog, Admission()))
    await store.close()


def crate(**spec: Any) -> Json:
    return {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}


def scale(count: Any) -> Json:
    meta = {"name": "a", "namespace": "default"}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": count}}


def owned(obj: Json) -> dict[tuple[str, str, str], Json]:
    entries = obj["metadata"]["managedFields"]
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


async def test_a_scale_is_applied_and_its_applier_owns_the_count_in_the_object(client: LocalClient) -> None:
    await client.create(crate(color="red"), ONE, kind=CRATES)
    answer = await client.apply(scale(3), TWO, kind=CRATES, subresource="scale")
    assert answer["kind"] == "Scale"
    assert answer["spec"] == {"replicas": 3}
    made = await client.get(CRATES, A)
    assert made["spec"] == {"color": "red", "count": 3}
    assert owned(made)["two", "Apply", "scale"] == {"f:spec": {"f:count": {}}}


async def test_a_scale_that_another_applied_conflicts_in_the_words_of_a_scale(client: LocalClient) -> None:
    await client.apply(crate(count=1), ONE, kind=CRATES)
    with pytest.raises(Conflict) as caught:
        await client.apply(scale(2), TWO, kind=CRATES, subresource="scale")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert [cause.field for cause in caught.value.causes] == [".spec.replicas"]
    await client.apply(scale(2), TWO, kind=CRATES, subresource="scale", force=True)
    made = await client.get(CRATES, A)
    assert made["spec"]["count"] == 2
    assert ("one", "Apply", "") not in owned(made)


async def test_what_is_no_scale_is_not_applied_as_one(client: LocalClient) -> None:
    await client.create(crate(), kind=CRATES)
    with pytest.raises(BadRequest, match=r"invalid object type: example.com/v1, Kind=Crate"):
        await client.apply({**crate(count=1), "apiVersion": "example.com/v1"}, ONE, kind=CRATES, subresource="scale")
    with pytest.raises(BadRequest, match=r"cannot unmarshal string into Go struct field ScaleSpec.spec.replicas"):
        await client.replace(scale("many"), kind=CRATES, subresource="scale")


async def test_a_version_owns_nothing_that_is_not_stored(client: LocalClient) -> None:
    made = await client.create({**crate(color="red", shade="dark")}, ONE, kind=OLD_CRATES)
    assert made["spec"] == {"color": "red"}
    assert owned(made)["one", "Update", ""] == {"f:spec": {".": {}, "f:color": {}}}


async def test_metadata_of_custom_objects_is_decoded(client: LocalClient) -> None:
    obj = crate()
    obj["metadata"]["labels"] = {"tier": 1}
    with pytest.raises(BadRequest) as caught:
        await client.create(obj, kind=CRATES)
    assert caught.value.message == (
        'Crate in version "v1" cannot be handled as a Crate: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string"
    )
    await client.create(crate(), kind=CRATES)
    with pytest.raises(Invalid) as refused:
        await client.patch(CRATES, A, MergePatch({"metadata": {"annotations": "x"}}))
    assert [cause.field for cause in refused.value.causes] == ["patch"]


async def test_a_body_of_another_kind_is_distinguished_from_one_of_no_kind(client: LocalClient) -> None:
    for kind, why in (
        ("Secret", "the path takes a ConfigMap, the body is a Secret"),
        ("Nonsense", 'no kind "Nonsense" is registered for version "v1"'),
    ):
        with pytest.raises(BadRequest, match=why):
            await client.create({"kind": kind, "metadata": {"name": "a", "namespace": "default"}}, kind=CONFIGMAPS)


async def test_a_patch_that_fails_says_which_operation_and_shows_no_object(client: LocalClient) -> None:
    meta = {"name": "a", "namespace": "default"}
    await client.create({"metadata": meta, "data": {"password": "hunter2"}}, kind=CONFIGMAPS)
    with pytest.raises(Invalid, match=r"error in our request: .*/data/none"):
        await client.patch(CONFIGMAPS, A, JsonPatch([{"op": "remove", "path": "/data/none"}]))
    with pytest.raises(Invalid) as caught:
        await client.patch(CONFIGMAPS, A, MergePatch({"data": {"other": 1}}))
    assert "hunter2" not in str(caught.value.status)


async def test_unqualified_finalizers_are_refused_on_built_in_kinds_and_warned_of_on_custom_ones(
    client: LocalClient,
) -> None:
    meta = {"name": "a", "namespace": "default", "finalizers": ["mine"]}
    with pytest.raises(Invalid, match=r'metadata.finalizers\[0\]: Invalid value: "mine"'):
        await client.create({"metadata": meta}, kind=CONFIGMAPS)
    await client.create({"metadata": meta}, kind=CRATES)
    (warning,) = client.warnings.texts
    assert warning.startswith('metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid')
    client.warnings.texts.clear()
    await client.patch(CRATES, A, MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert not client.warnings.texts  # told when it is added, not ever after


async def test_the_generation_of_a_deployment_counts_its_annotations_too(client: LocalClient) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await client.create({"metadata": {"name": "a", "namespace": "default"}, "spec": spec}, kind=DEPLOYMENTS)
    labelled = await client.patch(DEPLOYMENTS, A, MergePatch({"metadata": {"labels": {"x": "y"}}}))
    assert labelled.metadata["generation"] == 1
    annotated = await client.patch(DEPLOYMENTS, A, MergePatch({"metadata": {"annotations": {"x": "y"}}}))
    assert annotated.metadata["generation"] == 2


async def test_the_options_of_a_write_are_checked_in_process_too(client: LocalClient) -> None:
    with pytest.raises(Invalid, match=r"invalid character U\+0009 \(at position 1\)"):
        await client.create(crate(), Write(field_manager="a\tb"), kind=CRATES)
    with pytest.raises(Invalid, match='fieldValidation: Unsupported value: "Rather"'):
        await client.create(crate(), Write(field_validation="Rather"), kind=CRATES)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [DEPLOYMENTS, CRATES])
async def test_a_patch_of_the_status_is_read_like_any_body(client: LocalClient, kind: Resource) -> None:
    labels = {"app": "a"}
    containers = {"containers": [{"name": "c", "image": "c:1"}]}
    template = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": containers}}
    made = await client.create(crate(**template if kind is DEPLOYMENTS else {"count": 1}), kind=kind)
    field = "replicas" if kind is DEPLOYMENTS else "count"
    patch = MergePatch({"status": {field: 1, "bogus": 1}, "spec": {"bogus": 1}})
    done = await client.patch(kind, A, patch, ONE, subresource="status")
    assert (done["status"], done["spec"]) == ({field: 1}, made["spec"])
    assert {'unknown field "status.bogus"', 'unknown field "spec.bogus"'} <= set(client.warnings.texts)
    for wrong in ({"status": {field: "many"}}, {"metadata": {"labels": {"a": 1}}}):
        with pytest.raises(Invalid):
            await client.patch(kind, A, MergePatch(wrong), ONE, subresource="status")
    assert (await client.get(kind, A))["status"] == {field: 1}


async def test_a_patch_of_the_status_leaves_what_was_read_before_as_it_was(client: LocalClient) -> None:
    """The new object shares with the old one what the patch does not name."""
    made = await client.create(
        {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, kind=NODES
    )
    ready = {"type": "Ready", "status": "True"}
    await client.patch(NODES, Key("", "a"), MergePatch({"status": {"conditions": [ready]}}), ONE, subresource="status")
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    done = await client.patch(
        NODES, Key("", "a"), MergePatch({"status": {"addresses": addresses}}), ONE, subresource="status"
    )
    assert done["spec"] == made["spec"]
    assert (done["status"]["conditions"][0]["type"], done["status"]["addresses"]) == ("Ready", addresses)
