"""Request bodies: read within limits, decoded with clear errors, duplicate fields found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import yaml
from aiohttp.web import BaseRequest

from homeport.apiserver.http.negotiate import JSON
from homeport.client.errors import BadRequest, TooLarge

MAX_BODY = 3 * 1024 * 1024
_DIGITS = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))
_LONG_NUMBER = b"0" * 19
_SPACED_COLONS = (b'" :', b'"\n:', b'"\r:', b'"\t:')
_SHOWN_BYTES = 16
_MAX_DEPTH = 1024  # of YAML; JSON has the same limit inside the parser


async def read_body(request: BaseRequest) -> bytes:
    """The whole body. More than 3 MiB is refused as early as it is known."""
    length = request.content_length
    if length is not None and length > MAX_BODY:
        raise _too_large()
    content = request.content
    if content.is_eof() and length == 0:
        return b""
    first = await content.readany()
    if len(first) == length or content.at_eof():
        return _sized(first)
    chunks, size = [first], len(first)
    while size <= MAX_BODY and (chunk := await content.readany()):
        chunks.append(chunk)
        size += len(chunk)
    return _sized(b"".join(chunks))


def _sized(body: bytes) -> bytes:
    if len(body) > MAX_BODY:
        raise _too_large()
    return body


def _too_large() -> TooLarge:
    return TooLarge(f"Request entity is too large: limit is {MAX_BODY}")


class MalformedBody(BadRequest):
    """The body is no JSON or YAML document. Verbs put what they expected in front."""


def parse_body(body: bytes, form: str) -> Any:
    """The document. Raises MalformedBody (400) for anything that is not one, or holds numbers no int64 can."""
    return _parse_json(body) if form == JSON else _parse_yaml(body)


def _parse_json(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(f"json parse error: {_why(error)}") from error
    # Beyond 64 bits the parser goes over to floats, which would change the number in silence.
    if _LONG_NUMBER in body.translate(_DIGITS):
        _check_numbers(body)
    return parsed


def _why(error: orjson.JSONDecodeError) -> str:
    text = str(error)
    if text.startswith("depth limit") or "recursion limit" in text.lower():
        return "exceeded max depth"
    return text


def _check_numbers(body: bytes) -> None:
    try:
        json.loads(body, parse_int=_int64)
    except RecursionError as error:
        raise MalformedBody("json parse error: exceeded max depth") from error


def _int64(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise MalformedBody(f"json parse error: cannot unmarshal number {shown} into a value of type int64")
    return int(text)


def _parse_yaml(body: bytes) -> Any:
    if body[:1] in (b"{", b"["):  # JSON is YAML, and the usual body of an apply
        try:
            return _parse_json(body)
        except MalformedBody:
            pass  # a YAML flow mapping, perhaps
    parsed = _load_yaml(body)
    try:
        return orjson.loads(orjson.dumps(parsed))
    except (TypeError, orjson.JSONDecodeError) as error:
        raise MalformedBody(f"error converting YAML to JSON: {error}") from error


def _load_yaml(body: bytes) -> Any:
    from homeport.machinery.yaml import load

    try:
        return load(body)
    except RecursionError as error:
        raise MalformedBody("error converting YAML to JSON: exceeded max depth") from error
    except (yaml.YAMLError, ValueError) as error:
        raise MalformedBody(f"error converting YAML to JSON: {error}") from error


def shown_bytes(body: bytes) -> str:
    """The start of a body that could not be read, as Kubernetes puts it behind the error."""
    return body[:_SHOWN_BYTES].hex() + ("..." if len(body) > _SHOWN_BYTES else "")


def duplicate_fields(body: bytes, parsed: Any) -> list[str]:
    """Paths of fields that a JSON body gives twice. Costs a count of keys when there are none."""
    if not any(spaced in body for spaced in _SPACED_COLONS) and body.count(b'":') == _count_keys(parsed):
        return []
    return sorted(set(_find_duplicates(body)))


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


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, doubled ones too."""


def _find_duplicates(body: bytes) -> Iterator[str]:
    try:
        tree = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return  # what is no JSON was refused before; what is nested this deep has no field worth naming
    todo: list[tuple[str, Any]] = [("", tree)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, child in value:
                at = f"{path}.{key}" if path else key
                if key in seen:
                    yield at
                seen.add(key)
                todo.append((at, child))
        elif isinstance(value, list):
            todo.extend((f"{path}[{index}]", child) for index, child in enumerate(value))
