"""The parts of one version beside its schema: deprecation, subresources, columns, selectable fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE: Final = 8


def deprecation_violations(version: Raw, path: str) -> Iterator[Violation]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    field = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield v.invalid(field, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        yield v.invalid(field, warning, "must be <= 256 characters long")
    if not warning:
        yield v.invalid(field, warning, "must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            detail = "must only contain printable UTF-8 characters; non-printable character found at index"
            yield v.invalid(field, warning, f"{detail} {len(warning[:index].encode())}")
            return


def subresource_violations(subresources: Raw | None, path: str) -> Iterator[Violation]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for key, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        if not scale.get(key):
            yield v.required(f"{path}.scale.{key}")
        else:
            yield from _plain(scale[key], f"{path}.scale.{key}", roots, f"should be a json path under {roots[0][:-1]}")
    if scale.get("labelSelectorPath"):
        detail = "should be a json path under either .spec or .status"
        yield from _plain(scale["labelSelectorPath"], f"{path}.scale.labelSelectorPath", (".spec.", ".status."), detail)


def _plain(text: str, field: str, roots: tuple[str, ...], detail: str) -> Iterator[Violation]:
    if not text.startswith("."):
        yield v.invalid(field, text, "must be a simple json path starting with .")
    elif not text.startswith(roots):
        yield v.invalid(field, text, detail)


def column_violations(version: Raw, path: str) -> Iterator[Violation]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        place = f"{path}[{index}]"
        if not column.get("name"):
            yield v.required(f"{place}.name")
        type_, format_, json_path = column.get("type"), column.get("format"), column.get("jsonPath")
        if not type_:
            yield v.required(f"{place}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
        elif type_ not in _COLUMN_TYPES:
            yield v.invalid(f"{place}.type", type_, f"must be one of {','.join(_COLUMN_TYPES)}")
        if format_ and format_ not in _COLUMN_FORMATS:
            yield v.invalid(f"{place}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not json_path:
            yield v.required(f"{place}.JSONPath")
        elif not json_path.startswith("."):
            yield v.invalid(f"{place}.JSONPath", json_path, "must be a simple json path starting with .")


def selectable_violations(version: Raw, path: str) -> Iterator[Violation]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    fields = version.get("selectableFields") or ()
    if not fields:
        return
    if schema is None:
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield v.invalid(path, "", detail)
        return
    seen: set[str] = set()
    for index, field in enumerate(fields):
        place, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield v.required(place)
            continue
        yield from _selectable(text, schema, place)
        if text in seen:
            yield v.duplicate(place, text)
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        yield v.too_many(path, len(seen), _MOST_SELECTABLE)


def _selectable(text: str, schema: Raw, place: str) -> Iterator[Violation]:
    if not text.startswith("."):
        got = text.partition(".")[0].partition("[")[0]
        wrong = f"expected [ or . but got: {got}" if got else "array notation is not allowed"
        yield v.invalid(place, text, f"is an invalid path: {wrong}")
        return
    if "[" in text:
        yield v.invalid(place, text, "is an invalid path: array notation is not allowed")
        return
    node: Any = schema
    for name in text[1:].split("."):
        node = (node.get("properties") or {}).get(name) if isinstance(node, Mapping) else None
        if node is None:
            yield v.invalid(place, text, "is an invalid path: does not refer to a valid field")
            return
    if text == ".metadata" or text.startswith(".metadata."):
        yield v.invalid(place, text, "must not point to fields in metadata")
    if node.get("type") not in ("string", "boolean", "integer"):
        detail = (
            "must point to a field of type string, boolean or integer. "
            "Enum string fields and strings with formats are allowed."
        )
        yield v.invalid(place, text, detail)
