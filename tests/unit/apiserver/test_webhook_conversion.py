from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import orjson
import pytest

from homeport.apiserver.resource import Json
from homeport.apiserver.webhook.call import CallFailed
from homeport.apiserver.webhook.conversion import DEFINITIONS, ConversionCaller
from homeport.client.errors import Internal
from homeport.store import Store
from unit.apiserver.admission_sample import WIDGET, put

CLIENT = {"url": "https://127.0.0.1/convert"}


class Webhook:
    """The other side, without the wire."""

    def __init__(self) -> None:
        self.answer: Callable[[Json], Json] = self.convert
        self.seen: list[Json] = []

    async def call(self, client: Mapping[str, Any], body: bytes, timeout: float, limit: int) -> bytes:
        assert client == CLIENT
        review = orjson.loads(body)
        self.seen.append(review)
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        return orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    @staticmethod
    def convert(request: Json) -> Json:
        converted = [{**obj, "apiVersion": request["desiredAPIVersion"], "new": True} for obj in request["objects"]]
        return {"result": {"status": "Success"}, "convertedObjects": converted}


@pytest.fixture
def webhook() -> Webhook:
    return Webhook()


@pytest.fixture
async def convert(webhook: Webhook) -> AsyncIterator[ConversionCaller]:
    store = await Store.open(None)
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v2", "v1"]}}
    await put(store, DEFINITIONS, "widgets.example.org", {"spec": {"conversion": conversion}})
    yield ConversionCaller(store, webhook)
    await store.close()


def widget(name: str = "a", version: str = "v1alpha1", **meta: Any) -> Json:
    return {"apiVersion": f"example.org/{version}", "kind": "Widget", "metadata": {"name": name, "uid": "1", **meta}}


async def test_objects_are_converted_in_one_call_and_keep_their_places(
    webhook: Webhook, convert: ConversionCaller
) -> None:
    objects = [widget("a"), widget("b", "v1"), widget("c")]
    result = await convert(WIDGET, objects, "v1")
    assert [obj["metadata"]["name"] for obj in result] == ["a", "b", "c"]
    assert [obj.get("new") for obj in result] == [True, None, True]
    (review,) = webhook.seen
    assert review["apiVersion"] == "apiextensions.k8s.io/v1"
    assert review["request"]["desiredAPIVersion"] == "example.org/v1"
    assert len(review["request"]["objects"]) == 2


async def test_webhooks_are_not_called_without_work(webhook: Webhook, convert: ConversionCaller) -> None:
    objects = [widget(version="v1")]
    assert await convert(WIDGET, objects, "v1") is objects
    assert webhook.seen == []


async def test_only_labels_and_annotations_may_change(webhook: Webhook, convert: ConversionCaller) -> None:
    def answer(request: Json) -> Json:
        result = Webhook.convert(request)
        result["convertedObjects"][0]["metadata"] = {
            "name": "a",
            "uid": "1",
            "labels": {"k": "v"},
            "finalizers": ["mine"],
            "resourceVersion": "99",
        }
        return result

    webhook.answer = answer
    (converted,) = await convert(WIDGET, [widget(resourceVersion="5", annotations={"x": "y"})], "v1")
    assert converted["metadata"] == {"name": "a", "uid": "1", "resourceVersion": "5", "labels": {"k": "v"}}


def _changed(**change: Any) -> Callable[[Json], Json]:
    def answer(request: Json) -> Json:
        result = Webhook.convert(request)
        result["convertedObjects"][0] = {**result["convertedObjects"][0], **change}
        return result

    return answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda r: {"result": {"status": "Failure", "message": "no way"}}, "no way"),
        (lambda r: {"result": {"status": "Success"}, "convertedObjects": []}, "returned 0 objects, expected 1"),
        (lambda r: {**Webhook.convert(r), "uid": "other"}, "expected response.uid"),
        (_changed(apiVersion="example.org/v3"), "expected example.org/v1"),
        (_changed(kind="Gadget"), "kind Gadget"),
        (_changed(metadata={"name": "b", "uid": "1"}), "may not change metadata.name"),
        (_changed(metadata={"name": "a", "uid": "2"}), "may not change metadata.uid"),
        (_changed(metadata={"name": "a", "uid": "1", "labels": {"k": 1}}), "not a map of strings"),
        (_changed(metadata=None), "without metadata"),
    ],
)
async def test_a_bad_answer_is_an_error_that_names_the_kind(
    webhook: Webhook, convert: ConversionCaller, answer: Callable[[Json], Json], why: str
) -> None:
    webhook.answer = answer
    with pytest.raises(Internal) as failed:
        await convert(WIDGET, [widget()], "v1")
    assert str(failed.value).startswith("conversion webhook for example.org/v1alpha1, Kind=Widget failed: ")
    assert why in str(failed.value)


async def test_an_unreachable_webhook_is_an_error(webhook: Webhook, convert: ConversionCaller) -> None:
    def fail(request: Json) -> Json:
        raise CallFailed("connection refused")

    webhook.answer = fail
    with pytest.raises(Internal, match="connection refused"):
        await convert(WIDGET, [widget()], "v1")
