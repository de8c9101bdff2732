"""Which objects a Secret or ConfigMap matters to: an index, so that its change costs nothing for all other objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.capi.cloud import Sources
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, key_of

FIELDS = ("secrets", "config_maps")


class SourceIndex:
    """`name` tells the indexes of one cache apart. `sources` depends on the object alone."""

    def __init__(self, cache: Cache[Any], name: str, sources: Callable[[Any], Sources]) -> None:
        self._cache = cache
        self._name = name
        self._sources = sources
        cache.add_index(name, self._values)

    def users(self, key: Key, *fields: str) -> Iterable[Key]:
        """Objects that name `key` in one of these fields of their Sources, each once."""
        found = (obj for field in fields or FIELDS for obj in self._cache.by(self._name, f"{field} {key}"))
        return dict.fromkeys(key_of(obj) for obj in found)

    def _values(self, obj: Any) -> Iterable[str]:
        sources = self._sources(obj)
        return {f"{field} {key}" for field in FIELDS for key in getattr(sources, field)}
