"""Machines of pools: which RemoteMachine has reserved which. The API server decides between two that want the same."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteMachine
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.infra.error import Exhausted, Missing, Stale, Taken
from homeport.runtime.cache import key_of

POOLED = "remote.homeport.dev/pooled-machine"
_WRITE = Write(field_manager="homeport-remote")
_SHOWN = 5


class Pools:
    """Reads from the server: a cache that lags behind would show a machine as free that was just reserved."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reserved(self, infra: RemoteMachine) -> PooledRemoteMachine | None:
        """The machine that `infra` has. Its annotation names it where the status was lost, as it is by a move."""
        machines = await self._machines(infra)
        found = next((each for each in machines if _holder(each) == key_of(infra)), None)
        name = infra.metadata.annotations.get(POOLED, "")
        if found is not None or not name:
            return found
        lost = next((each for each in machines if each.metadata.name == name), None)
        if lost is None:
            raise Missing(
                f"RemoteMachine {infra.metadata.name}: PooledRemoteMachine {name}, which it runs on, does not exist: "
                "create it again; reconciliation resumes automatically"
            )
        if lost.status.reserved:
            raise Taken(
                f"RemoteMachine {infra.metadata.name}: PooledRemoteMachine {name}, which it runs on, is reserved by "
                f"RemoteMachine {_holder(lost)}: delete the Machine of the other one"
            )
        return await self._hold(lost, infra)

    async def reserve(self, infra: RemoteMachine) -> PooledRemoteMachine:
        """The one that it has, or a free one: the first by name."""
        held = await self.reserved(infra)
        if held is not None:
            return held
        machines = [each for each in await self._machines(infra) if each.spec.pool == infra.spec.pool]
        free = [each for each in machines if not each.status.reserved and not each.metadata.deletion_timestamp]
        if not free:
            raise _none(infra, machines)
        return await self._hold(min(free, key=lambda each: each.metadata.name), infra)

    async def give_back(self, infra: RemoteMachine) -> None:
        """Nothing of `infra` is left on its machine."""
        for each in await self._machines(infra):
            if _holder(each) == key_of(infra):
                await self._write(each, {"reserved": False, "machineRef": {"namespace": "", "name": ""}})

    async def _machines(self, infra: RemoteMachine) -> Sequence[PooledRemoteMachine]:
        page = await self._client.list(PooledRemoteMachine, Query(namespace=infra.metadata.namespace))
        return page.items

    async def _hold(self, pooled: PooledRemoteMachine, infra: RemoteMachine) -> PooledRemoteMachine:
        key = key_of(infra)
        ref = {"namespace": key.namespace, "name": key.name}
        return await self._write(pooled, {"reserved": True, "machineRef": ref})

    async def _write(self, pooled: PooledRemoteMachine, status: dict[str, object]) -> PooledRemoteMachine:
        """For this very state of the machine: of two writers the second one reads again."""
        meta = {"uid": pooled.metadata.uid, "resourceVersion": pooled.metadata.resource_version}
        patch = MergePatch({"metadata": meta, "status": status})
        try:
            return await self._client.patch(PooledRemoteMachine, key_of(pooled), patch, _WRITE, subresource="status")
        except (Conflict, NotFound):
            raise Stale(f"PooledRemoteMachine {pooled.metadata.name} was changed meanwhile: reading it again") from None


def _holder(pooled: PooledRemoteMachine) -> Key | None:
    ref = pooled.status.machine_ref
    return Key(ref.namespace, ref.name) if pooled.status.reserved else None


def _none(infra: RemoteMachine, machines: Sequence[PooledRemoteMachine]) -> Exception:
    what, pool = f"RemoteMachine {infra.metadata.name}", infra.spec.pool
    if not machines:
        return Missing(f"{what}: pool {pool!r} has no PooledRemoteMachine in namespace {infra.metadata.namespace}")
    users = [f"{each.metadata.name} by {_holder(each)}" for each in machines if each.status.reserved]
    shown = ", ".join(users[:_SHOWN]) + (", ..." if len(users) > _SHOWN else "")
    return Exhausted(
        f"{what}: no machine of pool {pool!r} is free: {len(users)} of {len(machines)} are reserved ({shown}); add a "
        "PooledRemoteMachine, or delete a Machine that is no longer needed"
    )
