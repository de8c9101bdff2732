"""Documents that clients keep: discovery and OpenAPI, with ETags so that they need not fetch them twice."""

from __future__ import annotations

from collections import OrderedDict

from homeport.apiserver.discovery import Document
from homeport.apiserver.http.exchange import ACCEPT_ENCODING, Exchange
from homeport.apiserver.http.negotiate import JSON
from homeport.apiserver.http.reply import Reply
from homeport.apiserver.http.respond import GZIP_FROM, accepts_gzip, gzip_fast, reply, reply_object

_PACKED_LIMIT = 64


class Publisher:
    """Answers with documents. Large ones are packed once per ETag, not once per client."""

    def __init__(self) -> None:
        self._packed: OrderedDict[str, bytes] = OrderedDict()

    def reply(self, exchange: Exchange, document: Document) -> Reply:
        if document.location:
            response = reply(exchange, b"", 301, document.content_type)
            response.headers["Location"] = document.location
        elif document.etag and _known(exchange, document.etag):
            response = reply(exchange, b"", 304, document.content_type)
        elif not document.etag and document.content_type == JSON:
            return reply_object(exchange, document.body)
        else:
            response = self._full(exchange, document)
        response.cache_control = document.cache_control
        if document.etag:
            response.headers["ETag"] = f'"{document.etag}"'
        if document.vary:
            response.headers["Vary"] = document.vary
        return response

    def _full(self, exchange: Exchange, document: Document) -> Reply:
        if len(document.body) <= GZIP_FROM or not document.etag or not accepts_gzip(exchange.header(ACCEPT_ENCODING)):
            return reply(exchange, document.body, content_type=document.content_type)
        key = f"{document.etag} {document.content_type}"
        packed = self._packed.get(key)
        if packed is None:
            packed = self._packed[key] = gzip_fast(document.body)
            if len(self._packed) > _PACKED_LIMIT:
                self._packed.popitem(last=False)
        return reply(exchange, packed, content_type=document.content_type, packed=True)


def _known(exchange: Exchange, etag: str) -> bool:
    given = exchange.header("If-None-Match")
    if not given:
        return False
    return given.strip() == "*" or any(each.strip().removeprefix("W/").strip('"') == etag for each in given.split(","))
