"""Changes of a template that living Machines take over without being replaced: labels, annotations, timeouts, gates,
minReadySeconds, taints; labels and annotations also on what was made for the Machine."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import ContractRef, Machine
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.core.machineset.machine import (
    annotations_of,
    carried,
    holds,
    intent,
    labels_of,
    timeouts_patch,
)
from homeport.core.machineset.scope import SetScope
from homeport.runtime.cache import key_of

Meta = dict[str, dict[str, str | None]]


class Carry:
    def __init__(self, capi: Capi, write: Write) -> None:
        self._client = capi.manager.client
        self._contracts = capi.contracts
        self._write = write
        self._done: dict[Key, str] = {}  # what was handed down last

    def forget(self, key: Key) -> None:
        self._done.pop(key, None)

    async def run(self, scope: SetScope) -> None:
        """Writes to Machines that lack something; to all of them when the template has changed since the last time.

        What the template no longer has can't be seen on a Machine. The server knows: it was applied by us.
        """
        machine_set = scope.object
        wanted = carried(machine_set)
        known = self._done.get(scope.key)
        if known is None and machine_set.status.observed_generation == machine_set.metadata.generation:
            known = wanted  # an earlier controller set it
        assert scope.machines is not None
        for i, machine in enumerate(scope.machines):
            if machine.metadata.deletion_timestamp:
                await self._hand_timeouts(scope, machine)
            elif not scope.deleting and (known != wanted or not holds(machine, machine_set)):
                scope.machines[i] = await self._hand_down(scope, machine)
        self._done[scope.key] = wanted

    async def _hand_timeouts(self, scope: SetScope, machine: Machine) -> None:
        patch = timeouts_patch(scope.object, machine)
        if patch:
            try:
                await self._client.patch(Machine, key_of(machine), MergePatch(patch), self._write)
            except NotFound:
                return

    async def _hand_down(self, scope: SetScope, machine: Machine) -> Machine:
        body = intent(scope.object, machine)
        raw: Unstructured = await self._client.apply(body, self._write, kind=Machine.__resource__, force=True)
        made = msgspec.convert(raw, Machine)
        meta: Meta = {
            "labels": _changes(machine.metadata.labels, made.metadata.labels, labels_of(scope.object)),
            "annotations": _changes(
                machine.metadata.annotations, made.metadata.annotations, annotations_of(scope.object)
            ),
        }
        for ref in (made.spec.bootstrap.config_ref, made.spec.infrastructure_ref):
            if ref is not None and any(meta.values()):
                await self._label(ref, machine.metadata.namespace, meta)
        return made

    async def _label(self, ref: ContractRef, namespace: str, meta: Meta) -> None:
        try:
            kind = self._contracts.resolve(ref).resource
            patch: dict[str, Any] = {"metadata": {part: values for part, values in meta.items() if values}}
            await self._client.patch(kind, Key(namespace, ref.name), MergePatch(patch), self._write)
        except (NotFound, NotInstalled):
            return  # the Machine says so itself


def _changes(before: dict[str, str], after: dict[str, str], wanted: dict[str, str]) -> dict[str, str | None]:
    """What was taken away, and everything that is wanted: no more is known of the other objects."""
    gone: dict[str, str | None] = {key: None for key in before if key not in after}
    return {**gone, **wanted}
