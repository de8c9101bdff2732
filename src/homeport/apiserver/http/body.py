"""Request bodies: read within limits, decoded with clear errors, duplicate fields found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import BaseRequest, RequestPayloadError

from homeport.apiserver.http.negotiate import JSON, PROTOBUF
from homeport.apiserver.http.protobuf import ProtobufError, decode
from homeport.client.errors import BadRequest, TooLarge, UnsupportedMediaType
from homeport.machinery.yaml import load

MAX_BODY = 3 * 1024 * 1024
_DIGITS = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))
_LONG_NUMBER = b"0" * 19
_SPACED_COLONS = (b'" :', b'"\n:', b'"\r:', b'"\t:')
_SHOWN_BYTES = 30
MAX_DEPTH = 200
_SLOW_YAML = 16 * 1024


async def read_body(request: BaseRequest) -> bytes:
    """The whole body. More than 3 MiB is refused as early as it is known."""
    if not request.body_exists:
        return b""
    length = request.content_length
    if length is not None and length > MAX_BODY:
        raise _too_large()
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("a body with a Content-Encoding is not accepted: send it as it is")
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        return await _read(request)
    except (RequestPayloadError, ClientPayloadError, HttpProcessingError) as error:
        raise BadRequest(f"the body could not be read: {error}") from error


async def _read(request: BaseRequest) -> bytes:
    content = request.content
    body = await content.readany()
    if content.at_eof():
        return _sized(body)
    chunks, size = [body], len(body)
    while size <= MAX_BODY and (chunk := await content.readany()):
        chunks.append(chunk)
        size += len(chunk)
    return _sized(b"".join(chunks))


def _sized(body: bytes) -> bytes:
    if len(body) > MAX_BODY:
        raise _too_large()
    return body


def _too_large() -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {MAX_BODY}")


class MalformedBody(BadRequest):
    """The body is not a valid JSON or YAML document. Verbs prepend what they expected."""


class NumberTooLarge(MalformedBody):
    """JSON, but with a number that no float64 can hold."""


class InvalidProtobuf(MalformedBody):
    """The body is not a valid protobuf message."""


async def parse_body(body: bytes, form: str) -> Any:
    """Parses the document. Raises MalformedBody (400) if it is not valid."""
    if form == JSON:
        return parse_json(body)
    if form == PROTOBUF:
        return _parse_protobuf(body)
    if len(body) < _SLOW_YAML:
        return _parse_yaml(body)
    # Megabytes of YAML take seconds, in which the others want to be served.
    return await asyncio.to_thread(_parse_yaml, body)


def _parse_protobuf(body: bytes) -> Any:
    try:
        return decode(body)
    except ProtobufError as error:
        raise InvalidProtobuf(str(error)) from error


def parse_json(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        repaired = _repaired(body)
        if repaired is not None:
            return parse_json(repaired)
        raise _malformed(body, error) from error
    _check_depth(body, parsed)
    # As in Go, an integer beyond int64 is a float. The parser does that by itself only beyond 64 bits.
    if _LONG_NUMBER in body.translate(_DIGITS):
        parsed = _fit_numbers(parsed)
    return parsed


def _check_depth(body: bytes, parsed: Any) -> None:
    """Deeper objects could be read but not written: the encoder has a limit of its own."""
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level, depth = [parsed], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise MalformedBody(f"json parse error: exceeded max depth of {MAX_DEPTH}")
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]


def _children(item: Any) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()


def _repaired(body: bytes) -> bytes | None:
    """Bytes that are no UTF-8 count as U+FFFD, as in Go; None when it is not they that are wrong."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace").encode()
    return None


def _malformed(body: bytes, error: orjson.JSONDecodeError) -> MalformedBody:
    text, position = error.msg, _byte_position(body, error.pos)
    if "infinity" in text:
        return NumberTooLarge(f"json: cannot unmarshal number {_number(body, position)} into a value of type float64")
    if text.startswith("depth limit"):
        return MalformedBody(f"json parse error: exceeded max depth of {MAX_DEPTH}")
    if position >= len(body):
        return MalformedBody("json parse error: unexpected end of JSON input")
    where = "looking for beginning of value"
    if "after document" in text:
        where = "after top-level value"
    elif "key" in text:
        where = "looking for beginning of object key string"
    return MalformedBody(f"json parse error: invalid character {_character(body[position])} {where}")


def _byte_position(body: bytes, characters: int) -> int:
    if body.isascii():
        return characters
    return len(body.decode("utf-8")[:characters].encode("utf-8"))


def _character(code: int) -> str:
    return "'" + {0x27: "\\'", 0x5C: "\\\\"}.get(code, chr(code) if 0x20 <= code < 0x7F else f"\\x{code:02x}") + "'"


def _number(body: bytes, position: int) -> str:
    end = position
    while end < len(body) and end - position < 40 and body[end] in b"+-.0123456789eE":
        end += 1
    return body[position:end].decode("ascii")


def _fit_numbers(value: Any) -> Any:
    """Integers beyond int64 become floats."""
    root = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, key = todo.pop()
        item = holder[key]
        if type(item) is int:
            if not -(2**63) <= item < 2**63:
                holder[key] = float(item)
        elif type(item) is dict:
            todo.extend((item, field) for field in item)
        elif type(item) is list:
            todo.extend((item, index) for index in range(len(item)))
    return root[0]


def _parse_yaml(body: bytes) -> Any:
    if body[:1] in (b"{", b"["):  # JSON is YAML, and the usual body of an apply
        try:
            return parse_json(body)
        except NumberTooLarge:
            raise
        except MalformedBody:
            pass  # a YAML flow mapping, perhaps
    try:
        parsed = load(body)
        _check_depth(orjson.dumps(parsed), parsed)  # the encoder refuses strings that are no Unicode
    except RecursionError as error:
        raise MalformedBody("yaml: exceeded max depth") from error
    except (TypeError, ValueError) as error:
        raise MalformedBody(f"yaml: {error}") from error
    return parsed


def shown_bytes(body: bytes) -> str:
    """The start of a body that could not be read, as Kubernetes puts it behind the error."""
    if not body:
        return "<empty>"
    cut = body[:_SHOWN_BYTES]
    shown = cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return f"{shown} ..." if len(body) > _SHOWN_BYTES else shown


_GO_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number", dict: "object"}


def go_name(value: object) -> str:
    """What error messages call a JSON value."""
    return _GO_NAMES.get(type(value), "null")


def duplicate_fields(body: bytes, parsed: object) -> list[str]:
    """Paths of fields that a JSON body gives twice. Costs a count of keys when there are none."""
    if body.count(b'":') == _count_keys(parsed) and not any(spaced in body for spaced in _SPACED_COLONS):
        return []
    return list(dict.fromkeys(_find_duplicates(body)))


def _count_keys(value: Any) -> int:
    total, todo = 0, [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            total += len(item)
            todo.extend(item.values())
        elif type(item) is list:
            todo.extend(item)
    return total


def merge_duplicates(body: bytes) -> Any:
    """The document with fields that come twice merged: so Go reads into the types of built-in kinds."""
    return json.loads(body.decode("utf-8", "replace"), object_pairs_hook=_merged)


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            value = _merged([*known.items(), *value.items()])
        result[key] = value
    return result


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, doubled ones too."""


def _find_duplicates(body: bytes) -> Iterator[str]:
    """In the order in which a decoder meets them: what is inside a field before what follows it."""
    try:
        tree = json.loads(body.decode("utf-8", "replace"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return  # what is no JSON was refused before; what is nested this deep has no field worth naming
    yield from _walk("", tree, 0)


def _walk(path: str, value: Any, depth: int) -> Iterator[str]:
    if depth > 100:
        return
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, child in value:
            child_path = f"{path}.{key}" if path else key
            if key in seen:
                yield child_path
            seen.add(key)
            yield from _walk(child_path, child, depth + 1)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk(f"{path}[{index}]", child, depth + 1)
