"""Deletion: preconditions, finalizers, grace, propagation, collections, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, SERVICES, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import Conflict, Forbidden, NotFound
from homeport.client.protocol import Key, MergePatch, Query


def pod(api: Api, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": api.ns},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


async def test_a_deleted_object_is_gone(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget"), (SECRETS, "secret")):
        obj = widget("a", api.ns) if kind is widgets else {"metadata": {"name": "a", "namespace": api.ns}}
        await api.client.create(obj, kind=kind)
        api.same(label, await api.client.delete(kind, api.key("a")))
        with pytest.raises(NotFound):
            await api.client.get(kind, api.key("a"))
        again = await api.client.create(obj, kind=kind)
        assert again.name == "a"


async def test_kinds_that_answer_with_the_object(api: Api) -> None:
    service = {"metadata": {"name": "s", "namespace": api.ns}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}
    await api.client.create(service, kind=SERVICES)
    await api.outcome("service", api.client.delete(SERVICES, api.key("s")))
    await api.client.create(pod(api, "p"), kind=PODS)
    await api.outcome("pod", api.client.delete(PODS, api.key("p"), grace_seconds=0))
    account = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    await api.client.create({"metadata": {"name": "x", "namespace": api.ns}}, kind=account)
    await api.outcome("service account", api.client.delete(account, api.key("x")))


async def test_preconditions_must_hold(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a")
        made = await api.client.create(obj, kind=kind)
        wrong = "11111111-2222-3333-4444-555555555555"
        with pytest.raises(Conflict):
            await api.client.delete(kind, api.key("a"), uid=wrong)
        await api.refusal(f"{label} uid", api.client.delete(kind, api.key("a"), uid=wrong))
        changed = await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"labels": {"x": "y"}}}))
        stale = made.resource_version
        error = await api.refusal(f"{label} version", api.client.delete(kind, api.key("a"), resource_version=stale))
        assert isinstance(error, Conflict)
        await api.client.delete(kind, api.key("a"), uid=made.uid, resource_version=changed.resource_version)
        with pytest.raises(NotFound):
            await api.client.get(kind, api.key("a"))


async def test_finalizers_hold_an_object(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a", k="v")
        obj["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
        made = await api.client.create(obj, kind=kind)
        held = await api.client.delete(kind, api.key("a"))
        api.same(f"{label} held", held)
        api.same(f"{label} again", await api.client.delete(kind, api.key("a")))
        assert (await api.client.get(kind, api.key("a"))).resource_version == held.resource_version
        await api.outcome(
            f"{label} new finalizer",
            api.client.patch(
                kind, api.key("a"), MergePatch({"metadata": {"finalizers": ["example.com/a", "example.com/c"]}})
            ),
        )
        undelete = MergePatch({"metadata": {"deletionTimestamp": None}})
        await api.outcome(f"{label} undelete", api.client.patch(kind, api.key("a"), undelete))
        one = await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"finalizers": ["example.com/a"]}}))
        assert one.metadata["deletionTimestamp"] == held.metadata["deletionTimestamp"]
        last = await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"finalizers": []}}))
        assert last.uid == made.uid
        api.same(f"{label} last", last)
        with pytest.raises(NotFound):
            await api.client.get(kind, api.key("a"))


async def test_the_last_finalizer_may_go_by_replace(api: Api) -> None:
    obj = configmap(api, "a")
    obj["metadata"]["finalizers"] = ["example.com/a"]
    await api.client.create(obj, kind=CONFIGMAPS)
    held = await api.client.delete(CONFIGMAPS, api.key("a"))
    meta = {name: value for name, value in held.metadata.items() if name != "finalizers"}
    api.same("replaced", await api.client.replace({**held, "metadata": meta}, kind=CONFIGMAPS))
    with pytest.raises(NotFound):
        await api.client.get(CONFIGMAPS, api.key("a"))


async def test_propagation_leaves_its_finalizer(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget"), (DEPLOYMENTS, "deployment")):
        for propagation in ("Foreground", "Orphan", "Background"):
            name = propagation.lower()
            if kind is DEPLOYMENTS:
                template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
                obj = {
                    "metadata": {"name": name, "namespace": api.ns},
                    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
                }
            else:
                obj = widget(name, api.ns) if kind is widgets else configmap(api, name)
            await api.client.create(obj, kind=kind)
            await api.outcome(f"{label} {name}", api.client.delete(kind, api.key(name), propagation=propagation))
            if propagation != "Background":
                await api.client.patch(kind, api.key(name), MergePatch({"metadata": {"finalizers": []}}))
            with pytest.raises(NotFound):
                await api.client.get(kind, api.key(name))


async def test_foreground_after_background_and_back(api: Api) -> None:
    obj = configmap(api, "a")
    obj["metadata"]["finalizers"] = ["example.com/a"]
    await api.client.create(obj, kind=CONFIGMAPS)
    await api.outcome("background", api.client.delete(CONFIGMAPS, api.key("a"), propagation="Background"))
    await api.outcome("foreground", api.client.delete(CONFIGMAPS, api.key("a"), propagation="Foreground"))
    await api.outcome("orphan", api.client.delete(CONFIGMAPS, api.key("a"), propagation="Orphan"))
    await api.outcome("background again", api.client.delete(CONFIGMAPS, api.key("a"), propagation="Background"))
    await api.outcome("unsaid", api.client.delete(CONFIGMAPS, api.key("a")))


async def test_an_unknown_propagation_is_refused(api: Api) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    await api.refusal("unknown", api.client.delete(CONFIGMAPS, api.key("a"), propagation="Sideways"))


async def test_a_pod_on_a_node_is_given_time(api: Api) -> None:
    await api.client.create(pod(api, "p", nodeName="n1"), kind=PODS)
    api.same("deleting", await api.client.delete(PODS, api.key("p")))
    api.same("again", await api.client.delete(PODS, api.key("p")))
    api.same("longer", await api.client.delete(PODS, api.key("p"), grace_seconds=60))
    api.same("shorter", await api.client.delete(PODS, api.key("p"), grace_seconds=5))
    api.same("now", await api.client.delete(PODS, api.key("p"), grace_seconds=0))
    with pytest.raises(NotFound):
        await api.client.get(PODS, api.key("p"))


async def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    await api.client.create(pod(api, "p", terminationGracePeriodSeconds=9), kind=PODS)
    api.same("gone", await api.client.delete(PODS, api.key("p")))
    with pytest.raises(NotFound):
        await api.client.get(PODS, api.key("p"))


async def test_a_pod_that_has_ended_goes_at_once(api: Api) -> None:
    await api.client.create(pod(api, "p", nodeName="n1"), kind=PODS)
    await api.client.patch(PODS, api.key("p"), MergePatch({"status": {"phase": "Succeeded"}}), subresource="status")
    await api.client.delete(PODS, api.key("p"))
    with pytest.raises(NotFound):
        await api.client.get(PODS, api.key("p"))


async def test_a_negative_grace_period(api: Api) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    await api.outcome("configmap", api.client.delete(CONFIGMAPS, api.key("a"), grace_seconds=-1))


async def test_a_collection_is_deleted(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmaps"), (widgets, "widgets")):
        for name in "abc":
            obj = widget(name, api.ns) if kind is widgets else configmap(api, name)
            obj["metadata"]["labels"] = {"keep": "yes" if name == "c" else "no"}
            await api.client.create(obj, kind=kind)
        dry = await api.client.delete_all(kind, api.query(), dry_run=True)
        assert len(dry["items"]) == 3
        assert len((await api.client.list(kind, api.query())).items) == 3
        gone = await api.client.delete_all(kind, api.query(labels="keep=no"))
        api.same(label, {**gone, "metadata": {}})
        assert [item.name for item in (await api.client.list(kind, api.query())).items] == ["c"]
        await api.client.delete_all(kind, api.query(fields="metadata.name=c"))
        assert (await api.client.list(kind, api.query())).items == []
        empty = await api.client.delete_all(kind, api.query())
        assert empty["items"] == []


async def test_finalizers_hold_a_collection_too(api: Api) -> None:
    obj = configmap(api, "a")
    obj["metadata"]["finalizers"] = ["example.com/a"]
    await api.client.create(obj, kind=CONFIGMAPS)
    gone = await api.client.delete_all(CONFIGMAPS, api.query())
    api.same("answer", {**gone, "metadata": {}})
    assert (await api.client.get(CONFIGMAPS, api.key("a"))).metadata["deletionTimestamp"]
    foreground = await api.client.delete_all(CONFIGMAPS, api.query(), propagation="Foreground")
    api.same("foreground", {**foreground, "metadata": {}})
    api.same("read", await api.client.get(CONFIGMAPS, api.key("a")))


async def test_a_namespace_waits_for_its_contents(api: Api, widgets: Resource) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    going = await api.client.delete(NAMESPACES, Key("", api.ns))
    api.same("terminating", going)
    api.same("read", await api.client.get(NAMESPACES, Key("", api.ns)))
    await api.outcome("second delete", api.client.delete(NAMESPACES, Key("", api.ns)))
    with pytest.raises(Forbidden):
        await api.client.create(configmap(api, "b"), kind=CONFIGMAPS)
    await api.refusal("create", api.client.create(configmap(api, "b"), kind=CONFIGMAPS))
    await api.refusal("create widget", api.client.create(widget("b", api.ns), kind=widgets))
    assert (await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"data": {"k": "v"}})))["data"] == {"k": "v"}
    await api.client.delete(CONFIGMAPS, api.key("a"))


async def test_system_namespaces_stay(api: Api) -> None:
    for name in ("default", "kube-system", "kube-public"):
        with pytest.raises(Forbidden) as caught:
            await api.client.delete(NAMESPACES, Key("", name))
        api.same(name, caught.value)


async def test_deleting_what_is_not_there_with_preconditions(api: Api) -> None:
    await api.refusal("configmap", api.client.delete(CONFIGMAPS, api.key("none"), uid="x"))
    assert (await api.client.list(CONFIGMAPS, Query(namespace=api.ns))).items == []
