"""Machines of a control plane are deleted, and let go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachinePool
from homeport.capi.capi import Capi
from homeport.capi.name import PRE_TERMINATE_KCP_CLEANUP, Reason
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

POLL_SECONDS = 10.0  # etcd can't be watched
_LISTED = 5


class MachineRemover:
    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write

    async def delete(self, machine: Machine, why: str) -> Wait:
        name = machine.metadata.name
        log.info("deleting a machine", machine=name, because=why)
        try:
            await self._client.delete(Machine, key_of(machine), uid=machine.metadata.uid)
        except NotFound:
            log.info("it has already been deleted", machine=name)
        return awaits_deletion(name)

    async def delete_all(self, machines: Sequence[Machine]) -> Wait | None:
        """At once: no quorum is needed any more."""
        for machine in machines:
            meta = machine.metadata
            if not meta.deletion_timestamp:
                try:
                    await self._client.delete(Machine, key_of(machine), uid=meta.uid)
                except NotFound:
                    continue
            if PRE_TERMINATE_KCP_CLEANUP in meta.annotations:
                await self.drop_hook(machine)
        if not machines:
            return None
        names = ", ".join(each.metadata.name for each in machines)
        return Wait(Reason.WAITING_FOR_MACHINE_DELETION, f"waiting for control plane Machines to be deleted: {names}")

    async def drop_hook(self, machine: Machine) -> None:
        """The Machine may go."""
        patch = MergePatch({"metadata": {"annotations": {PRE_TERMINATE_KCP_CLEANUP: None}}})
        try:
            await self._client.patch(Machine, key_of(machine), patch, self._write)
        except NotFound:
            return


def awaits_deletion(name: str) -> Wait:
    return Wait("WaitingForMachineDeletion", f"waiting for Machine {name} to be deleted", after=POLL_SECONDS)


class WorkerWatch:
    """What of the workers of a cluster is left: a control plane goes after them."""

    def __init__(self, capi: Capi) -> None:
        self._deployments = capi.manager.informers.get(MachineDeployment).cache
        self._pools = capi.manager.informers.get(MachinePool).cache

    def await_gone(self, cluster: Key, machines: Iterable[Machine]) -> Wait | None:
        left = [
            f"{kind} {each.metadata.name}"
            for kind, cache in (("MachineDeployment", self._deployments), ("MachinePool", self._pools))
            for each in cache.list(cluster.namespace)
            if each.spec.cluster_name == cluster.name
        ]
        left += [f"Machine {each.metadata.name}" for each in machines]
        if not left:
            return None
        shown = ", ".join(left[:_LISTED]) + (f" and {len(left) - _LISTED} more" if len(left) > _LISTED else "")
        return Wait(Reason.WAITING_FOR_WORKERS_DELETION, f"waiting for the workers to be deleted: {shown}")
