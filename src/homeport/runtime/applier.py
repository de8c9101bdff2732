"""Applies objects that others are made of, and leaves alone what is already as it should be."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from homeport.api.meta import Object, Resource
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import Clock

Json = dict[str, Any]

_TRUST_SECONDS = 600.0  # how long an object that nothing watches is taken for what was applied


@dataclass(frozen=True, slots=True)
class _Memo:
    digest: bytes
    uid: str
    generation: int
    at: float


class Applier:
    """Server-side apply. What was applied before is applied again when it, or the object in the cache, has changed."""

    def __init__(self, client: Client, write: Write, clock: Clock) -> None:
        self._client = client
        self._write = write
        self._clock = clock
        self._memos: dict[Key, dict[tuple[str, str], _Memo]] = {}

    def forget(self, owner: Key) -> None:
        self._memos.pop(owner, None)

    async def hold(
        self, owner: Key, obj: Json, kind: Resource, *, cached: Object | None = None, watched: bool = False
    ) -> bool:
        """Whether the cache shows what was applied. `watched`: `cached` is all there is; otherwise nobody knows what
        became of the object."""
        memos = self._memos.setdefault(owner, {})
        at = (obj["kind"], obj["metadata"]["name"])
        digest = hashlib.sha256(msgspec.json.encode(obj, order="sorted")).digest()
        memo, now = memos.get(at), self._clock.now()
        if memo is not None and memo.digest == digest and self._stands(memo, cached, watched=watched, now=now):
            return True
        made = await self._client.apply(obj, self._write, kind=kind, force=True)
        memos[at] = memo = _Memo(digest, made.uid, int(made.metadata.get("generation") or 0), now)
        return self._stands(memo, cached, watched=watched, now=now)

    def _stands(self, memo: _Memo, cached: Object | None, *, watched: bool, now: float) -> bool:
        if not watched:
            return now - memo.at < _TRUST_SECONDS
        if cached is None:
            return False
        return (cached.metadata.uid, cached.metadata.generation) == (memo.uid, memo.generation)
