"""What happens to old versions when the server has forgotten them."""

from __future__ import annotations

import asyncio

import pytest

from conformance.client.api import CONFIGMAPS, WAIT_SECONDS, Api, brief, configmap, take
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import Expired
from homeport.client.protocol import MergePatch, Query


async def _watch(api: Api, kind: Resource, version: str) -> None:
    async with api.client.watch(kind, Query(namespace=api.ns, resource_version=version), timeout=5) as events:
        async for _ in events:
            pass


async def test_old_versions_have_expired(api: Api, widgets: Resource) -> None:
    pages = {}
    for kind in (CONFIGMAPS, widgets):
        for name in "abcd":
            obj = widget(name, api.ns) if kind is widgets else configmap(api, name)
            await api.client.create(obj, kind=kind)
        pages[kind] = await api.client.list(kind, api.query(limit=2))
    for kind in (CONFIGMAPS, widgets):
        await api.client.delete(kind, api.key("d"))
        await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"labels": {"x": "y"}}}))
    await api.server.forget()
    for kind, label in ((CONFIGMAPS, "configmaps"), (widgets, "widgets")):
        page = pages[kind]
        with pytest.raises(Expired) as caught:
            await api.client.list(kind, api.query(limit=2, continue_=page.continue_))
        status = caught.value.status
        inconsistent = status["metadata"]["continue"]
        api.same(f"continue {label}", {**status, "metadata": {}})
        rest = await api.client.list(kind, api.query(limit=9, continue_=inconsistent))
        assert [item.name for item in rest.items] == ["c"]
        assert int(rest.resource_version) > int(page.resource_version)
        exact = api.query(resource_version=page.resource_version, match="Exact")
        await api.refusal(f"exact {label}", api.client.list(kind, exact))
        for version in (page.resource_version, "1"):
            with pytest.raises(Expired) as caught:
                await _watch(api, kind, version)
            status = caught.value.status
            assert (status["code"], status["reason"]) == (410, "Expired")
            assert status["message"].startswith(f"too old resource version: {version} (")
        newer = await api.client.list(kind, api.query(resource_version=page.resource_version))
        assert [item.name for item in newer.items] == ["a", "b", "c"]


async def test_a_fresh_list_and_watch_work_after_the_history_is_gone(api: Api) -> None:
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    await api.server.forget()
    page = await api.client.list(CONFIGMAPS, api.query())
    async with asyncio.timeout(WAIT_SECONDS):
        async with api.client.watch(CONFIGMAPS, api.query(resource_version=page.resource_version)) as events:
            await api.client.delete(CONFIGMAPS, api.key("a"))
            assert brief(await take(events, 1)) == [("DELETED", "a")]
