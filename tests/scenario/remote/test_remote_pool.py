"""Machines of pools are reserved by one RemoteMachine at a time, whatever happens in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from conformance.provider.provider_plane import key
from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteMachine
from homeport.client.errors import Invalid
from homeport.client.protocol import MergePatch
from homeport.infra.error import Exhausted, Stale
from homeport.providers.remote.pool import Pools
from homeport.providers.remote.target import HOST_KEY
from scenario.remote.remote_plane import pooled, remote_plane
from scenario.remote.ssh_machine import ssh_machines

FROM_POOL = {"pool": "rack"}
COMMANDS = ["k0s install worker"]


async def test_each_machine_of_a_pool_has_one_user_and_serves_the_next_after_its_cleanup(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path, 2) as [first, second], remote_plane(first) as plane:
        await plane.inner.plane.have(pooled("a", first), pooled("b", second))
        for name in ("one", "two"):
            await plane.machine(name, FROM_POOL, commands=COMMANDS)
        machines = await plane.provisioned("one", "two")
        assert len({each.spec.provider_id for each in machines}) == 2
        users = {(await plane.pooled(each)).status.machine_ref.name for each in ("a", "b")}
        assert users == {"one", "two"}
        assert (await plane.pooled("a")).metadata.annotations[HOST_KEY] == first.host_key

        await plane.machine("three", FROM_POOL, commands=COMMANDS)
        said = await plane.says("three", "InsufficientCapacity", "2 of 2 are reserved", "default/one")
        assert "add a PooledRemoteMachine" in said
        with pytest.raises(Invalid, match="uses the machine"):
            await plane.client.delete(PooledRemoteMachine, key("a"))
        await plane.deleted("one")
        [machine] = await plane.provisioned("three")
        assert machine.spec.provider_id in {each.spec.provider_id for each in machines}
        assert len(first.calls) + len(second.calls) == 5  # three installations, one stop and one reset


async def test_a_reservation_survives_a_crash_and_the_loss_of_its_status(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path, 2) as [first, second], remote_plane(first) as plane:
        await plane.inner.plane.have(pooled("a", first), pooled("b", second))
        await plane.inner.stop()
        await plane.machine("one", FROM_POOL, commands=COMMANDS)
        # The controller ends right after the reservation, before its object says so.
        await Pools(plane.client).reserve(await plane.client.get(RemoteMachine, key("one")))
        await plane.inner.start()
        [machine] = await plane.provisioned("one")
        assert machine.spec.provider_id.endswith(f":{first.port}")
        assert not (await plane.pooled("b")).status.reserved

        await plane.inner.stop()
        lost = MergePatch({"status": {"reserved": False, "machineRef": {"name": "", "namespace": ""}}})
        await plane.client.patch(PooledRemoteMachine, key("a"), lost, subresource="status")
        await plane.inner.start()
        await plane.inner.plane.until(PooledRemoteMachine, key("a"), lambda each: each.status.reserved, 20)
        await plane.deleted("one")
        assert first.calls[-1] == "k0s reset"
        assert not (await plane.pooled("a")).status.reserved


async def test_of_two_reservations_at_once_one_wins(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path) as [host], remote_plane(host) as plane:
        await plane.inner.stop()
        await plane.inner.plane.have(pooled("a", host))
        for name in ("one", "two"):
            await plane.machine(name, FROM_POOL, commands=COMMANDS)
        objects = [await plane.client.get(RemoteMachine, key(name)) for name in ("one", "two")]
        results = await asyncio.gather(*(Pools(plane.client).reserve(each) for each in objects), return_exceptions=True)
        assert sum(isinstance(each, Stale | Exhausted) for each in results) == 1
        won = [each for each in results if isinstance(each, PooledRemoteMachine)]
        assert len(won) == 1
        assert won[0].status.machine_ref.name == (await plane.pooled("a")).status.machine_ref.name
