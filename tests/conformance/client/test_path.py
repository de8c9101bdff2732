"""Odd paths: empty, dotted, encoded and doubled segments, trailing slashes, capitals. Nobody gets more by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client.api import PODS, SECRETS, Api, configmap, short
from conformance.client.test_auth import allow, until_allowed
from conformance.client.widget import widget
from homeport.api.meta import Resource

CORE = (
    "/api/v1/{}",
    "/api/v1/namespaces/ns/{}",
    "/api/v1/namespaces/ns/{}/",
    "/api/v1/namespaces/ns/{}//",
    "/api/v1/namespaces/ns/{}//status",
    "/api/v1/namespaces/ns/{}//scale",
    "/api/v1/namespaces/ns/{}//nothing",
    "/api/v1/namespaces/ns/{}/%2Fstatus",
    "/api/v1/namespaces/ns/{}%2F%2Fstatus",
    "/api/v1/namespaces/ns/{}/a",
    "/api/v1/namespaces/ns/{}/a/",
    "/api/v1/namespaces/ns/{}/a//",
    "/api/v1/namespaces/ns/{}/a//status",
    "/api/v1/namespaces/ns/{}/a/status",
    "/api/v1/namespaces/ns/{}/a/status/",
    "/api/v1/namespaces/ns/{}/a/status/more",
    "/api/v1/namespaces/ns/{}/a/nothing",
    "/api/v1/namespaces/ns/{}/%2e%2e",
    "/api/v1/namespaces/ns/{}/..",
    "/api/v1/namespaces/ns/{}/.",
    "/api/v1/namespaces/ns/{}/a%252Fb",
    "/api/v1/namespaces/ns/{}/../{}",
    "/api/v1/namespaces/ns/{}/a/../b",
    "/api/v1/namespaces/ns/namespaces/ns",
    "/api/v1/namespaces/ns/namespaces",
    "/api/v1/namespaces/ns/nodes",
    "/api/v1/namespaces//status",
    "/api/v1/namespaces/ns//{}",
    "/api/v1//namespaces/ns/{}",
    "/api//v1/namespaces/ns/{}",
    "//api/v1/namespaces/ns/{}",
    "/api/v1/{}//status",
    "/api/v1/{}/a",
    "/api/v1/{}//a",
    "/api/V1/namespaces/ns/{}",
    "/API/v1/namespaces/ns/{}",
    "/api/v1/Namespaces/ns/{}",
    "/api/v1/watch/namespaces/ns/{}//status",
    "/api/v1/watch/namespaces/ns/{}/a/status",
    "/api/v1/watch/namespaces/ns/{}//nothing",
    "/api/v1/watch/namespaces/ns/namespaces/ns",
    "/api/v1/watch/{}//status",
    "/api/v1/watch/{}/a",
    "/apis/authorization.k8s.io/v1/namespaces/ns/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/watch/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews/a",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/clusterrolebindings",
    "/apis/apps/v1/namespaces/ns/deployments//scale",
)
CUSTOM = (
    "/apis/group/v1/namespaces/ns/widgets",
    "/apis/group/v1/namespaces/ns/widgets/",
    "/apis/group/v1/namespaces/ns/widgets//status",
    "/apis/group/v1/namespaces/ns/widgets//scale",
    "/apis/group/v1/namespaces/ns/widgets//nothing",
    "/apis/group/v1/namespaces/ns/widgets/a/nothing",
    "/apis/group/v1/widgets/a",
    "/apis/group//v1/namespaces/ns/widgets",
    "/apis//group/v1/namespaces/ns/widgets",
    "/apis/group/v1/namespaces/ns/Widgets",
    "/apis/GROUP/v1/namespaces/ns/widgets",
    "/apis/group/v1/watch/namespaces/ns/widgets/a/status",
    "/apis/group/v1/watch/namespaces/ns/widgets//status",
)
# The real server serves some of these, for some methods, as the part of the path that it authorised. We serve none.
REFUSED = (
    "/apis/group/v1/namespaces/ns/widgets/a//status",
    "/apis/group/v1/namespaces/ns/widgets///a",
    "/apis/group/v1/namespaces/ns/widgets/a/status/more",
    "/apis/group/v1/namespaces//widgets",
    "/apis/group/v1/namespaces/ns/widgets/..",
    "/api/v1/namespaces//secrets",
    "/api/v1/namespaces//secrets/a",
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def fill(path: str, api: Api, plural: str, group: str) -> str:
    path = path.replace("{}", plural).replace("/ns", f"/{api.ns}").replace("GROUP", group.upper())
    return path.replace("/group/", f"/{group}/")


async def code(api: Api, method: str, path: str, sent: dict[str, Any]) -> int:
    body = None if method in ("GET", "DELETE") else json.dumps(sent).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await api.http().raw(method, f"{path}?dryRun=All&timeoutSeconds=1", body, content_type=kind)
    return int(answer.status)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [SECRETS, PODS], ids=str)
async def test_odd_paths_of_built_in_kinds(api: Api, kind: Resource, method: str) -> None:
    sent: dict[str, Any] = {"metadata": {"name": "a"}}
    if kind is PODS:
        sent["spec"] = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}
    await api.http().raw("POST", kind.path(api.ns), json.dumps(sent).encode())
    for path in CORE:
        label = f"{method} {path.replace('{}', kind.plural)}"
        api.same(label, await code(api, method, fill(path, api, kind.plural, ""), sent))


@pytest.mark.parametrize("method", METHODS)
async def test_odd_paths_of_custom_kinds(api: Api, widgets: Resource, method: str) -> None:
    sent = {**widget("a", api.ns), "apiVersion": widgets.api_version, "kind": "Widget"}
    await api.client.create(sent, kind=widgets)
    for path in CUSTOM:
        api.same(f"{method} {path}", await code(api, method, fill(path, api, "", widgets.group), sent))


@pytest.mark.parametrize("path", REFUSED)
async def test_paths_with_more_in_them_are_not_served(api: Api, widgets: Resource, path: str) -> None:
    if api.server.name == "real":
        pytest.skip("the real server serves them, as what it authorised")
    sent = {**widget("a", api.ns), "apiVersion": widgets.api_version, "kind": "Widget"}
    for method in METHODS:
        assert 400 <= await code(api, method, fill(path, api, "", widgets.group), sent) < 500


def narrow() -> Iterator[dict[str, Any]]:
    """Everything on subresources, and nothing on what has them."""
    parts = ("status", "scale", "nothing", "log", "eviction")
    yield {"apiGroups": ["*"], "resources": [f"*/{part}" for part in parts], "verbs": ["*"]}
    yield {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}  # to see that the role is in force


async def test_rights_on_subresources_open_nothing_else(api: Api, widgets: Resource) -> None:
    user = f"narrow-{short()}"
    client = api.as_user(user)
    await allow(api, user, *narrow())
    await until_allowed(client, api)
    await api.client.create({**configmap(api, "a"), "stringData": {"word": "hunter2"}}, kind=SECRETS)
    sent = json.dumps({**widget("new", api.ns), "apiVersion": widgets.api_version, "kind": "Widget"}).encode()
    for path in (*CORE, *CUSTOM):
        for method in METHODS:
            full = fill(path, api, "secrets", widgets.group)
            answer = await client.raw(method, full, None if method in ("GET", "DELETE") else sent)
            assert answer.status >= 400, (method, full, answer.body)


ELSEWHERE: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/ns/configmaps": {},
    "/api/v1/namespaces/ns/pods/a/eviction": {},
    "/api/v1/namespaces/ns/pods/a/binding": {"target": {"name": "n"}},
    "/api/v1/namespaces/ns/serviceaccounts/default/token": {"spec": {"audiences": ["x"]}},
    "/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews": {
        "spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    },
}


@pytest.mark.parametrize("path", ELSEWHERE)
async def test_an_object_of_another_namespace_is_refused(api: Api, path: str) -> None:
    sent = {"metadata": {"name": "a", "namespace": "other"}, **ELSEWHERE[path]}
    api.same(path, await code(api, "POST", fill(path, api, "", ""), sent))


async def test_a_watch_of_one_name_takes_no_selector_of_another(api: Api) -> None:
    for selector in ("metadata.name=a", "metadata.name=b", "metadata.namespace=x"):
        path = f"/api/v1/watch/namespaces/{api.ns}/secrets/a?timeoutSeconds=1&fieldSelector={selector}"
        api.same(selector, (await api.http().raw("GET", path)).status)
