"""The life of CustomResourceDefinitions."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from conformance.client.api import CRDS, Api, brief, install, short, take, until
from conformance.client.widget import widget_crd
from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Key, MergePatch, Write

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(group: str, kind: str = "Thing", *, scope: str = "Namespaced", **spec: Any) -> dict[str, Any]:
    plural = kind.lower() + "s"
    names = {"plural": plural, "kind": kind}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}]
    body = {"group": group, "scope": scope, "names": names, "versions": versions, **spec}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": body}


@pytest_asyncio.fixture(loop_scope="session")
async def group(api: Api) -> AsyncIterator[str]:
    """A group of this test alone; its definitions go with it."""
    name = f"c{short()}.example.com"
    api.golden.normal.words[name] = "GROUP"
    yield name
    page = await api.client.list(CRDS)
    for item in page.items:
        if item["spec"]["group"] == name:
            await api.client.delete(CRDS, Key("", item.name))


async def gone(api: Api, kind: Resource) -> None:
    async def look() -> bool | None:
        try:
            await api.client.list(kind, api.query())
        except NotFound:
            return True
        return None

    await until(look)


async def test_a_definition_is_accepted_and_served(api: Api, group: str) -> None:
    kind = await install(api.client, crd(group))
    got = await api.client.get(CRDS, Key("", f"things.{group}"))
    conditions = [
        {name: c[name] for name in ("type", "status", "reason", "message")} for c in got["status"]["conditions"]
    ]
    api.same("conditions", sorted(conditions, key=lambda c: c["type"]))
    api.same("spec", got["spec"])
    api.same("names", got["status"]["acceptedNames"])
    api.same("stored", got["status"]["storedVersions"])
    made = await api.client.create(
        {"metadata": {"name": "a", "namespace": api.ns}, "anything": {"goes": [1]}}, kind=kind
    )
    api.same("object", made)


async def test_the_rich_definition_reads_back_as_written(api: Api, group: str) -> None:
    made = await api.client.create(widget_crd(group), kind=CRDS)
    short_name = f"wd{group[:9]}"
    api.golden.normal.words[short_name] = "SHORT"
    api.same("spec", made["spec"])


async def test_a_cluster_wide_kind(api: Api, group: str) -> None:
    kind = await install(api.client, crd(group, scope="Cluster"))
    name = f"x-{api.ns}"
    made = await api.client.create({"metadata": {"name": name}}, kind=kind)
    assert "namespace" not in made.metadata
    assert [item.name for item in (await api.client.list(kind)).items] == [name]
    await api.refusal("missing", api.client.get(kind, Key("", "none")))
    await api.client.delete(kind, Key("", name))


BAD: dict[str, dict[str, Any]] = {
    "no versions": {"versions": []},
    "two storage versions": {
        "versions": [
            {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}
            for name in ("v1", "v2")
        ]
    },
    "no storage version": {
        "versions": [{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": OPEN}}]
    },
    "same version twice": {
        "versions": [
            {"name": "v1", "served": True, "storage": storage, "schema": {"openAPIV3Schema": OPEN}}
            for storage in (True, False)
        ]
    },
    "no schema": {"versions": [{"name": "v1", "served": True, "storage": True}]},
    "scope": {"scope": "Universe"},
    "upper plural": {"names": {"plural": "Things", "kind": "Thing"}},
    "bad kind": {"names": {"plural": "things", "kind": "thing kind"}},
    "bad version name": {
        "versions": [{"name": "V_1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}]
    },
    "webhook without config": {"conversion": {"strategy": "Webhook"}},
    "unknown conversion": {"conversion": {"strategy": "Magic"}},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "not structural": {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}},
    "root is not an object": {"type": "string"},
    "unknown type": {"type": "object", "properties": {"a": {"type": "thing"}}},
    "array without items": {"type": "object", "properties": {"a": {"type": "array"}}},
    "bad pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    "bad default": {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}},
    "unknown default": {"type": "object", "properties": {"a": {"type": "object", "default": {"x": 1}}}},
    "both properties and additional": {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}
        },
    },
    "unique items": {
        "type": "object",
        "properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}},
    },
    "list map without keys": {
        "type": "object",
        "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}},
    },
    "list map key unknown": {
        "type": "object",
        "properties": {
            "a": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {}},
            }
        },
    },
    "rule does not compile": {"type": "object", "x-kubernetes-validations": [{"rule": "self.missing == 1"}]},
    "rule is not boolean": {"type": "object", "x-kubernetes-validations": [{"rule": "1 + 1"}]},
    "rule is empty": {"type": "object", "x-kubernetes-validations": [{"rule": " "}]},
    "metadata is specified": {
        "type": "object",
        "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
    },
    "int or string with type": {
        "type": "object",
        "properties": {"a": {"type": "string", "x-kubernetes-int-or-string": True}},
    },
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_definition_is_refused(api: Api, case: str) -> None:
    obj = crd("bad.example.com", **BAD[case])
    await api.refusal(case, api.client.create(obj, Write(dry_run=True), kind=CRDS))


@pytest.mark.parametrize("case", SCHEMAS)
async def test_a_bad_schema_is_refused(api: Api, case: str) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMAS[case]}}
    obj = crd("bad.example.com", versions=[version])
    await api.outcome(case, api.client.create(obj, Write(dry_run=True), kind=CRDS))


async def test_the_name_must_be_plural_and_group(api: Api) -> None:
    obj = crd("bad.example.com")
    obj["metadata"]["name"] = "other.example.com"
    await api.refusal("name", api.client.create(obj, Write(dry_run=True), kind=CRDS))


async def test_protected_groups_need_approval(api: Api) -> None:
    obj = crd("x.k8s.io")
    await api.refusal("unapproved", api.client.create(obj, Write(dry_run=True), kind=CRDS))
    obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, experimental-only"}
    assert (await api.client.create(obj, Write(dry_run=True), kind=CRDS)).name == "things.x.k8s.io"


async def test_versions_without_conversion_differ_in_their_name_alone(api: Api, group: str) -> None:
    def version(name: str, *, storage: bool, served: bool = True) -> dict[str, Any]:
        text = {"type": "string"}
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": text, name: text}}}}
        return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}

    versions = [version("v1", storage=True), version("v2", storage=False), version("v3", storage=False, served=False)]
    v1 = await install(api.client, crd(group, versions=versions))
    v2 = Resource(group, "v2", "Thing", "things")
    made = await api.client.create(
        {"metadata": {"name": "a", "namespace": api.ns}, "spec": {"a": "x", "v1": "only"}}, kind=v1
    )
    seen = await api.client.get(v2, api.key("a"))
    assert seen["apiVersion"] == f"{group}/v2"
    assert seen.uid == made.uid
    api.same("through the other version", seen)
    patched = await api.client.patch(v2, api.key("a"), MergePatch({"spec": {"v2": "more"}}))
    api.same("patched through the other version", patched)
    api.same("the first again", await api.client.get(v1, api.key("a")))
    with pytest.raises(NotFound):
        await api.client.get(Resource(group, "v3", "Thing", "things"), api.key("a"))
    page = await api.client.list(v2, api.query())
    assert [item["apiVersion"] for item in page.items] == [f"{group}/v2"]
    async with api.client.watch(v2, api.query()) as events:
        (event,) = await take(events, 1)
        assert event.object["apiVersion"] == f"{group}/v2"
    await api.refusal(
        "wrong version in the body",
        api.client.create(
            {"apiVersion": v1.api_version, "kind": "Thing", "metadata": {"name": "b", "namespace": api.ns}}, kind=v2
        ),
    )


async def test_a_changed_schema_counts_at_once(api: Api, group: str) -> None:
    text = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    definition = crd(group)
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": text}
    kind = await install(api.client, definition)
    made = await api.client.create(
        {"metadata": {"name": "a", "namespace": api.ns}, "spec": {"a": "long text", "b": "x"}}, kind=kind
    )
    assert made["spec"] == {"a": "long text"}
    changed = copy.deepcopy(definition["spec"]["versions"])
    changed[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {
        "a": {"type": "string", "maxLength": 3},
        "b": {"type": "string", "default": "new"},
    }
    await api.client.patch(CRDS, Key("", f"things.{group}"), MergePatch({"spec": {"versions": changed}}))

    async def defaulted() -> Unstructured | None:
        got: Unstructured = await api.client.get(kind, api.key("a"))
        return got if got["spec"].get("b") == "new" else None

    seen = await until(defaulted)
    assert seen["spec"] == {"a": "long text", "b": "new"}
    other = {"metadata": {"name": "b", "namespace": api.ns}, "spec": {"a": "too long"}}
    with pytest.raises(Invalid):
        await api.client.create(other, kind=kind)
    kept = await api.client.patch(kind, api.key("a"), MergePatch({"spec": {"b": "changed"}}))
    assert kept["spec"] == {"a": "long text", "b": "changed"}
    await api.refusal(
        "value stays too long", api.client.patch(kind, api.key("a"), MergePatch({"spec": {"a": "still long"}}))
    )


async def test_what_of_a_definition_may_not_change(api: Api, group: str) -> None:
    await install(api.client, crd(group))
    key = Key("", f"things.{group}")
    patches: dict[str, dict[str, Any]] = {
        "group": {"spec": {"group": "other.example.com"}},
        "plural": {"spec": {"names": {"plural": "others"}}},
        "kind": {"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}},
        "scope": {"spec": {"scope": "Cluster"}},
        "no versions": {"spec": {"versions": []}},
        "stored version leaves": {
            "spec": {"versions": [{"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}]}
        },
    }
    for label, patch in patches.items():
        await api.outcome(label, api.client.patch(CRDS, key, MergePatch(patch), Write(dry_run=True)))


async def test_a_deleted_definition_takes_its_objects_along(api: Api, group: str) -> None:
    kind = await install(api.client, crd(group))
    await api.client.create({"metadata": {"name": "a", "namespace": api.ns}}, kind=kind)
    async with api.client.watch(kind, api.query()) as events:
        assert brief(await take(events, 1)) == [("ADDED", "a")]
        await api.client.delete(CRDS, Key("", f"things.{group}"))
        assert brief(await take(events, 1)) == [("DELETED", "a")]
    await gone(api, kind)
    again = await install(api.client, crd(group))
    assert (await api.client.list(again, api.query())).items == []


async def test_two_definitions_can_not_share_a_kind(api: Api, group: str) -> None:
    await install(api.client, crd(group))
    second = crd(group, "Thing")
    second["metadata"]["name"] = f"thingies.{group}"
    second["spec"]["names"] = {"plural": "thingies", "kind": "Thing", "listKind": "ThingyList"}
    await api.client.create(second, kind=CRDS)

    async def judged() -> Unstructured | None:
        got: Unstructured = await api.client.get(CRDS, Key("", f"thingies.{group}"))
        return got if (got.get("status") or {}).get("conditions") else None

    got = await until(judged)
    conditions = {c["type"]: {n: c[n] for n in ("status", "reason", "message")} for c in got["status"]["conditions"]}
    api.same("conditions", conditions)
    with pytest.raises(NotFound):
        await api.client.list(Resource(group, "v1", "Thing", "thingies"), api.query())
