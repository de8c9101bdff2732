"""Query options that are empty, doubled or make no sense: nothing is written that was not asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, Api
from conformance.client.widget import widget
from homeport.api.meta import Resource

WRITES = (
    "dryRun=", "dryRun", "dryRun=All", "dryRun=All&dryRun=", "dryRun=&dryRun=All", "dryRun=All&dryRun=All", "dryRun=all",
    "dryRun=None", "DryRun=All", "fieldManager=", "fieldValidation=", "fieldValidation=strict", "force=", "force=false",
    "pretty=", "timeout=", "timeout=0s", "timeout=1h2m3.5s", "timeout=abc", "timeout=5", "unknown=1",
)  # fmt: skip
DELETES = (
    "gracePeriodSeconds=", "gracePeriodSeconds=x", "propagationPolicy=", "propagationPolicy=x", "orphanDependents=",
    "propagationPolicy=Orphan&orphanDependents=true",
)  # fmt: skip
READS = (
    "limit=", "limit=x", "limit=0", "watch=false", "watch=0", "resourceVersion=", "resourceVersionMatch=", "continue=",
    "labelSelector=", "fieldSelector=", "fieldSelector=metadata.name", "fieldSelector=metadata.name=",
    "fieldSelector=x=y", "sendInitialEvents=", "sendInitialEvents=false", "allowWatchBookmarks=", "timeoutSeconds=",
    "timeoutSeconds=x", "timeout=abc",
)  # fmt: skip


async def _made(api: Api, kind: Resource, sent: dict[str, Any]) -> str:
    made = await api.client.create(sent, kind=kind)
    return str(made["metadata"]["resourceVersion"])


async def _written(api: Api, kind: Resource, name: str, method: str, query: str) -> list[Any]:
    """The code, and whether anything came of it."""
    http = api.http()
    meta: dict[str, Any] = {"name": name, "namespace": api.ns}
    sent: dict[str, Any] = {**widget(name, api.ns), "apiVersion": kind.api_version, "kind": kind.kind}
    if kind is CONFIGMAPS:
        sent = {"metadata": meta}
    if method != "POST":
        meta = {**meta, "resourceVersion": await _made(api, kind, sent), "labels": {"x": "y"}}
    if method == "PATCH":
        sent = {"metadata": {"labels": {"x": "y"}}}
    body = None if method == "DELETE" else json.dumps({**sent, "metadata": meta} if method == "PUT" else sent).encode()
    path = kind.path(api.ns) if method == "POST" else kind.path(api.ns, name)
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await http.raw(method, f"{path}?{query}", body, content_type=media)
    found = await http.raw("GET", kind.path(api.ns, name))
    gone = found.status == 404 or b'"deletionTimestamp"' in found.body
    done = {"POST": found.status == 200, "DELETE": gone}.get(method, b'"x":"y"' in found.body)
    return [answer.status, done]


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_odd_options_of_writes(api: Api, widgets: Resource, method: str, custom: bool) -> None:
    kind = widgets if custom else CONFIGMAPS
    for number, query in enumerate((*WRITES, *(DELETES if method == "DELETE" else ()))):
        api.same(f"{method} {kind.plural} {query}", await _written(api, kind, f"a{number}", method, query))


@pytest.mark.parametrize("custom", [False, True])
async def test_odd_options_of_lists(api: Api, widgets: Resource, custom: bool) -> None:
    kind = widgets if custom else CONFIGMAPS
    for query in READS:
        answer = await api.http().raw("GET", f"{kind.path(api.ns)}?{query}")
        api.same(f"{kind.plural} {query}", answer.status)
