"""list: selectors, pages and the meanings of resourceVersion."""

from __future__ import annotations

import base64
import binascii

import orjson

from homeport.apiserver.option import Listing, ListOptions
from homeport.apiserver.resource import ServedKind, Version
from homeport.apiserver.view import Selection, views
from homeport.client.errors import BadRequest, Cause, Expired, Invalid, Timeout, invalid
from homeport.store import Compacted, FutureRevision, Record, Store

_CONTINUE_FORMAT = "meta.k8s.io/v1"
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ContinueExpired(Expired):
    """410 for an old continue token; the Status carries a token that goes on inconsistently."""

    def __init__(self, token: str) -> None:
        super().__init__(_TOO_OLD)
        self._token = token

    @property
    def status(self) -> dict[str, object]:
        return {**super().status, "metadata": {"continue": self._token}}


def parse_revision(text: str, field: str = "resourceVersion") -> int:
    """A resourceVersion; '' and '0' are 0."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise BadRequest(f'{field}: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def _bad_option(field: str, message: str) -> Invalid:
    reason = "FieldValueForbidden" if message.startswith("Forbidden") else "FieldValueNotSupported"
    return invalid("meta.k8s.io", "ListOptions", "", [Cause(reason, message, field)])


def too_large(wanted: int, current: int) -> Timeout:
    return Timeout(
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1,
    )


def too_old(wanted: int, oldest: int) -> Expired:
    return Expired(f"too old resource version: {wanted} ({oldest})")


def encode_continue(revision: int, after: str) -> str:
    raw = orjson.dumps({"v": _CONTINUE_FORMAT, "rv": revision, "start": after})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_continue(token: str) -> tuple[int, str]:
    """The revision (-1: inconsistent, read what is there now) and the last name already given."""
    try:
        raw = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, revision, after = raw.get("v"), raw.get("rv", 0), raw.get("start", "")
    except (ValueError, AttributeError, binascii.Error) as error:
        raise _bad_token("it was not made by this server") from error
    if version != _CONTINUE_FORMAT:
        raise _bad_token(f"server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or revision == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {_CONTINUE_FORMAT})")
    if not isinstance(after, str) or not after:
        raise _bad_token(f"encoded start key empty (version {_CONTINUE_FORMAT})")
    if ".." in after.split("/"):
        raise _bad_token(after)
    return revision, after


def _bad_token(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")


def _check(options: ListOptions) -> None:
    if options.limit < 0:
        raise BadRequest("limit must not be negative")
    if options.match not in ("", "Exact", "NotOlderThan"):
        raise _bad_option(
            "resourceVersionMatch",
            f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan", ""',
        )
    if options.match and not options.resource_version:
        raise _bad_option(
            "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if options.match and options.continue_:
        raise _bad_option(
            "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        )
    if options.match == "Exact" and options.resource_version == "0":
        raise _bad_option(
            "resourceVersionMatch",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )


def _snapshot(store: Store, options: ListOptions) -> tuple[int | None, str]:
    """Which revision to read (None: the newest) and after which name to go on."""
    if options.continue_:
        if options.resource_version and options.resource_version != "0":
            raise BadRequest("specifying resource version is not allowed when using continue")
        revision, after = decode_continue(options.continue_)
        return (None if revision < 0 else revision), after
    try:
        wanted = parse_revision(options.resource_version)
    except BadRequest as error:
        raise BadRequest(f"invalid resource version: {error.message}") from error
    if wanted > store.revision:
        raise too_large(wanted, store.revision)
    # With a limit and no match, an explicit resourceVersion means exactly that one.
    exact = options.match == "Exact" or (wanted > 0 and options.limit > 0 and not options.match)
    return (wanted if exact else None), ""


def _read(store: Store, bucket: str, prefix: str, after: str, limit: int, revision: int | None) -> list[Record]:
    if revision is None or revision == store.revision:
        return store.range(bucket, prefix=prefix, after=after, limit=limit)
    return store.range(bucket, prefix=prefix, after=after, limit=limit, revision=revision)


def _select(
    store: Store, served: ServedKind, prefix: str, after: str, limit: int, revision: int | None, selection: Selection
) -> tuple[list[Record], bool]:
    """Up to `limit` matching records (0: all), and whether more may follow."""
    if selection.all:
        records = _read(store, served.bucket, prefix, after, limit + 1 if limit else 0, revision)
        more = bool(limit) and len(records) > limit
        return (records[:limit] if more else records), more
    found = [r for r in _read(store, served.bucket, prefix, after, 0, revision) if selection.matches(r)]
    more = bool(limit) and len(found) > limit
    return (found[:limit] if more else found), more


async def list_objects(
    store: Store, served: ServedKind, version: Version, namespace: str, options: ListOptions
) -> Listing:
    _check(options)
    selection = Selection(served, version, options.labels, options.fields)
    revision, after = _snapshot(store, options)
    prefix = f"{namespace}/" if namespace else ""
    shown = store.revision if revision is None else revision
    try:
        records, more = _select(store, served, prefix, after, options.limit, revision, selection)
    except Compacted as error:
        if options.continue_:
            raise ContinueExpired(encode_continue(-1, after)) from error
        raise Expired("The resourceVersion for the provided list is too old.") from error
    except FutureRevision as error:
        raise too_large(shown, store.revision) from error
    token, remaining = "", None
    if more:
        last = records[-1].name
        token = encode_continue(shown, last)
        if selection.all:
            remaining = len(_read(store, served.bucket, prefix, last, 0, revision))
    return Listing(await views(records, served, version), shown, token, remaining)
