"""Asks the members of a workload cluster's etcd how they are, and changes them. Each through its own Pod."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import TypeVar

import structlog

from homeport.capi.remote.grpc import GrpcError
from homeport.capi.remote.pki import KeyPair, client_certificate
from homeport.capi.remote.tunnel import context_of
from homeport.client.errors import ApiError, NotConnected
from homeport.client.protocol import Key
from homeport.client.wire.resumption import forget_sessions
from homeport.controlplane.kubeadm.etcd.client import EtcdClient, Member, MemberAlarm, Status
from homeport.controlplane.kubeadm.etcd.connection import IDLE_SECONDS, Access, Connections, Forwarder
from homeport.controlplane.kubeadm.observe.health import EtcdView
from homeport.runtime.clock import Clock

log = structlog.get_logger(__name__)

T = TypeVar("T")

_USER = "homeport"
_CERTIFICATE_SECONDS = 86_400.0
_SECONDS = 10.0  # for everything that one member is asked
_TROUBLE = (OSError, ssl.SSLError, GrpcError, ApiError, TimeoutError)


class EtcdError(Exception):
    """Members could not be changed; says which and why."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: Status
    members: tuple[Member, ...] | None = None
    alarms: tuple[MemberAlarm, ...] = ()


class _NoWay(str):
    """A problem of the API server of the cluster, through which the members are asked."""


class Inspector:
    """Client certificates are kept for a day: to make one costs more than to use it.

    Contexts and connections are ready for use as long as etcd is asked again and again. A healthy etcd is asked every
    ten minutes, and 17 KiB for each cluster are too much to wait for that.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._identities: dict[Key, tuple[float, bytes, bytes]] = {}  # since when, its authority, certificate with key
        self._contexts: dict[Key, tuple[float, bytes, ssl.SSLContext]] = {}  # last used, with which identity
        self._connections = Connections(clock)
        self._dropping: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Until cancelled: then the connections that were kept end."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._connections.close()

    def forget(self, cluster: Key) -> None:
        self._identities.pop(cluster, None)
        self._drop_context(cluster)
        self._connections.forget(cluster)

    async def look(
        self, cluster: Key, remote: Forwarder, authority: KeyPair, nodes: Sequence[str], *, lasting: bool = False
    ) -> EtcdView:
        """What the members on `nodes` say of themselves and of each other. Never raises: trouble is part of it.

        `lasting`: they will be asked again soon.
        """
        if not nodes:
            return EtcdView(error="no Node with etcd exists yet")
        access = self._access(cluster, remote, authority, lasting)
        found = await asyncio.gather(*(self._ask(access, node) for node in nodes))
        answers = {node: each for node, each in zip(nodes, found, strict=True) if isinstance(each, _Answer)}
        problems = {node: each for node, each in zip(nodes, found, strict=True) if isinstance(each, str)}
        if any(isinstance(each, _NoWay) for each in found):
            # That tells nothing about these members, and those with a connection that is still open are only some.
            answers = {}
        return combine(answers, problems)

    async def remove_member(
        self, cluster: Key, remote: Forwarder, authority: KeyPair, nodes: Sequence[str], member: int
    ) -> None:
        """Through any of `nodes` that answers. A member that is gone already is fine."""

        async def remove(client: EtcdClient) -> None:
            try:
                await client.remove_member(member)
            except GrpcError as refused:
                if "member not found" not in str(refused):
                    raise

        await self._any(cluster, remote, authority, nodes, remove, f"etcd member {member:x} can't be removed")

    async def move_leader(
        self, cluster: Key, remote: Forwarder, authority: KeyPair, leader: str, candidates: Sequence[Member]
    ) -> None:
        """From `leader`, which alone can do it, to the first candidate that takes it."""
        problem = "etcd has no other member"
        for candidate in candidates:
            try:
                await self._any(
                    cluster,
                    remote,
                    authority,
                    [leader],
                    lambda client, to=candidate: client.move_leader(to.id),  # type: ignore[misc]
                    f"etcd leadership can't be transferred from {leader} to {candidate.name}",
                )
            except EtcdError as refused:
                problem = str(refused)
            else:
                return
        raise EtcdError(problem)

    async def _any(
        self,
        cluster: Key,
        remote: Forwarder,
        authority: KeyPair,
        nodes: Sequence[str],
        work: Callable[[EtcdClient], Awaitable[T]],
        failed: str,
    ) -> T:
        access = self._access(cluster, remote, authority)
        problem = "no Node with etcd exists"
        for node in nodes:
            try:
                async with asyncio.timeout(_SECONDS):
                    return await self._connections.ask(access, node, work)
            except _TROUBLE as trouble:
                problem = _said(trouble)
                log.info("etcd refused", cluster=str(cluster), node=node, error=problem)
        raise EtcdError(f"{failed}: {problem}")

    async def _ask(self, access: Access, node: str) -> _Answer | str:
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._connections.ask(access, node, _describe)
        except NotConnected as trouble:
            return _NoWay(_said(trouble))
        except _TROUBLE as trouble:
            return _said(trouble)

    def _access(self, cluster: Key, remote: Forwarder, authority: KeyPair, lasting: bool = False) -> Access:
        lasting = lasting or cluster in self._contexts
        return Access(cluster, remote, self._context(cluster, authority), lasting)

    def _context(self, cluster: Key, authority: KeyPair) -> ssl.SSLContext:
        identity = self._identity(cluster, authority)
        _, made_with, made = self._contexts.get(cluster, (0.0, b"", None))
        if made is None or made_with is not identity:
            self._drop_context(cluster)
            # OpenSSL reads certificates from files alone; this one is gone again at once.
            with tempfile.NamedTemporaryFile(prefix="homeport-etcd-") as file:
                file.write(identity)
                file.flush()
                made = context_of(authority.certificate, file.name)
        self._contexts[cluster] = (self._clock.monotonic(), identity, made)
        if self._dropping is None:
            self._drop_later()
        return made

    def _identity(self, cluster: Key, authority: KeyPair) -> bytes:
        now = self._clock.now()
        known = self._identities.get(cluster)
        if known is not None and now - known[0] < _CERTIFICATE_SECONDS and known[1] == authority.certificate:
            return known[2]
        pair = make_identity(authority)
        made = pair.certificate + pair.key
        self._identities[cluster] = (now, authority.certificate, made)
        return made

    def _drop_idle(self) -> None:
        """Whoever uses a context at this moment has it by itself."""
        self._dropping = None
        oldest = self._clock.monotonic() - IDLE_SECONDS
        for cluster in [cluster for cluster, (used, _, _) in self._contexts.items() if used <= oldest]:
            self._drop_context(cluster)
        if self._connections.drop_idle() or self._contexts:
            self._drop_later()

    def _drop_context(self, cluster: Key) -> None:
        _, _, context = self._contexts.pop(cluster, (0.0, b"", None))
        forget_sessions(context)

    def _drop_later(self) -> None:
        # Not in the context of the reconcile that we are called in: it would live as long as contexts are used.
        loop = asyncio.get_running_loop()
        self._dropping = loop.call_later(IDLE_SECONDS, self._drop_idle, context=Context())


def make_identity(authority: KeyPair) -> KeyPair:
    """Valid as long as the authority is: it never leaves this process, and members' clocks may differ from ours."""
    issuer = authority.issuer().certificate
    start, end = issuer.not_valid_before_utc, issuer.not_valid_after_utc
    return client_certificate(authority, _USER, now=start.timestamp(), days=max(1, (end - start).days))


async def _describe(client: EtcdClient) -> _Answer:
    status = await client.status()
    if not status.leader:
        return _Answer(status)
    return _Answer(status, tuple(await client.members()), tuple(await client.alarms()))


def combine(answers: Mapping[str, _Answer], problems: Mapping[str, str]) -> EtcdView:
    """One view of all answers. The members are those that one with a leader lists."""
    wrong = {node: f"it does not answer: {problem}" for node, problem in problems.items()}
    for node, answer in answers.items():
        if not answer.status.leader:
            wrong[node] = "it has no leader"
    known = next((each for each in answers.values() if each.members is not None), None)
    if known is None:
        said = "; ".join(f"{node}: {problem}" for node, problem in sorted(wrong.items()))
        return EtcdView(problems=wrong, error=f"no etcd member has a leader ({said})")
    alarms: dict[int, str] = {}
    for alarm in known.alarms:
        alarms[alarm.member] = f"{alarms[alarm.member]}, {alarm.alarm}" if alarm.member in alarms else alarm.alarm
    return EtcdView(known.members, known.status.leader, alarms, wrong, answering=frozenset(answers) - set(wrong))


def _said(trouble: BaseException) -> str:
    if isinstance(trouble, TimeoutError) and not str(trouble):
        return f"no answer within {_SECONDS:g} s"
    return str(trouble) or type(trouble).__name__
