"""JSON, merge and strategic merge patches."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from conformance.client.api import CONFIGMAPS, DEPLOYMENTS, SERVICES, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import Conflict, Invalid, NotFound, UnsupportedMediaType
from homeport.client.protocol import JsonPatch, MergePatch, StrategicPatch, Write


@pytest_asyncio.fixture(loop_scope="session")
async def deployment(api: Api) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": 80, "name": "web"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    }
    obj = {
        "metadata": {"name": "d", "namespace": api.ns, "finalizers": ["example.com/x"]},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [container], "nodeSelector": {"k": "v"}},
            },
        },
    }
    made: dict[str, Any] = await api.client.create(obj, kind=DEPLOYMENTS)
    return made


async def test_a_merge_patch_merges_and_null_removes(api: Api, widgets: Resource) -> None:
    await api.client.create(configmap(api, "a", k="1", l="2"), kind=CONFIGMAPS)
    done = await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"data": {"k": None, "m": "3"}}))
    assert done["data"] == {"l": "2", "m": "3"}
    await api.client.create(widget("a", api.ns, words=["x"], settings={"a": "b"}), kind=widgets)
    done = await api.client.patch(
        widgets, api.key("a"), MergePatch({"spec": {"words": ["y", "z"], "settings": {"c": "d"}, "network": None}})
    )
    api.same("widget", done)


async def test_a_merge_patch_with_a_stale_version_is_a_conflict(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a")
        made = await api.client.create(obj, kind=kind)
        patch = MergePatch({"metadata": {"resourceVersion": made.resource_version, "labels": {"x": "1"}}})
        await api.client.patch(kind, api.key("a"), patch)
        stale = MergePatch({"metadata": {"resourceVersion": made.resource_version, "labels": {"x": "2"}}})
        with pytest.raises(Conflict):
            await api.client.patch(kind, api.key("a"), stale)
        await api.refusal(kind.kind, api.client.patch(kind, api.key("a"), stale))


async def test_a_patch_that_changes_nothing_writes_nothing(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a", k="v")
        made = await api.client.create(obj, kind=kind)
        for patch in (MergePatch({}), MergePatch({"metadata": {"labels": {}}}), JsonPatch([])):
            assert (await api.client.patch(kind, api.key("a"), patch)) == made


async def test_what_a_patch_may_not_change(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a")
        await api.client.create(obj, kind=kind)
        cases: dict[str, dict[str, Any]] = {
            "name": {"metadata": {"name": "b"}},
            "namespace": {"metadata": {"namespace": "other"}},
            "uid": {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}},
            "kind": {"kind": "Other"},
            "apiVersion": {"apiVersion": "v9"},
            "creationTimestamp": {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
            "deletionTimestamp": {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}},
            "no name": {"metadata": {"name": None}},
        }
        for what, patch in cases.items():
            await api.outcome(f"{label} {what}", api.client.patch(kind, api.key("a"), MergePatch(patch)))


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_a_patch_can_make_anything_of_the_metadata(
    api: Api, widgets: Resource, deployment: dict[str, Any], subresource: str
) -> None:
    await api.client.create(widget("d", api.ns), kind=widgets)
    cases: dict[str, Any] = {"null": None, "empty": {}, "text": "text", "list": ["a"], "number": 1}
    for kind, label in ((DEPLOYMENTS, "deployment"), (widgets, "widget")):
        for what, made in cases.items():
            patch = MergePatch({"metadata": made})
            done = api.client.patch(kind, api.key("d"), patch, subresource=subresource)
            await api.outcome(f"{label} {what} {subresource}".rstrip(), done)


async def test_a_json_patch_does_what_its_operations_say(api: Api, widgets: Resource) -> None:
    await api.client.create(widget("a", api.ns, words=["a", "b"], settings={"k/l": "v", "m~n": "w"}), kind=widgets)
    operations = [
        {"op": "test", "path": "/spec/color", "value": "green"},
        {"op": "add", "path": "/spec/words/-", "value": "c"},
        {"op": "add", "path": "/spec/words/0", "value": "z"},
        {"op": "remove", "path": "/spec/settings/k~1l"},
        {"op": "replace", "path": "/spec/settings/m~0n", "value": "x"},
        {"op": "copy", "from": "/spec/words/0", "path": "/spec/nothing"},
        {"op": "move", "from": "/spec/replicas", "path": "/spec/low"},
    ]
    done = await api.client.patch(widgets, api.key("a"), JsonPatch(operations))
    api.same("widget", done)


async def test_json_patches_that_fail(api: Api) -> None:
    await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    cases: dict[str, list[dict[str, Any]]] = {
        "test differs": [{"op": "test", "path": "/data/k", "value": "other"}],
        "test missing": [{"op": "test", "path": "/data/none", "value": "x"}],
        "remove missing": [{"op": "remove", "path": "/data/none"}],
        "replace missing": [{"op": "replace", "path": "/data/none", "value": "x"}],
        "add below missing": [{"op": "add", "path": "/none/deep", "value": "x"}],
        "unknown operation": [{"op": "frob", "path": "/data/k"}],
        "no path": [{"op": "add", "value": "x"}],
        "index out of range": [{"op": "add", "path": "/metadata/managedFields/9", "value": {}}],
        "bad type in the end": [{"op": "replace", "path": "/data", "value": "text"}],
    }
    for label, operations in cases.items():
        await api.outcome(label, api.client.patch(CONFIGMAPS, api.key("a"), JsonPatch(operations)))


async def test_merge_patches_that_do_not_fit(api: Api, widgets: Resource) -> None:
    await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    await api.client.create(widget("a", api.ns), kind=widgets)
    await api.outcome("data is text", api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"data": "text"})))
    await api.outcome("number in data", api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"data": {"k": 1}})))
    await api.outcome(
        "labels are text", api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"metadata": {"labels": "x"}}))
    )
    await api.outcome(
        "labels of a widget", api.client.patch(widgets, api.key("a"), MergePatch({"metadata": {"labels": "x"}}))
    )
    await api.outcome(
        "label is a number", api.client.patch(widgets, api.key("a"), MergePatch({"metadata": {"labels": {"x": 1}}}))
    )
    await api.outcome("wrong colour", api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"color": "pink"}})))
    await api.outcome("no spec", api.client.patch(widgets, api.key("a"), MergePatch({"spec": None})))


async def test_a_patch_of_what_is_not_there_is_not_found(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        with pytest.raises(NotFound):
            await api.client.patch(kind, api.key("none"), MergePatch({"metadata": {"labels": {"x": "y"}}}))
        await api.refusal(kind.kind, api.client.patch(kind, api.key("none"), JsonPatch([])))


async def test_a_strategic_patch_merges_lists_by_key(api: Api, deployment: dict[str, Any]) -> None:
    def spec(**pod: Any) -> StrategicPatch:
        return StrategicPatch({"spec": {"template": {"spec": pod}}})

    patches = {
        "add a container": spec(containers=[{"name": "side", "image": "s"}]),
        "change by name": spec(containers=[{"name": "c", "image": "j", "env": [{"name": "B", "value": "3"}]}]),
        "delete by name": spec(containers=[{"name": "side", "$patch": "delete"}]),
        "delete from a nested list": spec(containers=[{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}]),
        "order of elements": spec(
            **{
                "$setElementOrder/containers": [{"name": "z"}, {"name": "c"}],
                "containers": [{"name": "z", "image": "z"}],
            }
        ),
        "null removes": spec(nodeSelector={"k": None}),
        "replace a map": spec(nodeSelector={"$patch": "replace", "new": "x"}),
        "replace a list": spec(containers=[{"$patch": "replace"}, {"name": "only", "image": "o"}]),
        "retain keys": StrategicPatch({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        "finalizers merge": StrategicPatch({"metadata": {"finalizers": ["example.com/y"]}}),
        "delete from a primitive list": StrategicPatch(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}}
        ),
        "tolerations are replaced": spec(tolerations=[{"key": "k", "operator": "Exists"}]),
    }
    for label, patch in patches.items():
        await api.outcome(label, api.client.patch(DEPLOYMENTS, api.key("d"), patch))


async def test_strategic_patches_that_fail(api: Api, deployment: dict[str, Any]) -> None:
    patches: dict[str, dict[str, Any]] = {
        "unknown directive": {"spec": {"$patch": "frob"}},
        "no merge key": {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
        "list is a map": {"spec": {"template": {"spec": {"containers": {"name": "x"}}}}},
        "invalid result": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": ""}]}}}},
        "selector is immutable": {"spec": {"selector": {"matchLabels": {"a": "c"}}}},
    }
    for label, body in patches.items():
        await api.outcome(label, api.client.patch(DEPLOYMENTS, api.key("d"), StrategicPatch(body)))


async def test_service_ports_merge_by_port(api: Api) -> None:
    obj = {
        "metadata": {"name": "s", "namespace": api.ns},
        "spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 80}]},
    }
    await api.client.create(obj, kind=SERVICES)
    done = await api.client.patch(
        SERVICES,
        api.key("s"),
        StrategicPatch({"spec": {"ports": [{"name": "b", "port": 81}, {"port": 80, "name": "c"}]}}),
    )
    api.same("service", done["spec"])


async def test_custom_kinds_take_no_strategic_patch(api: Api, widgets: Resource) -> None:
    await api.client.create(widget("a", api.ns), kind=widgets)
    with pytest.raises(UnsupportedMediaType):
        await api.client.patch(widgets, api.key("a"), StrategicPatch({"spec": {"color": "red"}}))
    await api.refusal("widget", api.client.patch(widgets, api.key("a"), StrategicPatch({"spec": {"color": "red"}})))


async def test_a_dry_patch_changes_nothing(api: Api, widgets: Resource) -> None:
    made = await api.client.create(widget("a", api.ns), kind=widgets)
    done = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"color": "red"}}), Write(dry_run=True))
    assert done["spec"]["color"] == "red"
    api.same("dry", done)
    assert await api.client.get(widgets, api.key("a")) == made


async def test_patches_take_field_ownership(api: Api, widgets: Resource) -> None:
    await api.client.create(widget("a", api.ns, tags=["x"]), Write(field_manager="maker"), kind=widgets)
    patch = MergePatch({"spec": {"color": "red", "tags": ["x", "y"]}, "metadata": {"labels": {"l": "m"}}})
    api.same("widget", await api.client.patch(widgets, api.key("a"), patch, Write(field_manager="changer")))
    removal = MergePatch({"metadata": {"labels": None}, "spec": {"tags": None}})
    api.same("removed", await api.client.patch(widgets, api.key("a"), removal, Write(field_manager="remover")))


async def test_a_field_manager_has_limits(api: Api) -> None:
    for label, name in {"long": "m" * 129, "control character": "a\tb"}.items():
        with pytest.raises(Invalid) as caught:
            await api.client.create(configmap(api, "a"), Write(field_manager=name), kind=CONFIGMAPS)
        api.same(label, caught.value)
