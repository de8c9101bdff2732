"""One request while it is being answered."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping

from aiohttp.web import BaseRequest
from multidict import istr

from homeport.apiserver.auth.decision import Decision
from homeport.apiserver.http.body import read_body
from homeport.apiserver.http.negotiate import PLAIN, Form
from homeport.apiserver.http.query import EMPTY, Query
from homeport.apiserver.http.route import RequestInfo, parse_request, printable, split_target
from homeport.apiserver.metrics import Labels
from homeport.apiserver.request import ANONYMOUS, Context, User
from homeport.client.errors import ApiError

_SERIAL = itertools.count(1)
_ORIGIN = os.urandom(10).hex()
_ORIGIN_TEXT = f"{_ORIGIN[:8]}-{_ORIGIN[8:12]}-4{_ORIGIN[12:15]}-a{_ORIGIN[15:18]}-"
_AUDIT_ID = re.compile(r"[!-~]{1,64}").fullmatch
# Case-folded once: a plain string would be folded at every look-up.
ACCEPT = istr("Accept")
ACCEPT_ENCODING = istr("Accept-Encoding")
AUTHORIZATION = istr("Authorization")
CONTENT_TYPE = istr("Content-Type")
USER_AGENT = istr("User-Agent")
_AUDIT = istr("Audit-ID")
_IMPERSONATE = "impersonate-"
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


_PLAIN_LABELS = {method: Labels(method) for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_OTHER_LABELS = Labels("other")
_NOTHING = RequestInfo("", "")


class Exchange:
    __slots__ = (
        "_headers", "actor", "as_of", "audit_id", "body", "ctx", "decision", "error", "form", "info", "labels", "query",
        "request", "user",
    )  # fmt: skip

    def __init__(self, request: BaseRequest) -> None:
        self.request = request
        self._headers: Mapping[str, str] = request.headers
        given = self._headers.get(_AUDIT)
        self.audit_id = given if given and _AUDIT_ID(given) else f"{_ORIGIN_TEXT}{next(_SERIAL):012x}"
        self.query: Query = EMPTY
        self.info = _NOTHING
        self.user: User = ANONYMOUS
        self.actor: User | None = None  # who acts as `user`, where that is somebody else
        self.as_of: int | None = None  # the revision to read, where that is not the newest
        self.body: bytes | None = None  # where it was read ahead
        self.decision: Decision | None = None
        self.error: ApiError | None = None
        self.ctx: Context | None = None
        self.form: Form = PLAIN
        self.labels = _PLAIN_LABELS.get(request.method) or _OTHER_LABELS

    def parse(self) -> None:
        """Parses the request target. Raises BadRequest for targets that this server can't serve."""
        path, query = split_target(self.request.raw_path)
        if query:
            self.query = Query(query)
        self.info = parse_request(self.request.method, path)
        if self.info.verb == "list" and query and self.query.flag("watch"):
            self.info = self.info._replace(verb="watch")

    def header(self, name: str) -> str:
        value = self._headers.get(name)
        return printable(value) if value else ""

    async def read(self) -> bytes:
        """The body, whether or not it was read ahead."""
        return self.body if self.body is not None else await read_body(self.request)

    @property
    def impersonates(self) -> bool:
        """Whether any header speaks of it, also one that makes no sense alone: that is refused, not ignored."""
        return any(name[:12].lower() == _IMPERSONATE for name in self._headers)

    @property
    def pretty(self) -> bool:
        """Indented when asked for, or when a person at a terminal or browser looks at it."""
        if "pretty" in self.query:
            return self.query.flag("pretty")
        return self._headers.get(USER_AGENT, "").startswith(_BROWSERS)
