"""Connections to members of etcd, through their Pods. They are kept while etcd is asked again and again.

Each is a port-forward: a connection to the API server of its own, and TLS inside TLS. A control plane that changes asks
its etcd many times a minute.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Protocol, TypeVar

import structlog

from homeport.capi.remote.grpc import Channel
from homeport.capi.remote.tunnel import Stream, Tunnel
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.etcd.client import PORT, EtcdClient
from homeport.runtime.clock import Clock

log = structlog.get_logger(__name__)

T = TypeVar("T")

_NAMESPACE = "kube-system"
IDLE_SECONDS = 20.0
_KEPT_SECONDS = 2.0  # the answer on a kept connection takes no longer, or a new one is made
_CLOSE_SECONDS = 5.0


class Forwarder(Protocol):
    """A connection to a workload cluster."""

    async def port_forward(self, namespace: str, pod: str, port: int) -> Stream: ...


@dataclass(frozen=True, slots=True)
class Access:
    """How the members of one cluster are reached."""

    cluster: Key
    remote: Forwarder
    context: ssl.SSLContext
    lasting: bool  # etcd was asked a moment ago, and probably will be again


@dataclass(frozen=True, slots=True)
class _Kept:
    client: EtcdClient
    context: ssl.SSLContext
    used: float


class Connections:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[Key, str], _Kept] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def ask(self, access: Access, node: str, work: Callable[[EtcdClient], Awaitable[T]]) -> T:
        """What `work` gives. It is called again if a kept connection turns out to be broken: what it does may be done
        twice."""
        kept = self._kept.pop((access.cluster, node), None)
        if kept is not None and kept.context is access.context:
            try:
                async with asyncio.timeout(_KEPT_SECONDS):
                    return await self._use(access, node, kept.client, work)
            except (OSError, ssl.SSLError, TimeoutError):  # that tells nothing about the member
                log.debug("a connection to etcd was lost", cluster=str(access.cluster), node=node)
        elif kept is not None:
            self._close(kept.client)
        return await self._use(access, node, await _open(access.remote, access.context, node), work)

    def drop_idle(self) -> bool:
        """Whether any is left."""
        oldest = self._clock.monotonic() - IDLE_SECONDS
        for key, kept in list(self._kept.items()):
            if kept.used <= oldest:
                del self._kept[key]
                self._close(kept.client)
        return bool(self._kept)

    def forget(self, cluster: Key) -> None:
        for key in [each for each in self._kept if each[0] == cluster]:
            self._close(self._kept.pop(key).client)

    async def close(self) -> None:
        for cluster in {each[0] for each in self._kept}:
            self.forget(cluster)
        await asyncio.gather(*self._closing)

    async def _use(
        self, access: Access, node: str, client: EtcdClient, work: Callable[[EtcdClient], Awaitable[T]]
    ) -> T:
        try:
            found = await work(client)
        except BaseException:
            await client.close()
            raise
        if access.lasting and (access.cluster, node) not in self._kept:  # another one may have been asked meanwhile
            self._kept[access.cluster, node] = _Kept(client, access.context, self._clock.monotonic())
        else:
            await client.close()
        return found

    def _close(self, client: EtcdClient) -> None:
        # Not in the context of the reconcile that we are called in.
        task = asyncio.get_running_loop().create_task(_end(client), name="etcd connection", context=Context())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _open(remote: Forwarder, context: ssl.SSLContext, node: str) -> EtcdClient:
    stream = await remote.port_forward(_NAMESPACE, f"etcd-{node}", PORT)
    try:
        tunnel = Tunnel(stream, context, node)
        await tunnel.open()
    except BaseException:
        await stream.close()
        raise
    return EtcdClient(Channel(tunnel, node))


async def _end(client: EtcdClient) -> None:
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await client.close()
    except (OSError, ssl.SSLError, TimeoutError) as error:
        log.debug("a connection to etcd did not end in order", error=str(error))
