"""Definitions at work: created, served, changed, in conflict, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from homeport.apiserver.crds import CustomResources, DefinitionStrategy
from homeport.apiserver.kinds import builtin_kinds
from homeport.apiserver.option import DeleteOptions, ListOptions
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import Context, User
from homeport.apiserver.resource import Catalog, ServedKind, Version
from homeport.apiserver.verb.admission import Admission
from homeport.client.errors import Forbidden, Invalid, NotFound
from homeport.store import Store

Json = dict[str, Any]
CTX = Context(User("ann", ("system:masters",)), user_agent="test")


def definition(plural: str = "widgets", **changes: Any) -> Json:
    singular = plural.removesuffix("s")
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"color": {"type": "string"}, "size": {"type": "integer", "default": 1}},
                    },
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
    crd: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": singular.capitalize(), "shortNames": [singular[:2]]},
            "versions": [version],
        },
    }
    crd["spec"].update(changes)
    return orjson.loads(orjson.dumps(crd))  # type: ignore[no-any-return]


class Server:
    def __init__(self, store: Store, **options: Any) -> None:
        self.store = store
        catalog = Catalog()
        for served in builtin_kinds():
            catalog.add(served)
        kind = catalog.by_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        assert kind is not None
        kind.strategy = DefinitionStrategy()
        self.registry = Registry(store, catalog, Admission())
        self.crds = CustomResources(self.registry, **options)
        self.crds.start()

    def kind(self, plural: str, group: str = "example.com", version: str = "v1") -> tuple[ServedKind, Version]:
        return self.registry.find(group, version, plural)

    async def create(
        self, obj: Json, plural: str = "customresourcedefinitions", group: str = "apiextensions.k8s.io"
    ) -> Json:
        version = obj["apiVersion"].rpartition("/")[2]
        namespace = obj["metadata"].get("namespace", "")
        return orjson.loads(await self.registry.create(CTX, *self.kind(plural, group, version), namespace, obj))  # type: ignore[no-any-return]

    async def widget(self, name: str, *, plural: str = "widgets", api: str = "v1", **meta: Any) -> Json:
        metadata = {"name": name, "namespace": "default", **meta}
        obj = {
            "apiVersion": f"example.com/{api}",
            "kind": plural.removesuffix("s").capitalize(),
            "metadata": metadata,
            "spec": {"color": "red"},
        }
        return await self.create(obj, plural, "example.com")

    async def get(self, name: str) -> Json:
        await self.crds.settled()
        at = self.kind("customresourcedefinitions", "apiextensions.k8s.io")
        return orjson.loads(await self.registry.get(*at, "", name))  # type: ignore[no-any-return]

    async def update(self, obj: Json) -> Json:
        at = self.kind("customresourcedefinitions", "apiextensions.k8s.io")
        body, _ = await self.registry.update(CTX, *at, "", obj["metadata"]["name"], obj)
        return orjson.loads(body)  # type: ignore[no-any-return]

    async def delete(
        self,
        name: str,
        plural: str = "customresourcedefinitions",
        group: str = "apiextensions.k8s.io",
        namespace: str = "",
    ) -> Json:
        body, _ = await self.registry.delete(CTX, *self.kind(plural, group), namespace, name, DeleteOptions())
        return orjson.loads(body)  # type: ignore[no-any-return]


def conditions(crd: Json) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in crd["status"].get("conditions") or ()}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    store = await Store.open(None)
    server = Server(store)
    yield server
    await server.crds.close()
    await store.close()


async def test_an_object_can_be_created_right_after_its_definition(server: Server) -> None:
    await server.create(definition())
    created = await server.widget("a")
    assert created["spec"] == {"color": "red", "size": 1}


async def test_a_definition_becomes_established_and_gets_its_names(server: Server) -> None:
    created = await server.create(definition())
    assert created["spec"]["names"]["singular"] == "widget"
    assert created["spec"]["names"]["listKind"] == "WidgetList"
    assert created["spec"]["conversion"] == {"strategy": "None"}
    crd = await server.get("widgets.example.com")
    assert conditions(crd) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert crd["status"]["storedVersions"] == ["v1"]
    owners = {(each["manager"], each.get("subresource", "")) for each in crd["metadata"]["managedFields"]}
    assert owners == {("test", ""), ("kube-apiserver", "status")}


async def test_the_status_is_written_once(server: Server) -> None:
    await server.create(definition())
    first = await server.get("widgets.example.com")
    await asyncio.sleep(0)
    assert (await server.get("widgets.example.com"))["metadata"]["resourceVersion"] == first["metadata"][
        "resourceVersion"
    ]


async def test_a_bad_definition_is_refused_with_every_cause(server: Server) -> None:
    bad = definition()
    bad["metadata"]["name"] = "wrong.example.com"
    bad["spec"]["versions"][0]["storage"] = False
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["bad"] = {}
    with pytest.raises(Invalid) as refused:
        await server.create(bad)
    assert [cause.field for cause in refused.value.causes] == [
        "metadata.name",
        "spec.versions",
        "spec.validation.openAPIV3Schema.properties[spec].properties[bad].type",
        "status.storedVersions",
    ]
    assert refused.value.causes[1].message == (
        'Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,'
        '"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: '
        "must have exactly one version marked as storage version"
    )


async def test_columns_read_objects(server: Server) -> None:
    await server.create(definition())
    _, at = server.kind("widgets")
    obj = {
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"color": "red"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert [(column.name, column.read(obj)) for column in at.columns] == [
        ("Color", "red"),
        ("Ready", "True"),
        ("Age", "2026-01-01T00:00:00Z"),
    ]
    assert at.columns[0].read({}) is None


async def test_taken_names_keep_a_definition_from_being_served_until_they_are_free(server: Server) -> None:
    await server.create(definition())
    other = definition("gadgets")
    other["spec"]["names"].update(kind="Widget", shortNames=["wi"])
    await server.create(other)
    crd = await server.get("gadgets.example.com")
    assert conditions(crd) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    named = next(each for each in crd["status"]["conditions"] if each["type"] == "NamesAccepted")
    assert named["message"] == '"WidgetList" is already in use'
    assert crd["status"]["acceptedNames"]["kind"] == ""
    with pytest.raises(NotFound):
        server.kind("gadgets")
    await server.delete("widgets.example.com")
    crd = await server.get("gadgets.example.com")
    assert conditions(crd)["Established"] == ("True", "InitialNamesAccepted")
    assert server.kind("gadgets")[0].kind == "Widget"


async def test_a_changed_definition_is_served_as_changed(server: Server) -> None:
    await server.create(definition())
    crd = await server.get("widgets.example.com")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["default"] = 7
    crd["spec"]["names"]["shortNames"] = ["wd"]
    await server.update(crd)
    assert (await server.widget("a"))["spec"]["size"] == 7
    assert server.kind("widgets")[0].short_names == ("wd",)
    assert (await server.get("widgets.example.com"))["status"]["acceptedNames"]["shortNames"] == ["wd"]


async def test_writing_the_status_alone_keeps_what_was_compiled(server: Server) -> None:
    await server.create(definition())
    served = server.kind("widgets")[0]
    await server.crds.settled()
    assert server.kind("widgets")[0] is served


async def test_a_second_version_converts_by_renaming_and_prunes_by_its_own_schema(server: Server) -> None:
    await server.create(definition())
    await server.widget("a")
    crd = await server.get("widgets.example.com")
    second = orjson.loads(orjson.dumps(crd["spec"]["versions"][0]))
    second["name"] = "v2"
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("size")
    crd["spec"]["versions"][0]["storage"] = False
    crd["spec"]["versions"].append(second)
    crd = await server.update(crd)
    assert crd["status"]["storedVersions"] == ["v1", "v2"]
    old = orjson.loads(await server.registry.get(*server.kind("widgets", version="v2"), "default", "a"))
    assert (old["apiVersion"], old["spec"]) == ("example.com/v2", {"color": "red"})
    crd["spec"]["versions"] = crd["spec"]["versions"][1:]
    with pytest.raises(Invalid, match="v1 was previously a storage version"):
        await server.update(crd)


async def test_our_own_kinds_are_converted_in_process() -> None:
    store = await Store.open(None)

    def convert(obj: Json, version: str) -> Json:
        return {
            **obj,
            "apiVersion": f"example.com/{version}",
            "spec": {"color": f"{obj['spec']['color']} as {version}"},
        }

    server = Server(store, hooks={("example.com", "Widget"): convert})
    crd = definition()
    crd["spec"]["versions"].append(
        {**orjson.loads(orjson.dumps(crd["spec"]["versions"][0])), "name": "v2", "storage": False}
    )
    await server.create(crd)
    await server.widget("a")
    seen = orjson.loads(await server.registry.get(*server.kind("widgets", version="v2"), "default", "a"))
    assert seen["spec"]["color"] == "red as v2"
    await server.crds.close()
    await store.close()


async def test_a_conversion_webhook_is_asked_through_the_caller() -> None:
    store = await Store.open(None)
    asked: list[tuple[str, int, str]] = []

    async def caller(served: Any, objects: list[Json], version: str) -> list[Json]:
        asked.append((served.kind, len(objects), version))
        return [{**obj, "apiVersion": f"example.com/{version}"} for obj in objects]

    server = Server(store, caller=caller)
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost/convert"}}
    crd = definition(conversion={"strategy": "Webhook", "webhook": webhook})
    crd["spec"]["versions"].append(
        {**orjson.loads(orjson.dumps(crd["spec"]["versions"][0])), "name": "v2", "storage": False}
    )
    await server.create(crd)
    await server.widget("a")
    listing = await server.registry.list(*server.kind("widgets", version="v2"), "", ListOptions())
    assert orjson.loads(listing.items[0])["apiVersion"] == "example.com/v2"
    assert ("Widget", 1, "v2") in asked
    await server.crds.close()
    await store.close()


async def test_deleting_a_definition_deletes_its_objects_first(server: Server) -> None:
    await server.create(definition())
    await server.widget("a")
    await server.widget("b")
    answer = await server.delete("widgets.example.com")
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(answer)["Terminating"] == ("True", "InstanceDeletionPending")
    await server.crds.settled()
    assert server.store.count("widgets.example.com") == 0
    with pytest.raises(NotFound):
        server.kind("widgets")
    with pytest.raises(NotFound):
        await server.get("widgets.example.com")


async def test_a_held_object_holds_its_definition(server: Server) -> None:
    await server.create(definition())
    await server.widget("held", finalizers=["example.com/hold"])
    await server.delete("widgets.example.com")
    crd = await server.get("widgets.example.com")
    assert conditions(crd)["Terminating"] == ("True", "InstanceDeletionInProgress")
    with pytest.raises(
        Forbidden, match=r'widgets.example.com "late" is forbidden: create not allowed while custom resource'
    ):
        await server.widget("late")
    at = server.kind("widgets")
    held = orjson.loads(await server.registry.get(*at, "default", "held"))
    held["metadata"]["finalizers"] = []
    await server.registry.update(CTX, *at, "default", "held", held)
    await server.crds.settled()
    with pytest.raises(NotFound):
        await server.get("widgets.example.com")


async def test_a_dry_run_deletion_changes_nothing(server: Server) -> None:
    await server.create(definition())
    before = await server.get("widgets.example.com")
    at = server.kind("customresourcedefinitions", "apiextensions.k8s.io")
    dry = Context(CTX.user, user_agent="test", dry_run=True)
    await server.registry.delete(dry, *at, "", "widgets.example.com", DeleteOptions())
    assert await server.get("widgets.example.com") == before


async def test_definitions_are_served_again_after_a_restart() -> None:
    store = await Store.open(None)
    first = Server(store)
    await first.create(definition())
    await first.widget("a")
    await first.crds.settled()
    await first.crds.close()
    revision = store.revision
    second = Server(store)
    assert orjson.loads(await second.registry.get(*second.kind("widgets"), "default", "a"))["spec"]["color"] == "red"
    await second.crds.settled()
    assert store.revision == revision
    await second.crds.close()
    await store.close()


async def test_a_deletion_goes_on_after_a_restart() -> None:
    store = await Store.open(None)
    first = Server(store)
    await first.create(definition())
    await first.widget("a")
    await first.crds.settled()
    await first.delete("widgets.example.com")
    await first.crds.close()
    second = Server(store)
    await second.crds.settled()
    assert store.count("widgets.example.com") == 0
    assert store.count("customresourcedefinitions.apiextensions.k8s.io") == 0
    await second.crds.close()
    await store.close()


async def test_a_definition_does_not_take_the_place_of_a_built_in_kind(server: Server) -> None:
    crd = definition("leases")
    crd["metadata"] = {
        "name": "leases.coordination.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    crd["spec"].update(group="coordination.k8s.io")
    crd["spec"]["names"].update(plural="leases", kind="Lease")
    await server.create(crd)
    seen = conditions(await server.get("leases.coordination.k8s.io"))
    assert seen["NamesAccepted"][0] == "False"
    assert seen["KubernetesAPIApprovalPolicyConformant"] == ("False", "UnapprovedAnnotation")
    assert not server.kind("leases", "coordination.k8s.io")[0].custom


async def test_a_scalable_object_needs_numbers_at_its_paths(server: Server) -> None:
    crd = definition()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["replicas"] = {"x-kubernetes-int-or-string": True}
    crd["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    }
    await server.create(crd)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(Invalid) as refused:
        await server.create({**obj, "spec": {"replicas": "x"}}, "widgets", "example.com")
    assert (
        refused.value.causes[0].message
        == "Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64"
    )
    assert refused.value.causes[0].field == ".spec.replicas"
    with pytest.raises(Invalid, match="should be a non-negative integer"):
        await server.create({**obj, "spec": {"replicas": -1}}, "widgets", "example.com")


async def test_a_deprecated_version_carries_its_warning(server: Server) -> None:
    crd = definition()
    crd["spec"]["versions"][0]["deprecated"] = True
    await server.create(crd)
    assert server.kind("widgets")[1].deprecation == "example.com/v1 Widget is deprecated"
