"""What only the wire shows: content types, bodies that make no sense, tables, partial objects, discovery."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def seen(answer: Any) -> dict[str, Any]:
    kind = answer.headers.get("Content-Type", "")
    content = answer.json() if kind.startswith("application/json") else answer.body.decode()
    return {"code": answer.status, "type": kind, "body": content}


MALFORMED: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "metadata is text": b'{"metadata":"x"}',
    "labels are a list": b'{"metadata":{"name":"a","labels":[]}}',
    "name is a number": b'{"metadata":{"name":5}}',
    "data is a list": b'{"metadata":{"name":"a"},"data":[]}',
    "other kind": b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}',
    "other group": b'{"kind":"ConfigMap","apiVersion":"apps/v1","metadata":{"name":"a"}}',
    "other namespace": b'{"metadata":{"name":"a","namespace":"other"}}',
    "trailing text": b'{"metadata":{"name":"a"}} x',
    "invalid UTF-8": b'{"metadata":{"name":"a"},"data":{"k":"\xff"}}',
    "creation time": b'{"metadata":{"name":"a","creationTimestamp":"yesterday"}}',
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_malformed_body_is_refused(api: Api, case: str) -> None:
    http = api.http()
    answer = await http.raw("POST", CONFIGMAPS.path(api.ns) + "?dryRun=All&fieldManager=x", MALFORMED[case])
    api.same(case, seen(answer))


@pytest.mark.parametrize(
    "case",
    ["empty", "not JSON", "a list", "null", "metadata is text", "name is a number", "other kind", "invalid UTF-8"],
)
async def test_a_malformed_custom_object_is_refused(api: Api, widgets: Resource, case: str) -> None:
    answer = await api.http().raw("POST", widgets.path(api.ns) + "?dryRun=All&fieldManager=x", MALFORMED[case])
    api.same(case, seen(answer))


async def test_depth_and_size_have_limits(api: Api, widgets: Resource) -> None:
    http = api.http()
    deep = b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"
    answer = await http.raw("POST", CONFIGMAPS.path(api.ns), deep)
    assert answer.status == 400
    large = body({"metadata": {"name": "a"}, "data": {"k": "x" * (4 * 1024 * 1024)}})
    answer = await http.raw("POST", CONFIGMAPS.path(api.ns), large)
    assert answer.status == 413
    api.same("too large", seen(answer))
    huge = b'{"apiVersion":"%s","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"red","replicas":1%s}}' % (
        widgets.api_version.encode(),
        b"0" * 400,
    )
    answer = await http.raw("POST", widgets.path(api.ns) + "?dryRun=All", huge)
    assert 400 <= answer.status < 500


async def test_yaml_is_a_body_too(api: Api, widgets: Resource) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    path = CONFIGMAPS.path(api.ns) + "?fieldManager=x"
    answer = await api.http().raw("POST", path, text, content_type="application/yaml")
    assert answer.status == 201
    assert answer.json()["data"] == {"k": "v"}
    answer = await api.http().raw("POST", path, b"a: [", content_type="application/yaml")
    assert answer.status == 400
    answer = await api.http().raw("GET", CONFIGMAPS.path(api.ns, "a"), accept="application/yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    assert answer.body.startswith(b"apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n")


async def test_content_types_that_are_not_served(api: Api, widgets: Resource) -> None:
    http = api.http()
    answer = await http.raw("POST", CONFIGMAPS.path(api.ns), b"x", content_type="text/plain")
    api.same("post", seen(answer))
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    await api.client.create(widget("a", api.ns), kind=widgets)
    answer = await http.raw("PATCH", CONFIGMAPS.path(api.ns, "a"), b"{}", content_type="application/json")
    api.same("patch", seen(answer))
    answer = await http.raw("PATCH", widgets.path(api.ns, "a"), b"{}", content_type="application/json")
    api.same("custom patch", seen(answer))
    answer = await http.raw("GET", CONFIGMAPS.path(api.ns, "a"), accept="text/html")
    api.same("accept", seen(answer))
    answer = await http.raw("GET", CONFIGMAPS.path(api.ns, "a"), accept="text/html, */*;q=0.1")
    assert answer.status == 200


async def test_methods_that_are_not_served(api: Api) -> None:
    http = api.http()
    for label, method, path in (
        ("post to an object", "POST", CONFIGMAPS.path(api.ns, "a")),
        ("put to a collection", "PUT", CONFIGMAPS.path(api.ns)),
        ("patch of a collection", "PATCH", CONFIGMAPS.path(api.ns)),
        ("get of a review", "GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("delete of a scale", "DELETE", DEPLOYMENTS.path(api.ns, "a", "scale")),
    ):
        answer = await http.raw(method, path, b"{}" if method != "GET" else None)
        api.same(label, seen(answer))


async def test_query_parameters_that_make_no_sense(api: Api) -> None:
    http = api.http()
    for label, path in {
        "limit": CONFIGMAPS.path(api.ns) + "?limit=x",
        "negative limit": CONFIGMAPS.path(api.ns) + "?limit=-1",
        "watch": CONFIGMAPS.path(api.ns) + "?watch=maybe&timeoutSeconds=1",
        "timeout": CONFIGMAPS.path(api.ns) + "?watch=1&timeoutSeconds=x",
    }.items():
        answer = await http.raw("GET", path)
        status = answer.json() if answer.status >= 300 else {}
        api.same(label, {"code": answer.status, "message": status.get("message")})
    for label, query in {"dry run": "dryRun=Some", "dry run twice": "dryRun=All&dryRun=All"}.items():
        answer = await http.raw(
            "POST", f"{CONFIGMAPS.path(api.ns)}?{query}", body({"metadata": {"name": label.replace(" ", "-")}})
        )
        api.same(label, seen(answer))


async def test_delete_options_in_the_query(api: Api) -> None:
    http = api.http()
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    answer = await http.raw(
        "DELETE", CONFIGMAPS.path(api.ns, "a") + "?propagationPolicy=Foreground&gracePeriodSeconds=0"
    )
    assert answer.json()["metadata"]["finalizers"] == ["foregroundDeletion"]
    answer = await http.raw(
        "DELETE", CONFIGMAPS.path(api.ns, "a"), body({"orphanDependents": True, "propagationPolicy": "Orphan"})
    )
    api.same("both spellings", seen(answer))
    answer = await http.raw("DELETE", CONFIGMAPS.path(api.ns, "a"), b'{"kind":"Pod","apiVersion":"v1"}')
    assert answer.status == 400
    answer = await http.raw("DELETE", CONFIGMAPS.path(api.ns, "a"), body({"preconditions": {"uid": "x"}}))
    assert answer.status == 409


def without(value: Any, name: str) -> Any:
    """The value without the fields of that name, however deep."""
    if isinstance(value, dict):
        return {key: without(inner, name) for key, inner in value.items() if key != name}
    return [without(inner, name) for inner in value] if isinstance(value, list) else value


def cells(table: dict[str, Any], *, hide: tuple[str, ...] = ("Age",)) -> dict[str, Any]:
    columns = table["columnDefinitions"]
    hidden = {index for index, column in enumerate(columns) if column["name"] in hide}
    rows = [[cell for index, cell in enumerate(row["cells"]) if index not in hidden] for row in table["rows"]]
    return {
        "columns": [without(column, "description") for column in columns],  # every server has its own words
        "rows": rows,
        "objects": sorted({row.get("object", {}).get("kind", "") for row in table["rows"]}),
    }


async def test_tables_for_people(api: Api, widgets: Resource) -> None:
    http = api.http()
    await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    await api.client.create(widget("a", api.ns, replicas=2), kind=widgets)
    await api.client.patch(widgets, api.key("a"), MergePatch({"status": {"phase": "Up"}}), subresource="status")
    await api.client.create({"metadata": {"name": "s", "namespace": api.ns}, "data": {"k": "YQ=="}}, kind=SECRETS)
    pod = {"metadata": {"name": "p", "namespace": api.ns}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.client.create(pod, kind=PODS)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    deployment = {
        "metadata": {"name": "d", "namespace": api.ns},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    await api.client.create(deployment, kind=DEPLOYMENTS)
    for kind in (CONFIGMAPS, widgets, SECRETS, PODS, DEPLOYMENTS):
        answer = await http.raw("GET", kind.path(api.ns), accept=TABLE)
        assert answer.status == 200
        table = answer.json()
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        api.same(kind.kind, cells(table))
    one = (await http.raw("GET", widgets.path(api.ns, "a"), accept=TABLE)).json()
    api.same(
        "one object",
        {**one, "columnDefinitions": [], "rows": [{**row, "cells": row["cells"][:3]} for row in one["rows"]]},
    )
    for include in ("None", "Object"):
        path = f"{CONFIGMAPS.path(api.ns, 'a')}?includeObject={include}"
        table = (await http.raw("GET", path, accept=TABLE)).json()
        api.same(f"include {include}", table["rows"][0].get("object"))
    namespaces = await http.raw("GET", f"{NAMESPACES.path()}?fieldSelector=metadata.name={api.ns}", accept=TABLE)
    api.same("namespaces", cells(namespaces.json()))
    missing = await http.raw("GET", CONFIGMAPS.path(api.ns, "none"), accept=TABLE)
    api.same("missing", seen(missing))


async def test_metadata_alone(api: Api, widgets: Resource) -> None:
    http = api.http()
    await api.client.create(configmap(api, "a", k="v"), kind=CONFIGMAPS)
    await api.client.create(widget("a", api.ns), kind=widgets)
    for kind in (CONFIGMAPS, widgets):
        api.same(kind.kind, seen(await http.raw("GET", kind.path(api.ns, "a"), accept=PARTIAL)))
        listed = (await http.raw("GET", kind.path(api.ns), accept=PARTIAL_LIST)).json()
        api.same(f"{kind.kind} list", {**listed, "metadata": {}})


async def test_the_version_and_health_of_the_server(api: Api) -> None:
    http = api.http()
    version = (await http.raw("GET", "/version")).json()
    assert int(version["major"]) >= 1
    assert {"gitVersion", "platform", "goVersion", "buildDate", "compiler", "gitCommit", "gitTreeState"} <= set(version)
    for path in ("/healthz", "/livez", "/readyz", "/healthz/ping"):
        answer = await http.raw("GET", path)
        assert (answer.status, answer.body) == (200, b"ok"), path
    verbose = await http.raw("GET", "/readyz?verbose")
    assert verbose.body.rstrip().endswith(b"readyz check passed")
    assert (await http.raw("GET", "/metrics")).status == 200


async def test_discovery_lists_the_custom_kind(api: Api, widgets: Resource) -> None:
    http = api.http()
    document = (await http.raw("GET", f"/apis/{widgets.group}/v1")).json()
    api.golden.normal.words[f"wd{widgets.group[:9]}"] = "SHORT"
    for entry in document["resources"]:
        entry.pop("storageVersionHash", None)
    api.same("resources", document)
    group = (await http.raw("GET", f"/apis/{widgets.group}")).json()
    api.same("group", group)
    groups = (await http.raw("GET", "/apis")).json()["groups"]
    assert [g for g in groups if g["name"] == widgets.group] == [
        {k: v for k, v in group.items() if k not in ("kind", "apiVersion")}
    ]
    core = (await http.raw("GET", "/api")).json()
    assert core["versions"] == ["v1"]
    unknown = await http.raw("GET", "/apis/nowhere.example.com/v1")
    assert unknown.status == 404


async def test_builtin_kinds_are_discovered_alike(api: Api) -> None:
    """Only the kinds that a management cluster needs: every server has these, a real one has more."""
    http = api.http()
    wanted = {
        "/api/v1": (
            "namespaces",
            "secrets",
            "configmaps",
            "services",
            "endpoints",
            "serviceaccounts",
            "serviceaccounts/token",
            "events",
            "nodes",
            "nodes/status",
            "pods",
            "pods/log",
            "pods/status",
            "persistentvolumeclaims",
            "namespaces/finalize",
            "namespaces/status",
        ),
        "/apis/apps/v1": (
            "deployments",
            "deployments/scale",
            "deployments/status",
            "statefulsets",
            "daemonsets",
            "replicasets",
        ),
        "/apis/batch/v1": ("jobs",),
        "/apis/rbac.authorization.k8s.io/v1": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
        "/apis/coordination.k8s.io/v1": ("leases",),
        "/apis/apiextensions.k8s.io/v1": ("customresourcedefinitions",),
        "/apis/admissionregistration.k8s.io/v1": ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
        "/apis/authentication.k8s.io/v1": ("tokenreviews", "selfsubjectreviews"),
        "/apis/authorization.k8s.io/v1": (
            "subjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "localsubjectaccessreviews",
        ),
        "/apis/events.k8s.io/v1": ("events",),
        "/apis/discovery.k8s.io/v1": ("endpointslices",),
    }
    for path, plurals in wanted.items():
        found = {entry["name"]: entry for entry in (await http.raw("GET", path)).json()["resources"]}
        for plural in plurals:
            entry = {name: value for name, value in found[plural].items() if name != "storageVersionHash"}
            api.same(f"{path} {plural}", entry)


async def test_openapi_describes_the_custom_kind(api: Api, widgets: Resource) -> None:
    http = api.http()
    paths = (await http.raw("GET", "/openapi/v3")).json()["paths"]
    for path in ("api/v1", "apis/apps/v1", f"apis/{widgets.group}/v1"):
        assert paths[path]["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
    document = (await http.raw("GET", paths[f"apis/{widgets.group}/v1"]["serverRelativeURL"])).json()
    name = next(name for name in document["components"]["schemas"] if name.endswith(".v1.Widget"))
    schema = document["components"]["schemas"][name]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": widgets.group, "kind": "Widget", "version": "v1"}]
    api.same("spec", without(schema["properties"]["spec"], "description"))
    second = (await http.raw("GET", "/openapi/v2")).json()
    assert second["swagger"] == "2.0"


async def test_a_watch_of_one_object_by_path(api: Api) -> None:
    """The old way of watching: /watch/ paths and ?watch on a name."""
    http = api.http()
    made = await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    answer = await http.raw(
        "GET", f"{CONFIGMAPS.path(api.ns)}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da"
    )
    lines = answer.body.splitlines()
    assert json.loads(lines[0])["object"]["metadata"]["uid"] == made.uid


async def test_all_namespaces_at_once(api: Api) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    page = await api.client.list(CONFIGMAPS, Query(fields=f"metadata.namespace={api.ns}"))
    assert [item.name for item in page.items] == ["a"]
    assert (await api.client.get(NAMESPACES, Key("", api.ns))).name == api.ns
