"""Bootstrap tokens: what a joining machine shows to a cluster that doesn't know it yet."""

from __future__ import annotations

import base64
import contextlib
import re
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.runtime.clock import rfc3339

SECRET = Resource("", "v1", "Secret", "secrets")
TTL_SECONDS = 900.0
_NAMESPACE = "kube-system"
_TYPE = "bootstrap.kubernetes.io/token"
_ALPHABET = string.ascii_lowercase + string.digits
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")


class BadToken(ValueError):
    """Not of the form id.secret. The text doesn't show it."""


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    secret: str = field(repr=False)

    @classmethod
    def make(cls) -> Token:
        return cls(*("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (6, 16)))

    @classmethod
    def parse(cls, text: str) -> Token:
        found = _TOKEN.fullmatch(text)
        if found is None:
            raise BadToken("the bootstrap token is invalid: expected <6 characters>.<16 characters>, a-z and 0-9")
        return cls(*found.groups())

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"

    @property
    def key(self) -> Key:
        return Key(_NAMESPACE, f"bootstrap-token-{self.id}")


class Tokens:
    """The tokens of one workload cluster."""

    def __init__(self, client: Client, write: Write, ttl: float, usages: Mapping[str, str]) -> None:
        """`usages`: what the Secret of a token says besides the token: what it is good for."""
        self._client = client
        self._write = write
        self._ttl = ttl
        self._usages = usages

    async def create(self, now: float) -> Token:
        while True:
            token = Token.make()
            with contextlib.suppress(AlreadyExists):  # that id is taken: one in two thousand million
                await self.put(token, now)
                return token

    async def put(self, token: Token, now: float) -> None:
        """Raises AlreadyExists."""
        values = {
            "token-id": token.id,
            "token-secret": token.secret,
            "expiration": rfc3339(now + self._ttl),
            **self._usages,
        }
        secret: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": _TYPE,
            "metadata": {"name": token.key.name, "namespace": token.key.namespace},
            "data": {name: _encoded(value) for name, value in values.items()},
        }
        await self._client.create(secret, self._write, kind=SECRET)

    async def seconds_left(self, token: Token, now: float) -> float | None:
        """How long the token is good for; None: it is gone. Without a readable expiry it is due for one: 0."""
        found = await find_object(self._client, SECRET, token.key)
        if found is None:
            return None
        return _expiry(found) - now

    async def extend(self, token: Token, now: float) -> bool:
        """False: it is gone."""
        patch = MergePatch({"data": {"expiration": _encoded(rfc3339(now + self._ttl))}})
        try:
            await self._client.patch(SECRET, token.key, patch, self._write)
        except NotFound:
            return False
        return True


def _expiry(secret: Unstructured) -> float:
    try:
        text = base64.b64decode((secret.get("data") or {}).get("expiration") or "").decode()
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
