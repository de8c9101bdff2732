"""Lists: pages, versions, selectors."""

from __future__ import annotations

import base64
import json

import pytest
import pytest_asyncio

from conformance.client.api import CONFIGMAPS, NAMESPACES, PODS, SECRETS, Api, configmap
from conformance.client.widget import widget
from homeport.api.meta import Object, Resource, Unstructured, resource
from homeport.client.errors import BadRequest, Timeout
from homeport.client.protocol import Key, MergePatch, Page, Query


@pytest_asyncio.fixture(loop_scope="session")
async def five(api: Api) -> Api:
    for name in "abcde":
        obj = configmap(api, name, k=name)
        obj["metadata"]["labels"] = {"name": name, "half": "first" if name < "c" else "second"}
        await api.client.create(obj, kind=CONFIGMAPS)
    return api


def names(page: Page[Unstructured]) -> list[str]:
    return [item.name for item in page.items]


async def test_a_list_has_items_in_order_of_their_names(five: Api) -> None:
    page = await five.client.list(CONFIGMAPS, five.query())
    assert names(page) == ["a", "b", "c", "d", "e"]
    assert page.continue_ == ""
    assert page.remaining is None
    assert int(page.resource_version) >= max(int(item.resource_version) for item in page.items)
    assert all(item["kind"] == "ConfigMap" and item["apiVersion"] == "v1" for item in page.items)


async def test_all_namespaces_are_listed_together(five: Api) -> None:
    page = await five.client.list(CONFIGMAPS)
    assert [item.name for item in page.items if item.namespace == five.ns] == ["a", "b", "c", "d", "e"]
    assert [(i.namespace, i.name) for i in page.items] == sorted((i.namespace, i.name) for i in page.items)


async def test_an_empty_list_still_has_a_version(api: Api, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        page = await api.client.list(kind, api.query())
        assert page.items == []
        assert int(page.resource_version) > 0
    nowhere = await api.client.list(CONFIGMAPS, Query(namespace="no-such-namespace"))
    assert nowhere.items == []


async def test_pages_are_of_one_moment(five: Api) -> None:
    first = await five.client.list(CONFIGMAPS, five.query(limit=2))
    assert names(first) == ["a", "b"]
    assert first.remaining == 3
    assert first.continue_
    await five.client.create(configmap(five, "bb"), kind=CONFIGMAPS)
    await five.client.delete(CONFIGMAPS, five.key("c"))
    await five.client.patch(CONFIGMAPS, five.key("d"), MergePatch({"data": {"k": "changed"}}))
    second = await five.client.list(CONFIGMAPS, five.query(limit=2, continue_=first.continue_))
    assert names(second) == ["c", "d"]
    assert second.items[1]["data"] == {"k": "d"}
    assert second.resource_version == first.resource_version
    assert second.remaining == 1
    third = await five.client.list(CONFIGMAPS, five.query(limit=2, continue_=second.continue_))
    assert names(third) == ["e"]
    assert third.continue_ == ""
    assert third.remaining is None
    assert third.resource_version == first.resource_version
    assert names(await five.client.list(CONFIGMAPS, five.query())) == ["a", "b", "bb", "d", "e"]


async def test_the_last_page_has_no_continuation_when_the_count_fits(five: Api) -> None:
    page = await five.client.list(CONFIGMAPS, five.query(limit=5))
    assert len(page.items) == 5
    assert page.continue_ == ""
    rest = await five.client.list(CONFIGMAPS, five.query(limit=4))
    last = await five.client.list(CONFIGMAPS, five.query(limit=1, continue_=rest.continue_))
    assert names(last) == ["e"]
    assert last.continue_ == ""


async def test_a_selector_holds_over_pages_and_hides_the_count(five: Api) -> None:
    first = await five.client.list(CONFIGMAPS, five.query(limit=1, labels="half=second"))
    assert names(first) == ["c"]
    assert first.remaining is None
    rest = await five.client.list(CONFIGMAPS, five.query(labels="half=second", continue_=first.continue_))
    assert names(rest) == ["d", "e"]


async def test_a_limit_with_a_version_reads_the_store(five: Api) -> None:
    whole = await five.client.list(CONFIGMAPS, five.query())
    await five.client.delete(CONFIGMAPS, five.key("a"))
    page = await five.client.list(
        CONFIGMAPS, five.query(limit=2, resource_version=whole.resource_version, match="Exact")
    )
    assert names(page) == ["a", "b"]
    assert page.resource_version == whole.resource_version
    rest = await five.client.list(CONFIGMAPS, five.query(limit=9, continue_=page.continue_))
    assert names(rest) == ["c", "d", "e"]


async def test_an_exact_version_is_read_exactly(five: Api) -> None:
    before = await five.client.list(CONFIGMAPS, five.query())
    await five.client.delete(CONFIGMAPS, five.key("a"))
    then = await five.client.list(CONFIGMAPS, five.query(resource_version=before.resource_version, match="Exact"))
    assert names(then) == ["a", "b", "c", "d", "e"]
    assert then.resource_version == before.resource_version
    # A cache may answer with any version that is not older than the one that is asked for.
    after = (await five.client.list(CONFIGMAPS, five.query())).resource_version
    newer = await five.client.list(CONFIGMAPS, five.query(resource_version=after, match="NotOlderThan"))
    assert names(newer) == ["b", "c", "d", "e"]
    legacy = await five.client.list(CONFIGMAPS, five.query(resource_version=after))
    assert names(legacy) == ["b", "c", "d", "e"]
    assert int(legacy.resource_version) >= int(after)


async def test_version_zero_takes_what_is_at_hand(five: Api) -> None:
    page = await five.client.list(CONFIGMAPS, five.query(resource_version="0"))
    assert set(names(page)) <= set("abcde")
    page = await five.client.list(CONFIGMAPS, five.query(resource_version="0", match="NotOlderThan"))
    assert int(page.resource_version) > 0


async def test_a_version_of_the_future_times_out(api: Api) -> None:
    with pytest.raises(Timeout) as caught:
        await api.client.list(CONFIGMAPS, api.query(resource_version="1000000000", match="NotOlderThan"))
    status = caught.value.status
    assert status["code"] == 504
    assert status["reason"] == "Timeout"
    assert status["message"].startswith("Timeout: Too large resource version: 1000000000, current: ")
    assert status["details"]["retryAfterSeconds"] == 1
    assert status["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


async def test_versions_and_matches_that_do_not_go_together_are_refused(five: Api) -> None:
    page = await five.client.list(CONFIGMAPS, five.query(limit=1))
    cases = {
        "match without version": {"match": "Exact"},
        "not older without version": {"match": "NotOlderThan"},
        "exactly zero": {"resource_version": "0", "match": "Exact"},
        "unknown match": {"resource_version": "1", "match": "Roughly"},
        "not a version": {"resource_version": "abc"},
        "not a version, exact": {"resource_version": "abc", "match": "Exact"},
        "continue with version": {"continue_": page.continue_, "resource_version": "1"},
        "continue with match": {"continue_": page.continue_, "match": "Exact", "resource_version": "1"},
        "nonsense continue": {"continue_": "nonsense"},
    }
    for label, options in cases.items():
        await five.refusal(label, five.client.list(CONFIGMAPS, five.query(**options)))


async def test_continuation_tokens_of_other_makers_are_refused(five: Api) -> None:
    def token(**fields: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    for label, text in {
        "other version": token(v="meta.k8s.io/v9", rv=1, start="a"),
        "no revision": token(v="meta.k8s.io/v1", rv=0, start="/a"),
        "no start": token(v="meta.k8s.io/v1", rv=5, start=""),
        "climbing start": token(v="meta.k8s.io/v1", rv=5, start="/../x"),
        "not JSON": base64.urlsafe_b64encode(b"{").decode(),
    }.items():
        await five.refusal(label, five.client.list(CONFIGMAPS, five.query(limit=1, continue_=text)))


async def test_label_selectors_select(five: Api) -> None:
    cases = {
        "name=a": ["a"],
        "name==b": ["b"],
        "name!=a": ["b", "c", "d", "e"],
        "name in (a, c)": ["a", "c"],
        "name notin (a,b)": ["c", "d", "e"],
        "half": ["a", "b", "c", "d", "e"],
        "!half": [],
        "half=first,name!=a": ["b"],
        "half in (first),name in (a,c)": ["a"],
        "missing!=x": ["a", "b", "c", "d", "e"],
        "missing notin (x)": ["a", "b", "c", "d", "e"],
        "missing=x": [],
    }
    for selector, expected in cases.items():
        assert names(await five.client.list(CONFIGMAPS, five.query(labels=selector))) == expected, selector


async def test_field_selectors_select(five: Api, widgets: Resource) -> None:
    assert names(await five.client.list(CONFIGMAPS, five.query(fields="metadata.name=c"))) == ["c"]
    assert names(await five.client.list(CONFIGMAPS, five.query(fields="metadata.name!=c"))) == ["a", "b", "d", "e"]
    assert names(await five.client.list(CONFIGMAPS, Query(fields=f"metadata.namespace={five.ns}"))) == list("abcde")
    both = f"metadata.name=a,metadata.namespace={five.ns}"
    assert names(await five.client.list(CONFIGMAPS, Query(fields=both))) == ["a"]
    await five.client.create({"metadata": {"name": "s", "namespace": five.ns}, "type": "example.com/x"}, kind=SECRETS)
    assert names(await five.client.list(SECRETS, five.query(fields="type=example.com/x"))) == ["s"]
    assert names(await five.client.list(SECRETS, five.query(fields="type!=example.com/x"))) == []
    phase = "status.phase=Active,metadata.name=" + five.ns
    assert names(await five.client.list(NAMESPACES, Query(fields=phase))) == [five.ns]
    for name, color in (("r", "red"), ("g", "green")):
        await five.client.create(widget(name, five.ns, color=color, replicas=2), kind=widgets)
    assert names(await five.client.list(widgets, five.query(fields="spec.color=red"))) == ["r"]
    assert names(await five.client.list(widgets, five.query(fields="spec.color!=red"))) == ["g"]
    assert names(await five.client.list(widgets, five.query(fields="spec.replicas=2,metadata.name=g"))) == ["g"]


async def test_pods_are_selected_by_node_and_phase(api: Api) -> None:
    for name, node in (("a", "n1"), ("b", "")):
        spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
        await api.client.create({"metadata": {"name": name, "namespace": api.ns}, "spec": spec}, kind=PODS)
    assert names(await api.client.list(PODS, api.query(fields="spec.nodeName=n1"))) == ["a"]
    assert names(await api.client.list(PODS, api.query(fields="spec.nodeName="))) == ["b"]
    assert names(await api.client.list(PODS, api.query(fields="status.phase=Pending"))) == ["a", "b"]
    assert names(await api.client.list(PODS, api.query(fields="spec.restartPolicy=Always"))) == ["a", "b"]


async def test_selectors_that_make_no_sense_are_refused(api: Api, widgets: Resource) -> None:
    for label, selector in {
        "open set": "a in (b",
        "bad key": "-x=y",
        "bad value": "a=b c",
        "no operator": "a b",
        "empty key": "=a",
    }.items():
        error = await api.refusal(label, api.client.list(CONFIGMAPS, api.query(labels=selector)))
        assert isinstance(error, BadRequest)
    for label, kind, selector in (
        ("unknown field", CONFIGMAPS, "data.k=v"),
        ("unknown field of a custom kind", widgets, "spec.label=x"),
        ("no operator in fields", CONFIGMAPS, "metadata.name"),
    ):
        await api.refusal(label, api.client.list(kind, api.query(fields=selector)))


async def test_a_cluster_wide_kind_is_listed_without_namespace(api: Api) -> None:
    page = await api.client.list(NAMESPACES, Query(fields=f"metadata.name={api.ns}"))
    assert names(page) == [api.ns]
    assert (await api.client.get(NAMESPACES, Key("", api.ns)))["status"] == {"phase": "Active"}


@resource("", "v1", "ConfigMap", "configmaps")
class NamedOnly(Object):
    """A type that has metadata and nothing else."""


async def test_of_a_type_without_content_only_the_metadata_is_asked_for(five: Api) -> None:
    page = await five.client.list(NamedOnly, five.query())
    assert [(item.kind, item.metadata.name) for item in page.items] == [("ConfigMap", name) for name in "abcde"]
    assert page.items[0].metadata.labels == {"name": "a", "half": "first"}
    async with five.client.watch(NamedOnly, five.query(resource_version=page.resource_version)) as events:
        await five.client.patch(CONFIGMAPS, five.key("a"), MergePatch({"data": {"k": "other"}}))
        event = await anext(events)
    assert (event.type, event.object.kind, event.object.metadata.name) == ("MODIFIED", "ConfigMap", "a")
    assert event.resource_version == event.object.metadata.resource_version
    async with five.client.watch(NamedOnly, five.query(), initial_events=True) as events:
        seen = [await anext(events) for _ in range(6)]
    assert [item.object.metadata.name for item in seen[:5]] == list("abcde")
    assert seen[5].initial_events_end
