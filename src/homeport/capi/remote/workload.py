"""One workload cluster: the client of its connection, its Nodes, and whatever else is watched there."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine, Iterable
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.followed import LOOK_SECONDS, Followed, Spawn
from homeport.client.errors import BadRequest, Timeout, Unavailable
from homeport.client.http import HttpClient, Timeouts
from homeport.client.portforward import Stream
from homeport.client.protocol import Client, Key, Query
from homeport.client.wire.rest import RestClient
from homeport.client.wire.retry import Retry
from homeport.runtime.cache import Cache
from homeport.runtime.flag import Flag
from homeport.runtime.informer import Informer

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)

Handler = Callable[[Unstructured | None, Unstructured | None], None]  # (old, new) of a change
Probe = Callable[[Client], Coroutine[Any, Any, None]]

APART_SECONDS = 2.0  # while nothing answers, an attempt to connect is made this often, whoever asks
RENEW_SECONDS = 30  # the longest that a watch of Nodes lasts before the server is asked again

_METHODS = frozenset(
    ("get", "list", "watch", "create", "replace", "patch", "apply", "delete", "delete_all")  # of Client
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Connect(Protocol):
    """Makes a client from a kubeconfig. `proxy`: to be used when the kubeconfig names none. Raises ConfigError."""

    def __call__(self, kubeconfig: bytes, proxy: str, /) -> Client: ...


@runtime_checkable
class Forwarding(Protocol):
    async def port_forward(self, key: Key, port: int) -> Stream: ...


def connect_over_http(content: bytes, proxy: str) -> Client:
    """Reconcilers come again by themselves: the client need not be patient for them."""
    return HttpClient(
        kubeconfig.parse(content, proxy=proxy),
        timeouts=Timeouts(connect=5.0, request=10.0, idle=20.0),
        retry=Retry(attempts=2, patience_seconds=5.0, apart_seconds=APART_SECONDS),
    )


async def probe(client: Client) -> None:
    """Raises when the cluster does not answer. Whether we may see `/` is no matter: that is an answer, too."""
    if not isinstance(client, RestClient):
        await client.list(NAMESPACE, Query(limit=1))
        return
    answer = await client.raw("GET", "/")
    if answer.status == 401 or answer.status >= 500:
        answer.check("GET /")


class Remote:
    """One for a cluster's whole life. `client` is the one of the connection that there is now.

    `troubled` is called when its Nodes can't be watched at the moment: the cluster may be gone. `returned` is called
    when it answers again after attempts to connect failed.
    """

    def __init__(
        self,
        key: Key,
        spawn: Spawn,
        troubled: Callable[[], None] | None = None,
        returned: Callable[[], None] | None = None,
    ) -> None:
        self.key = key
        self._spawn = spawn
        self._client: Client | None = None
        self._followed: dict[tuple[Resource, Query], Followed] = {}
        self._troubled = troubled
        self._returned = returned
        self._handlers: set[tuple[Resource, Query, Any]] = set()
        self._nodes = self._informer(NODE, Query(), slim=_slim_node)
        # Renewed often, its watch is the sign of life: no other connection need be open to a cluster at rest.
        self._nodes.query = Query(renew_seconds=RENEW_SECONDS)
        self._nodes.on_trouble = self._lose
        self._nodes.cache.add_index("providerID", _provider_ids)

    @property
    def client(self) -> Client:
        """Live reads and writes. Raises Unavailable after a disconnect: ask Remotes for the cluster in each loop."""
        if self._client is None:
            raise Unavailable(f"cluster {self.key} is not connected")
        return self._client

    @cached_property
    def current(self) -> Client:
        """For those that stay longer than a connection: each request goes through the one that there is then."""
        return cast(Client, _Current(self))

    @property
    def nodes(self) -> Cache[Unstructured]:
        """Watched, without the list of images; index "providerID"."""
        return self._nodes.cache

    def nodes_of(self, provider_id: str) -> list[Unstructured]:
        """Its Nodes, whichever form of the id they have; the very same one counts most."""
        for form in provider_id_forms(provider_id):
            if found := list(self.nodes.by("providerID", form)):
                return found
        return []

    def on_node(self, handler: Handler) -> None:
        """Called for each change, over reconnects. The same handler again is ignored."""
        self._attach(self._nodes, handler)

    def watch(
        self,
        kind: Resource,
        query: Query | None = None,
        handler: Handler | None = None,
        *,
        slim: Callable[[Any], Any] | None = None,
    ) -> Cache[Unstructured]:
        """A further kind, watched from the first call on, over reconnects; once per kind and query.

        The cache is complete when `has_synced` says so; `handler` is called for each change, from the first list on.
        `slim` of the first call decides how much of each object is kept.
        """
        informer = self._informer(kind, query or Query(), slim)
        if handler is not None:
            self._attach(informer, handler)
        return informer.cache

    def on_sync(self, kind: Resource, query: Query, handler: Callable[[], None]) -> None:
        """Called whenever the cache of a kind that is watched is complete, after the changes. The same handler again
        is ignored."""
        mark = (kind, query, handler)
        if mark not in self._handlers:
            self._handlers.add(mark)
            self._informer(kind, query).on_sync(handler)

    def has_synced(self, kind: Resource, query: Query | None = None) -> bool:
        followed = self._followed.get((kind, query or Query()))
        return followed is not None and followed.informer.synced.is_set()

    def attend(self, kind: Resource, query: Query, *, closely: bool, every: float = LOOK_SECONDS) -> None:
        """Whether changes of a kind that is watched must be known at once, which is so until this is called.

        If not, its watch ends, so that a cluster at rest has one connection, and it is listed instead: when the watch
        of Nodes is renewed and the last list is older than `every` seconds. By default that is after about a minute.
        """
        if followed := self._followed.get((kind, query)):
            followed.attend(closely, every)

    def is_at_rest(self, kind: Resource, query: Query) -> bool:
        """Whether its cache may be a minute old: `cached` makes it newer."""
        followed = self._followed.get((kind, query))
        return followed is not None and followed.is_behind

    async def cached(
        self, kind: Resource, query: Query | None = None, *, timeout: float = 10.0, max_age: float = math.inf
    ) -> Cache[Unstructured]:
        """As `watch`, and waits until the cache is complete. Of a kind that is at rest, it is at most `max_age`
        seconds old. Raises ApiError."""
        followed = self._follow(kind, query or Query())
        informer = followed.informer
        try:
            async with asyncio.timeout(timeout):
                await informer.synced.wait()
                await followed.freshen(max_age)
        except TimeoutError:
            why = informer.error or f"no complete list within {timeout:g} s"
            raise Timeout(f"cluster {self.key}: {kind.qualified} can't be watched: {why}") from None
        return informer.cache

    async def port_forward(self, namespace: str, pod: str, port: int) -> Stream:
        """A stream of bytes to a port of a pod."""
        client = self.client
        if not isinstance(client, Forwarding):
            raise BadRequest(f"cluster {self.key}: this connection can't forward ports")
        return await client.port_forward(Key(namespace, pod), port)

    # -- for Remotes -------------------------------------------------------------------------------------------

    @property
    def synced(self) -> Flag:
        return self._nodes.synced

    @property
    def error(self) -> str:
        return self._nodes.error

    @property
    def silent_seconds(self) -> float:
        """For how long nothing came from the cluster, as far as its client knows."""
        return math.inf if self.error else float(getattr(self._client, "silent_seconds", math.inf))

    def use(self, client: Client) -> None:
        """From now on, everything that is watched is watched through `client`."""
        self._client = client
        if isinstance(client, RestClient):
            client.between_watches = self._run_errands
        if isinstance(client, HttpClient) and self._returned is not None:
            client.on_return(self._returned)
        for followed in self._followed.values():
            followed.use(client)

    def nudge(self) -> None:
        """It answers: what could not be followed is asked for again at once."""
        for followed in self._followed.values():
            if followed.informer.error:
                followed.informer.nudge()

    async def stop(self) -> None:
        for followed in self._followed.values():
            followed.stop()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _lose(self) -> None:
        """The watch of Nodes does not work, and with it nothing is at rest."""
        for followed in self._followed.values():
            followed.wake()
        if self._troubled is not None:
            self._troubled()

    async def _run_errands(self) -> None:
        """Between two watches of Nodes: their connection is free."""
        for followed in [each for each in self._followed.values() if each.informer is not self._nodes]:
            await followed.rest()

    def _informer(
        self, kind: Resource, query: Query, slim: Callable[[Any], Any] | None = None
    ) -> Informer[Unstructured]:
        return self._follow(kind, query, slim).informer

    def _follow(self, kind: Resource, query: Query, slim: Callable[[Any], Any] | None = None) -> Followed:
        made = self._followed.get((kind, query))
        if made is None:
            # Until there is a client nothing asks for one: informers start with the connection.
            informer = Informer(self._client, kind, query, slim=slim, measured=False)  # type: ignore[arg-type]
            made = self._followed[kind, query] = Followed(self.key, informer, self._spawn)
            if self._client is not None:
                made.start()
        return made

    def _attach(self, informer: Informer[Unstructured], handler: Handler) -> None:
        mark = (informer.resource, informer.query, handler)
        if mark not in self._handlers:
            self._handlers.add(mark)
            informer.on_change(lambda old, new, initial: handler(old, new))


class _Current:
    """Methods of a Client, looked up when they are called. Closing the connection is left to whoever made it."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        return lambda *args, **more: getattr(self._remote.client, name)(*args, **more)

    async def close(self) -> None:
        return None


def _slim_node(node: Unstructured) -> Unstructured:
    """The images on a node are most of its size, and change nothing for us."""
    status = node.get("status")
    if isinstance(status, dict):
        status.pop("images", None)
    return node


def _provider_ids(node: Unstructured) -> Iterable[str]:
    return provider_id_forms(str((node.get("spec") or {}).get("providerID") or ""))


def provider_id_forms(provider_id: str) -> tuple[str, ...]:
    """The forms under which a Node is found: `nutanix://<Prism Central>/<VM>` is also `nutanix://<VM>`."""
    scheme, separator, rest = provider_id.partition("://")
    parts = rest.split("/")
    if separator and len(parts) == 2 and all(_UUID.fullmatch(each) for each in parts):
        return provider_id, f"{scheme}://{parts[1]}"
    return (provider_id,) if provider_id else ()
