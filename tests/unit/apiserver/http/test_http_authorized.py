"""What is carried out is what was authorised, however odd the path: the attributes that rights are checked on are those
of the operation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
import pytest

from homeport.apiserver.auth.decision import Attributes, Decision
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.option import DeleteOptions, Listing, ListOptions, WatchOptions
from homeport.apiserver.registry import Answer, Call, Registry
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json, ServedKind, Version
from homeport.apiserver.verb.watch import WatchStream
from homeport.machinery.selector import parse_fields
from unit.apiserver.http.http_serving import ADMIN, CONFIG_MAPS, NOBODY, WIDGETS, Api, config_map, serving, widget

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Operation(NamedTuple):
    verb: str
    group: str
    resource: str
    namespace: str
    names: tuple[str, ...] = ()  # that the object, or each of a list, has at the same time
    subresource: str = ""


class OpenDoor(Rbac):
    """Allows everything and keeps what it was asked: whatever happens then must be one of these things."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Attributes] = []

    def authorize(self, a: Attributes) -> Decision:
        self.asked.append(a)
        return Decision(True)


class Diary(Registry):
    """Notes each operation that a request causes, and not those that it consists of."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.done: list[Operation] = []
        self._depth = 0

    @contextmanager
    def _noted(
        self, verb: str, served: ServedKind, namespace: str, *names: str, subresource: str = ""
    ) -> Iterator[None]:
        if not self._depth:
            self.done.append(Operation(verb, served.group, served.plural, namespace, names, subresource))
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    async def get(self, served: ServedKind, version: Version, namespace: str, name: str, **options: Any) -> bytes:
        with self._noted("get", served, namespace, name, subresource=options.get("subresource", "")):
            return await super().get(served, version, namespace, name, **options)

    async def list(self, served: ServedKind, version: Version, namespace: str, options: ListOptions) -> Listing:
        with self._noted("list", served, namespace, *_selected(options.fields)):
            return await super().list(served, version, namespace, options)

    def watch(self, served: ServedKind, version: Version, namespace: str, options: WatchOptions) -> WatchStream:
        with self._noted("watch", served, namespace, *_selected(options.fields)):
            return super().watch(served, version, namespace, options)

    async def create(self, ctx: Context, served: ServedKind, version: Version, namespace: str, body: Json) -> bytes:
        with self._noted("create", served, namespace, (body.get("metadata") or {}).get("name", "")):
            return await super().create(ctx, served, version, namespace, body)

    async def update(
        self, ctx: Context, served: ServedKind, version: Version, namespace: str, name: str, body: Json, **options: Any
    ) -> tuple[bytes, bool]:
        with self._noted("update", served, namespace, name, subresource=options.get("subresource", "")):
            return await super().update(ctx, served, version, namespace, name, body, **options)

    async def patch(
        self, ctx: Context, served: ServedKind, version: Version, namespace: str, name: str, *patch: Any, **options: Any
    ) -> tuple[bytes, bool]:
        with self._noted("patch", served, namespace, name, subresource=options.get("subresource", "")):
            return await super().patch(ctx, served, version, namespace, name, *patch, **options)

    async def delete(
        self, ctx: Context, served: ServedKind, version: Version, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[bytes, bool]:
        with self._noted("delete", served, namespace, name):
            return await super().delete(ctx, served, version, namespace, name, options)

    async def delete_collection(
        self,
        ctx: Context,
        served: ServedKind,
        version: Version,
        namespace: str,
        chosen: ListOptions,
        options: DeleteOptions,
    ) -> Listing:
        with self._noted("deletecollection", served, namespace):
            return await super().delete_collection(ctx, served, version, namespace, chosen, options)

    def connect(self, group: str, plural: str, subresource: str, answer: Answer, *methods: str) -> None:
        async def noted(call: Call) -> Any:
            verb = {"GET": "get", "POST": "create"}.get(call.method, call.method)
            with self._noted(verb, call.served, call.namespace, call.name, subresource=subresource):
                return await answer(call)

        super().connect(group, plural, subresource, noted, *methods)


def _selected(fields: str) -> list[str]:
    return [value for field, equal, value in parse_fields(fields).terms if field == "metadata.name" and equal]


def covered(done: Operation, asked: Attributes) -> bool:
    """Whether leave for `asked` is leave for what was done. An empty namespace or name in the question is all of them."""
    if (asked.verb, asked.group, asked.resource, asked.subresource) != (
        done.verb, done.group, done.resource, done.subresource,
    ):  # fmt: skip
        return False
    if asked.name not in ("", *done.names):
        return False
    if (done.group, done.resource) == ("", "namespaces"):
        return asked.namespace in ("", *done.names)
    return asked.namespace in ("", done.namespace)


PLAIN = (
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/status",
    "/api/v1/nodes",
    "/api/v1/nodes/a/status",
    "/api/v1/secrets",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/secrets/a",
    "/api/v1/namespaces/default/pods/a/log",
    "/api/v1/namespaces/default/pods/a/eviction",
    "/api/v1/namespaces/default/pods/a/status",
    "/api/v1/namespaces/default/serviceaccounts/a/token",
    "/api/v1/watch/namespaces/default",
    "/api/v1/watch/namespaces/default/secrets",
    "/api/v1/watch/namespaces/default/secrets/a",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
    "/apis/example.com/v1/widgets",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/example.com/v1/namespaces/default/widgets/a",
    "/apis/example.com/v1/namespaces/default/widgets/a/status",
    "/apis/example.com/v1/namespaces/default/widgets/a/scale",
    "/apis/example.com/v1/watch/namespaces/default/widgets/a",
)
ODD = (
    "", ".", "..", "%2F", "%2e%2e", "%252F", "a%2Fstatus", "%00", "%ff", "a", "Secrets", "status", "scale", "log",
    "watch", "proxy", "namespaces", "secrets", "widgets", "other", "a,metadata.name!=a",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
QUERIES = ("", "?watch=1", "?fieldSelector=metadata.name%3Da", "?fieldSelector=metadata.name%3D..&watch=true")


def odd_paths() -> Iterator[str]:
    """Each plain path, and all that differ from one in a segment: put in, put in place of another, doubled, left out."""
    for path in PLAIN:
        parts = path.split("/")
        yield from (path, f"{path}/", f"{path}//", f"/{path}", path.upper())
        for at in range(1, len(parts)):
            yield "/".join(parts[:at] + parts[at + 1 :])
            yield "/".join(parts[: at + 1] + parts[at:])
            for segment in ODD:
                yield "/".join([*parts[:at], segment, *parts[at:]])
                yield "/".join([*parts[:at], segment, *parts[at + 1 :]])
        for segment in ODD:
            yield f"{path}/{segment}"
            yield f"{path}//{segment}"


class Wire:
    """One connection after the other: paths go out as they are, which no HTTP library allows."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, target: str, token: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status, and the body unless it has no end."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((line[15:] for line in answer.splitlines() if line.lower().startswith("content-length")), None)
        got = b""
        if length is None or "connection: close" in answer.lower():
            await self.close()
        elif method != "HEAD":
            got = await reader.readexactly(int(length))
        return int(answer.split(" ", 2)[1]), got

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _answer(call: Call) -> Json:
    return {"kind": "Status", "apiVersion": "v1"}


@pytest.fixture
async def open_api() -> AsyncIterator[Api]:
    async with serving(rbac=OpenDoor(), registry_type=Diary) as api:
        for name in ("a", "b"):
            await api.post(CONFIG_MAPS.replace("configmaps", "secrets"), {"metadata": {"name": name}})
            await api.post(WIDGETS, widget(name, replicas=1))
        api.registry.connect("", "pods", "log", _answer, "GET")
        api.registry.connect("", "pods", "eviction", _answer, "POST")
        api.registry.connect("", "serviceaccounts", "token", _answer, "POST")
        for plural in ("subjectaccessreviews", "localsubjectaccessreviews"):
            api.registry.connect("authorization.k8s.io", plural, "", _answer, "POST")
        yield api


def _requests(count: int) -> list[tuple[str, str, str]]:
    """A selection of all that there are, the same each time; every path is read and posted to."""
    chance = random.Random(20)
    paths = list(dict.fromkeys(odd_paths()))
    watched = [("POST", path.replace("/v1/", "/v1/watch/"), "") for path in PLAIN]
    every = [(method, path, "") for method in ("GET", "POST") for path in paths]
    return (
        watched + every + [(chance.choice(METHODS), chance.choice(paths), chance.choice(QUERIES)) for _ in range(count)]
    )


async def test_every_operation_is_one_that_was_authorised(open_api: Api) -> None:
    door, diary = open_api.server._rbac, open_api.registry
    assert isinstance(door, OpenDoor)
    assert isinstance(diary, Diary)
    wire, seen = Wire(open_api.port), set()
    for method, path, query in _requests(4000):
        door.asked.clear()
        diary.done.clear()
        body = b"" if method in ("GET", "HEAD") else orjson.dumps({"metadata": {"name": "a"}})
        status, _ = await wire.send(method, path + query, ADMIN, body)
        for done in diary.done:
            assert any(covered(done, asked) for asked in door.asked), (method, path, query, status, done, door.asked)
            seen.add(done.verb)
    await wire.close()
    # Else it would prove nothing.
    assert seen == {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}


async def _allow(api: Api, *rules: dict[str, list[str]], namespace: str = "") -> None:
    """Gives NOBODY the rules, in one namespace or everywhere."""
    kinds = ("Role", "roles", "rolebindings") if namespace else ("ClusterRole", "clusterroles", "clusterrolebindings")
    base = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    await api.post(f"{base}/{kinds[1]}", {"metadata": {"name": "narrow"}, "rules": list(rules)})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kinds[0], "name": "narrow"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    made = await api.post(f"{base}/{kinds[2]}", {"metadata": {"name": "narrow"}, "roleRef": ref, "subjects": [subject]})
    assert made.status == 201, made.body


SUBRESOURCES = ("status", "scale", "log", "eviction", "token", "nothing")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/secrets//{}",
        "/api/v1/secrets//{}",
        "/api/v1/namespaces//secrets//{}",
        "/api/v1/watch/namespaces/default/secrets//{}",
        "/api/v1/watch/namespaces/default/secrets/a/{}",
        "/api/v1/watch/secrets//{}",
        "/api/v1/namespaces//{}",
        "/api/v1/namespaces/default/secrets/%2F{}",
        "/api/v1/namespaces/default/secrets%2F%2F{}",
        "/api/v1/namespaces/default/secrets/.//{}",
        "/apis/example.com/v1/namespaces/default/widgets//{}",
        "/apis/example.com/v1/watch/namespaces/default/widgets/a/{}",
        "/apis/example.com/v1/widgets//{}",
    ],
)
async def test_rights_on_subresources_alone_open_no_collection(api: Api, path: str) -> None:
    rule = {"apiGroups": ["*"], "resources": [f"*/{each}" for each in SUBRESOURCES], "verbs": ["*"]}
    await _allow(api, rule)
    secrets = CONFIG_MAPS.replace("configmaps", "secrets")
    await api.post(secrets, {"metadata": {"name": "a"}, "stringData": {"word": "hunter2"}})
    await api.post(WIDGETS, widget("a", color="hunter2"))
    revision = api.registry.store.revision
    wire = Wire(api.port)
    for method in METHODS:
        for subresource in SUBRESOURCES:
            made = orjson.dumps({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "new"}})
            body = made if method == "POST" else b""
            status, got = await wire.send(method, path.format(subresource), NOBODY, body)
            assert status >= 400, (method, subresource, status)
            assert b"hunter2" not in got
            assert b"aHVudGVyMg" not in got
    await wire.close()
    assert api.registry.store.revision == revision


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/namespaces"),
        ("GET", "/api/v1/namespaces/default/namespaces/other"),
        ("GET", "/api/v1/watch/namespaces/default/namespaces"),
        ("POST", "/api/v1/namespaces/default/namespaces"),
        ("DELETE", "/api/v1/namespaces/default/namespaces/other"),
        ("DELETE", "/api/v1/namespaces/default/namespaces"),
        ("GET", "/api/v1/namespaces/default/nodes"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterrolebindings"),
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/default/subjectaccessreviews"),
    ],
)
async def test_rights_in_one_namespace_reach_nothing_outside(api: Api, method: str, path: str) -> None:
    await _allow(api, {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, namespace="default")
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    api.registry.connect("authorization.k8s.io", "subjectaccessreviews", "", _answer, "POST")
    body = {"metadata": {"name": "new"}} if method == "POST" else None
    refused = await api.call(method, path, body, token=NOBODY)
    assert refused.status in (404, 405), refused.body
    assert (await api.get("/api/v1/namespaces/other")).status == 200
    assert (await api.get("/api/v1/namespaces/new")).status == 404


@pytest.mark.parametrize(
    ("connected", "method"),
    [("log", "POST"), ("log", "DELETE"), ("eviction", "PUT"), ("eviction", "PATCH"), ("eviction", "GET")],
)
async def test_a_connector_answers_only_to_its_own_methods(api: Api, connected: str, method: str) -> None:
    api.registry.connect("", "pods", "log", _answer, "GET")
    api.registry.connect("", "pods", "eviction", _answer, "POST")
    pod = "/api/v1/namespaces/default/pods/p"
    headers = {"Content-Type": "application/merge-patch+json"}
    assert (await api.call(method, f"{pod}/{connected}", {}, headers=headers)).status == 405
    own = "GET" if connected == "log" else "POST"
    assert (await api.call(own, f"{pod}/{connected}/more")).status == 404
    assert (await api.call(own, f"{pod}/{connected}")).status < 300


@pytest.mark.parametrize("name", ["..", ".", "%25", "a%252Fb"])
async def test_a_name_that_is_not_a_path_segment_is_refused(api: Api, name: str) -> None:
    wire = Wire(api.port)
    for method in ("GET", "DELETE"):
        status, got = await wire.send(method, f"{CONFIG_MAPS}/{name}", ADMIN)
        assert (status, b"Name parameter invalid" in got) == (400, True)
    await wire.close()


async def test_a_watch_of_one_name_shows_that_one_alone(api: Api) -> None:
    """Whatever the name looks like in a selector."""
    for name in ("a", "b"):
        await api.post(CONFIG_MAPS, config_map(name))
    name = quote("a,metadata.name!=c", safe="")
    path = f"/api/v1/watch/namespaces/default/configmaps/{name}?timeoutSeconds=1"
    assert (await api.get(path)).body == b""


@pytest.mark.parametrize("selector", ["metadata.name=b", "metadata.name!=b", "metadata.namespace=default", "bad"])
async def test_a_watch_of_one_name_takes_no_selector_of_another(api: Api, selector: str) -> None:
    path = f"/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=1&fieldSelector={quote(selector)}"
    assert (await api.get(path)).status == 400


async def test_a_connector_takes_no_object_of_another_namespace(api: Api) -> None:
    api.registry.connect("", "pods", "eviction", _answer, "POST")
    path = "/api/v1/namespaces/default/pods/p/eviction"
    refused = await api.post(path, {"metadata": {"name": "p", "namespace": "other"}})
    assert (refused.status, "does not match the namespace" in refused.message) == (400, True)
    assert (await api.post(path, {"metadata": {"name": "p", "namespace": "default"}})).status == 201
