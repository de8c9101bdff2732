"""Watches: where they start, what they tell, how they end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from conformance.client.api import CONFIGMAPS, NAMESPACES, PODS, SECRETS, WAIT_SECONDS, Api, brief, configmap, take
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import ApiError, BadRequest, NotFound
from homeport.client.protocol import MergePatch, Query


async def test_changes_after_a_version_come_in_order(api: Api, widgets: Resource) -> None:
    for kind, label in ((CONFIGMAPS, "configmap"), (widgets, "widget")):
        make = widget if kind is widgets else lambda name, ns: configmap(api, name)
        start = (await api.client.list(kind, api.query())).resource_version
        async with api.client.watch(kind, api.query(resource_version=start)) as events:
            made = await api.client.create(make("a", api.ns), kind=kind)
            changed = await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"labels": {"x": "y"}}}))
            await api.client.delete(kind, api.key("a"))
            found = await take(events, 3)
        assert brief(found) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert found[0].object == made
        assert found[1].object == changed
        last = found[2]
        assert int(last.resource_version) > int(changed.resource_version)
        assert last.object.resource_version == last.resource_version
        assert last.object.metadata["labels"] == {"x": "y"}
        api.same(f"deleted {label}", last.object)


async def test_the_past_is_replayed_from_a_version(api: Api) -> None:
    start = (await api.client.list(CONFIGMAPS, api.query())).resource_version
    for name in "ab":
        await api.client.create(configmap(api, name), kind=CONFIGMAPS)
    await api.client.delete(CONFIGMAPS, api.key("a"))
    async with api.client.watch(CONFIGMAPS, api.query(resource_version=start)) as events:
        assert brief(await take(events, 3)) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_from_nowhere_begins_with_what_is_there(api: Api) -> None:
    for name in "ab":
        await api.client.create(configmap(api, name), kind=CONFIGMAPS)
    for version in ("", "0"):
        async with api.client.watch(CONFIGMAPS, api.query(resource_version=version)) as events:
            assert sorted(brief(await take(events, 2))) == [("ADDED", "a"), ("ADDED", "b")]
            await api.client.patch(CONFIGMAPS, api.key("b"), MergePatch({"data": {"v": version + "x"}}))
            assert brief(await take(events, 1)) == [("MODIFIED", "b")]


async def test_initial_events_end_with_a_bookmark(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        for name in "ab":
            obj = widget(name, api.ns) if kind is widgets else configmap(api, name)
            await api.client.create(obj, kind=kind)
        async with api.client.watch(kind, api.query(), initial_events=True) as events:
            found = await take(events, 3, bookmarks=True)
            assert sorted(brief(found[:2])) == [("ADDED", "a"), ("ADDED", "b")]
            mark = found[2]
            assert mark.type == "BOOKMARK"
            assert mark.initial_events_end
            assert int(mark.resource_version) >= max(int(event.resource_version) for event in found[:2])
            assert mark.object.metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert mark.object["kind"] == kind.kind
            await api.client.delete(kind, api.key("a"))
            assert brief(await take(events, 1)) == [("DELETED", "a")]


async def test_initial_events_of_nothing_are_one_bookmark(api: Api) -> None:
    async with api.client.watch(CONFIGMAPS, api.query(), initial_events=True) as events:
        (mark,) = await take(events, 1, bookmarks=True)
        assert mark.type == "BOOKMARK"
        assert mark.initial_events_end


async def test_a_selector_turns_changes_into_additions_and_deletions(api: Api, widgets: Resource) -> None:
    start = (await api.client.list(CONFIGMAPS, api.query())).resource_version

    def label(value: str) -> MergePatch:
        return MergePatch({"metadata": {"labels": {"in": value}}})

    async with api.client.watch(CONFIGMAPS, api.query(resource_version=start, labels="in=yes")) as events:
        await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
        entered = await api.client.patch(CONFIGMAPS, api.key("a"), label("yes"))
        inside = await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"data": {"k": "v"}}))
        left = await api.client.patch(CONFIGMAPS, api.key("a"), label("no"))
        await api.client.delete(CONFIGMAPS, api.key("a"))
        await api.client.create(
            {"metadata": {"name": "b", "namespace": api.ns, "labels": {"in": "yes"}}}, kind=CONFIGMAPS
        )
        found = await take(events, 4)
    assert brief(found) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert found[0].object == entered
    assert found[1].object == inside
    # The object as it was when it still matched, at the version of the change that took it out.
    gone = found[2].object
    assert gone.metadata["labels"] == {"in": "yes"}
    assert gone["data"] == {"k": "v"}
    assert gone.resource_version == left.resource_version

    start = (await api.client.list(widgets, api.query())).resource_version
    async with api.client.watch(widgets, api.query(resource_version=start, fields="spec.color=red")) as events:
        await api.client.create(widget("w", api.ns), kind=widgets)
        for color in ("red", "blue"):
            await api.client.patch(widgets, api.key("w"), MergePatch({"spec": {"color": color}}))
        await api.client.create(widget("x", api.ns, color="red"), kind=widgets)
        found = await take(events, 3)
    assert brief(found) == [("ADDED", "w"), ("DELETED", "w"), ("ADDED", "x")]


async def test_one_object_is_watched_by_its_name(api: Api) -> None:
    query = api.query(fields="metadata.name=b")
    async with api.client.watch(CONFIGMAPS, query) as events:
        for name in "abc":
            await api.client.create(configmap(api, name), kind=CONFIGMAPS)
        await api.client.delete(CONFIGMAPS, api.key("b"))
        assert brief(await take(events, 2)) == [("ADDED", "b"), ("DELETED", "b")]


async def test_other_namespaces_are_not_seen(api: Api) -> None:
    other = api.ns + "-other"
    await api.client.create({"metadata": {"name": other}}, kind=NAMESPACES)
    async with (
        api.client.watch(SECRETS, api.query()) as here,
        api.client.watch(SECRETS, Query(fields=f"metadata.namespace={other}")) as there,
    ):
        await api.client.create({"metadata": {"name": "theirs", "namespace": other}}, kind=SECRETS)
        await api.client.create({"metadata": {"name": "ours", "namespace": api.ns}}, kind=SECRETS)
        assert brief(await take(here, 1)) == [("ADDED", "ours")]
        assert brief(await take(there, 1)) == [("ADDED", "theirs")]


async def test_finalizers_show_the_deletion_before_the_end(api: Api) -> None:
    obj = configmap(api, "a")
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    made = await api.client.create(obj, kind=CONFIGMAPS)
    async with api.client.watch(CONFIGMAPS, api.query(resource_version=made.resource_version)) as events:
        await api.client.delete(CONFIGMAPS, api.key("a"))
        await api.client.patch(CONFIGMAPS, api.key("a"), MergePatch({"metadata": {"finalizers": None}}))
        found = await take(events, 2)
    assert brief(found) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert found[0].object.metadata["deletionTimestamp"]
    api.same("held", found[0].object)
    api.same("gone", found[1].object)


async def test_a_pod_that_never_ran_is_gone_at_once(api: Api) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = await api.client.create({"metadata": {"name": "p", "namespace": api.ns}, "spec": spec}, kind=PODS)
    async with api.client.watch(PODS, api.query(resource_version=made.resource_version)) as events:
        await api.client.delete(PODS, api.key("p"))
        found = await take(events, 1)
        while found[-1].type != "DELETED":
            found += await take(events, 1)
    api.same("events", [[event.type, event.object] for event in found])


async def test_a_watch_ends_when_its_time_has_passed(api: Api) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        async with api.client.watch(CONFIGMAPS, api.query(), timeout=1) as events:
            await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
            found = [event async for event in events if event.type != "BOOKMARK"]
    assert brief(found) == [("ADDED", "a")]


async def _begin(api: Api, kind: Resource, **options: Any) -> None:
    """Opening the watch, or its first word, must be the refusal."""
    initial = options.pop("initial_events", False)
    async with api.client.watch(kind, api.query(**options), initial_events=initial, timeout=5) as events:
        async for _ in events:
            pass


async def test_watches_that_make_no_sense_are_refused(api: Api, widgets: Resource) -> None:
    with pytest.raises(ApiError, match='resourceVersion: Invalid value: "abc"') as caught:
        await _begin(api, CONFIGMAPS, resource_version="abc")
    assert caught.value.http_code in (400, 500)  # kube-apiserver calls its own failure what is the asker's
    cases: dict[str, dict[str, Any]] = {
        "bad labels": {"labels": "a in (b"},
        "bad field": {"fields": "data.k=v"},
        "match without initial events": {"resource_version": "1", "match": "NotOlderThan"},
    }
    for label, options in cases.items():
        error = await api.refusal(label, _begin(api, CONFIGMAPS, **options))
        assert error.http_code in (400, 422)
    with pytest.raises(BadRequest):
        await _begin(api, widgets, fields="spec.label=x")
    with pytest.raises(NotFound):
        await _begin(api, Resource("nowhere.example.com", "v1", "Thing", "things"))


async def _watched(api: Api, kind: Resource, query: str) -> Any:
    """What a watch of a second answers: its status if it is refused, else the events (bookmarks come as they like)."""
    answer = await api.http().raw("GET", f"{kind.path(api.ns)}?watch=true&timeoutSeconds=1&{query}")
    if answer.status != 200:
        return answer.json()
    events = [json.loads(line) for line in answer.body.splitlines()]
    for event in events:
        if event["type"] == "BOOKMARK":
            event["object"]["metadata"]["resourceVersion"] = "some"  # others write meanwhile
    return [event for event in events if event["type"] != "BOOKMARK" or "annotations" in event["object"]["metadata"]]


WATCHES = {
    "initial events without bookmarks": "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "initial events, bookmarks refused": (
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=false"
    ),
    "initial events and bookmarks": "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "no initial events": "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
    "no initial events from 0": "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0",
    "another match": "sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true",
    "a match alone": "resourceVersionMatch=Exact&resourceVersion=1",
    "initial events without a match": "sendInitialEvents=true",
    "a page": "continue=abc",
}


@pytest.mark.parametrize("case", WATCHES)
async def test_the_ways_to_begin_a_watch(api: Api, widgets: Resource, case: str) -> None:
    api.http()
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    await api.client.create(widget("a", api.ns), kind=widgets)
    for label, kind in (("built-in", CONFIGMAPS), ("custom", widgets)):
        api.same(f"{case}: {label}", await _watched(api, kind, WATCHES[case]))


async def test_a_watch_of_the_future_is_silent_until_then(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        obj = configmap(api, "a") if kind is CONFIGMAPS else widget("a", api.ns)
        made = await api.client.create(obj, kind=kind)
        far = str(int(made.resource_version) + 100_000)
        async with api.client.watch(kind, api.query(resource_version=far), timeout=1) as events:
            await api.client.patch(kind, api.key("a"), MergePatch({"metadata": {"labels": {"a": "b"}}}))
            assert [event async for event in events if event.type != "BOOKMARK"] == []
        with pytest.raises(ApiError, match="Too large resource version"):
            await _begin(api, kind, resource_version=far, initial_events=True)


async def test_many_watchers_see_the_same(api: Api) -> None:
    start = (await api.client.list(CONFIGMAPS, api.query())).resource_version

    async def watch() -> list[tuple[str, str]]:
        async with api.client.watch(CONFIGMAPS, api.query(resource_version=start)) as events:
            return brief(await take(events, 6))

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(watch()) for _ in range(10)]
        for name in "abc":
            await api.client.create(configmap(api, name), kind=CONFIGMAPS)
            await api.client.delete(CONFIGMAPS, api.key(name))
    expected = [(type_, name) for name in "abc" for type_ in ("ADDED", "DELETED")]
    assert [watcher.result() for watcher in watchers] == [expected] * 10


async def test_an_aborted_watch_leaves_the_client_usable(api: Api) -> None:
    class Stop(Exception):
        pass

    with pytest.raises(Stop):
        async with api.client.watch(CONFIGMAPS, api.query()):
            raise Stop
    assert (await api.client.list(CONFIGMAPS, api.query())).items == []
    assert not isinstance(Stop(), ApiError)
