"""AdmissionReview and ConversionReview, both v1: the question of an API server in, our answer out."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, Cause, invalid
from homeport.client.protocol import Key
from homeport.runtime.webhook.configuration import SCALE
from homeport.runtime.webhook.diff import json_patch_diff
from homeport.runtime.webhook.hook import ConversionError, Hooks, Json, KindHooks
from homeport.runtime.webhook.shape import Shapes

ADMISSION = ("admission.k8s.io/v1", "AdmissionReview")
CONVERSION = ("apiextensions.k8s.io/v1", "ConversionReview")

Read = Callable[[Resource, Key], Awaitable[Mapping[str, Any]]]


class ReviewError(ValueError):
    """The request can't be answered: it is malformed, or for a kind without hooks."""


async def answer_default(hooks: Hooks, review: object, shapes: Shapes | None = None) -> Json:
    """Defaults are asked for before the schema is checked, so a hook may meet anything. If it fails on an object that
    has not the shape of its kind (see `shapes`), the object passes as it is: the API server refuses it next and says
    which field is wrong."""
    request = _request(review, ADMISSION)
    kind = _kind(hooks, request)
    obj, old = request.get("object"), request.get("oldObject")
    if not isinstance(obj, dict):
        return _admitted(request)
    before = orjson.loads(orjson.dumps(obj))
    try:
        await kind.apply_defaults(obj, old)
    except ApiError as error:
        return _refused(request, error)
    except Exception:
        if shapes is None or not shapes.refuses(kind.resource, before):
            raise
        return _admitted(request)
    patch = json_patch_diff(before, obj)
    if not patch:
        return _admitted(request)
    return _admitted(request, patchType="JSONPatch", patch=base64.b64encode(orjson.dumps(patch)).decode())


async def answer_validate(hooks: Hooks, review: object, read: Read | None = None) -> Json:
    """`read` gets an object of which only the scale is in the review."""
    request = _request(review, ADMISSION)
    scales = request.get("subResource") == SCALE and read is not None
    kind = _kind(hooks, {**request, "subResource": ""} if scales else request)
    obj, old = request.get("object"), request.get("oldObject")
    warnings: list[str] = []
    try:
        if scales and read is not None:
            obj, old = await _scaled(kind, request, read)
        if request.get("operation") == "DELETE":
            causes = await kind.find_delete_causes(old) if isinstance(old, dict) else []
        elif isinstance(obj, dict):
            asked = (request.get("requestKind") or {}).get("version") or kind.resource.version
            own = scales or asked == kind.resource.version
            find = kind.find_causes if own else kind.find_converted_causes
            causes = await find(obj, old)
            warnings = [] if causes else await kind.find_warnings(obj, old)
        else:
            raise ReviewError(f"request.object is missing in a review of operation {request.get('operation')}")
    except ApiError as error:
        return _refused(request, error)
    said: Json = {"warnings": warnings} if warnings else {}
    if causes:
        return _refused(request, refusal(kind, request.get("name") or _name(obj or old or {}), causes), **said)
    return _admitted(request, **said)


async def _scaled(kind: KindHooks, request: Json, read: Read) -> tuple[Json, Json]:
    """The object as the Scale would make it, and as it is. A Scale holds nothing else that could be checked."""
    replicas = ((request.get("object") or {}).get("spec") or {}).get("replicas", 0)
    old = dict(await read(kind.resource, Key(str(request.get("namespace") or ""), str(request.get("name") or ""))))
    obj: Json = orjson.loads(orjson.dumps(old))
    return {**obj, "spec": {**(obj.get("spec") or {}), "replicas": replicas}}, old


def refusal(kind: KindHooks, name: str, causes: list[Cause]) -> ApiError:
    return invalid(kind.resource.group, kind.resource.kind, name, causes)


def answer_convert(hooks: Hooks, review: object) -> Json:
    request = _request(review, CONVERSION)
    wanted, objects = request.get("desiredAPIVersion"), request.get("objects")
    if not isinstance(wanted, str) or not isinstance(objects, list):
        raise ReviewError("request.desiredAPIVersion or request.objects is missing")
    group, _, version = wanted.rpartition("/")
    try:
        converted = [_converted(hooks, obj, group, version) for obj in objects]
    except ConversionError as error:
        result = {"status": "Failure", "message": str(error)}
        return _review(CONVERSION, {"uid": request["uid"], "convertedObjects": [], "result": result})
    response = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
    return _review(CONVERSION, response)


def _converted(hooks: Hooks, obj: Any, group: str, version: str) -> Json:
    if not isinstance(obj, dict):
        raise ConversionError("request.objects has an item that is not an object")
    if str(obj.get("apiVersion", "")).rpartition("/")[0] != group:
        raise ConversionError(f"{obj.get('kind')} of {obj.get('apiVersion')} can't be converted to group {group}")
    return hooks.converted(obj, version)


def _request(review: Any, wanted: tuple[str, str]) -> Json:
    if not isinstance(review, dict):
        raise ReviewError("the body is not an object")
    got = (review.get("apiVersion"), review.get("kind"))
    if got != wanted:
        raise ReviewError(f"expected kind {wanted[1]} of {wanted[0]}, got {got[1]} of {got[0]}")
    request = review.get("request")
    if not isinstance(request, dict) or not request.get("uid"):
        raise ReviewError("request or request.uid is missing")
    return request


def _kind(hooks: Hooks, request: Json) -> KindHooks:
    asked = request.get("resource") or {}
    group, plural, version = asked.get("group", ""), asked.get("resource", ""), asked.get("version", "")
    kind = hooks.find(group, plural)
    if kind is None or request.get("subResource"):
        raise ReviewError(f"nothing is registered for {plural}.{group} {request.get('subResource') or ''}".rstrip())
    if version != kind.resource.version:
        raise ReviewError(
            f"{kind.resource.qualified} is reviewed in version {kind.resource.version}, got {version}: "
            "the webhook's matchPolicy must be Equivalent and its rules must name that version alone"
        )
    return kind


def _name(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _admitted(request: Json, **more: Any) -> Json:
    return _review(ADMISSION, {"uid": request["uid"], "allowed": True, **more})


def _refused(request: Json, error: ApiError, **more: Any) -> Json:
    return _review(ADMISSION, {"uid": request["uid"], "allowed": False, "status": error.status, **more})


def _review(kind: tuple[str, str], response: Json) -> Json:
    return {"apiVersion": kind[0], "kind": kind[1], "response": response}
