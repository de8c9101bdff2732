"""Answers: objects as bytes, lists joined from bytes, errors as Status objects."""

from __future__ import annotations

import re
import zlib
from typing import Any

import orjson
from multidict import CIMultiDict

from homeport.apiserver.http.exchange import ACCEPT_ENCODING, Exchange
from homeport.apiserver.http.negotiate import JSON, YAML, UnknownPatch
from homeport.apiserver.http.reply import Reply
from homeport.apiserver.option import Listing
from homeport.apiserver.resource import ServedKind, Version
from homeport.client.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from homeport.machinery.yaml import dump

GZIP_FROM = 128 * 1024
_MAX_WARNING = 256
_MAX_WARNINGS = 4096
_BARE = (NotFound, MethodNotAllowed, Forbidden, UnknownPatch)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def reply(
    exchange: Exchange, body: bytes, status: int = 200, content_type: str = JSON, *, packed: bool = False
) -> Reply:
    """An answer with the headers that every one has. `packed`: the body is compressed already."""
    if not packed and len(body) > GZIP_FROM and accepts_gzip(exchange.header(ACCEPT_ENCODING)):
        packed, body = True, gzip_fast(body)
    response = Reply(body, status, content_type, exchange.audit_id)
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    if exchange.ctx is not None and exchange.ctx.warnings:
        add_warnings(response.headers, exchange.ctx.warnings)
    return response


def reply_object(exchange: Exchange, body: bytes, status: int = 200) -> Reply:
    """One JSON document, as YAML or indented where that was asked for."""
    if exchange.form.media == YAML:
        return reply(exchange, to_yaml(body), status, YAML)
    if exchange.pretty:
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    return reply(exchange, body, status)


def list_meta(listing: Listing) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.continue_:
        meta["continue"] = listing.continue_
    if listing.remaining is not None:
        meta["remainingItemCount"] = listing.remaining
    return meta


def list_bytes(served: ServedKind, version: Version, listing: Listing) -> bytes:
    """The list object around its items' bytes."""
    kind = served.list_kind or f"{served.kind}List"
    head = {"kind": kind, "apiVersion": version.resource.api_version, "metadata": list_meta(listing)}
    return b'%s,"items":[%s]}' % (orjson.dumps(head)[:-1], b",".join(listing.items))


def reply_error(exchange: Exchange, error: ApiError) -> Reply:
    body = orjson.dumps(status_of(error))
    if exchange.pretty:
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    response = reply(exchange, body, error.http_code)
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.http_code == 403:
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def status_of(error: ApiError) -> dict[str, Any]:
    """The Status. Errors without an object carry empty details in some cases, which clients can see."""
    status = error.status
    if "details" not in status and isinstance(error, _BARE):
        status = {**status, "details": {}}
    return status


def text_reply(exchange: Exchange, text: str, status: int = 200) -> Reply:
    response = reply(exchange, text.encode(), status, "text/plain; charset=utf-8")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def page_not_found(exchange: Exchange) -> Reply:
    return text_reply(exchange, "404 page not found\n", 404)


def add_warnings(headers: CIMultiDict[str], warnings: list[str]) -> None:
    """Warning headers, each text at most 256 characters, all together at most 4 KiB."""
    left = _MAX_WARNINGS
    for text in dict.fromkeys(warnings):
        text = _CONTROL.sub(" ", text)[:_MAX_WARNING]
        left -= len(text)
        if left < 0:
            return
        headers.add("Warning", f"299 - {quote(text)}")


def quote(text: str) -> str:
    """A quoted-string of RFC 7230. Header bytes above ASCII are UTF-8, as Kubernetes sends them."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def accepts_gzip(header: str) -> bool:
    return any(part.partition(";")[0].strip() == "gzip" for part in header.split(",")) if header else False


def gzip_fast(body: bytes) -> bytes:
    """Level 1: lists compress tenfold at it, and the server has one core for it."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def to_yaml(body: bytes) -> bytes:
    ordered = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return dump(orjson.loads(ordered)).encode()
