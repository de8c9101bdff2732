"""create, update, patch: from a client's body to a stored object.

One way through for every writer: identity, pruning, defaults, mutating admission, managed fields, validation,
validating admission, then the store. Everything between reading the object and handing it to the store happens
without an await unless an admission webhook or a conversion webhook is asked, so conflicts are rare.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from homeport.apiserver.metadata import carry_over, check_metadata, finalizer_warnings, stamp_create, strip_create
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json
from homeport.apiserver.target import MODIFIED, Target
from homeport.apiserver.verb.admission import Admission, Attributes
from homeport.apiserver.verb.difference import (
    counts_as_generation,
    differs_in_time_only,
    is_finished,
    kept_when_stored,
    named_fields,
)
from homeport.apiserver.verb.patch import MERGE_PATCH, patched
from homeport.apiserver.verb.reader import Reader, shape
from homeport.apiserver.view import Memo, convert, peek_view, to_version, view
from homeport.client.errors import BadRequest, Cause, already_exists, invalid
from homeport.machinery.apply import managed
from homeport.machinery.apply.entry import is_reset
from homeport.store import Mismatch, Missing, Record, Store

ATTEMPTS = 5
_NAME_ATTEMPTS = 8
# After one of these the rules of a kind could meet values that they were not written for.
_BLOCKING = frozenset(
    ("FieldValueRequired", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)


class Writer:
    def __init__(self, store: Store, admission: Admission, reader: Reader, now: Callable[[], str]) -> None:
        self.reader = reader
        self._store = store
        self._admission = admission
        self._now = now

    # -- create ------------------------------------------------------------------------------------------------

    async def create(self, ctx: Context, target: Target, body: Json) -> bytes:
        meta = self.reader.read(ctx, target, body)
        if meta.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        strip_create(meta)
        stem = "" if meta.get("name") else meta.get("generateName", "")
        for attempt in range(_NAME_ATTEMPTS):
            try:
                obj = orjson.loads(orjson.dumps(body)) if stem else body
                return await self.create_owned(ctx, target, obj, owned=False)
            except Mismatch as error:
                if not stem or attempt + 1 == _NAME_ATTEMPTS:
                    raise already_exists(target.served.group, target.served.plural, target.name) from error
        raise AssertionError("unreachable")

    async def create_owned(self, ctx: Context, target: Target, obj: Json, *, owned: bool = True) -> bytes:
        """Creates an object that was read already; `owned`: its managedFields are as they should be."""
        served = target.served
        now = self._now()
        self._default(target, obj)
        if not owned:
            self._own(ctx, target, None, obj, now)
        target.rename(obj["metadata"].get("name", ""))  # admission may want to name what it refuses
        obj = await self._mutate(ctx, target, "CREATE", obj, None)
        meta = obj["metadata"]
        stamp_create(meta, now)
        target.rename(meta.get("name", ""))
        if served.spec_generation:
            meta["generation"] = 1
        served.strategy.prepare_create(obj)
        self._validate(ctx, target, obj, None)
        await self._admit(ctx, target, "CREATE", obj, None)
        if ctx.dry_run:
            if self._store.head(served.bucket, target.key) is not None:
                raise already_exists(served.group, served.plural, target.name)
            return orjson.dumps(obj)
        return await self._put(ctx, target, obj, expect=0)

    def _own(self, ctx: Context, target: Target, old: Json | None, obj: Json, now: str) -> None:
        """Updates managedFields. Called before admission: fields that a webhook adds have no owner."""
        meta = obj["metadata"]
        if old is None and is_reset(meta.get("managedFields")):
            del meta["managedFields"]  # asked to track nobody
            return
        kept = kept_when_stored(target, obj)
        managed.update(
            old,
            kept,
            schema=target.version.schema,
            api_version=target.version.resource.api_version,
            manager=ctx.manager,
            time="" if target.subresource == "scale" else now,  # the real server loses it there
            subresource=target.subresource,
            status=target.version.status,
        )
        if kept is not obj:
            meta.pop("managedFields", None)
            meta.update({"managedFields": found} if (found := kept["metadata"].get("managedFields")) else {})

    # -- update ------------------------------------------------------------------------------------------------

    async def update(self, ctx: Context, target: Target, body: Json) -> tuple[bytes, bool]:
        meta = self.reader.read(ctx, target, body)
        wanted = meta.get("resourceVersion", "")
        if wanted and not (wanted.isascii() and wanted.isdigit()):
            raise BadRequest(f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
        again = orjson.dumps(body)  # an attempt changes the body; a second one starts afresh
        for attempt in range(ATTEMPTS):
            record = self._store.head(target.served.bucket, target.key)
            if record is None:
                return await self._create_by_update(ctx, target, body), True
            self._check_identity(target, meta, wanted, record)
            try:
                return await self.replace(ctx, target, record, body if attempt == 0 else orjson.loads(again)), False
            except Mismatch as error:
                if wanted and wanted != "0":
                    raise target.conflict(MODIFIED) from error
        raise target.conflict(MODIFIED)

    async def _create_by_update(self, ctx: Context, target: Target, body: Json) -> bytes:
        if not target.served.create_on_update or target.subresource:
            raise target.not_found()
        ctx.may_create()
        strip_create(body["metadata"])
        try:
            return await self.create_owned(ctx, target, body, owned=False)
        except Mismatch as error:
            raise target.conflict(MODIFIED) from error

    def _check_identity(self, target: Target, meta: Json, wanted: str, record: Record) -> None:
        if wanted and wanted != "0" and wanted != str(record.revision):
            raise target.conflict(MODIFIED)
        if (target.served.custom or target.served.needs_version) and (not wanted or wanted == "0"):
            cause = Cause.invalid("metadata.resourceVersion", "0: must be specified for an update")
            raise invalid(target.served.group, target.served.plural, target.name, [cause])
        uid = meta.get("uid")
        if uid:
            current = orjson.loads(record.value)["metadata"].get("uid")
            if uid != current:
                raise target.conflict(f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}")

    # -- patch -------------------------------------------------------------------------------------------------

    async def patch(self, ctx: Context, target: Target, patch_type: str, patch: object) -> tuple[bytes, bool]:
        fields = named_fields(target, patch_type, patch)
        for _ in range(ATTEMPTS):
            record, old, base = await self._load_for(target, patch_type)
            body = patched(target, patch_type, patch, base)
            if base is old and isinstance(body.get("metadata"), dict):  # a patch can make anything of it
                body["metadata"] = dict(body["metadata"])  # the server writes into it
            self.reader.read_patched(ctx, target, body, record, old, fields)
            try:
                return await self.replace(ctx, target, record, body, old, fields=fields), False
            except Mismatch:
                continue
        raise target.conflict(MODIFIED)

    async def _load_for(self, target: Target, patch_type: str) -> tuple[Record, Json, Json]:
        """A merge patch of a status makes new what it changes and shares the rest, which then stays as it is: it is in
        form already. So the object is decoded once."""
        record = self._store.head(target.served.bucket, target.key)
        if record is None or not (patch_type == MERGE_PATCH and self._leaves_the_rest(target)):
            return await self.load(target)
        old = await self.decode(target, record)
        return record, old, old

    def _leaves_the_rest(self, target: Target) -> bool:
        if target.subresource != "status":
            return False
        if target.served.custom:
            return True
        stored = target.version.resource.version == target.served.storage
        return stored and not self._admission.mutates(target.served, "UPDATE", "status")

    # -- the common way of everything that changes an existing object -------------------------------------------

    async def load(self, target: Target) -> tuple[Record, Json, Json]:
        """The newest state, twice: one to compare with, one to change."""
        record = self._store.head(target.served.bucket, target.key)
        if record is None:
            raise target.not_found()
        return record, await self.decode(target, record), await self.decode(target, record)

    async def decode(self, target: Target, record: Record) -> Json:
        known = peek_view(record, target.served, target.version)
        if known is not None:  # in this version and checked by its schema already
            obj: Json = orjson.loads(known)
            return obj
        return (await convert([orjson.loads(record.value)], target.served, target.version))[0]

    async def replace(
        self,
        ctx: Context,
        target: Target,
        record: Record,
        obj: Json,
        old: Json | None = None,
        *,
        owned: bool = False,
        fields: tuple[str, ...] | None = None,
    ) -> bytes:
        """Puts `obj` in the place of what `record` holds. Raises Mismatch when that is no longer the newest.
        `fields`: those that may lack defaults (None: all)."""
        served, version = target.served, target.version
        if old is None:
            old = await self.decode(target, record)
        self._hold(target, obj, old)
        self._default(target, obj, fields)
        if not owned:
            self._own(ctx, target, old, obj, self._now())
        changed = await self._mutate(ctx, target, "UPDATE", obj, old)
        if changed is not obj:
            obj = changed
            self._hold(target, obj, old)
        if target.subresource != "status" and target.subresource not in served.subresource_strategies:
            served.strategy.prepare_update(obj, old)
        if counts_as_generation(target, obj, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        self._validate(ctx, target, obj, old)
        await self._admit(ctx, target, "UPDATE", obj, old)
        if is_finished(obj):
            return await self._remove(ctx, target, record, obj)
        if owned and differs_in_time_only(obj, old):
            # What was applied lacks defaults of the server: the merge saw a change, and with them there is none.
            obj["metadata"]["managedFields"] = old["metadata"]["managedFields"]
        if obj == old or ctx.dry_run:
            if self._store.get(served.bucket, target.key) is not record:
                await self._store.flush()  # what is confirmed here must be stored
            return orjson.dumps(obj)
        if version.resource.version != served.storage and await self._same_when_stored(target, record, obj):
            return await view(record, served, version)
        return await self._put(ctx, target, obj, expect=record.revision)

    async def _same_when_stored(self, target: Target, record: Record, obj: Json) -> bool:
        """The other version has fields and spellings that the stored one lacks: changing only those stores nothing."""
        stored, before = await self._to_storage(target, obj), orjson.loads(record.value)
        for each in (stored, before):
            for counted in ("managedFields", "generation"):
                each["metadata"].pop(counted, None)
        return bool(stored == before)

    def _hold(self, target: Target, obj: Json, old: Json) -> None:
        """What this write may not change is as it was."""
        carry_over(obj["metadata"], old["metadata"])
        self._hold_subresource(target, obj, old)

    def _hold_subresource(self, target: Target, obj: Json, old: Json) -> None:
        """A write to the object leaves its status alone, a write to the status everything else."""
        if target.subresource == "status":
            for field in [f for f in obj if f not in ("status", "metadata")]:
                del obj[field]
            for field, value in old.items():
                if field not in ("status", "metadata"):
                    obj[field] = value
            kept = obj["metadata"].get("managedFields")
            fields = ("finalizers", "ownerReferences", "labels", "annotations")
            for field in fields if target.served.custom else fields[:2]:
                if field in old["metadata"]:
                    obj["metadata"][field] = old["metadata"][field]
                else:
                    obj["metadata"].pop(field, None)
            if kept is not None:
                obj["metadata"]["managedFields"] = kept
        elif target.version.status and target.subresource not in target.served.subresource_strategies:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        window = target.served.subresource_strategies.get(target.subresource)
        if window is not None:
            window.prepare(obj, old)

    async def _remove(self, ctx: Context, target: Target, record: Record, obj: Json) -> bytes:
        """The last finalizer went: the update is a deletion. Watchers get the last state that was stored."""
        if ctx.dry_run:
            return orjson.dumps(obj)
        last = encoder(orjson.loads(record.value))
        try:
            await self._store.delete(target.served.bucket, target.key, last, expect=record.revision)
        except Missing as error:
            raise target.not_found() from error
        ctx.wrote = True
        return orjson.dumps(obj)

    # -- steps -------------------------------------------------------------------------------------------------

    def _default(self, target: Target, obj: Json, fields: tuple[str, ...] | None = None) -> None:
        if target.faults:  # it is not an object of this kind: no defaults are set
            return
        # A built-in object may have been stored by an older server, with other defaults.
        shape(target.version.checker.default, obj, fields if target.served.custom else None)
        target.served.strategy.default(obj)

    async def _mutate(self, ctx: Context, target: Target, operation: str, obj: Json, old: Json | None) -> Json:
        if not self._admission.mutates(target.served, operation, target.subresource):
            return obj
        # The client is not responsible for fields that admission adds: no warnings about them.
        target.asked_finalizers = obj["metadata"].get("finalizers") or []
        changed = await self._admission.mutate(self._attributes(ctx, target, operation, obj, old))
        if changed is not obj:
            target.version.checker.prune(changed)
            self._default(target, changed)
        return changed

    async def _admit(self, ctx: Context, target: Target, operation: str, obj: Json, old: Json | None) -> None:
        if self._admission.validates(target.served, operation, target.subresource):
            await self._admission.validate(self._attributes(ctx, target, operation, obj, old))

    def _attributes(self, ctx: Context, target: Target, operation: str, obj: Json, old: Json | None) -> Attributes:
        return Attributes(
            ctx=ctx,
            served=target.served,
            version=target.version,
            namespace=target.namespace,
            name=target.name,
            operation=operation,
            subresource=target.subresource,
            object=obj,
            old=old,
        )

    def _validate(self, ctx: Context, target: Target, obj: Json, old: Json | None) -> None:
        served = target.served
        before = None if old is None else old["metadata"]
        causes = target.faults + check_metadata(obj["metadata"], before, served)
        checker = target.version.checker
        flawed = any(cause.reason in _BLOCKING for cause in causes)
        if target.subresource == "status" and old is not None:
            violations = checker.validate_status(obj, old, flawed=flawed)
        else:
            violations = checker.validate(obj, old, flawed=flawed)
        causes += [Cause(*violation) for violation in violations]
        if not causes or not served.custom:  # rules of custom kinds may rely on a well-formed object
            window = served.subresource_strategies.get(target.subresource)
            if window is not None and old is not None:
                causes += window.validate(obj, old)
            else:
                causes += served.strategy.validate(obj, old)
        if causes:
            raise target.invalid(causes)
        if served.custom and "finalizers" in obj["metadata"]:
            for text in finalizer_warnings(obj["metadata"], before, target.asked_finalizers):
                ctx.warn(text)

    async def _to_storage(self, target: Target, obj: Json) -> Json:
        served = target.served
        if target.version.resource.version == served.storage:
            return obj
        api_version = f"{served.group}/{served.storage}" if served.group else served.storage
        copy = orjson.loads(orjson.dumps(obj))
        stored = (await to_version([copy], served, served.storage, api_version))[0]
        if served.custom and served.storage in served.versions:
            served.versions[served.storage].checker.settle(stored)
        return stored

    async def _put(self, ctx: Context, target: Target, obj: Json, *, expect: int) -> bytes:
        served, version = target.served, target.version
        stored = await self._to_storage(target, obj)
        memo = Memo(normal=version) if served.custom and stored is obj else None  # it was just checked
        record = await self._store.put(served.bucket, target.key, encoder(stored), expect=expect, memo=memo)
        ctx.wrote = True
        return await view(record, served, version)


def encoder(obj: Json) -> Callable[[int], bytes]:
    def encode(revision: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(revision)
        return orjson.dumps(obj)

    return encode
