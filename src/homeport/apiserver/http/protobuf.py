"""Bodies in Kubernetes' protobuf encoding, read into the JSON they stand for.

kubectl sends built-in kinds that it makes itself (`create configmap`, `auth can-i`, `drain`) this way and does not fall
back on JSON. Answers are JSON always, which the same clients accept. protobuf.json says how fields are numbered;
tools/kube/protobuf writes it.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

import orjson

from homeport.apiserver.http.negotiate import PROTOBUF
from homeport.apiserver.resource import Json

MAGIC = b"k8s\x00"
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufError(ValueError):
    """The bytes are not a valid message of their kind."""


@cache
def _facts() -> Json:
    facts: Json = orjson.loads(resources.files(__package__).joinpath("protobuf.json").read_bytes())
    return facts


def decode(body: bytes) -> Json:
    """The object. `apiVersion` and `kind` come from the envelope."""
    if body[:4] != MAGIC:
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _raw_fields(body[4:])
    head = _raw_fields(_bytes(envelope.get(1, b"")))
    api_version, kind = _text(head.get(1, b"")), _text(head.get(2, b""))
    if envelope.get(3) or envelope.get(4) not in (None, b"", PROTOBUF.encode()):
        raise ProtobufError("only messages that are protobuf all through are read")
    root = _facts()["roots"].get(f"{api_version}/{kind}") or _options(kind)
    if root is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    obj: Json = _message(_bytes(envelope.get(2, b"")), root, 0)
    return {"kind": kind, "apiVersion": api_version, **obj}


def _options(kind: str) -> str | None:
    """DeleteOptions belong to every group."""
    return _facts()["roots"].get(f"v1/{kind}") if kind == "DeleteOptions" else None


def _raw_fields(data: bytes) -> dict[int, int | bytes]:
    return dict(_fields(data))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value): an integer, or the bytes of a string, message or fixed-size number."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"illegal wireType {wire}")
        if position + size > end:
            raise ProtobufError("unexpected EOF")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise ProtobufError("integer overflow")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("a message or string was expected, found a number")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("a string is not valid UTF-8") from error


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("a number was expected, found a message or string")
    return value - 2**64 if value >= 2**63 else value


def _message(data: bytes, name: str, depth: int) -> Json:
    if depth > _DEEPEST:
        raise ProtobufError("exceeded max depth")
    known: dict[str, list[str]] = _facts()["messages"][name]
    result: Json = {}
    for number, value in _fields(data):
        field = known.get(str(number))
        if field is not None:
            _take(result, field, value, depth + 1)
    return result


def _take(result: Json, field: list[str], value: int | bytes, depth: int) -> None:
    name, code, zero = field
    if code.startswith("list:"):
        result.setdefault(name, []).append(_value(value, code[5:], depth))
    elif code.startswith("map:"):
        entry = _raw_fields(_bytes(value))
        found = result.setdefault(name, {})
        found[_text(entry.get(1, b""))] = _value(entry.get(2, _empty(code[4:])), code[4:], depth)
    elif not name:
        result.update(_message(_bytes(value), code, depth))
    else:
        decoded = _value(value, code, depth)
        if decoded or zero != "omit" or isinstance(decoded, (dict, list)):
            result[name] = decoded


def _empty(code: str) -> int | bytes:
    return 0 if code in ("int", "bool") else b""


def _value(value: int | bytes, code: str, depth: int) -> Any:
    match code:
        case "string":
            return _text(value)
        case "int":
            return _int(value)
        case "bool":
            return bool(_int(value))
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "double":
            return _double(value)
        case "time" | "microtime":
            return _time(_bytes(value), micro=code == "microtime")
        case "duration":
            return _duration(_int(_raw_fields(_bytes(value)).get(1, 0)))
        case "quantity":
            return _text(_raw_fields(_bytes(value)).get(1, b"0"))
        case "intstr":
            return _int_or_string(_bytes(value))
        case "raw":
            return _raw(_bytes(_raw_fields(_bytes(value)).get(1, b"")))
    kind, _, rest = code.partition(":")
    if kind == "items":
        return [_value(each, rest, depth + 1) for number, each in _fields(_bytes(value)) if number == 1]
    if kind == "either":
        return _either(_bytes(value), rest, depth)
    return _message(_bytes(value), code, depth)


def _double(value: int | bytes) -> float:
    if len(data := _bytes(value)) != 8:
        raise ProtobufError("a double has eight bytes")
    number: float = struct.unpack("<d", data)[0]
    return number


def _time(data: bytes, *, micro: bool) -> str | None:
    """An empty message is the zero time, which JSON spells null."""
    fields = _raw_fields(data)
    if not fields:
        return None
    seconds, nanos = _int(fields.get(1, 0)), _int(fields.get(2, 0))
    if seconds <= -62135596800:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{moment.microsecond:06d}Z" if micro else f"{text}Z"


def _duration(nanos: int) -> str:
    """As Go prints one, in its exact but plain form."""
    if not nanos:
        return "0s"
    seconds = f"{nanos / 1e9:.9f}".rstrip("0").rstrip(".")
    return f"{seconds}s"


def _int_or_string(data: bytes) -> int | str:
    fields = _raw_fields(data)
    return _text(fields.get(3, b"")) if fields.get(1, 0) == 1 else _int(fields.get(2, 0))


def _raw(data: bytes) -> Any:
    if not data:
        return None
    if data[:4] == MAGIC:
        return decode(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"an embedded object is not valid JSON: {error}") from error


def _either(data: bytes, name: str, depth: int) -> Any:
    """A schema, or the list or boolean that may stand in its place."""
    found = _message(data, name, depth + 1)
    for option in ("Schema", "JSONSchemas", "Property", "Allows"):
        if found.get(option) not in (None, []):
            return found[option]
    return False
