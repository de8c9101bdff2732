"""ConversionReview: objects of a custom kind in another version, made by the webhook that its definition names."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.apiserver.resource import Json, ServedKind
from homeport.apiserver.webhook.call import Caller, CallFailed
from homeport.client.errors import ApiError, Internal
from homeport.store import Store

GROUP = "apiextensions.k8s.io"
DEFINITIONS = f"customresourcedefinitions.{GROUP}"
TIMEOUT_SECONDS = 30.0
ANSWER_LIMIT = 256 * 1024 * 1024  # one answer may hold a whole list


class ConversionCaller:
    """Called with (kind, objects, version), gives the objects in that version, in the same order."""

    def __init__(self, store: Store, caller: Caller) -> None:
        self._store = store
        self._caller = caller
        self._known: dict[str, tuple[int, Mapping[str, Any]]] = {}

    async def __call__(self, served: ServedKind, objects: list[Json], to_version: str) -> list[Json]:
        target = f"{served.group}/{to_version}"
        due = [i for i, obj in enumerate(objects) if obj.get("apiVersion") != target]
        if not due:
            return objects
        try:
            converted = await self._convert(served, [objects[i] for i in due], target)
        except CallFailed as failed:
            raise _failure(served, objects[due[0]], str(failed)) from failed
        result = list(objects)
        for i, obj in zip(due, converted, strict=True):
            result[i] = obj
        return result

    async def _convert(self, served: ServedKind, objects: list[Json], target: str) -> list[Json]:
        webhook = self._webhook(served)
        versions = [v for v in webhook.get("conversionReviewVersions") or ("v1",) if v in ("v1", "v1beta1")]
        if not versions:
            raise CallFailed("none of its conversionReviewVersions is v1 or v1beta1")
        request = {"uid": str(uuid.uuid4()), "desiredAPIVersion": target, "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{versions[0]}", "request": request}
        client = webhook.get("clientConfig") or {}
        body = await self._caller.call(client, orjson.dumps(review), TIMEOUT_SECONDS, ANSWER_LIMIT)
        converted = parse_answer(body, str(request["uid"]), versions[0], len(objects))
        return [checked(new, old, target) for new, old in zip(converted, objects, strict=True)]

    def _webhook(self, served: ServedKind) -> Mapping[str, Any]:
        record = self._store.head(DEFINITIONS, f"{served.plural}.{served.group}")
        if record is None:
            raise CallFailed(f"CustomResourceDefinition {served.plural}.{served.group} does not exist")
        known = self._known.get(record.name)
        if known is not None and known[0] == record.revision:
            return known[1]
        conversion = (orjson.loads(record.value).get("spec") or {}).get("conversion") or {}
        webhook: Mapping[str, Any] = conversion.get("webhook") or {}
        self._known[record.name] = (record.revision, webhook)
        return webhook


def parse_answer(body: bytes, uid: str, version: str, count: int) -> list[object]:
    try:
        review = orjson.loads(body)
    except ValueError as broken:
        raise CallFailed(f"couldn't parse the response: {broken}") from broken
    wanted = f"{GROUP}/{version}, Kind=ConversionReview"
    got = f"{review.get('apiVersion')}, Kind={review.get('kind')}" if isinstance(review, dict) else "something else"
    if got != wanted:
        raise CallFailed(f"expected webhook response of {wanted}, got {got}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("no response provided")
    if response.get("uid") != uid:
        raise CallFailed(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise CallFailed(str(result.get("message") or "no reason given"))
    converted = response.get("convertedObjects") or []
    if not isinstance(converted, list) or len(converted) != count:
        size = len(converted) if isinstance(converted, list) else 0
        raise CallFailed(f"webhook returned {size} objects, expected {count}")
    return converted


def checked(new: object, old: Json, target: str) -> Json:
    """The converted object, with the metadata of the old one but for labels and annotations."""
    if not isinstance(new, dict):
        raise CallFailed("webhook returned something that is not an object")
    if new.get("apiVersion") != target:
        raise CallFailed(f"webhook returned an object of {new.get('apiVersion')}, expected {target}")
    if new.get("kind") != old.get("kind"):
        raise CallFailed(f"webhook returned kind {new.get('kind')}, expected {old.get('kind')}")
    meta, before = new.get("metadata"), old.get("metadata") or {}
    if not isinstance(meta, dict):
        raise CallFailed("webhook returned an object without metadata")
    for field in ("name", "namespace", "uid"):
        if (meta.get(field) or "") != (before.get(field) or ""):
            raise CallFailed(f"webhook may not change metadata.{field}")
    kept = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for field in ("labels", "annotations"):
        value = meta.get(field)
        if value is None:
            continue
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise CallFailed(f"webhook returned metadata.{field} that is not a map of strings")
        kept[field] = value
    return {**new, "metadata": kept}


def _failure(served: ServedKind, obj: Json, why: str) -> ApiError:
    source = f"{obj.get('apiVersion')}, Kind={served.kind}"
    return Internal(f"conversion webhook for {source} failed: {why}")
