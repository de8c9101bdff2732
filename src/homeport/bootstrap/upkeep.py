"""Tokens are kept good as long as a machine may need them, and new ones are made for pools, which may grow any time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from homeport.bootstrap.scope import BootstrapScope
from homeport.bootstrap.secret import token_of
from homeport.bootstrap.token import SECRET, Token, Tokens
from homeport.capi.remote.remotes import Remotes
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

Rewrite = Callable[[Token], Awaitable[Wait | None]]

# Looked at three times in a token's life and extended unless it is nearly fresh: one look may fail.
_LOOKS = 3
_FRESH = 5 / 6
_OLD = 1 / 2  # of a pool's token: there is time left for machines that have just read it


class Upkeep:
    def __init__(
        self, client: Client, remotes: Remotes, clock: Clock, write: Write, ttl: float, usages: Mapping[str, str]
    ) -> None:
        self._client = client
        self._remotes = remotes
        self._clock = clock
        self._write = write
        self._ttl = ttl
        self._usages = usages
        self._due: dict[Key, float] = {}  # when each config's token is to be looked at again
        self._unconnected: set[Key] = set()  # configs that wait for a connection to their cluster

    def forget(self, config: Key) -> None:
        self._due.pop(config, None)
        self._unconnected.discard(config)

    def waits_for_connection(self, config: Key) -> bool:
        return config in self._unconnected

    def made(self, config: Key, token: Token | None) -> None:
        if token is not None:
            self._due[config] = self._clock.now() + self._ttl / _LOOKS

    async def make_token(self, scope: BootstrapScope[Any]) -> Token | Wait:
        tokens = self._tokens(scope)
        return tokens if isinstance(tokens, Wait) else await tokens.create(self._clock.now())

    async def keep(self, scope: BootstrapScope[Any], rewrite: Rewrite, given: str = "") -> Wait | None:
        """`rewrite` puts data with another token into the Secret. `given`: the token that the user chose."""
        if not scope.initialized or (scope.owner.joined and not scope.owner.pool):
            self._due.pop(scope.key, None)
            return None  # the first control plane machine joins nobody; a node needs no token any more
        now = self._clock.now()
        due = self._due.get(scope.key, 0.0)
        if now < due:
            return self._later(due - now)
        token, ours = await self._token(scope, given)
        if token is None:
            return None
        tokens = self._tokens(scope)
        if isinstance(tokens, Wait):
            return tokens
        if scope.owner.pool and ours:
            wait = await self._keep_pool(scope, tokens, token, rewrite)
        else:
            wait = await self._keep_machine(tokens, token, ours)
        if wait is not None:
            return wait
        self._due[scope.key] = now + self._ttl / _LOOKS
        return self._later(self._ttl / _LOOKS)

    async def _keep_machine(self, tokens: Tokens, token: Token, ours: bool) -> Wait | None:
        now = self._clock.now()
        left = await tokens.seconds_left(token, now)
        if left is not None and left > self._ttl * _FRESH:
            return None
        if (left is None or not await tokens.extend(token, now)) and ours:
            # The machine has been told this token and no other; a user's own token is the user's to keep.
            await tokens.put(token, now)
        return None

    async def _keep_pool(
        self, scope: BootstrapScope[Any], tokens: Tokens, token: Token, rewrite: Rewrite
    ) -> Wait | None:
        now = self._clock.now()
        left = await tokens.seconds_left(token, now)
        if left is None or (scope.owner.joined and left < self._ttl * _OLD):
            return await rewrite(await tokens.create(now))
        if not scope.owner.joined and left <= self._ttl * _FRESH:
            await tokens.extend(token, now)
        return None

    async def _token(self, scope: BootstrapScope[Any], given: str) -> tuple[Token | None, bool]:
        """The token of the data, and whether it is ours; None when they have none."""
        if given:
            return Token.parse(given), False
        try:
            name = scope.object.status.data_secret_name
            return token_of(await self._client.get(SECRET, Key(scope.key.namespace, name))), True
        except NotFound:
            return None, False

    def _tokens(self, scope: BootstrapScope[Any]) -> Tokens | Wait:
        remote = self._remotes.get(scope.cluster_key)
        if remote is None:
            # A connection wakes us.
            why = self._remotes.why(scope.cluster_key)
            self._unconnected.add(scope.key)
            return Wait("WaitingForConnection", f"a bootstrap token can't be created or renewed: {why}")
        self._unconnected.discard(scope.key)
        return Tokens(remote.client, self._write, self._ttl, self._usages)

    def _later(self, seconds: float) -> Wait:
        return Wait(
            "TokenInUse", "the bootstrap token is renewed until the machine is a Node", after=seconds, quiet=True
        )
