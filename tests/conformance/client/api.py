"""What every test of the suite gets: a client, a namespace of its own, and the recorded answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from conformance.client.golden import Golden, Normal
from conformance.client.server import Server
from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Event, Key, Query

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
SECRETS = Resource("", "v1", "Secret", "secrets")
SERVICES = Resource("", "v1", "Service", "services")
PODS = Resource("", "v1", "Pod", "pods")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

WAIT_SECONDS = 20.0
T = TypeVar("T")


def short() -> str:
    return uuid.uuid4().hex[:8]


@dataclass
class Api:
    server: Server
    client: Any
    ns: str
    golden: Golden
    _clients: list[HttpClient] = field(default_factory=list)

    @property
    def over_http(self) -> bool:
        return isinstance(self.client, HttpClient)

    def key(self, name: str) -> Key:
        return Key(self.ns, name)

    def query(self, **options: Any) -> Query:
        return Query(namespace=self.ns, **options)

    def http(self) -> HttpClient:
        """For what only the wire shows. The server in process has no wire."""
        if not isinstance(self.client, HttpClient):
            pytest.skip("the in-process client has no HTTP")
        return self.client

    def as_user(self, user: str, groups: tuple[str, ...] = ()) -> HttpClient:
        if not self.over_http:
            pytest.skip("the in-process client is not subject to RBAC")
        made = self.server.as_user(user, groups)
        self._clients.append(made)
        return made

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    async def refusal(self, label: str, attempt: Awaitable[Any]) -> ApiError:
        """The attempt must be refused, with the recorded Status."""
        try:
            answer = await attempt
        except ApiError as error:
            self.golden.check(label, error)
            return error
        raise AssertionError(f"{label}: not refused, answered {answer}")

    async def outcome(self, label: str, attempt: Awaitable[Any]) -> Any:
        """Whatever comes of the attempt, it is what was recorded: the answer or the refusal, and the warnings."""
        self.client.warnings.texts.clear()
        try:
            answer = await attempt
        except ApiError as error:
            answer = error
        warnings = list(self.client.warnings.texts)
        self.golden.check(label, {"answer": answer, "warnings": warnings} if warnings else answer)
        return answer

    def same(self, label: str, value: Any) -> None:
        self.golden.check(label, value)


def configmap(api: Api, name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": api.ns}, "data": data}


async def take(events: AsyncIterator[Event[Any]], count: int, *, bookmarks: bool = False) -> list[Event[Any]]:
    """The next `count` events; bookmarks come when the server likes, so they are left out unless asked for."""
    found: list[Event[Any]] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while len(found) < count:
            event = await anext(events)
            if bookmarks or event.type != "BOOKMARK":
                found.append(event)
    return found


def brief(events: list[Event[Any]]) -> list[tuple[str, str]]:
    return [(event.type, event.object.name) for event in events]


async def until(look: Callable[[], Awaitable[T | None]], seconds: float = WAIT_SECONDS) -> T:
    """What `look` finds, once it finds something: real servers take a moment for what they do behind the answer."""
    async with asyncio.timeout(seconds):
        while True:
            found = await look()
            if found is not None:
                return found
            await asyncio.sleep(0.05)


async def install(client: Any, crd: dict[str, Any]) -> Resource:
    """Create a CRD and wait until its newest version is served."""
    made = await client.create(crd, kind=CRDS)
    await established(client, made.name)
    spec = crd["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    kind = Resource(
        spec["group"], stored, spec["names"]["kind"], spec["names"]["plural"], spec["scope"] == "Namespaced"
    )

    async def served() -> Resource | None:
        try:
            await client.list(kind)
        except NotFound:
            return None
        return kind

    return await until(served)  # real servers publish the new paths a moment later


async def established(client: Any, name: str) -> Unstructured:
    async with asyncio.timeout(WAIT_SECONDS):
        async with client.watch(CRDS, Query(fields=f"metadata.name={name}")) as events:
            async for event in events:
                conditions = event.object.get("status", {}).get("conditions") or ()
                if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                    return Unstructured(event.object)
    raise AssertionError(f"{name} was never established")


def normal_for(ns: str, group: str) -> Normal:
    words = {group: "GROUP"} if group else {}
    return Normal({**words, ns: "NS"})
