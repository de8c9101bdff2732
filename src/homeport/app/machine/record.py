"""Lines of the controllers' logs about one object and what belongs to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key

_POD = Resource("", "v1", "Pod", "pods", True)
_PLANE = Key("homeport-system", "homeport")
_AT_ONCE = 8
_HEAD = ("time", "level", "logger", "event", "controller", "object")


class NoLog(Exception):
    """The plane has no log that can be read through its API."""


class Line(NamedTuple):
    time: str
    level: str
    controller: str
    object: str
    text: str


async def read_lines(client: HttpClient, objects: Iterable[str]) -> list[Line]:
    """In order of time. `objects`: as namespace/name. Raises ApiError, NoLog."""
    wanted = set(objects)
    try:
        pod = await client.get(_POD, _PLANE)
    except NotFound:
        raise NoLog(
            f"only the plane of 'homeport up' keeps a log of each object: read the log of the controllers instead, "
            f"for example kubectl logs -n {_PLANE.namespace} -l app.kubernetes.io/name=homeport"
        ) from None
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(container: str) -> str:
        path = f"/api/v1/namespaces/{_PLANE.namespace}/pods/{_PLANE.name}/log?container={quote(container)}"
        async with slots:
            try:
                return (await client.raw("GET", path)).check(path).decode(errors="replace")
            except ApiError:
                return ""  # a controller that has ended

    names = [each["name"] for each in (pod.get("spec") or {}).get("containers") or ()]
    texts = await asyncio.gather(*(read(each) for each in names if not each.startswith("sim-")))
    found = [line for text in texts for each in text.splitlines() if (line := parse_line(each)).object in wanted]
    return sorted(found)


def parse_line(text: str) -> Line:
    """Of JSON, or of the form `12:00:01 info  waiting  controller=x object=y`."""
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        words = dict(each.split("=", 1) for each in text.split() if "=" in each)
        head = text.split(" controller=", 1)[0].split(None, 2)
        level = head[1] if len(head) > 1 else ""
        return Line(text[:8], level, words.get("controller", ""), words.get("object", ""), text[8:].strip())
    more = " ".join(f"{name}={value}" for name, value in found.items() if name not in _HEAD and value is not None)
    said = f"{found.get('event', '')} {more}".strip()
    time, level, controller, obj = (str(found.get(name, "")) for name in ("time", "level", "controller", "object"))
    return Line(time, level, controller, obj, said)
