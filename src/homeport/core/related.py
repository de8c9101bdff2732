"""Objects of providers that a Cluster or a Machine refers to: read, and adopted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import ContractRef
from homeport.api.meta import Resource, Unstructured
from homeport.capi import contract
from homeport.capi.capi import Capi
from homeport.capi.contract import Contract
from homeport.capi.name import Reason
from homeport.capi.object.ownership import ensure_owner, rival_of
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import Conflict
from homeport.client.protocol import Key, Write
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller


@dataclass(slots=True)
class Related:
    """Neither object nor trouble: it does not exist. An object of another owner is not shown: it must not be used."""

    ref: ContractRef | None = None
    resource: Resource | None = None
    contract: Contract = "v1beta2"
    object: Unstructured | None = None
    trouble: str = ""  # why it could not be read or adopted
    foreign: bool = False  # it belongs to another owner
    unserved: bool = False  # its kind does not exist here, so there is no such object

    @property
    def missing(self) -> bool:
        return self.ref is not None and self.object is None and not self.trouble

    @property
    def nothing_to_delete(self) -> bool:
        """There is no such object, or it belongs to another owner."""
        return self.ref is None or self.missing or self.foreign or self.unserved

    @property
    def reason(self) -> str:
        """The condition reason for `trouble`."""
        return Reason.OWNED_BY_ANOTHER if self.foreign else Reason.INTERNAL_ERROR

    @property
    def deleting(self) -> bool:
        return self.object is not None and bool(self.object.metadata.get("deletionTimestamp"))

    def __str__(self) -> str:
        return f"{self.ref.kind} {self.ref.name}" if self.ref is not None else "nothing"


async def observe_related(
    capi: Capi, ref: ContractRef | None, asker: Key, *, watcher: Controller, owner_kind: Resource
) -> Related:
    """Reads what `ref` refers to. From now on its changes wake `watcher`, and so does its coming if it is not there."""
    found = Related(ref)
    if ref is None:
        return found
    try:
        found.resource, found.contract = capi.contracts.resolve(ref)
        found.object = await capi.externals.get(
            ref, asker.namespace, watcher=watcher, owner_kind=owner_kind, owner=asker
        )
    except NotInstalled as error:
        found.trouble, found.unserved = str(error), not error.defined
    return found


async def hold_related(
    capi: Capi,
    related: Related,
    owner: Mapping[str, Any],
    asker: Key,
    write: Write,
    *,
    watcher: Controller,
    labels: Mapping[str, str],
    without: Sequence[tuple[str, str]] = (),
) -> None:
    """Gives it its owner and labels, in one patch, unless it has them or is going away.

    An object of another owner is left alone: two owners would undo each other's changes, and the first to be deleted
    would take it away from the other.
    """
    if related.object is None or related.resource is None:
        return
    client, resource = capi.manager.client, related.resource

    async def hold(found: Unstructured) -> None:
        rival = rival_of(found, owner, without=without)
        if rival is not None:
            _refuse(capi, related, owner, rival, asker, watcher)
        elif not related.deleting:
            related.object = await ensure_owner(client, resource, found, owner, write, without=without, labels=labels)

    try:
        await hold(related.object)
    except Conflict:
        # Its provider begins with it at the same moment: one read costs less than another reconcile.
        found = await client.get(resource, key_of(related.object))
        if found.uid != related.object.uid:
            raise
        related.object = found
        await hold(found)


def _refuse(
    capi: Capi,
    related: Related,
    owner: Mapping[str, Any],
    rival: Mapping[str, Any],
    asker: Key,
    watcher: Controller,
) -> None:
    assert related.object is not None
    assert related.ref is not None
    capi.externals.await_release(related.ref, key_of(related.object), watcher, asker)
    related.object, related.foreign = None, True
    related.trouble = (
        f"{related} belongs to {rival['kind']} {rival['name']}, so {owner['kind']} {owner['name']} does not use it: "
        f"refer to a {related.ref.kind} of its own"
    )


def note_failure(obj: Any, related: Related) -> None:
    """Copies a terminal failure that a provider reports to the deprecated fields of a Cluster or Machine."""
    failure = None if related.object is None else contract.failure(related.object)
    if failure is not None:
        old = obj.status.deprecated.v1beta1
        old.failure_reason = failure.reason or old.failure_reason
        old.failure_message = f"{related}: {failure.message}" if failure.message else old.failure_message
