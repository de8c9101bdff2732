"""The status and scale subresources, and when the generation moves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import JsonPatch, Key, MergePatch, Write


def deployment(api: Api) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "d", "namespace": api.ns}, "spec": spec}


async def test_the_status_is_written_by_its_subresource_alone(api: Api, widgets: Resource) -> None:
    made = await api.client.create({**widget("a", api.ns), "status": {"phase": "x"}}, kind=widgets)
    assert "status" not in made
    tried = await api.client.replace({**made, "status": {"phase": "x"}, "spec": {"color": "red"}}, kind=widgets)
    assert "status" not in tried
    patched = await api.client.patch(widgets, api.key("a"), MergePatch({"status": {"phase": "x"}}))
    assert "status" not in patched
    change = {**tried, "status": {"phase": "Up"}, "spec": {"color": "blue"}}
    done = await api.client.replace(change, Write(field_manager="st"), kind=widgets, subresource="status")
    assert done["status"] == {"phase": "Up"}
    assert done["spec"]["color"] == "red"
    api.same("replaced", done)
    patch = MergePatch(
        {
            "status": {"replicas": 2},
            "spec": {"color": "blue"},
            "metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/x"]},
        }
    )
    api.same(
        "patched", await api.client.patch(widgets, api.key("a"), patch, Write(field_manager="st"), subresource="status")
    )
    api.same("get", await api.client.get(widgets, api.key("a"), subresource="status"))
    await api.refusal("stale", api.client.replace(change, kind=widgets, subresource="status"))
    wrong = MergePatch({"status": {"replicas": "two"}})
    await api.refusal("invalid", api.client.patch(widgets, api.key("a"), wrong, subresource="status"))
    with pytest.raises(NotFound):
        await api.client.patch(widgets, api.key("none"), MergePatch({}), subresource="status")


async def test_a_kind_without_status_has_no_such_path(api: Api) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    with pytest.raises(NotFound) as caught:
        await api.client.get(CONFIGMAPS, api.key("a"), subresource="status")
    assert caught.value.message == "the server could not find the requested resource"
    with pytest.raises(NotFound):
        await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({}), subresource="status")


async def test_the_status_of_built_in_kinds(api: Api) -> None:
    made = await api.client.create({**deployment(api), "status": {"replicas": 9}}, kind=DEPLOYMENTS)
    assert made["status"] == {}
    done = await api.client.patch(
        DEPLOYMENTS,
        api.key("d"),
        MergePatch({"status": {"replicas": 2, "observedGeneration": 1}, "spec": {"replicas": 7}}),
        subresource="status",
    )
    assert done["spec"]["replicas"] == 1
    api.same("deployment", done["status"])
    await api.refusal(
        "negative",
        api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"status": {"replicas": -1}}), subresource="status"),
    )
    name = f"n-{api.ns}"
    node = await api.client.create({"metadata": {"name": name}, "status": {"phase": "Running"}}, kind=NODES)
    api.same("node made", node)
    ready = {"type": "Ready", "status": "True", "reason": "Ok", "message": ""}
    patched = await api.client.patch(
        NODES,
        Key("", name),
        MergePatch({"status": {"conditions": [ready], "capacity": {"cpu": "4", "memory": "1Gi"}}}),
        subresource="status",
    )
    api.same("node", patched["status"])
    await api.client.delete(NODES, Key("", name))


async def test_a_namespace_is_finalized_by_its_subresource(api: Api) -> None:
    going = await api.client.delete(NAMESPACES, Key("", api.ns))
    assert going["spec"]["finalizers"] == ["kubernetes"]
    await api.client.replace({**going, "spec": {"finalizers": []}}, kind=NAMESPACES, subresource="finalize")
    with pytest.raises(NotFound):
        await api.client.get(NAMESPACES, Key("", api.ns))


async def test_a_custom_kind_is_scaled(api: Api, widgets: Resource) -> None:
    await api.client.create(widget("a", api.ns, replicas=3), kind=widgets)
    await api.client.patch(
        widgets, api.key("a"), MergePatch({"status": {"replicas": 2, "selector": "x=y"}}), subresource="status"
    )
    scale = await api.client.get(widgets, api.key("a"), subresource="scale")
    api.same("scale", scale)
    api.same(
        "replaced", await api.client.replace({**scale, "spec": {"replicas": 4}}, kind=widgets, subresource="scale")
    )
    api.same(
        "patched",
        await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"replicas": 5}}), subresource="scale"),
    )
    with pytest.raises(Conflict):
        await api.client.replace({**scale, "spec": {"replicas": 6}}, kind=widgets, subresource="scale")
    await api.refusal(
        "stale", api.client.replace({**scale, "spec": {"replicas": 6}}, kind=widgets, subresource="scale")
    )
    for label, replicas in (("too many", 99), ("negative", -1), ("text", "x")):
        patch = MergePatch({"spec": {"replicas": replicas}})
        await api.outcome(label, api.client.patch(widgets, api.key("a"), patch, subresource="scale"))
    whole = await api.client.get(widgets, api.key("a"))
    assert whole["spec"]["replicas"] == 5
    api.same("widget", whole)
    with pytest.raises(NotFound):
        await api.client.get(widgets, api.key("none"), subresource="scale")


async def test_a_deployment_is_scaled(api: Api) -> None:
    await api.client.create(deployment(api), kind=DEPLOYMENTS)
    api.same("scale", await api.client.get(DEPLOYMENTS, api.key("d"), subresource="scale"))
    api.same(
        "patched",
        await api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"spec": {"replicas": 3}}), subresource="scale"),
    )
    await api.outcome(
        "negative",
        api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"spec": {"replicas": -3}}), subresource="scale"),
    )
    after = await api.client.get(DEPLOYMENTS, api.key("d"))
    assert after["spec"]["replicas"] == 3
    assert after.metadata["generation"] == 2


SCALES: dict[str, dict[str, Any]] = {
    "no name": {"spec": {"replicas": 3}},
    "no type": {"metadata": {"name": "NAME"}, "spec": {"replicas": 3}},
    "another name": {"metadata": {"name": "other"}, "spec": {"replicas": 3}},
    "another namespace": {"metadata": {"name": "NAME", "namespace": "other"}, "spec": {"replicas": 3}},
    "another version": {"metadata": {"name": "NAME", "resourceVersion": "1"}, "spec": {"replicas": 3}},
    "nothing": {"metadata": {"name": "NAME"}},
    "a negative count": {"metadata": {"name": "NAME"}, "spec": {"replicas": -1}},
    "a count that is text": {"metadata": {"name": "NAME"}, "spec": {"replicas": "3"}},
    "unknown fields": {"metadata": {"name": "NAME"}, "spec": {"replicas": 3, "other": 1}},
}


@pytest.mark.parametrize("case", SCALES)
async def test_what_a_scale_may_say(api: Api, widgets: Resource, case: str) -> None:
    http = api.http()
    await api.client.create(deployment(api), kind=DEPLOYMENTS)
    await api.client.create(widget("a", api.ns, replicas=3), kind=widgets)
    for name, kind in (("d", DEPLOYMENTS), ("a", widgets)):
        sent = json.loads(json.dumps(SCALES[case]).replace("NAME", name))
        if case != "no type":
            sent |= {"apiVersion": "autoscaling/v1", "kind": "Scale"}
        path = f"{kind.path(api.ns, name)}/scale?fieldValidation=Strict"
        answer = await http.raw("PUT", path, json.dumps(sent).encode())
        if kind is widgets and case in ("a count that is text", "unknown fields"):
            assert answer.status == 400  # kube-apiserver trips over its own types there, and says so
        else:
            api.same(f"{case}: {kind.kind}", answer.json())


async def test_a_scale_of_another_object_or_kind_is_refused(api: Api) -> None:
    http = api.http()
    made = await api.client.create(deployment(api), kind=DEPLOYMENTS)
    path = f"{DEPLOYMENTS.path(api.ns, 'd')}/scale"
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    other = {**scale, "metadata": {"name": "d", "uid": "another"}}
    answer = await http.raw("PUT", path, json.dumps(other).encode())
    assert answer.status == 409
    assert f"UID in precondition: another, UID in object meta: {made.metadata['uid']}" in answer.json()["message"]
    answer = await http.raw("PUT", path, json.dumps({**made, "spec": {"replicas": 3}}).encode())
    assert answer.status == 400
    assert answer.json()["message"].startswith('Deployment in version "v1" cannot be handled as a Scale: ')
    patch = json.dumps({"kind": "Other"}).encode()
    answer = await http.raw("PATCH", path, patch, content_type="application/merge-patch+json")
    assert answer.status == 422
    assert (await api.client.get(DEPLOYMENTS, api.key("d"))).metadata["generation"] == 1


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE", "POST"])
async def test_finalize_takes_updates_only(api: Api, method: str) -> None:
    http = api.http()
    sent = b"{}" if method in ("PATCH", "POST") else None
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await http.raw(method, f"/api/v1/namespaces/{api.ns}/finalize", sent, content_type=kind)
    api.same(method, {"code": answer.status, "body": answer.json()})
    assert answer.status == 405


async def test_the_generation_counts_changes_of_what_is_wanted(api: Api, widgets: Resource) -> None:
    async def generation() -> int:
        got = await api.client.get(widgets, api.key("a"))
        count: int = got.metadata["generation"]
        return count

    await api.client.create(widget("a", api.ns), kind=widgets)
    assert await generation() == 1
    await api.client.patch(widgets, api.key("a"), MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert await generation() == 1
    await api.client.patch(widgets, api.key("a"), MergePatch({"status": {"phase": "x"}}), subresource="status")
    assert await generation() == 1
    await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"color": "red"}}))
    assert await generation() == 2
    await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"color": "red"}}))
    assert await generation() == 2
    await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"replicas": 2}}), subresource="scale")
    assert await generation() == 3
    await api.client.patch(widgets, api.key("a"), MergePatch({"metadata": {"finalizers": ["example.com/a"]}}))
    assert await generation() == 3
    await api.client.delete(widgets, api.key("a"))
    assert await generation() == 4
    await api.client.patch(widgets, api.key("a"), MergePatch({"metadata": {"finalizers": []}}))


async def test_the_generation_of_built_in_kinds(api: Api) -> None:
    made = await api.client.create(deployment(api), kind=DEPLOYMENTS)
    assert made.metadata["generation"] == 1
    labelled = await api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert labelled.metadata["generation"] == 1
    annotated = await api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"metadata": {"annotations": {"a": "b"}}}))
    api.same("annotated deployment", annotated.metadata["generation"])
    changed = await api.client.patch(
        DEPLOYMENTS, api.key("d"), JsonPatch([{"op": "replace", "path": "/spec/replicas", "value": 2}])
    )
    api.same("changed deployment", changed.metadata["generation"])
    assert "generation" not in (await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)).metadata
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = await api.client.create({"metadata": {"name": "p", "namespace": api.ns}, "spec": spec}, kind=PODS)
    api.same("pod", made.metadata.get("generation", "none"))
