"""Server-side apply: who owns what, who may change what."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SERVICES, Api
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key, MergePatch, Write

ONE, TWO, THREE = (Write(field_manager=name) for name in ("one", "two", "three"))


def bare(api: Api, name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": api.ns}, **more}


async def test_apply_creates_what_is_not_there(api: Api, widgets: Resource) -> None:
    made = await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS)
    api.same("configmap", made)
    api.same("widget", await api.client.apply(widget("a", api.ns, tags=["t"]), ONE, kind=widgets))
    api.same(
        "namespace", await api.client.apply({"metadata": {"name": api.ns, "labels": {"a": "b"}}}, ONE, kind=NAMESPACES)
    )


async def test_the_same_apply_again_writes_nothing(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        obj = widget("a", api.ns, ports=[{"port": 1}]) if kind is widgets else bare(api, "a", data={"k": "v"})
        made = await api.client.apply(obj, ONE, kind=kind)
        again = await api.client.apply(obj, ONE, kind=kind)
        assert again == made


async def test_two_managers_may_own_the_same_value(api: Api) -> None:
    await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS)
    api.same("shared", await api.client.apply(bare(api, "a", data={"k": "v", "l": "w"}), TWO, kind=CONFIGMAPS))
    api.same("one lets go", await api.client.apply(bare(api, "a"), ONE, kind=CONFIGMAPS))
    api.same("two lets go", await api.client.apply(bare(api, "a"), TWO, kind=CONFIGMAPS))


async def test_another_value_is_a_conflict_unless_forced(api: Api, widgets: Resource) -> None:
    await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS)
    with pytest.raises(Conflict):
        await api.client.apply(bare(api, "a", data={"k": "w"}), TWO, kind=CONFIGMAPS)
    await api.refusal("configmap", api.client.apply(bare(api, "a", data={"k": "w"}), TWO, kind=CONFIGMAPS))
    api.same("forced", await api.client.apply(bare(api, "a", data={"k": "w"}), TWO, kind=CONFIGMAPS, force=True))
    await api.client.apply(widget("a", api.ns, ports=[{"port": 80, "name": "x"}], whole={"a": "b"}), ONE, kind=widgets)
    other = widget("a", api.ns, color="red", ports=[{"port": 80, "name": "y"}], whole={"a": "b", "c": "d"})
    await api.refusal("widget", api.client.apply(other, TWO, kind=widgets))
    await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"label": "abc"}}), THREE)
    await api.refusal("two owners", api.client.apply(widget("a", api.ns, color="blue", label="def"), TWO, kind=widgets))
    api.same("forced widget", await api.client.apply(other, TWO, kind=widgets, force=True))


async def test_a_conflict_with_an_update_names_it(api: Api) -> None:
    await api.client.create(bare(api, "a", data={"k": "v"}), Write(field_manager="curl"), kind=CONFIGMAPS)
    error = await api.refusal("update", api.client.apply(bare(api, "a", data={"k": "w"}), ONE, kind=CONFIGMAPS))
    assert error.message.startswith('Apply failed with 1 conflict: conflict with "curl" using v1')


async def test_fields_left_out_are_removed(api: Api, widgets: Resource) -> None:
    full = widget(
        "a", api.ns, tags=["a", "b"], settings={"x": "1", "y": "2"}, ports=[{"port": 1}, {"port": 2}], label="abc"
    )
    await api.client.apply(full, ONE, kind=widgets)
    less = widget("a", api.ns, tags=["b"], settings={"y": "2"}, ports=[{"port": 2}])
    api.same("less", await api.client.apply(less, ONE, kind=widgets))
    api.same("least", await api.client.apply(widget("a", api.ns), ONE, kind=widgets))


async def test_lists_of_maps_merge_by_their_keys(api: Api, widgets: Resource) -> None:
    await api.client.apply(widget("a", api.ns, ports=[{"port": 80, "name": "web"}]), ONE, kind=widgets)
    api.same(
        "second",
        await api.client.apply(
            {**bare(api, "a"), "spec": {"ports": [{"port": 443}, {"port": 80, "protocol": "UDP"}]}}, TWO, kind=widgets
        ),
    )
    api.same(
        "first changes",
        await api.client.apply(widget("a", api.ns, ports=[{"port": 80, "name": "http"}]), ONE, kind=widgets),
    )
    api.same("second leaves", await api.client.apply(bare(api, "a"), TWO, kind=widgets))


async def test_sets_merge_and_atomic_lists_do_not(api: Api, widgets: Resource) -> None:
    await api.client.apply(widget("a", api.ns, tags=["a", "b"], words=["x"]), ONE, kind=widgets)
    api.same("set", await api.client.apply({**bare(api, "a"), "spec": {"tags": ["c", "b"]}}, TWO, kind=widgets))
    await api.refusal("atomic", api.client.apply({**bare(api, "a"), "spec": {"words": ["x", "y"]}}, TWO, kind=widgets))
    api.same("set shrinks", await api.client.apply(widget("a", api.ns, tags=["b"], words=["x"]), ONE, kind=widgets))


async def test_duplicate_keys_are_refused(api: Api, widgets: Resource) -> None:
    await api.outcome("set", api.client.apply(widget("a", api.ns, tags=["a", "a"]), ONE, kind=widgets))
    await api.outcome("map", api.client.apply(widget("a", api.ns, ports=[{"port": 1}, {"port": 1}]), ONE, kind=widgets))
    await api.outcome("no key", api.client.apply(widget("a", api.ns, ports=[{"name": "x"}]), ONE, kind=widgets))


async def test_an_update_takes_and_gives_up_ownership(api: Api, widgets: Resource) -> None:
    made = await api.client.apply(widget("a", api.ns, label="abc", tags=["a"]), ONE, kind=widgets)
    changed = {**made, "spec": {**made["spec"], "label": "def", "color": "red"}}
    api.same("updated", await api.client.replace(changed, TWO, kind=widgets))
    await api.refusal("first again", api.client.apply(widget("a", api.ns, label="abc", tags=["a"]), ONE, kind=widgets))
    api.same("agreed", await api.client.apply(widget("a", api.ns, color="red", label="def"), ONE, kind=widgets))
    removed = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"label": None}}), THREE)
    api.same("removed by a patch", removed)


async def test_apply_and_update_of_the_same_manager_are_apart(api: Api) -> None:
    await api.client.create(bare(api, "a", data={"k": "v", "l": "w"}), ONE, kind=CONFIGMAPS)
    await api.refusal("conflict with itself", api.client.apply(bare(api, "a", data={"k": "x"}), ONE, kind=CONFIGMAPS))
    api.same("same value", await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS))


async def test_nested_lists_of_a_deployment(api: Api) -> None:
    def deployment(**more: Any) -> dict[str, Any]:
        pod = {"containers": [{"name": "c", "image": "i", **more}]}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
        return {**bare(api, "d"), "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}

    api.same(
        "created",
        await api.client.apply(
            deployment(ports=[{"containerPort": 80}], env=[{"name": "A", "value": "1"}]), ONE, kind=DEPLOYMENTS
        ),
    )
    side = {
        **bare(api, "d"),
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}, {"name": "s", "image": "j"}]
                }
            }
        },
    }
    api.same("second", await api.client.apply(side, TWO, kind=DEPLOYMENTS))
    await api.refusal("image", api.client.apply(deployment(image="other"), TWO, kind=DEPLOYMENTS))
    api.same(
        "first without ports",
        await api.client.apply(deployment(env=[{"name": "A", "value": "3"}]), ONE, kind=DEPLOYMENTS),
    )
    await api.client.patch(DEPLOYMENTS, api.key("d"), MergePatch({"spec": {"replicas": 3}}), THREE)
    await api.refusal("replicas", api.client.apply({**bare(api, "d"), "spec": {"replicas": 5}}, TWO, kind=DEPLOYMENTS))


async def test_service_ports_by_port_and_protocol(api: Api) -> None:
    spec = {
        "clusterIP": "None",
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}],
    }
    api.same("created", await api.client.apply(bare(api, "s", spec=spec), ONE, kind=SERVICES))
    more = {"ports": [{"name": "m", "port": 9}]}
    api.same("more", await api.client.apply(bare(api, "s", spec=more), TWO, kind=SERVICES))


async def test_labels_annotations_owners_and_finalizers_are_owned_one_by_one(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-3333-4444-555555555555"}
    meta = {
        "name": "a",
        "namespace": api.ns,
        "labels": {"l": "1"},
        "annotations": {"n": "1"},
        "finalizers": ["example.com/a"],
        "ownerReferences": [owner],
    }
    await api.client.apply({"metadata": meta}, ONE, kind=CONFIGMAPS)
    other = {
        "name": "a",
        "namespace": api.ns,
        "labels": {"m": "2"},
        "finalizers": ["example.com/b"],
        "ownerReferences": [{**owner, "name": "p", "uid": "21111111-2222-3333-4444-555555555555"}],
    }
    api.same("both", await api.client.apply({"metadata": other}, TWO, kind=CONFIGMAPS))
    api.same("first leaves", await api.client.apply(bare(api, "a"), ONE, kind=CONFIGMAPS))


async def test_the_status_is_applied_on_its_own(api: Api, widgets: Resource) -> None:
    await api.client.apply({**widget("a", api.ns), "status": {"phase": "ignored"}}, ONE, kind=widgets)
    ready = {"type": "Ready", "status": "True"}
    status = {**widget("a", api.ns, color="red"), "status": {"phase": "Up", "conditions": [ready]}}
    done = await api.client.apply(status, TWO, kind=widgets, subresource="status")
    api.same("status", done)
    await api.refusal(
        "conflict",
        api.client.apply({**bare(api, "a"), "status": {"phase": "Down"}}, THREE, kind=widgets, subresource="status"),
    )
    more = {**bare(api, "a"), "status": {"conditions": [{"type": "Live", "status": "False"}]}}
    api.same("second condition", await api.client.apply(more, THREE, kind=widgets, subresource="status"))
    with pytest.raises(NotFound):
        await api.client.apply({**bare(api, "none"), "status": {}}, ONE, kind=widgets, subresource="status")


async def test_a_dry_apply_changes_nothing(api: Api, widgets: Resource) -> None:
    dry = Write(field_manager="one", dry_run=True)
    api.same("created", await api.client.apply(widget("a", api.ns), dry, kind=widgets))
    with pytest.raises(NotFound):
        await api.client.get(widgets, api.key("a"))
    made = await api.client.apply(widget("a", api.ns), ONE, kind=widgets)
    api.same("changed", await api.client.apply(widget("a", api.ns, color="red"), dry, kind=widgets))
    assert await api.client.get(widgets, api.key("a")) == made


async def test_applies_that_make_no_sense_are_refused(api: Api, widgets: Resource) -> None:
    made = await api.client.apply(widget("a", api.ns), ONE, kind=widgets)
    cases = {
        "managed fields given": {**widget("a", api.ns), "metadata": {**made.metadata}},
        "wrong type": widget("a", api.ns, replicas="three"),
        "unknown field": widget("a", api.ns, surprise=1),
        "list for map": widget("a", api.ns, settings=["x"]),
        "wrong kind": {**widget("a", api.ns), "kind": "Other"},
        "wrong version": {**widget("a", api.ns), "apiVersion": "v9"},
        "stale version": {
            **widget("a", api.ns, color="red"),
            "metadata": {"name": "a", "namespace": api.ns, "resourceVersion": "1"},
        },
        "other uid": {
            **widget("a", api.ns, color="red"),
            "metadata": {"name": "a", "namespace": api.ns, "uid": "11111111-2222-3333-4444-555555555555"},
        },
        "invalid": widget("a", api.ns, color="pink"),
    }
    for label, obj in cases.items():
        obj = {"apiVersion": widgets.api_version, "kind": widgets.kind, **obj}
        await api.outcome(label, api.client.apply(obj, ONE, kind=widgets))
    cases = {
        "built-in wrong type": bare(api, "c", data=["x"]),
        "built-in unknown field": bare(api, "c", surprise="x"),
        "built-in number": bare(api, "c", data={"k": 1}),
    }
    for label, obj in cases.items():
        await api.outcome(label, api.client.apply(obj, ONE, kind=CONFIGMAPS))


async def test_a_manager_is_needed(api: Api) -> None:
    http = api.http()
    path = f"{CONFIGMAPS.path(api.ns, 'a')}"
    answer = await http.raw(
        "PATCH", path, b'{"apiVersion":"v1","kind":"ConfigMap"}', content_type="application/apply-patch+yaml"
    )
    api.same("none", answer.json())
    answer = await http.raw(
        "PATCH", path + "?fieldManager=x&force=true", b"{}", content_type="application/merge-patch+json"
    )
    api.same("force of another patch", answer.json())


async def test_yaml_is_applied_as_yaml(api: Api) -> None:
    http = api.http()
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: in-yaml}\ndata:\n  k: |\n    lines\n"
    answer = await http.raw(
        "PATCH",
        CONFIGMAPS.path(api.ns, "in-yaml") + "?fieldManager=x",
        text,
        content_type="application/apply-patch+yaml",
    )
    assert answer.status == 201
    api.same("created", answer.json())
    again = await http.raw(
        "PATCH",
        CONFIGMAPS.path(api.ns, "in-yaml") + "?fieldManager=x",
        b"a: [",
        content_type="application/apply-patch+yaml",
    )
    assert again.status == 400


async def test_ownership_is_reset_by_an_empty_entry(api: Api) -> None:
    await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS)
    api.same(
        "reset",
        await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"metadata": {"managedFields": [{}]}}), TWO),
    )
    await api.outcome("apply another value", api.client.apply(bare(api, "a", data={"k": "w"}), ONE, kind=CONFIGMAPS))
    api.same("apply the same value", await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS))


async def test_applying_the_scale_conflicts_with_the_owner_of_the_replicas(api: Api, widgets: Resource) -> None:
    await api.client.apply(widget("a", api.ns, replicas=1), ONE, kind=widgets)
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", "namespace": api.ns},
        "spec": {"replicas": 2},
    }
    await api.outcome("conflict", api.client.apply(scale, TWO, kind=widgets, subresource="scale"))
    assert (await api.client.get(widgets, api.key("a")))["spec"]["replicas"] == 1


async def test_applying_to_a_deleted_object_keeps_it_deleted(api: Api) -> None:
    meta = {"name": "a", "namespace": api.ns, "finalizers": ["example.com/x"]}
    await api.client.create({"metadata": meta}, kind=CONFIGMAPS)
    await api.client.delete(CONFIGMAPS, api.key("a"))
    api.same("applied", await api.client.apply(bare(api, "a", data={"k": "v"}), ONE, kind=CONFIGMAPS))
    await api.client.patch(CONFIGMAPS, Key(api.ns, "a"), MergePatch({"metadata": {"finalizers": []}}))
    with pytest.raises(NotFound):
        await api.client.get(CONFIGMAPS, api.key("a"))
