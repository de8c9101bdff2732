"""Who wrote which object, by the name of the user: the plane's own API server knows, others have it in their audit log.

The managed fields of an object name the program alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import structlog

from homeport.api.change import Change
from homeport.client.errors import ApiError
from homeport.dashboard.person import Person
from homeport.runtime.clock import parse_time, rfc3339

log = structlog.get_logger(__name__)

_PATH = "/homeport/changes"
_UNKNOWN = frozenset({403, 404})  # an API server that has no such path; anything else may pass
_REST_SECONDS = 2.0  # between two reads
_APART_SECONDS = 2.0  # of one write: managed fields have whole seconds, and are stamped before the commit
_TOLD = {"create": "Created", "delete": "Deleted", "deletecollection": "Deleted"}


class Write(Change, frozen=True):
    """A change with the kind of its object."""

    kind: str = ""
    api_version: str = ""


class Users:
    """`known`: this API server keeps the names."""

    def __init__(self, person: Person, namespace: str) -> None:
        self._person = person
        self._path = _PATH + (f"?namespace={quote(namespace, safe='')}" if namespace else "")
        self._read_at = float("-inf")
        self.known = True
        self.writes: list[Write] = []

    async def read(self, later: Callable[[], None]) -> Users:
        """At most every two seconds; `later` is called when it is worth asking again."""
        rest = self._read_at + _REST_SECONDS - time.monotonic()
        if not self.known:
            return self
        if rest > 0:
            asyncio.get_running_loop().call_later(rest, later)
            return self
        self._read_at = time.monotonic()
        try:
            answer = await self._person.client.raw("GET", self._path, None)
            self.known = answer.status not in _UNKNOWN
            if answer.status != 200:
                return self
            found = msgspec.json.decode(answer.body, type=list[Write])
            kinds = {(each.group, each.plural): each for each in await self._person.kinds()}
        except (ApiError, msgspec.MsgspecError) as error:
            log.debug("changes were not read", error=str(error))
            return self
        self.writes = [
            msgspec.structs.replace(each, kind=kind.kind, api_version=kind.api_version)
            for each in found
            if (kind := kinds.get((each.group, each.resource))) is not None
        ]
        return self


def attributed(entries: Iterable[dict[str, Any]], writes: Iterable[Write], about: str) -> Iterator[dict[str, Any]]:
    """The entries with the user of the write that they come from, and the writes that none of them shows."""
    left = [each for each in writes if each.name.startswith(about)]
    for entry in entries:
        mine = next((each for each in left if _is_same(entry, each)), None)
        if mine is not None:
            left.remove(mine)
            entry |= {"by": f"{mine.user}, with {mine.manager}", "reason": _TOLD.get(mine.verb, entry["reason"])}
        yield entry
    for each in left:
        yield _entry(each)


def _is_same(entry: dict[str, Any], write: Write) -> bool:
    return (
        (entry["kind"], entry["namespace"], entry["name"]) == (write.kind, write.namespace, write.name)
        and entry["by"] == write.manager
        and bool(entry["time"])
        and abs(parse_time(entry["time"]) - write.time) < _APART_SECONDS
    )


def _entry(write: Write) -> dict[str, Any]:
    what = f"{write.resource}/{write.subresource}" if write.subresource else write.resource
    return {
        "uid": f"{write.time}/{write.resource}/{write.namespace}/{write.name}",
        "time": rfc3339(write.time),
        "kind": write.kind,
        "namespace": write.namespace,
        "name": write.name,
        "apiVersion": write.api_version,
        "type": "Normal",
        "count": 1,
        "source": "change",
        "reason": _TOLD.get(write.verb, "Changed"),
        "message": f"{write.verb} {what}",
        "by": f"{write.user}, with {write.manager}",
    }
