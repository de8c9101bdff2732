"""Objects of the kinds that classes name, in the versions that they name: watched from the first time on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.contract import Contract, control_plane
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTRACT_LABEL_PREFIX, TOPOLOGY_OWNED_LABEL
from homeport.capi.object.ownership import group_kind, owners
from homeport.capi.resolution import CONTRACTS
from homeport.client.absence import find_object
from homeport.client.protocol import Key
from homeport.core.index import ensure_index
from homeport.core.topology.apply import state_of
from homeport.core.topology.desired.blueprint import TopologyError
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import Informer

_CLUSTER = (Cluster.__resource__.group, Cluster.__resource__.kind)
_COPIES = "topology.copies"
_CLASS = (ClusterClass.__resource__.group, ClusterClass.__resource__.kind)

UsersOf = Callable[[Key], Iterable[Key]]  # the Clusters of a class


class Source:
    """Enqueues the Cluster when the object changes, when it appears, and when its kind gets installed."""

    def __init__(self, capi: Capi, controller: Controller, users_of: UsersOf) -> None:
        self._capi = capi
        self._controller = controller
        self._users_of = users_of
        self._watched: dict[Resource, Informer[Unstructured]] = {}
        self._awaited: dict[tuple[Resource, Key], set[Key]] = {}  # objects that were asked for and not there
        self._uninstalled: dict[str, set[Key]] = {}  # by the name of the definition
        capi.contracts.informer.on_change(self._definition_changed)

    def contract(self, resource: Resource, asker: Key) -> Contract:
        """The contract that a version of a kind follows. Raises TopologyError when it follows none."""
        found = self._capi.contracts.informer.cache.get(Key("", resource.qualified))
        labels = found.metadata.labels if found is not None else {}
        for contract in CONTRACTS:
            if resource.version in labels.get(CONTRACT_LABEL_PREFIX + contract, "").split("_"):
                return contract
        self._uninstalled.setdefault(resource.qualified, set()).add(asker)
        if found is None:
            raise TopologyError(
                f"kind {resource.kind} of group {resource.group} is not installed (no CRD {resource.qualified}): "
                "install its provider, or correct the ClusterClass"
            )
        raise TopologyError(
            f"the CRD {resource.qualified} has no label for a Cluster API contract of its version "
            f"{resource.version}: use another version in the ClusterClass, or install a provider that has it"
        )

    async def get(self, resource: Resource, key: Key, asker: Key) -> Unstructured | None:
        """Shared: do not change it."""
        informer = self._watch(resource)
        found: Unstructured | None
        if informer.synced.is_set():
            found = informer.cache.get(key)
        else:
            found = await find_object(self._capi.manager.client, resource, key)
        if found is None:
            self._awaited.setdefault((resource, key), set()).add(asker)
        return found

    def copies(self, cluster: Key) -> Iterable[tuple[Resource, Unstructured]]:
        """What was made for a Cluster of the kinds that somebody asked for, as far as it is known."""
        for resource, informer in self._watched.items():
            if informer.synced.is_set():
                for obj in informer.cache.by(_COPIES, str(cluster)):
                    yield resource, obj

    def _watch(self, resource: Resource) -> Informer[Unstructured]:
        known = self._watched.get(resource)
        # Whoever follows a provider to another version of its kinds ends the watch of the old one, for all.
        if known is None or known is not self._capi.manager.informers.get(resource):
            informer = self._controller.watch(resource, lambda obj: self._keys(resource, obj), predicate=_changed)
            ensure_index(informer.cache, _COPIES, _made_for)
            self._watched[resource] = informer
        return self._watched[resource]

    def _keys(self, resource: Resource, obj: Unstructured) -> Iterable[Key]:
        yield from self._awaited.pop((resource, key_of(obj)), ())
        for owner in owners(obj):
            key = Key(obj.namespace, owner["name"])
            if group_kind(owner) == _CLUSTER:
                yield key
            elif group_kind(owner) == _CLASS:
                yield from self._users_of(key)

    def _definition_changed(self, before: Any, after: Any, initial: bool) -> None:
        if after is not None and self._uninstalled:
            for key in self._uninstalled.pop(after.metadata.name, ()):
                self._controller.wake(key)


def _made_for(obj: Unstructured) -> Iterable[str]:
    labels = obj.metadata.get("labels") or {}
    return (f"{obj.namespace}/{labels.get(CLUSTER_NAME_LABEL, '')}",) if TOPOLOGY_OWNED_LABEL in labels else ()


def _changed(old: Any, new: Any) -> bool:
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(obj: Unstructured) -> tuple[Any, ...]:
    """Of the status, only what decides about upgrades."""
    versions = [each.version for each in control_plane.status_versions(obj)]
    return (*state_of(obj), obj.metadata.get("deletionTimestamp"), versions)
