"""Server-side apply: a configuration is merged into the live object, field by field with their owners.

The configuration is taken as it was sent: what it does not mention it does not own, so nothing is filled in or dropped
before the merge.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from homeport.apiserver.metadata import check_immutable, metadata_of, strip_create
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json
from homeport.apiserver.target import MODIFIED, Target
from homeport.apiserver.verb.write import ATTEMPTS, Writer
from homeport.client.errors import ApiError, BadRequest, Cause, Conflict, invalid
from homeport.machinery.apply import managed
from homeport.store import Mismatch, Record, Store

_REASON = {400: "BadRequest", 422: "Invalid"}


class Applier:
    def __init__(self, store: Store, writer: Writer, now: Callable[[], str]) -> None:
        self._store = store
        self._writer = writer
        self._now = now

    async def apply(self, ctx: Context, target: Target, applied: object, force: bool) -> tuple[bytes, bool]:
        """The object, and whether it was created."""
        if not isinstance(applied, dict):
            raise BadRequest("an applied configuration must be one object")
        if not ctx.field_manager:
            cause = Cause.required("fieldManager", "is required for apply patch")
            raise invalid("meta.k8s.io", "PatchOptions", "", [cause])
        meta = _check(target, applied)
        for _ in range(ATTEMPTS):
            record = self._store.head(target.served.bucket, target.key)
            try:
                if record is None:
                    return await self._create(ctx, target, applied, meta, force), True
                return await self._update(ctx, target, record, applied, meta, force), False
            except Mismatch:
                continue
        raise target.conflict(MODIFIED)

    async def _create(self, ctx: Context, target: Target, applied: Json, meta: Json, force: bool) -> bytes:
        if target.subresource:
            raise target.not_found()
        if uid := meta.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise target.conflict(why)
        ctx.may_create()
        obj = self._merge(ctx, target, None, applied, force)
        _decode_nulls(target, applied, obj)
        strip_create(metadata_of(obj))
        self._writer.reader.check_address(target, obj)
        return await self._writer.create_owned(ctx, target, obj)

    async def _update(
        self, ctx: Context, target: Target, record: Record, applied: Json, meta: Json, force: bool
    ) -> bytes:
        old = await self._writer.decode(target, record)
        check_immutable(target, meta, old["metadata"])
        if (wanted := meta.get("resourceVersion")) and wanted != str(record.revision):
            raise target.conflict(MODIFIED)
        obj = self._merge(ctx, target, await self._writer.decode(target, record), applied, force)
        # The merge shares parts with its inputs; what follows changes the object in place.
        obj = orjson.loads(orjson.dumps(obj))
        _decode_nulls(target, applied, obj)
        return await self._writer.replace(ctx, target, record, obj, old, owned=True)

    def _merge(self, ctx: Context, target: Target, live: Json | None, applied: Json, force: bool) -> Json:
        try:
            return managed.apply(
                live,
                applied,
                schema=target.version.schema,
                api_version=target.version.resource.api_version,
                manager=ctx.field_manager,
                time="" if target.subresource == "scale" else self._now(),
                force=force,
                subresource=target.subresource,
                status=target.version.status,
                kind=target.version.resource.kind,
            )
        except managed.ApplyConflict as error:
            raise Conflict(str(error), causes=[Cause(*cause) for cause in error.causes]) from error
        except managed.ApplyError as error:
            # What the real server reports as its own failure is a mistake in the configuration.
            code = 400 if error.code >= 500 else error.code
            raise ApiError(str(error), code=code, reason=_REASON.get(code, "BadRequest")) from error


def _decode_nulls(target: Target, applied: Json, obj: Json) -> None:
    """A null of a built-in kind is read as the real server's decoder reads it: an unset field, or an empty text."""
    if not target.served.custom and _has_null(applied):
        target.version.checker.prune(obj)


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None


def _check(target: Target, applied: Json) -> Json:
    """The configuration must be for this object, and may not speak of its own owners."""
    meta = applied.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        raise BadRequest("metadata: expected a map")
    if meta.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    name = meta.get("name")
    if name and name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if not target.served.namespaced:
        meta.pop("namespace", None)
    namespace = meta.get("namespace")
    if namespace and namespace != target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    return meta
