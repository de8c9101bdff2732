"""From the bytes of a write to the object or patch it carries, with the API server's words for what is wrong."""

from __future__ import annotations

from typing import Any

import orjson

from homeport.apiserver.http.body import (
    InvalidProtobuf,
    MalformedBody,
    NumberTooLarge,
    duplicate_fields,
    go_name,
    merge_duplicates,
    parse_body,
    parse_json,
    shown_bytes,
)
from homeport.apiserver.http.negotiate import APPLY_PATCH, JSON, JSON_PATCH, STRATEGIC_PATCH, YAML, body_form
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json, ServedKind, Version
from homeport.client.errors import BadRequest, TooLarge

MAX_OPERATIONS = 10_000
_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_MAP = "map[string]interface {}"
_OPERATIONS = "[]handlers.jsonPatchOp"


async def parse_object(ctx: Context, served: ServedKind, version: Version, body: bytes, content_type: str) -> Json:
    """The object of a POST or PUT."""
    kind = served.kind
    try:
        form = body_form(content_type, custom=served.custom)
        parsed = await parse_body(body, form)
    except NumberTooLarge as error:
        raise BadRequest(f"{_handled(served, version)}: {error.message}") from error
    except InvalidProtobuf as error:
        raise _unrecognized(kind, error.message, body) from error
    except MalformedBody as error:
        why = error.message if error.message.startswith("yaml") else f"couldn't get version/kind; {error.message}"
        raise _unrecognized(kind, why, body) from error
    if parsed is None:
        parsed = {}
    if not isinstance(parsed, dict):
        why = f"json parse error: json: cannot unmarshal {go_name(parsed)} into Go value of type {_HEAD}"
        raise _unrecognized(kind, f"couldn't get version/kind; {why}", body)
    if served.custom and not parsed.get("kind"):
        text = body.decode("utf-8", "replace")
        raise _unrecognized(kind, f"Object 'Kind' is missing in '{text[:1024]}'", body)
    doubled = form == JSON and check_duplicates(ctx, body, parsed, f"{_handled(served, version)}: ", version)
    if doubled and not served.custom:
        merged: Json = merge_duplicates(body)
        return merged
    return parsed


def _unrecognized(kind: str, why: str, body: bytes) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({shown_bytes(body)})")


def _handled(served: ServedKind, version: Version) -> str:
    return f'{served.kind} in version "{version.resource.version}" cannot be handled as a {served.kind}'


def check_duplicates(ctx: Context, body: bytes, parsed: object, prefix: str, version: Version | None = None) -> bool:
    """Refuses, reports or ignores fields that come twice, as `fieldValidation` says. Whether there are any."""
    found = [f'duplicate field "{path}"' for path in duplicate_fields(body, parsed)]
    if ctx.field_validation == "Strict" and found:
        if version is not None:  # one refusal names them all
            found += [f'unknown field "{path}"' for path in version.checker.prune(orjson.loads(orjson.dumps(parsed)))]
        raise BadRequest(f"{prefix}strict decoding error: {', '.join(found)}")
    for text in found if ctx.field_validation == "Warn" else ():
        ctx.warn(text)
    return bool(found)


async def parse_options(body: bytes, content_type: str) -> Json | None:
    """DeleteOptions; None when there is no body."""
    if not body:
        return None
    try:
        parsed = await parse_body(body, body_form(content_type))
    except MalformedBody as error:
        raise BadRequest(f"couldn't get version/kind; {error.message}") from error
    if parsed is not None and not isinstance(parsed, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: cannot unmarshal {go_name(parsed)}")
    return parsed or {}


async def parse_patch(ctx: Context, patch_type: str, body: bytes) -> Any:
    """The document of a PATCH, of the shape that its type asks for."""
    if patch_type == APPLY_PATCH:
        parsed = await _parse_applied(body)
    else:
        parsed = _parse_patch(patch_type, body)
    if patch_type != APPLY_PATCH or body[:1] == b"{":
        check_duplicates(ctx, body, parsed, "error decoding patch: ")
    return parsed


async def _parse_applied(body: bytes) -> Json:
    try:
        parsed = await parse_body(body, YAML)
    except MalformedBody as error:
        raise BadRequest(f"error decoding patch: error converting YAML to JSON: {error.message}") from error
    if parsed is None:
        parsed = {}
    if not isinstance(parsed, dict):
        raise BadRequest(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{go_name(parsed)} into Go value of type {_MAP}"
        )
    if not parsed.get("kind") and not parsed.get("apiVersion"):
        raise BadRequest("invalid object type: /, Kind=")
    return parsed


def _parse_patch(patch_type: str, body: bytes) -> Any:
    try:
        parsed = parse_json(body)
    except NumberTooLarge as error:
        raise BadRequest(f"error decoding patch: {error.message}") from error
    except MalformedBody as error:
        raise BadRequest("invalid JSON patch") from error
    if patch_type == JSON_PATCH:
        return _operations(parsed)
    if parsed is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(parsed, dict):
        prefix = "" if patch_type == STRATEGIC_PATCH else "error decoding patch: "
        raise BadRequest(f"{prefix}json: cannot unmarshal {go_name(parsed)} into Go value of type {_MAP}")
    return parsed


def _operations(parsed: Any) -> list[Any]:
    if not isinstance(parsed, list):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {go_name(parsed)} into Go value of type {_OPERATIONS}"
        )
    if len(parsed) > MAX_OPERATIONS:
        raise TooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(parsed)}"
        )
    return parsed
