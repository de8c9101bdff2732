"""Whose turn it is to make a cluster: one machine begins it, the others join. See lock.py."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.bootstrap.lock import CONFIG_MAP, LOCKS, InitLock
from homeport.bootstrap.scope import BootstrapScope
from homeport.capi.name import Reason
from homeport.client.protocol import Key, Write
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait


class Turn:
    def __init__(self, manager: Manager, write: Write) -> None:
        self._machines = manager.informers.get(Machine).cache
        self._lock = InitLock(manager.client, manager.informers.get(CONFIG_MAP, LOCKS).cache, write)

    async def give_back(self, scope: BootstrapScope[Any]) -> None:
        """The cluster is there: nobody has to wait for the machine that made it, or for one that is gone."""
        holder = self._lock.holder(scope.cluster_key)
        if holder is not None and (holder == scope.owner.name or not self._is_machine(scope, holder)):
            await self._lock.release(scope.cluster_key)

    async def await_turn(self, scope: BootstrapScope[Any]) -> Wait | None:
        """None: no other machine is at it."""
        holder = self._lock.holder(scope.cluster_key)
        if holder is None or holder == scope.owner.name:
            return None
        if self._is_machine(scope, holder):
            return _outrun(holder)
        await self._lock.release(scope.cluster_key)
        return None

    async def take(self, scope: BootstrapScope[Any]) -> Wait | None:
        """Only one machine makes the cluster: the one whose name is in the lock. None: it is this one."""
        holder = self._lock.holder(scope.cluster_key)
        if holder == scope.owner.name or await self._lock.take(scope.cluster, scope.owner.name):
            return None
        return _outrun(self._lock.holder(scope.cluster_key) or "another machine")

    def _is_machine(self, scope: BootstrapScope[Any], name: str) -> bool:
        return Key(scope.key.namespace, name) in self._machines


def _outrun(holder: str) -> Wait:
    return Wait(
        Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED,
        f"Machine {holder!r} initializes the control plane; this one joins when it is up",
        quiet=True,
    )
