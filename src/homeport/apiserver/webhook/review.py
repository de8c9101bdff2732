"""AdmissionReview: the question to a webhook, and what its answer says."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import DELETE, Attributes
from homeport.apiserver.webhook.call import AnswerInvalid, CallFailed
from homeport.client.errors import ApiError, from_status

GROUP = "admission.k8s.io"


@dataclass(frozen=True, slots=True)
class Answer:
    allowed: bool
    status: Mapping[str, Any] = field(default_factory=dict)
    patch: list[Any] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def request_of(a: Attributes, version: str, obj: Json | None, old: Json | None) -> Json:
    """The `request` of a review; `version` is the one the webhook asked for, `obj` and `old` are in it."""
    served = a.served
    kind = {"group": served.group, "version": version, "kind": served.kind}
    resource = {"group": served.group, "version": version, "resource": served.plural}
    asked = a.version.resource.version
    request: Json = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": {**kind, "version": asked},
        "requestResource": {**resource, "version": asked},
        "operation": a.operation,
        "userInfo": a.ctx.user.info(),
        "object": obj,
        "oldObject": old,
        "dryRun": a.dry_run,
        "options": _options(a),
    }
    if a.name:
        request["name"] = a.name
    if namespace := _namespace(a):
        request["namespace"] = namespace
    if a.subresource:
        request["subResource"] = request["requestSubResource"] = a.subresource
    return request


def _options(a: Attributes) -> Json:
    """Of which kind they are tells a DELETE's from a CREATE's; a patch is an update to webhooks."""
    options: Json = {"kind": f"{a.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1", **a.options}
    if a.dry_run:
        options["dryRun"] = ["All"]
    if a.ctx.field_manager and a.operation != DELETE:
        options["fieldManager"] = a.ctx.field_manager
    return options


def _namespace(a: Attributes) -> str:
    # A Namespace is in itself, as far as Kubernetes' requests are concerned.
    return a.name if (a.served.group, a.served.plural) == ("", "namespaces") else a.namespace


def render_review(request: Json, review_version: str) -> bytes:
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{review_version}", "request": request})


def parse_answer(body: bytes, request: Json, review_version: str, *, mutating: bool) -> Answer:
    """Raises CallFailed if the response does not belong to this request."""
    try:
        review = orjson.loads(body)
    except ValueError as broken:
        raise CallFailed(f"couldn't parse the response: {broken}") from broken
    wanted = f"{GROUP}/{review_version}, Kind=AdmissionReview"
    if not isinstance(review, dict):
        raise CallFailed("couldn't get version/kind; the response is not an object")
    response = review.get("response")
    if not isinstance(response, dict):
        raise AnswerInvalid("webhook response was absent")
    api_version, kind = review.get("apiVersion"), review.get("kind")
    # An answer without a type is taken for one of the right type.
    if (api_version or kind) and (got := f"{api_version}, Kind={kind}") != wanted:
        raise AnswerInvalid(f"expected webhook response of {wanted}, got {got}")
    if review_version == "v1" and response.get("uid") != request["uid"]:
        raise AnswerInvalid(f'expected response.uid="{request["uid"]}", got "{response.get("uid", "")}"')
    return Answer(
        allowed=response.get("allowed") is True,
        status=_mapping(response.get("status")),
        patch=_patch(response, review_version, mutating=mutating),
        warnings=tuple(str(text) for text in response.get("warnings") or ()),
        annotations={str(k): str(v) for k, v in _mapping(response.get("auditAnnotations")).items()},
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _patch(response: Json, review_version: str, *, mutating: bool) -> list[Any]:
    raw, kind = response.get("patch"), response.get("patchType")
    if review_version == "v1":
        if raw and not mutating:
            raise AnswerInvalid("validating webhook may not return response.patch")
        if raw and not kind:
            raise AnswerInvalid("webhook returned response.patch but not response.patchType")
        if kind and not raw:
            raise AnswerInvalid("webhook returned response.patchType but not response.patch")
    if not raw or not mutating:
        return []
    try:
        patch = orjson.loads(base64.b64decode(raw, validate=True))
    except (ValueError, TypeError, binascii.Error) as broken:
        raise CallFailed(f"the patch can't be decoded: {broken}") from broken
    if not isinstance(patch, list):
        raise CallFailed("the patch is not a list of operations")
    if patch and kind != "JSONPatch" and (kind or review_version == "v1"):
        raise AnswerInvalid(f'unsupported patch type "{kind}"')
    return patch


def _unexplained(kind: type[ApiError]) -> type[ApiError]:
    """The same error, but without a reason: where a webhook gives none, Kubernetes passes on none."""
    return type(kind.__name__, (kind,), {"reason": ""})


def denial(webhook: str, status: Mapping[str, Any]) -> ApiError:
    """`admission webhook "x" denied the request: <message>`, with the webhook's own code and reason."""
    denied = f'admission webhook "{webhook}" denied the request'
    why = status.get("message") or status.get("reason")
    code = status.get("code")
    if not isinstance(code, int) or code < 400:
        code = 400
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    # Webhooks leave out what every Status has; clients that decode it need the kind.
    whole = {"metadata": {}, **status, "kind": "Status", "apiVersion": "v1", "status": "Failure"}
    error = from_status({**whole, "message": message, "code": code}, code=code)
    if status.get("reason"):
        return error
    details = _mapping(status.get("details"))
    group, kind, name, uid = (str(details.get(field) or "") for field in ("group", "kind", "name", "uid"))
    cls = _unexplained(type(error))
    return cls(message, group=group, kind=kind, name=name, uid=uid, causes=error.causes, code=code)
