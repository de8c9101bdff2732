"""Pools that machines get their addresses from, as a preflight reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.capi.addresspool import KINDS, Pool, describe, pool_key, pool_kind, usable
from homeport.machinery.address import AddressSet
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager

FindPool = Callable[[str, IPPoolReference], Pool | None]  # of a namespace


def cached_pools(manager: Manager) -> FindPool:
    caches: dict[type[Pool], Any] = {kind: manager.informers.get(kind).cache for kind in KINDS.values()}

    def find(namespace: str, ref: IPPoolReference) -> Pool | None:
        kind = pool_kind(ref)
        found: Pool | None = caches[kind].get(pool_key(kind, ref.name, namespace)) if kind is not None else None
        return found

    return find


def read_pool(namespace: str, ref: IPPoolReference, find: FindPool) -> tuple[AddressSet, tuple[str, str] | None]:
    """What the pool may give out, or what is wrong with it: (reason, sentence)."""
    kind = pool_kind(ref)
    if kind is None:
        return AddressSet(), None
    pool = find(namespace, ref)
    if pool is None:
        named = describe(kind, pool_key(kind, ref.name, namespace))
        return AddressSet(), ("WaitingForPool", f"{named} does not exist yet")
    try:
        return usable(pool.spec), None
    except ValueError as error:
        return AddressSet(), ("WaitingForPool", f"{describe(kind, key_of(pool))} is invalid: {error}")


def pool_with(namespace: str, refs: Sequence[IPPoolReference], find: FindPool, host: str) -> str:
    """The pool that would give this address to a machine; ''."""
    wanted = AddressSet.parse([host])
    for ref in refs:
        there, _ = read_pool(namespace, ref, find)
        if there.version == wanted.version and there.covers(wanted):
            return f"{ref.kind} {ref.name}"
    return ""
