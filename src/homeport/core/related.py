"""Objects of providers that a Cluster or a Machine refers to: read, and taken into its hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import ContractRef
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.contract import Contract, NotInstalled
from homeport.capi.ownership import OwnedElsewhere, ensure_owner
from homeport.client.protocol import Key, Write
from homeport.runtime.controller import Controller


@dataclass(slots=True)
class Related:
    """Neither object nor trouble: it does not exist."""

    ref: ContractRef | None = None
    resource: Resource | None = None
    contract: Contract = "v1beta2"
    object: Unstructured | None = None
    trouble: str = ""  # why it could not be read or taken

    @property
    def missing(self) -> bool:
        return self.ref is not None and self.object is None and not self.trouble

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
        found.trouble = str(error)
    return found


async def hold_related(
    capi: Capi,
    related: Related,
    owner: Mapping[str, Any],
    write: Write,
    *,
    labels: Mapping[str, str],
    without: Sequence[tuple[str, str]] = (),
) -> None:
    """Gives it its owner and labels, in one patch, unless it has them or is going away."""
    if related.object is None or related.resource is None or related.deleting:
        return
    try:
        related.object = await ensure_owner(
            capi.manager.client, related.resource, related.object, owner, write, without=without, labels=labels
        )
    except OwnedElsewhere as error:
        related.trouble = f"{related}: {error}"
