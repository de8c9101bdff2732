"""Which form the client wants the answer in, and which form its body has."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from homeport.client.errors import NotAcceptable, UnsupportedMediaType

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"  # of request bodies only
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_META = "meta.k8s.io"
_FORMS = frozenset(("Table", "PartialObjectMetadata", "PartialObjectMetadataList"))
_MEDIA = {JSON: JSON, YAML: YAML, "*/*": JSON, "application/*": JSON}


class Form(NamedTuple):
    """`kind` is '' for the object itself, or one of the meta.k8s.io forms, in `version`."""

    media: str
    kind: str = ""
    version: str = "v1"


PLAIN = Form(JSON)


class _Clause(NamedTuple):
    media: str
    quality: float
    params: dict[str, str]


def _clause(text: str) -> _Clause:
    media, *rest = text.split(";")
    quality, params = 1.0, {}
    for part in rest:
        key, _, value = part.partition("=")
        key, value = key.strip().lower(), value.strip().strip('"')
        if key == "q":
            quality = _quality(value)
        else:
            params[key] = value
    return _Clause(media.strip().lower(), quality, params)


def _quality(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return value if 0.0 <= value <= 1.0 else 1.0


@lru_cache(maxsize=256)
def accepted(header: str) -> Form:
    """The first form that we can give, best quality first; raises NotAcceptable when there is none."""
    clauses = [_clause(text) for text in header.split(",") if text.strip()]
    if not clauses:
        return PLAIN
    for clause in sorted(clauses, key=lambda c: -c.quality):
        form = _form(clause)
        if form is not None and clause.quality > 0:
            return form
    raise NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}")


def _form(clause: _Clause) -> Form | None:
    media = _MEDIA.get(clause.media)
    if media is None:
        return None
    kind = clause.params.get("as", "")
    if not kind:
        return Form(media)
    version = clause.params.get("v", "v1")
    if kind not in _FORMS or clause.params.get("g", _META) != _META or version not in ("v1", "v1beta1"):
        return None
    return Form(media, kind, version)


class UnknownPatch(UnsupportedMediaType):
    """A content type that no patch of a built-in kind has."""


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def body_form(content_type: str, *, custom: bool = False) -> str:
    """JSON, YAML or, for built-in kinds, protobuf. A missing content type is JSON."""
    media = media_type(content_type)
    if not media or media == JSON:
        return JSON
    if media == YAML or (media == PROTOBUF and not custom):
        return media
    raise unsupported_media(JSON, YAML) if custom else unsupported_media(JSON, YAML, PROTOBUF)


def patch_form(content_type: str, *, strategic: bool) -> str:
    media = media_type(content_type)
    if strategic and media == STRATEGIC_PATCH:
        return media
    if media not in (JSON_PATCH, MERGE_PATCH, APPLY_PATCH):
        if strategic:
            raise UnknownPatch("415: Unsupported Media Type")
        raise unsupported_media(JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    return media


def unsupported_media(*known: str) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
