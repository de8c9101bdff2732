"""The keys of one controller that this process works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from homeport.api.meta import Object, Unstructured
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.clock import Clock

# The object is None if it does not exist. None as an answer: as the manager says.
ShardOf = Callable[[Key, Any], str | None]

# An object that changes its shard (a label or an owner was added) is left alone for so long: the replica that it
# belonged to hears of the change a moment later than the one that it belongs to now.
SETTLE_SECONDS = 5.0
_REMEMBERED = 4096  # deleted objects whose shard is known


class Share:
    """`held` says which shards are ours. A deleted object stays in its shard, whose replica knows what it left."""

    def __init__(
        self,
        held: Callable[[str], bool],
        shard_of: Callable[[Key, Any], str],
        cache: Callable[[], Cache[Any]],
        clock: Clock,
    ) -> None:
        self._held = held
        self._shard_of = shard_of
        self._cache = cache
        self._clock = clock
        self._moved: dict[Key, float] = {}  # until when an object that changed its shard is left alone
        self._gone: dict[Key, str] = {}

    def shard(self, key: Key) -> str:
        found = self._cache().get(key)
        if found is None and key in self._gone:
            return self._gone[key]
        return self._shard_of(key, found)

    def holds(self, shard: str) -> bool:
        return self._held(shard)

    def mine(self, key: Key) -> bool:
        return not self.settling(key) and self._held(self.shard(key))

    def settling(self, key: Key) -> float:
        """For how many seconds the object is left alone."""
        until = self._moved.get(key)
        if until is None:
            return 0.0
        left = until - self._clock.monotonic()
        if left <= 0:
            del self._moved[key]
        return max(0.0, left)

    def note(self, old: Object | Unstructured | None, new: Object | Unstructured | None) -> bool:
        """To be called for every change of the controller's own kind, before its keys are enqueued.

        False: the object is in a shard of another replica, and this change did not bring it there.
        """
        found = new if new is not None else old
        if found is None:
            return False
        key = key_of(found)
        shard = self._shard_of(key, found)
        if new is None:
            self._moved.pop(key, None)
            self._gone[key] = shard
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
        else:
            self._gone.pop(key, None)
            if old is not None and self._shard_of(key, old) != shard:
                self._moved[key] = self._clock.monotonic() + SETTLE_SECONDS
        return key in self._moved or self._held(shard)
