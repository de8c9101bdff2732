"""Paths outside the resources: health, metrics, version, discovery, OpenAPI, and the index of them all."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson

from homeport.apiserver.auth.token import openid
from homeport.apiserver.auth.token.serviceaccount import ServiceAccounts
from homeport.apiserver.discovery import Discovery, Document
from homeport.apiserver.http.exchange import ACCEPT, Exchange
from homeport.apiserver.http.health import Health
from homeport.apiserver.http.publish import Publisher
from homeport.apiserver.http.reply import Reply
from homeport.apiserver.http.respond import page_not_found, reply, reply_object
from homeport.apiserver.http.verb import no_method, no_resource
from homeport.apiserver.kinds.load import kubernetes_version
from homeport.apiserver.metrics import Metrics
from homeport.apiserver.openapi.document import OpenApi
from homeport.apiserver.resource import Catalog

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_READ = ("GET", "HEAD")

# Gives the document for a request, or None for a path that it does not know.
Find = Callable[[Exchange], Document | None]
Paths = Callable[[], Iterable[str]]
Action = Callable[[], Awaitable[Any]]
# Answers (method, path below, query, body, name of the user) with status, content type and text. Raises ApiError.
Pages = Callable[[str, str, str, bytes, str], Awaitable[tuple[int, str, str]]]


class Root:
    """`mount` adds what else has documents at paths, such as OpenAPI; `paths` is what the index lists of them.

    `version` is what `/version` reports, such as v1.31.2.
    """

    def __init__(
        self, catalog: Catalog, health: Health, metrics: Metrics, accounts: ServiceAccounts | None = None
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._mounts: list[tuple[Find, Paths]] = []
        self._actions: dict[str, Action] = {}
        self._pages: dict[str, Pages] = {}
        self._publisher = Publisher()
        self.version: Callable[[], str] = lambda: f"{kubernetes_version()}+homeport"
        self._mount_api(catalog)
        if accounts is not None:
            self._mount_keys(accounts)

    def _mount_api(self, catalog: Catalog) -> None:
        discovery, openapi = Discovery(catalog), OpenApi(catalog)
        self.mount(lambda exchange: discovery.find(exchange.info.path, exchange.header(ACCEPT)), discovery.paths)
        self.mount(
            lambda exchange: openapi.find(
                exchange.info.path, exchange.header(ACCEPT), exchange.query.get("hash", None)
            ),
            openapi.paths,
        )

    def _mount_keys(self, accounts: ServiceAccounts) -> None:
        def find(exchange: Exchange) -> Document | None:
            path = exchange.info.path
            if path == openid.CONFIGURATION_PATH:
                host = exchange.header("Host") or "kubernetes.default.svc"
                return Document(orjson.dumps(openid.configuration(accounts, f"https://{host}")))
            if path == openid.KEYS_PATH:
                return Document(orjson.dumps(openid.keys(accounts)), "application/jwk-set+json")
            return None

        self.mount(find, lambda: (openid.CONFIGURATION_PATH, openid.KEYS_PATH))

    def mount(self, find: Find, paths: Paths) -> None:
        self._mounts.append((find, paths))

    def act(self, path: str, action: Action) -> None:
        """POST to `path` does something and answers with JSON. Only those whom RBAC grants `post` on it may."""
        self._actions[path] = action

    def serve_pages(self, path: str, pages: Pages) -> None:
        """Whatever is asked at `path` and below it. RBAC grants it by path and method, such as `get` and `delete`."""
        self._pages[path] = pages

    async def serve(self, exchange: Exchange) -> Reply:
        path = exchange.info.path
        for prefix, pages in self._pages.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                request, below = exchange.request, path.removeprefix(prefix).strip("/")
                body = await exchange.read()
                status, kind, text = await pages(request.method, below, request.query_string, body, exchange.user.name)
                return reply(exchange, text.encode(), status, kind)
        action = self._actions.get(path)
        if action is not None:
            if exchange.request.method != "POST":
                raise no_method()
            return reply_object(exchange, orjson.dumps(await action()))
        answer = self._health.serve(exchange) or self._known(exchange, path)
        if answer is not None:
            if exchange.request.method not in _READ:
                raise no_method()
            return answer
        if path.startswith("/api/"):
            raise no_resource()
        return page_not_found(exchange)

    def _known(self, exchange: Exchange, path: str) -> Reply | None:
        if path == "/":
            return reply_object(exchange, orjson.dumps({"paths": self._paths()}))
        if path in ("/version", "/version/"):
            return reply_object(exchange, _version(self.version()))
        if path == "/metrics":
            return reply(exchange, self._metrics.render(), content_type=_METRICS_TYPE)
        for find, _ in self._mounts:
            document = find(exchange)
            if document is not None:
                return self._publisher.reply(exchange, document)
        return None

    def _paths(self) -> list[str]:
        mounted = [path for _, paths in self._mounts for path in paths()]
        return sorted({*mounted, *self._health.paths(), "/metrics", "/version"})


def _version(text: str) -> bytes:
    major, minor = text.removeprefix("v").split(".")[:2]
    return orjson.dumps(
        {
            "major": major,
            "minor": minor,
            "gitVersion": text,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{platform.python_version()}",
            "compiler": platform.python_implementation().lower(),
            "platform": f"{platform.system().lower()}/{_machine()}",
        }
    )


def _machine() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
