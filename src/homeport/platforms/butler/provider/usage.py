"""Which objects use a ProviderConfig: it stays until none of them is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from homeport.api.butler.v1alpha1 import ClusterBootstrap, ImageSync, MachineRequest, ProviderConfig, TenantCluster
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.client.protocol import Key
from homeport.platforms.butler.normal.lookup import find_provider
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager

KINDS = (TenantCluster, MachineRequest, ImageSync, ClusterBootstrap)


def refs_of(obj: Any) -> Iterator[ProviderRef]:
    """What an object uses: as its status has it, otherwise as its spec names it."""
    chosen: ProviderRef | None = getattr(obj.status, "provider_config_ref", None)
    if chosen is not None:
        yield chosen
        return
    for name in ("provider_config_ref", "provider_ref"):
        ref: ProviderRef | None = getattr(obj.spec, name, None)
        if ref is not None and ref.name:
            yield ref


class Users:
    def __init__(self, manager: Manager) -> None:
        self._caches = {kind: manager.informers.get(kind).cache for kind in KINDS}
        self._configs = manager.informers.get(ProviderConfig).cache

    def of(self, config: Key) -> list[str]:
        """Kind, namespace and name of each."""
        return sorted(
            f"{kind.__resource__.kind} {obj.metadata.namespace}/{obj.metadata.name}"
            for kind, cache in self._caches.items()
            for obj in cache
            if config in self.used_by(obj)
        )

    def used_by(self, obj: Any) -> Iterable[Key]:
        """The ProviderConfigs that an object uses."""
        found = (find_provider(ref, obj.metadata.namespace, self._configs) for ref in refs_of(obj))
        return [key_of(each.config) for each in found if each.config is not None]
