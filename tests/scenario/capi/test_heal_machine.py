"""homeport heal: a Machine is replaced now, if that is safe."""

from __future__ import annotations

import pytest

from capikit.harness import NAMESPACE, harness
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import OwnerReference
from homeport.app.upkeep.heal import Unsafe, heal, unsafe
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual


@virtual
async def test_a_worker_and_a_control_plane_machine_are_replaced_one_after_the_other() -> None:
    async with harness() as h:
        await h.create("one", 3, 1)
        await h.steady("one", 3, 1, "v1.30.0")
        machines = await h.machines("one")
        [worker] = [each for each in machines if "md" in each.metadata.name]
        plane = next(each for each in machines if each is not worker)
        for machine, owner in ((worker, "MachineSet"), (plane, "KubeadmControlPlane")):
            key = Key(NAMESPACE, machine.metadata.name)
            with pytest.raises(Unsafe, match="is healthy: use --force"):
                await heal(h.client, key, h.clock.now(), force=False)
            assert (await heal(h.client, key, h.clock.now(), force=True)).startswith(owner)
            await h.gone(Machine, key.name)
            await h.steady("one", 3, 1, "v1.30.0")


@virtual
async def test_the_only_control_plane_machine_is_never_replaced() -> None:
    async with harness() as h:
        await h.create("one", 1, 0)
        await h.steady("one", 1, 0, "v1.30.0")
        [machine] = await h.machines("one")
        with pytest.raises(Unsafe, match="the only control plane machine"):
            await heal(h.client, Key(NAMESPACE, machine.metadata.name), h.clock.now(), force=True)


def test_machines_that_nothing_would_replace_and_paused_clusters_are_refused() -> None:
    machine = Machine()
    machine.metadata.name = "a"
    assert "has no controller that would replace it" in unsafe(machine, None, [], force=True)
    machine.metadata.owner_references = [OwnerReference("v1", "MachineSet", "s", "u", controller=True)]
    cluster = Cluster()
    cluster.metadata.name, cluster.spec.paused = "one", True
    assert unsafe(machine, cluster, [], force=True) == "Cluster one is paused: set spec.paused to false first"
    assert unsafe(machine, None, [], force=False) == ""
