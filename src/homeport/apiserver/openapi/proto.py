"""OpenAPI v2 documents in protobuf: the form in which kubectl and client-go ask for /openapi/v2.

The messages are those of gnostic's openapi.v2 package. Only what our documents say is encoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import orjson

from homeport.machinery.protowire import varint

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode_document(document: Mapping[str, Any], paths: Mapping[str, bytes], definitions: Mapping[str, bytes]) -> bytes:
    """`paths` and `definitions` come encoded already, by the functions below."""
    return b"".join(
        (
            _text(1, document.get("swagger")),
            _message(2, _info(document["info"])),
            _message(8, b"".join(_named(2, name, item) for name, item in paths.items())),
            _message(9, b"".join(_named(1, name, schema) for name, schema in definitions.items())),
            *(_message(12, _requirement(needed)) for needed in document.get("security", ())),
            _message(13, _security(document.get("securityDefinitions", {}))),
        )
    )


# Nearly all of a document is tags and short lengths: they are worth a table.
_LENGTHS: Final = tuple(varint(value) for value in range(4096))
_TAGS: Final = {
    (field, wire): varint(field << 3 | wire) for field in range(1, 32) for wire in (_VARINT, _FIXED64, _BYTES)
}
_OPEN: Final = tuple(varint(field << 3 | _BYTES) for field in range(32))


def _message(field: int, body: bytes) -> bytes:
    """A message field; an empty message is still there."""
    size = len(body)
    return _OPEN[field] + (_LENGTHS[size] if size < 4096 else varint(size)) + body


def _text(field: int, value: Any) -> bytes:
    return _message(field, value.encode()) if value else b""


def _texts(field: int, values: Iterable[str] | None) -> bytes:
    return b"".join(_message(field, value.encode()) for value in values or ())


def _flag(field: int, value: Any) -> bytes:
    return _TAGS[field, _VARINT] + b"\x01" if value else b""


def _integer(field: int, value: Any) -> bytes:
    return _TAGS[field, _VARINT] + varint(int(value)) if value else b""


def _number(field: int, value: Any) -> bytes:
    return _TAGS[field, _FIXED64] + struct.pack("<d", value) if value else b""


def _named(field: int, name: str, value: bytes) -> bytes:
    """An entry of a map: every map of the format is a list of named values."""
    return _message(field, _text(1, name) + _message(2, value))


def _any(value: Any) -> bytes:
    """Free values travel as YAML; JSON is YAML."""
    return _text(2, orjson.dumps(value).decode())


def _extensions(field: int, owner: Mapping[str, Any]) -> bytes:
    return b"".join(_named(field, name, _any(value)) for name, value in owner.items() if name.startswith("x-"))


def _info(info: Mapping[str, Any]) -> bytes:
    return _text(1, info.get("title")) + _text(2, info.get("version"))


def _requirement(needed: Mapping[str, list[str]]) -> bytes:
    return b"".join(_named(1, name, _texts(1, scopes)) for name, scopes in needed.items())


def _security(schemes: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"".join(
        _named(
            1,
            name,
            _message(
                2,
                _text(1, scheme["type"])
                + _text(2, scheme["name"])
                + _text(3, scheme["in"])
                + _text(4, scheme.get("description")),
            ),
        )
        for name, scheme in schemes.items()
    )


_METHODS: Final = (("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8))


def encode_path_item(item: Mapping[str, Any]) -> bytes:
    found = [_message(field, _operation(item[method])) for method, field in _METHODS if method in item]
    return b"".join(found + [_message(9, _parameter(parameter)) for parameter in item.get("parameters", ())])


def _operation(operation: Mapping[str, Any]) -> bytes:
    return b"".join(
        (
            _texts(1, operation.get("tags")),
            _text(3, operation.get("description")),
            _text(5, operation.get("operationId")),
            _texts(6, operation.get("produces")),
            _texts(7, operation.get("consumes")),
            *(_message(8, _parameter(parameter)) for parameter in operation.get("parameters", ())),
            _message(9, _responses(operation["responses"])),
            _texts(10, operation.get("schemes")),
            _extensions(13, operation),
        )
    )


def _parameter(parameter: Mapping[str, Any]) -> bytes:
    """A ParametersItem that holds a Parameter: of the body, or of one of the other places."""
    if parameter["in"] == "body":
        body = b"".join(
            (
                _text(1, parameter.get("description")),
                _text(2, parameter["name"]),
                _text(3, "body"),
                _flag(4, parameter.get("required")),
                _message(5, encode_schema(parameter["schema"])),
            )
        )
        return _message(1, _message(1, body))
    in_query = parameter["in"] == "query"
    rest = b"".join(
        (
            _flag(1, parameter.get("required")),
            _text(2, parameter["in"]),
            _text(3, parameter.get("description")),
            _text(4, parameter["name"]),
            _text(6 if in_query else 5, parameter.get("type")),
            _flag(20 if in_query else 19, parameter.get("uniqueItems")),
        )
    )
    return _message(1, _message(2, _message(3 if in_query else 4, rest)))


def _responses(responses: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"".join(_named(1, code, _message(1, _response(response))) for code, response in responses.items())


def _response(response: Mapping[str, Any]) -> bytes:
    body = _text(1, response.get("description"))
    return body + _message(2, _message(1, encode_schema(response["schema"]))) if "schema" in response else body


def _schemas(schemas: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"".join(_named(1, name, encode_schema(schema)) for name, schema in schemas.items())


_SCALARS: Final[tuple[tuple[str, int, Callable[[int, Any], bytes]], ...]] = (
    ("$ref", 1, _text),
    ("format", 2, _text),
    ("title", 3, _text),
    ("description", 4, _text),
    ("multipleOf", 6, _number),
    ("maximum", 7, _number),
    ("exclusiveMaximum", 8, _flag),
    ("minimum", 9, _number),
    ("exclusiveMinimum", 10, _flag),
    ("maxLength", 11, _integer),
    ("minLength", 12, _integer),
    ("pattern", 13, _text),
    ("maxItems", 14, _integer),
    ("minItems", 15, _integer),
    ("uniqueItems", 16, _flag),
    ("maxProperties", 17, _integer),
    ("minProperties", 18, _integer),
    ("required", 19, _texts),
)


def encode_schema(schema: Mapping[str, Any]) -> bytes:
    found = []
    for name, value in schema.items():
        encode = _KEYWORDS.get(name)
        if encode is not None:
            found.append(encode(value))
        elif name.startswith("x-"):
            found.append(_named(31, name, _any(value)))
    return b"".join(found)


def _additional(value: Any) -> bytes:
    inner = _message(1, encode_schema(value)) if isinstance(value, Mapping) else _TAGS[2, _VARINT] + varint(int(value))
    return _message(21, inner)


_KEYWORDS: Final[dict[str, Callable[[Any], bytes]]] = {
    **{name: partial(encode, field) for name, field, encode in _SCALARS},
    "default": lambda value: _message(5, _any(value)),
    "enum": lambda values: b"".join(_message(20, _any(value)) for value in values),
    "additionalProperties": _additional,
    "type": lambda value: _message(22, _texts(1, [value])),
    "items": lambda value: _message(23, _message(1, encode_schema(value))),
    "properties": lambda value: _message(25, _schemas(value)),
}
