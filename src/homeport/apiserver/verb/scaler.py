"""Writes through the scale subresource: an autoscaling/v1 Scale becomes a new replica count of the object."""

from __future__ import annotations

import orjson

from homeport.apiserver.kinds import decode
from homeport.apiserver.metadata import metadata_of
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json, Scale
from homeport.apiserver.target import MODIFIED, Target
from homeport.apiserver.verb.apply import Applier
from homeport.apiserver.verb.patch import patched
from homeport.apiserver.verb.reader import patch_fault
from homeport.apiserver.verb.scale import API_VERSION, KIND, scale_of, write_replicas
from homeport.apiserver.verb.write import ATTEMPTS, Writer
from homeport.client.errors import BadRequest, Cause, Conflict
from homeport.store import Mismatch, Record

_DEFINITION = "io.k8s.api.autoscaling.v1.Scale"
_HANDLED = f'{KIND} in version "v1" cannot be handled as a {KIND}'
_SHOWN = ".spec.replicas"  # whatever the path is called in the object


class Scaler:
    def __init__(self, writer: Writer, applier: Applier) -> None:
        self._writer = writer
        self._applier = applier

    async def update(self, ctx: Context, target: Target, body: Json) -> bytes:
        replicas = _read(ctx, body)
        meta = metadata_of(body)
        _check_address(target, body)
        wanted, uid = meta.get("resourceVersion", ""), meta.get("uid")
        for _ in range(ATTEMPTS):
            record, old, obj = await self._writer.load(target)
            if wanted and wanted != str(record.revision):
                raise target.conflict(MODIFIED)
            current = old["metadata"].get("uid")
            if uid and uid != current:
                raise target.conflict(f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}")
            try:
                return await self._scale(ctx, target, record, old, obj, replicas)
            except Mismatch:
                continue
        raise target.conflict(MODIFIED)

    async def patch(self, ctx: Context, target: Target, patch_type: str, patch: object) -> bytes:
        for _ in range(ATTEMPTS):
            record, old, obj = await self._writer.load(target)
            body = patched(target, patch_type, patch, scale_of(old, _scale_at(target), target.served))
            if metadata_of(body).get("resourceVersion") not in (None, str(record.revision)):
                raise target.conflict(MODIFIED)
            _check_address(target, body)
            try:
                replicas = _read(ctx, body)
            except BadRequest as error:
                raise patch_fault(error) from error
            try:
                return await self._scale(ctx, target, record, old, obj, replicas)
            except Mismatch:
                continue
        raise target.conflict(MODIFIED)

    async def apply(self, ctx: Context, target: Target, applied: object, force: bool) -> bytes:
        """The count alone is applied, and owned through this subresource."""
        if not isinstance(applied, dict):
            raise BadRequest("an applied configuration must be one object")
        group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
        if (applied.get("apiVersion"), applied.get("kind")) != (API_VERSION, KIND):
            raise BadRequest(f"invalid object type: {group}/{version}, Kind={applied.get('kind', '')}")
        resource, path = target.version.resource, _scale_at(target).spec_replicas
        config: Json = {
            **resource.type_meta,
            "metadata": applied.get("metadata") or {},
        }
        replicas = _read(ctx, applied)
        if "replicas" in (applied.get("spec") or {}):
            write_replicas(config, path, replicas)
        try:
            written, _ = await self._applier.apply(ctx, target, config, force)
        except Conflict as error:
            raise _in_scale(error, path) from error
        return self._answer(target, written)

    async def _scale(self, ctx: Context, target: Target, record: Record, old: Json, obj: Json, replicas: int) -> bytes:
        write_replicas(obj, _scale_at(target).spec_replicas, replicas, checked=not target.served.custom)
        return self._answer(target, await self._writer.replace(ctx, target, record, obj, old))

    def _answer(self, target: Target, written: bytes) -> bytes:
        return orjson.dumps(scale_of(orjson.loads(written), _scale_at(target), target.served))


def _read(ctx: Context, body: Json) -> int:
    """The count that a Scale asks for. A body of another type, or with fields that a Scale does not have, is refused or
    warned of like any other."""
    kind, api_version = str(body.get("kind") or KIND), str(body.get("apiVersion") or API_VERSION)
    if (kind, api_version) != (KIND, API_VERSION):
        head = f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {KIND}'
        raise BadRequest(f'{head}: the path takes a {KIND}, the body is of kind "{kind}" in version "{api_version}"')
    copy: Json = orjson.loads(orjson.dumps(body))
    try:
        unknown = [f'unknown field "{path}"' for path in decode.read(_DEFINITION, copy)]
    except decode.DecodeError as mistake:
        raise BadRequest(f"{_HANDLED}: {mistake}") from None
    if unknown and ctx.field_validation == "Strict":
        raise BadRequest(f"{_HANDLED}: strict decoding error: {', '.join(unknown)}")
    for text in unknown if ctx.field_validation == "Warn" else ():
        ctx.warn(text)
    return int((copy.get("spec") or {}).get("replicas") or 0)


def _check_address(target: Target, body: Json) -> None:
    meta = metadata_of(body)
    name, namespace = meta.get("name", ""), meta.get("namespace") or target.namespace
    if not name:
        why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise BadRequest(why)
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if namespace != target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _scale_at(target: Target) -> Scale:
    assert target.version.scale is not None  # else there is no such subresource
    return target.version.scale


def _in_scale(error: Conflict, path: str) -> Conflict:
    """A conflict over the count, in the words of a Scale."""
    if path == _SHOWN or not error.causes:
        return error
    causes = [Cause(c.reason, c.message, _SHOWN if c.field == path else c.field) for c in error.causes]
    return Conflict(error.message.replace(path, _SHOWN), causes=causes)
