"""The pages of a simulator's admin endpoint: faults and journal, and what one vendor has besides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

import msgspec

from homeport.sim.engine.fault import Vocabulary, parse_faults
from homeport.sim.engine.injector import Injector
from homeport.sim.engine.journal import Journal

_PAGES = "GET PUT or POST /faults, DELETE /faults/NAME, GET /journal"


@dataclass(frozen=True, slots=True)
class Page:
    text: str = ""
    status: int = 200
    content_type: str = "text/plain"


NO_CONTENT = Page(status=204)
More = Callable[[str, list[str], bytes], Awaitable[Page | None]]


@dataclass(frozen=True, slots=True)
class Admin:
    """`changed` gets the names of faults that were added; `more` answers (method, path, body) of further pages, which
    `listed` names."""

    faults: Injector
    journal: Journal
    vocabulary: Vocabulary
    changed: Callable[[Sequence[str]], None]
    more: More
    listed: str

    async def respond(self, method: str, path: str, query: str, body: bytes) -> Page:
        """Raises ValueError for what can't be read."""
        faults = self.faults
        match method, path.strip("/").split("/"):
            case "GET", [""]:
                return Page(f"{_PAGES}, {self.listed}\n")
            case "GET", ["healthz"]:
                return Page("ok\n")
            case "GET", ["journal"]:
                return _json(self.journal.newest(int(dict(parse_qsl(query)).get("limit", "100"))))
            case "GET", ["faults"]:
                return _json(faults.counts)
            case "PUT", ["faults"]:
                self.changed(faults.set(parse_faults(body, "the request", self.vocabulary)))
                return _json(faults.counts)
            case "POST", ["faults"]:
                self.changed([faults.add(fault) for fault in parse_faults(body, "the request", self.vocabulary)])
                return _json(faults.counts)
            case "DELETE", ["faults"]:
                self.changed(faults.set(()))
                return NO_CONTENT
            case "DELETE", ["faults", name]:
                found = faults.remove(name)
                self.changed(())
                return NO_CONTENT if found else Page(status=404)
            case _, steps:
                found_page = await self.more(method, steps, body)
                return found_page or Page("no such page: GET / lists them\n", 404)


def _json(value: object) -> Page:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    return Page(text, content_type="application/json")
