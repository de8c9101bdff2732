"""What decoding does: a body is what it says, has no unknown fields, and belongs where it was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from homeport.apiserver.kinds import decode
from homeport.apiserver.metadata import check_immutable, metadata_of
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Catalog, Json
from homeport.apiserver.target import MODIFIED, Target
from homeport.client.errors import BadRequest, Cause, Invalid, invalid
from homeport.machinery.apply.entry import is_reset
from homeport.machinery.schema.near import near_field
from homeport.store import Record

T = TypeVar("T")
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def shape(work: Callable[[Json], T], obj: Json, fields: tuple[str, ...] | None) -> T:
    """Lets `work` change an object, or only some of its fields as if it had no others."""
    if fields is None:
        return work(obj)
    part = {name: obj[name] for name in fields if name in obj}
    found = work(part)
    for name in fields:
        if name in part:
            obj[name] = part[name]
        else:
            obj.pop(name, None)
    return found


class Reader:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def read(self, ctx: Context, target: Target, body: Json, fields: tuple[str, ...] | None = None) -> Json:
        """Brings the body into form, in place; gives its metadata. `fields`: those that may need it (None: all)."""
        if not isinstance(body, dict):
            raise BadRequest(f"the body must be one object, got {type(body).__name__}")
        self._check_type(target, body)
        given = body["metadata"].get("managedFields") if isinstance(body.get("metadata"), dict) else None
        self._prune(ctx, target, body, fields)
        meta = self.check_address(target, body)
        if is_reset(given):
            meta["managedFields"] = given  # an empty list is a wish, unlike other empty lists
        return meta

    def read_patched(
        self, ctx: Context, target: Target, body: Json, record: Record, old: Json, fields: tuple[str, ...] | None
    ) -> None:
        """The outcome of a patch is read like any body, but what is wrong with it is the patch's fault."""
        meta = body.get("metadata")
        if meta is None or (isinstance(meta, dict) and not meta.get("name")):
            name = target.name
            raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        try:
            self._check_patched_type(target, body)
            meta = self.read(ctx, target, body, fields)
        except BadRequest as error:
            if "does not match" in error.message:  # another object's name or namespace
                raise
            raise patch_fault(error) from error
        wanted = meta.get("resourceVersion", "")
        if wanted and wanted != str(record.revision):
            raise target.conflict(MODIFIED)
        check_immutable(target, meta, old["metadata"])

    def check_address(self, target: Target, body: Json) -> Json:
        """Checks that the body belongs where it was sent, and gives its metadata."""
        meta = metadata_of(body)
        served = target.served
        if served.namespaced:
            if not target.namespace:
                raise BadRequest(f"an empty namespace may not be set during creation of a {served.kind}")
            if meta.setdefault("namespace", target.namespace) != target.namespace:
                if meta["namespace"]:
                    raise BadRequest(
                        "the namespace of the provided object does not match the namespace sent on the request"
                    )
                meta["namespace"] = target.namespace
        else:
            meta.pop("namespace", None)  # charts and templates often set one; kube-apiserver clears it, too
        if target.name:
            if meta.setdefault("name", target.name) != target.name:
                raise BadRequest(
                    f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})"
                )
        return meta

    # -- the type ----------------------------------------------------------------------------------------------

    def _check_type(self, target: Target, body: Json) -> None:
        resource = target.version.resource
        if target.served.custom:
            self._check_custom_type(target, body)
        else:
            kind, api_version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
            if (kind, api_version) != (resource.kind, resource.api_version):
                raise BadRequest(self._other_type(target, str(kind), str(api_version)))
        body["kind"], body["apiVersion"] = resource.kind, resource.api_version

    def _check_custom_type(self, target: Target, body: Json) -> None:
        resource = target.version.resource
        kind, api_version = body.get("kind"), body.get("apiVersion")
        if not kind:
            raise BadRequest("Object 'Kind' is missing in the request body")
        if not api_version:
            raise BadRequest("Object 'apiVersion' is missing in the request body")
        if api_version != resource.api_version:
            raise BadRequest(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        if kind != resource.kind:
            target.fault(Cause.invalid("kind", f'"{kind}": must be {resource.kind}'))
            target.called = str(kind)

    def _other_type(self, target: Target, kind: str, api_version: str) -> str:
        group, _, version = api_version.rpartition("/")
        wanted = target.version.resource.kind
        head = f'{kind} in version "{version}" cannot be handled as a {wanted}'
        known = self._catalog.by_kind(group, kind)
        if known is not None and version in known.versions:
            return f"{head}: the path takes a {wanted}, the body is a {kind}"
        return f'{head}: no kind "{kind}" is registered for version "{api_version}"'

    def _check_patched_type(self, target: Target, body: Json) -> None:
        wanted, given = target.version.resource.api_version, body.get("apiVersion")
        if target.served.custom and given and given != wanted:
            cause = Cause.invalid("apiVersion", f'"{given}": must be {wanted}')
            raise invalid("", target.served.kind, target.name, [cause])

    # -- the fields --------------------------------------------------------------------------------------------

    def _prune(self, ctx: Context, target: Target, body: Json, fields: tuple[str, ...] | None) -> None:
        metadata = fields is None or "metadata" in fields
        unknown = _read_metadata(target, body) if metadata and target.served.custom else []
        unknown += shape(target.version.checker.prune, body, fields)
        if not unknown or ctx.field_validation == "Ignore":
            return
        unknown.sort(key=lambda path: not path.startswith("metadata."))  # as they are found when decoding
        texts = [f'unknown field "{path}"' for path in unknown]
        if ctx.field_validation == "Strict":
            if target.served.custom:
                texts = [f"{text}{_meant(target, path)}" for text, path in zip(texts, unknown, strict=True)]
            raise BadRequest(f"{_handled(target)}: strict decoding error: {', '.join(texts)}")
        for text in texts:
            ctx.warn(text)


def _meant(target: Target, path: str) -> str:
    found = near_field(target.version.raw_schema or {}, path)
    return f' (did you mean "{found}"?)' if found else ""


def _read_metadata(target: Target, body: Json) -> list[str]:
    """The metadata of a custom object is decoded like that of any other: empty fields go, wrong types are refused."""
    if body.get("metadata") is None:
        return []
    try:
        return [f"metadata.{path}" for path in decode.read(_OBJECT_META, body["metadata"])]
    except decode.DecodeError as mistake:
        raise BadRequest(f"{_handled(target)}: {mistake}") from None


def _handled(target: Target) -> str:
    kind, version = target.version.resource.kind, target.version.resource.version
    return f'{kind} in version "{version}" cannot be handled as a {kind}'


def patch_fault(error: BadRequest) -> Invalid:
    """What makes a body a bad request makes a patch an invalid one. The object is not shown: it may hold secrets."""
    why = error.message.partition(" cannot be handled as a ")[2].partition(": ")[2] or error.message
    cause = Cause.invalid("patch", f'"{{...}}": {why}')
    return Invalid(f' "" is invalid: patch: {cause.message}', causes=[cause])
