"""A request and its answer, without a web framework; and which function a path leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

H = TypeVar("H")


@dataclass(slots=True)
class Call:
    method: str
    path: str  # as it came, percent-encoded
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    cookies: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # JSON values; None without a body
    upload: tuple[int, str] | None = None  # size and SHA-256 of a body of bytes
    raw_query: str = ""
    host: str = ""  # what the client called us, for links
    params: dict[str, str] = field(default_factory=dict)
    user: str = ""


@dataclass(slots=True)
class Answer:
    status: int
    body: Any = None  # JSON values, or None for no body at all
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, tuple[str, float]] = field(default_factory=dict)  # name: (value, seconds to live)


class Dropped(Exception):
    """The connection ends without an answer."""


@dataclass(frozen=True, slots=True)
class Route(Generic[H]):
    method: str
    template: str
    handler: H


class Router(Generic[H]):
    """Templates such as `/api/vmm/{v}/ahv/config/vms/{extId}`; fixed segments win over parameters."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._routes: list[Route[H]] = []

    def add(self, method: str, template: str, handler: H) -> None:
        route = Route(method, template, handler)
        node = self._root
        for segment in template.strip("/").split("/"):
            node = node.setdefault("{}" if segment.startswith("{") else segment, {})
        methods: dict[str, Route[H]] = node.setdefault("/", {})
        if method in methods:
            raise ValueError(f"{method} {template} is taken")
        methods[method] = route
        self._routes.append(route)

    def __iter__(self) -> Iterator[Route[H]]:
        return iter(self._routes)

    def find(self, method: str, path: str) -> tuple[Route[H] | None, dict[str, str], frozenset[str]]:
        """The route, its parameters, and the methods that the path knows."""
        segments = [unquote(part) for part in path.strip("/").split("/")]
        for methods in _leaves(self._root, segments):
            known = frozenset(methods)
            route = methods.get(method)
            if route is None:
                return None, {}, known
            names = route.template.strip("/").split("/")
            params = {name[1:-1]: value for name, value in zip(names, segments, strict=True) if name.startswith("{")}
            return route, params, known
        return None, {}, frozenset()


def _leaves(node: dict[str, Any], segments: list[str]) -> Iterator[dict[str, Any]]:
    if not segments:
        if "/" in node:
            yield node["/"]
        return
    for key in (segments[0], "{}"):
        if key != "/" and key in node:
            yield from _leaves(node[key], segments[1:])


Handler = Callable[[Call], Answer]
