"""delete: preconditions, finalizers, grace and who looks after the dependents."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import orjson

from homeport.apiserver.option import DeleteOptions
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json
from homeport.apiserver.target import Target
from homeport.apiserver.verb.admission import Admission, Attributes
from homeport.apiserver.verb.write import encoder
from homeport.apiserver.view import convert, view
from homeport.client.errors import BadRequest, Cause, invalid
from homeport.store import Mismatch, Missing, Record, Store

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_FINALIZER = {"Foreground": FOREGROUND, "Orphan": ORPHAN}
_ATTEMPTS = 5


class Remover:
    def __init__(self, store: Store, admission: Admission, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._admission = admission
        self._clock = clock

    async def delete(self, ctx: Context, target: Target, options: DeleteOptions) -> tuple[bytes, bool]:
        """The answer's body, and whether the object is gone."""
        _check(options)
        for _ in range(_ATTEMPTS):
            record = self._store.head(target.served.bucket, target.key)
            if record is None:
                raise target.not_found()
            old: Json = orjson.loads(record.value)
            self._check_preconditions(target, options, record, old)
            await self._admit(ctx, target, old)
            try:
                return await self._delete(ctx, target, options, record, old)
            except Mismatch:
                continue
            except Missing as error:
                raise target.not_found() from error
        raise target.conflict("the object kept changing while it was being deleted; try again")

    def _check_preconditions(self, target: Target, options: DeleteOptions, record: Record, old: Json) -> None:
        uid = old["metadata"].get("uid", "")
        if options.uid and options.uid != uid:
            raise target.precondition(
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
                "The object might have been deleted and then recreated"
            )
        if options.resource_version and options.resource_version != str(record.revision):
            raise target.precondition(
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({record.revision}). The object might have been modified"
            )

    async def _admit(self, ctx: Context, target: Target, old: Json) -> None:
        if not self._admission.validates(target.served, "DELETE", ""):
            return
        shown = old
        if target.served.custom or target.version.resource.version != target.served.storage:
            shown = (await convert([orjson.loads(orjson.dumps(old))], target.served, target.version))[0]
        await self._admission.validate(
            Attributes(
                ctx=ctx,
                served=target.served,
                version=target.version,
                namespace=target.namespace,
                name=target.name,
                operation="DELETE",
                subresource="",
                object=None,
                old=shown,
            )
        )

    async def _delete(
        self, ctx: Context, target: Target, options: DeleteOptions, record: Record, old: Json
    ) -> tuple[bytes, bool]:
        obj: Json = orjson.loads(record.value)
        meta = obj["metadata"]
        target.served.strategy.prepare_delete(obj, self._time(0))
        finalizers = _finalizers(meta.get("finalizers") or [], options)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        grace = self._grace(target, obj, options)
        held = bool(finalizers) or grace > 0 or _namespace_content(target, obj)
        first = "deletionTimestamp" not in meta
        if not held:
            if target.served.graceful:  # watchers see that no time is left before they see it gone
                self._mark(target, meta, 0, first=first)
                if obj != old and not ctx.dry_run:
                    record = await self._store.put(
                        target.served.bucket, target.key, encoder(obj), expect=record.revision
                    )
            return await self._remove(ctx, target, record, obj)
        shorter = not first and grace < (meta.get("deletionGracePeriodSeconds") or 0)
        if first or shorter:
            self._mark(target, meta, grace, first=first)
            if target.served.bucket == "namespaces":
                obj.setdefault("status", {})["phase"] = "Terminating"
        if obj == old:
            return await view(record, target.served, target.version), False
        if ctx.dry_run:
            return orjson.dumps(obj), False
        written = await self._store.put(target.served.bucket, target.key, encoder(obj), expect=record.revision)
        ctx.wrote = True
        return await view(written, target.served, target.version), False

    def _mark(self, target: Target, meta: Json, grace: int, *, first: bool) -> None:
        meta["deletionTimestamp"] = self._time(grace)
        if target.served.bucket != "namespaces":
            meta["deletionGracePeriodSeconds"] = grace
        if first and "generation" in meta:
            meta["generation"] += 1

    def _time(self, plus: int) -> str:
        return datetime.fromtimestamp(self._clock() + plus, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _grace(self, target: Target, obj: Json, options: DeleteOptions) -> int:
        """Only Pods on a node are given time; nothing else has anybody to wait for."""
        if not target.served.graceful or not (obj.get("spec") or {}).get("nodeName"):
            return 0
        if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return 0
        if options.grace_seconds is not None:
            return max(options.grace_seconds, 0)
        given = obj["spec"].get("terminationGracePeriodSeconds")
        return 30 if given is None else int(given)

    async def _remove(self, ctx: Context, target: Target, record: Record, obj: Json) -> tuple[bytes, bool]:
        served, meta = target.served, obj["metadata"]
        gone = record.value
        if not ctx.dry_run:
            change = await self._store.delete(served.bucket, target.key, encoder(obj), expect=record.revision)
            gone = change.value or b""
            ctx.wrote = True
        if served.returns_deleted:
            return await view(Record(served.bucket, target.key, gone, 0, record.revision), served, target.version), True
        details = {"name": target.name, "kind": served.plural, "uid": meta.get("uid", "")}
        if served.group:
            details["group"] = served.group
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return orjson.dumps(body), True


def _finalizers(current: list[str], options: DeleteOptions) -> list[str]:
    """What holds the object, given who is to look after its dependents."""
    policy = options.propagation
    if options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if not policy:
        return current
    kept = [f for f in current if f not in (FOREGROUND, ORPHAN)]
    wanted = _FINALIZER.get(policy)
    return [*kept, wanted] if wanted else kept


def _namespace_content(target: Target, obj: Json) -> bool:
    return target.served.bucket == "namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _check(options: DeleteOptions) -> None:
    if options.propagation not in ("", "Background", "Foreground", "Orphan"):
        raise invalid(
            "meta.k8s.io",
            "DeleteOptions",
            "",
            [
                Cause(
                    "FieldValueNotSupported",
                    f'Unsupported value: "{options.propagation}": supported values: '
                    '"Foreground", "Background", "Orphan", "nil"',
                    "propagationPolicy",
                )
            ],
        )
    if options.propagation and options.orphan_dependents is not None:
        raise BadRequest("orphanDependents and propagationPolicy cannot be both set: leave out orphanDependents")
