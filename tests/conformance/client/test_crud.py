"""Create, read, replace: what holds for every kind."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, LEASES, NAMESPACES, SECRETS, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from homeport.client.protocol import Key, MergePatch, Write

CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)


async def test_a_created_object_carries_what_the_server_adds(api: Api, widgets: Resource) -> None:
    made = await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    api.same("configmap", made)
    api.same("read again", await api.client.get(CONFIGMAPS, api.key("a")))
    api.same("widget", await api.client.create(widget("a", api.ns), kind=widgets))
    api.same("secret", await api.client.create({**configmap(api, "s"), "stringData": {"p": "x"}}, kind=SECRETS))
    api.same("lease", await api.client.create(configmap(api, "l") | {"data": {}}, kind=LEASES))


async def test_what_the_writer_may_not_set_is_ignored(api: Api, widgets: Resource) -> None:
    meta = {
        "name": "a",
        "namespace": api.ns,
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 17,
        "selfLink": "/somewhere",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
    }
    made = await api.client.create({**widget("a", api.ns), "metadata": meta, "status": {"phase": "x"}}, kind=widgets)
    assert made.uid != meta["uid"]
    assert made.metadata["creationTimestamp"] != meta["creationTimestamp"]
    api.same("widget", made)
    api.same("configmap", await api.client.create({"metadata": meta}, kind=CONFIGMAPS))


async def test_a_resource_version_in_a_new_object_is_refused(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = {"metadata": {"name": "a", "namespace": api.ns, "resourceVersion": "1"}, "spec": {"color": "red"}}
        await api.refusal(label, api.client.create(obj, Write(field_validation="Ignore"), kind=kind))


async def test_a_name_is_generated_from_its_prefix(api: Api, widgets: Resource) -> None:
    made = await api.client.create({"metadata": {"generateName": "x-", "namespace": api.ns}}, kind=CONFIGMAPS)
    assert len(made.name) == len("x-") + 5
    api.same("configmap", made)
    other = await api.client.create({"metadata": {"generateName": "x-", "namespace": api.ns}}, kind=CONFIGMAPS)
    assert other.name != made.name
    long = "y" * 70
    cut = await api.client.create({"metadata": {"generateName": long, "namespace": api.ns}}, kind=CONFIGMAPS)
    assert len(cut.name) == 63
    both = await api.client.create(
        {"metadata": {"generateName": "x-", "name": "named", "namespace": api.ns}}, kind=CONFIGMAPS
    )
    assert both.name == "named"
    of_widget = {**widget("", api.ns), "metadata": {"generateName": "w-", "namespace": api.ns}}
    api.same("widget", await api.client.create(of_widget, kind=widgets))


async def test_a_name_is_needed_and_must_be_valid(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        ignore = Write(field_validation="Ignore")
        await api.refusal(f"{label} none", api.client.create(widget("", api.ns), ignore, kind=kind))
        await api.refusal(f"{label} upper", api.client.create(widget("Upper_Case", api.ns), ignore, kind=kind))
        await api.refusal(f"{label} long", api.client.create(widget("l" * 254, api.ns), ignore, kind=kind))
        prefixed = {"metadata": {"generateName": "Bad_", "namespace": api.ns}, "spec": {"color": "red"}}
        error = await _refused(api, prefixed, kind)
        assert 'metadata.generateName: Invalid value: "Bad_"' in error.message
    await api.refusal("namespace", api.client.create({"metadata": {"name": "with.dot"}}, kind=NAMESPACES))


async def _refused(api: Api, obj: dict[str, Any], kind: Resource) -> Invalid:
    with pytest.raises(Invalid) as caught:
        await api.client.create(obj, Write(field_validation="Ignore"), kind=kind)
    return caught.value


async def test_metadata_is_validated(api: Api, widgets: Resource) -> None:
    cases: dict[str, dict[str, Any]] = {
        "label key": {"labels": {"-bad": "x"}},
        "label value": {"labels": {"a": "no spaces"}},
        "annotation key": {"annotations": {"b@d": "x"}},
        "annotations too long": {"annotations": {"a": "x" * (256 * 1024)}},
        "finalizer": {"finalizers": ["unqualified"]},
        "finalizer name": {"finalizers": ["bad name/x"]},
        "owner": {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
        "two controllers": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True} for n in ("x", "y")
            ]
        },
        "owner is an event": {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "x"}]},
    }
    for label, more in cases.items():
        meta = {"name": "a", "namespace": api.ns, **more}
        dry = Write(dry_run=True)
        await api.outcome(label, api.client.create({"metadata": meta}, dry, kind=CONFIGMAPS))
        obj = {**widget("a", api.ns), "metadata": meta}
        await api.outcome(f"{label}, custom", api.client.create(obj, dry, kind=widgets))


async def test_the_namespace_must_exist_and_match(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        with pytest.raises(NotFound) as caught:
            await api.client.create(widget("a", "no-such-namespace"), Write(field_validation="Ignore"), kind=kind)
        api.same(label, caught.value)


async def test_the_same_name_twice_is_refused(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget"), (LEASES, "lease")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a") | {"data": {}}
        await api.client.create(obj, kind=kind)
        with pytest.raises(AlreadyExists):
            await api.client.create(obj, kind=kind)
        await api.refusal(label, api.client.create(obj, kind=kind))
    with pytest.raises(AlreadyExists):
        await api.client.create({"metadata": {"name": api.ns}}, kind=NAMESPACES)


async def test_what_is_not_there_is_not_found(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget"), (LEASES, "lease")):
        with pytest.raises(NotFound):
            await api.client.get(kind, api.key("missing"))
        await api.refusal(f"get {label}", api.client.get(kind, api.key("missing")))
        await api.refusal(f"delete {label}", api.client.delete(kind, api.key("missing")))
        obj = widget("missing", api.ns)
        # Leases are made by a replace, the others are not.
        await api.outcome(f"replace {label}", api.client.replace(obj, Write(field_validation="Ignore"), kind=kind))


async def test_an_unknown_kind_is_not_found(api: Api) -> None:
    for kind in (
        Resource("nowhere.example.com", "v1", "Thing", "things"),
        Resource("apps", "v9", "Deployment", "deployments"),
        Resource("", "v1", "Thing", "things"),
    ):
        with pytest.raises(NotFound) as caught:
            await api.client.get(kind, api.key("x"))
        assert caught.value.message == "the server could not find the requested resource"
        assert caught.value.http_code == 404
        with pytest.raises(NotFound):
            await api.client.list(kind, api.query())


async def test_a_replace_with_the_read_version_succeeds_once(api: Api, widgets: Resource) -> None:
    first = await api.client.create(configmap(api, "a", k="1"), kind=CONFIGMAPS)
    changed = {**first, "data": {"k": "2"}}
    second = await api.client.replace(changed, kind=CONFIGMAPS)
    assert second["data"] == {"k": "2"}
    assert int(second.resource_version) > int(first.resource_version)
    with pytest.raises(Conflict):
        await api.client.replace(changed, kind=CONFIGMAPS)
    await api.refusal("stale configmap", api.client.replace(changed, kind=CONFIGMAPS))
    one = await api.client.create(widget("a", api.ns), kind=widgets)
    await api.client.replace({**one, "spec": {"color": "red"}}, kind=widgets)
    await api.refusal("stale widget", api.client.replace({**one, "spec": {"color": "blue"}}, kind=widgets))


async def test_a_replace_without_a_version_is_unconditional_for_built_in_kinds_alone(
    api: Api, widgets: Resource
) -> None:
    await api.client.create(configmap(api, "a", k="1"), kind=CONFIGMAPS)
    assert (await api.client.replace(configmap(api, "a", k="2"), kind=CONFIGMAPS))["data"] == {"k": "2"}
    await api.client.create(widget("a", api.ns), kind=widgets)
    await api.refusal("widget", api.client.replace(widget("a", api.ns), kind=widgets))


async def test_a_replace_of_another_uid_is_a_conflict(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a")
        made = await api.client.create(obj, kind=kind)
        other = {**made, "metadata": {**made.metadata, "uid": "11111111-2222-3333-4444-555555555555"}}
        await api.refusal(label, api.client.replace(other, kind=kind))


async def test_a_replace_that_changes_nothing_writes_nothing(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a", k="v")
        made = await api.client.create(obj, kind=kind)
        again = await api.client.replace(made, kind=kind)
        assert again.resource_version == made.resource_version
        assert again == made


async def test_a_bad_resource_version_is_a_bad_request(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        obj = widget("a", api.ns) if kind is widgets else configmap(api, "a")
        made = await api.client.create(obj, kind=kind)
        odd = {**made, "metadata": {**made.metadata, "resourceVersion": "abc"}}
        await api.refusal(f"replace {label}", api.client.replace(odd, kind=kind))
        await api.refusal(f"get {label}", api.client.get(kind, api.key("a"), resource_version="abc"))


async def test_immutable_metadata_stays(api: Api) -> None:
    made = await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    meta = {**made.metadata, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}
    again = await api.client.replace({**made, "metadata": meta}, kind=CONFIGMAPS)
    assert again.metadata["creationTimestamp"] == made.metadata["creationTimestamp"]
    assert "generation" not in again.metadata
    assert again.resource_version == made.resource_version


async def test_dropping_the_managed_fields_of_a_replace_keeps_them(api: Api) -> None:
    made = await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    bare = {name: value for name, value in made.metadata.items() if name != "managedFields"}
    again = await api.client.replace({**made, "metadata": bare}, kind=CONFIGMAPS)
    assert again.metadata["managedFields"] == made.metadata["managedFields"]
    reset = await api.client.replace({**made, "metadata": {**bare, "managedFields": []}}, kind=CONFIGMAPS)
    api.same("reset", reset)


async def test_immutable_config_maps_and_secrets_do_not_change(api: Api) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (SECRETS, "secret")):
        made = await api.client.create({**configmap(api, "a", k="dg=="), "immutable": True}, kind=kind)
        await api.refusal(f"{label} data", api.client.replace({**made, "data": {"k": "dw=="}}, kind=kind))
        loose = {**made, "immutable": False}
        await api.refusal(f"{label} flag", api.client.replace(loose, kind=kind))
        await api.refusal(f"{label} both", api.client.replace({**loose, "data": {}}, kind=kind))
        labelled = {**made, "metadata": {**made.metadata, "labels": {"a": "b"}}}
        assert (await api.client.replace(labelled, kind=kind)).metadata["labels"] == {"a": "b"}


async def test_a_dry_run_leaves_nothing_behind(api: Api, widgets: Resource) -> None:
    dry = Write(dry_run=True)
    made = await api.client.create(configmap(api, "a", k="v"), dry, kind=CONFIGMAPS)
    assert made.uid
    api.same("create", made)
    api.same("create widget", await api.client.create(widget("a", api.ns), dry, kind=widgets))
    with pytest.raises(NotFound):
        await api.client.get(CONFIGMAPS, api.key("a"))
    real = await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    await api.refusal("create again", api.client.create(configmap(api, "a"), dry, kind=CONFIGMAPS))
    api.same("replace", await api.client.replace({**real, "data": {"k": "w"}}, dry, kind=CONFIGMAPS))
    api.same("delete", await api.client.delete(CONFIGMAPS, api.key("a"), dry_run=True))
    assert await api.client.get(CONFIGMAPS, api.key("a")) == real


async def test_get_at_a_version_is_not_older_than_it(api: Api) -> None:
    made = await api.client.create(configmap(api, "a", k="1"), kind=CONFIGMAPS)
    changed = await api.client.replace({**made, "data": {"k": "2"}}, kind=CONFIGMAPS)
    assert await api.client.get(CONFIGMAPS, api.key("a"), resource_version=changed.resource_version) == changed
    assert (await api.client.get(CONFIGMAPS, api.key("a"), resource_version=made.resource_version)) == changed
    assert (await api.client.get(CONFIGMAPS, api.key("a"), resource_version="0")).name == "a"


async def test_a_name_that_would_change_the_path_is_refused(api: Api) -> None:
    for name in ("a/b", "..", "a%2fb"):
        with pytest.raises((BadRequest, NotFound)):
            await api.client.get(CONFIGMAPS, Key(api.ns, name))


async def test_a_namespace_on_an_object_of_the_whole_cluster_is_cleared(api: Api) -> None:
    name = f"everywhere-{api.ns}"
    meta = {"name": name, "namespace": "kube-system"}
    body: dict[str, Any] = {"metadata": meta, "rules": []}
    try:
        made = await api.client.create(dict(body), kind=CLUSTER_ROLES)
        assert "namespace" not in made.metadata
        labelled = {**body, "metadata": {**meta, "labels": {"a": "b"}}}
        put = await api.client.replace({**made, "metadata": {**made.metadata, "namespace": "x"}}, kind=CLUSTER_ROLES)
        assert "namespace" not in put.metadata
        patched = await api.client.patch(CLUSTER_ROLES, Key("", name), MergePatch({"metadata": {"namespace": "x"}}))
        assert "namespace" not in patched.metadata
        applied = await api.client.apply(labelled, Write(field_manager="one"), kind=CLUSTER_ROLES, force=True)
        assert "namespace" not in applied.metadata
        assert applied.metadata["labels"] == {"a": "b"}
    finally:
        await api.client.delete(CLUSTER_ROLES, Key("", name))
    new = {"metadata": {"name": name, "namespace": "kube-system"}, "rules": []}
    applied = await api.client.apply(new, Write(field_manager="one"), kind=CLUSTER_ROLES)
    assert "namespace" not in applied.metadata
    await api.client.delete(CLUSTER_ROLES, Key("", name))
