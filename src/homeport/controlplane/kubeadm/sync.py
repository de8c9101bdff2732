"""What changes on Machines in place, and what is said on them."""

from __future__ import annotations

from typing import Any

import structlog

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.capi import Capi
from homeport.capi.name import Condition
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.desired import machine_patch, metadata_patch
from homeport.controlplane.kubeadm.scope import ControlPlaneScope, Owned
from homeport.machinery import condition
from homeport.runtime.cache import Cache, key_of, version_of
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

_PATIENCE_SECONDS = 10.0  # a Machine without a Node is left alone for so long: there is nothing to say about it


class Sync:
    def __init__(self, capi: Capi, client: Client, write: Write, machines: Cache[Machine]) -> None:
        self._capi = capi
        self._client = client
        self._write = write
        self._machines = machines

    async def hold(self, scope: ControlPlaneScope) -> Wait | None:
        """Labels, annotations, timeouts, gates and taints follow the control plane without a rollout."""
        for owned in scope.owned:
            if owned.machine.metadata.deletion_timestamp:
                continue
            await self._hold_machine(scope, owned)
            await self._hold_parts(scope, owned)
        return None

    async def _hold_machine(self, scope: ControlPlaneScope, owned: Owned) -> None:
        patch = machine_patch(scope.kcp, scope.cluster.metadata.name, owned.machine)
        if patch:
            key = Key(owned.machine.metadata.namespace, owned.name)
            owned.machine = await self._client.patch(Machine, key, MergePatch(patch), self._write)

    async def _hold_parts(self, scope: ControlPlaneScope, owned: Owned) -> None:
        name, namespace = scope.cluster.metadata.name, owned.machine.metadata.namespace
        if owned.config is not None:
            meta = owned.config.metadata
            patch = metadata_patch(scope.kcp, name, meta.labels, meta.annotations)
            if patch:
                await self._client.patch(KubeadmConfig, Key(namespace, meta.name), MergePatch(patch), self._write)
        if owned.infrastructure is not None and owned.machine.spec.infrastructure_ref is not None:
            found = owned.infrastructure.metadata
            patch = metadata_patch(scope.kcp, name, found.get("labels"), found.get("annotations"))
            if patch:
                served = self._capi.externals.served(owned.machine.spec.infrastructure_ref)
                key = Key(namespace, owned.infrastructure.name)
                await self._client.patch(served.resource, key, MergePatch(patch), self._write)

    # -- conditions --------------------------------------------------------------------------------------------

    async def report(self, scope: ControlPlaneScope) -> None:
        """Writes the Machines' conditions. A change of the Machine that comes first wakes us, and then they follow."""
        for owned in scope.owned:
            if not self._has_changed(owned.machine):
                await self._report(scope, owned.machine)

    def _has_changed(self, machine: Machine) -> bool:
        """While this loop asked the workload cluster. Its conditions are a list as a whole, and others write to it."""
        found = self._machines.get(key_of(machine))
        return found is not None and version_of(found) > version_of(machine)

    async def _report(self, scope: ControlPlaneScope, machine: Machine) -> None:
        meta = machine.metadata
        said = scope.findings.conditions.get(meta.name, [])
        if not said or not _worth_saying(scope, machine, said):
            return
        wanted = put_conditions(machine, said, scope.now, drop=meta.name in scope.dropped)
        if wanted == machine.status.conditions:
            return
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"conditions": wanted},
        }
        try:
            await self._client.patch(Machine, key_of(machine), MergePatch(body), self._write, subresource="status")
        except (Conflict, NotFound) as changed:
            log.debug("conditions not written", machine=meta.name, error=str(changed))


def _worth_saying(scope: ControlPlaneScope, machine: Machine, said: list[DesiredCondition]) -> bool:
    if any(each.type == Condition.OWNER_REMEDIATED for each in said) or machine.metadata.name in scope.dropped:
        return True
    if scope.seen.down and not scope.seen.lost:
        return False  # what was known is still the best guess
    if condition.find(machine.status.conditions, Condition.UP_TO_DATE) is not None:
        return True
    created = parse_time(machine.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    if scope.now - created >= _PATIENCE_SECONDS:
        return True
    # One write instead of three: while a Machine comes up its conditions change with every step.
    return all(each.status == "True" for each in said)


def put_conditions(machine: Machine, said: list[DesiredCondition], now: float, *, drop: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = list(machine.status.conditions)
    if drop:
        found = condition.drop(found, Condition.OWNER_REMEDIATED)
    for each in said:
        known = condition.find(found, each.type)
        if known is not None and (known["status"], known.get("reason"), known.get("message") or "") == (
            each.status,
            each.reason,
            each.message,
        ):
            continue
        found = condition.put(
            found,
            each.type,
            each.status,
            each.reason,
            each.message,
            now=rfc3339(now),
            generation=machine.metadata.generation,
        )
    return found
