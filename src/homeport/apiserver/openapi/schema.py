"""Schemas as OpenAPI publishes them: built-in definitions with descriptions, and those of custom kinds.

Inside the server a reference may have keywords beside it. OpenAPI v3 has no room for that (they move next to an
`allOf`), and v2 has no words for much of what a custom kind's schema says (it is left out, as kube-openapi does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import orjson

from homeport.apiserver.kinds.load import definitions
from homeport.apiserver.resource import Json, ServedKind, Version

V3: Final = "#/components/schemas/"
V2: Final = "#/definitions/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META: Final = META + "ObjectMeta"
LIST_META: Final = META + "ListMeta"
GVK: Final = "x-kubernetes-group-version-kind"
_EVERY_KIND: Final = "*"
_SCALARS_IN_V2: Final[dict[str, Json]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}
_NOT_IN_V2: Final = ("allOf", "oneOf", "anyOf", "not", "nullable", "default")


@cache
def descriptions() -> dict[str, dict[str, str]]:
    """By definition name: the text of each field, and under '' that of the whole. `*` holds what all kinds share."""
    raw = resources.files("homeport.apiserver.kinds").joinpath("descriptions.json").read_bytes()
    found: dict[str, dict[str, str]] = orjson.loads(raw)
    return found


def model_name(served: ServedKind, version: Version) -> str:
    """`io.k8s.api.apps.v1.Deployment` for built-in kinds, `com.example.v1.Widget` for custom ones."""
    if not served.custom and version.raw_schema is not None and "$ref" in version.raw_schema:
        return str(version.raw_schema["$ref"]).removeprefix(V3)
    return custom_name(served.group, version.resource.version, served.kind)


def custom_name(group: str, version: str, kind: str) -> str:
    return ".".join([*reversed(group.split(".")), version, kind])


def list_name(served: ServedKind, version: Version) -> str:
    model = model_name(served, version)
    return model.removesuffix(served.kind) + (served.list_kind or f"{served.kind}List")


def references(schema: object) -> Iterator[str]:
    """Names of the definitions that a schema points to."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


@cache
def builtin_v3(name: str) -> Json:
    found: Json = _in_v3(_described(name, definitions()[name]))
    return found


@cache
def builtin_v2(name: str) -> Json:
    known = _SCALARS_IN_V2.get(name)
    raw = _described(name, known if known is not None else definitions()[name])
    found: Json = _in_v2(raw)
    return found


def _described(name: str, raw: Mapping[str, Any]) -> Json:
    texts = descriptions().get(name, {})
    shared = descriptions().get(_EVERY_KIND, {}) if GVK in raw else {}
    schema: Json = {"description": texts[""], **raw} if "" in texts else dict(raw)
    if "properties" in raw:
        schema["properties"] = {
            field: _with_text(child, texts.get(field) or shared.get(field, ""))
            for field, child in raw["properties"].items()
        }
    return schema


def _with_text(schema: Mapping[str, Any], text: str) -> Json:
    return {"description": text, **schema} if text else dict(schema)


def _in_v3(schema: Any) -> Any:
    """References with keywords beside them move into an allOf."""
    if isinstance(schema, list):
        return [_in_v3(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    rest: Json = {}
    for key, value in schema.items():
        if key == "properties":  # names, which may be those of keywords
            rest[key] = {name: _in_v3(child) for name, child in value.items()}
        else:
            rest[key] = value if key in ("default", "enum") else _in_v3(value)
    if isinstance(rest.get("$ref"), str) and len(rest) > 1:
        reference = rest.pop("$ref")
        rest["allOf"] = [{"$ref": reference}]
    return rest


def _in_v2(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_v2(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found: Json = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            found[key] = V2 + value.removeprefix(V3)
        elif key == "properties":
            found[key] = {name: _in_v2(child) for name, child in value.items()}
        elif key not in _NOT_IN_V2:
            found[key] = value if key == "enum" else _in_v2(value)
    return found


def custom_v3(served: ServedKind, version: Version) -> Json:
    schema = version.raw_schema
    if schema is None:
        return {"type": "object", GVK: _gvk(served, version, served.kind)}
    found = _unfolded(schema)
    found["properties"] = {**found.get("properties", {}), **_object_fields({"allOf": [{"$ref": V3 + OBJECT_META}]})}
    return _marked(found, served, version)


def custom_v2(served: ServedKind, version: Version) -> Json:
    schema = version.raw_schema
    if schema is None or schema.get("x-kubernetes-preserve-unknown-fields"):
        # With any property named, kubectl would take every other field for unknown.
        return {"type": "object", GVK: _gvk(served, version, served.kind)}
    found = _reduced(schema)
    found["properties"] = {**found.get("properties", {}), **_object_fields({"$ref": V2 + OBJECT_META})}
    return _marked(found, served, version)


def _marked(schema: Json, served: ServedKind, version: Version) -> Json:
    schema[GVK] = _gvk(served, version, served.kind)
    if version.selectable:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path.lstrip(".")} for path in version.selectable]
    return schema


def _gvk(served: ServedKind, version: Version, kind: str) -> list[Json]:
    return [{"group": served.group, "kind": kind, "version": version.resource.version}]


def _object_fields(metadata: Json) -> Json:
    shared = descriptions().get(_EVERY_KIND, {})
    return {
        "apiVersion": _with_text({"type": "string"}, shared.get("apiVersion", "")),
        "kind": _with_text({"type": "string"}, shared.get("kind", "")),
        "metadata": _with_text(metadata, shared.get("metadata", "")),
    }


def _unfolded(schema: Mapping[str, Any]) -> Json:
    """A custom schema with what its short forms stand for written out."""
    found = {key: _child(key, value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string") and "anyOf" not in schema and "allOf" not in schema:
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource"):
        metadata = {"allOf": [{"$ref": V3 + OBJECT_META}]}
        found["properties"] = {**found.get("properties", {}), **_object_fields(metadata)}
        missing = [name for name in ("kind", "apiVersion") if name not in found.get("required", ())]
        found["required"] = [*found.get("required", ()), *missing]
    return found


def _child(key: str, value: Any) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _unfolded(child) for name, child in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _unfolded(value)
    return value


def _reduced(schema: Mapping[str, Any]) -> Json:
    """What v2 can say of a custom schema. Where anything may stand, nothing is said: kubectl would take it amiss."""
    found: Json = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if schema.get("nullable"):
        found.pop("type", None)
    if schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields"):
        found.pop("items", None)
        found.pop("properties", None)
    if isinstance(found.get("items"), Mapping):
        found["items"] = _reduced(found["items"])
    elif found.get("type") == "array" or (
        schema.get("x-kubernetes-preserve-unknown-fields") and found.get("type") == "object"
    ):
        found.pop("type", None)
    if isinstance(found.get("properties"), Mapping):
        optional = {name for name, child in found["properties"].items() if child.get("nullable")}
        found["properties"] = {name: _reduced(child) for name, child in found["properties"].items()}
        _require(found, [name for name in found.get("required", ()) if name not in optional])
    if isinstance(found.get("additionalProperties"), Mapping):
        if found["additionalProperties"].get("nullable"):
            _require(found, [])
        found["additionalProperties"] = _reduced(found["additionalProperties"])
    if schema.get("x-kubernetes-embedded-resource") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["properties"] = {**found.get("properties", {}), **_object_fields({"$ref": V2 + OBJECT_META})}
    return found


def _require(schema: Json, names: list[str]) -> None:
    schema.pop("required", None)
    if names:
        schema["required"] = names


def list_schema(served: ServedKind, version: Version, prefix: str) -> Json:
    kind = served.list_kind or f"{served.kind}List"
    shared = descriptions().get(_EVERY_KIND, {})
    metadata: Json = {"$ref": prefix + LIST_META} if prefix == V2 else {"allOf": [{"$ref": prefix + LIST_META}]}
    return {
        "description": f"{kind} is a list of {served.kind} objects.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _with_text({"type": "string"}, shared.get("apiVersion", "")),
            "items": {
                "description": f"The {served.plural} of this page.",
                "type": "array",
                "items": {"$ref": prefix + model_name(served, version)},
            },
            "kind": _with_text({"type": "string"}, shared.get("kind", "")),
            "metadata": {"description": "The revision of the list, and how to get the next page.", **metadata},
        },
        GVK: _gvk(served, version, kind),
    }
