"""What somebody changes on an object that another one stands behind is put back."""

from __future__ import annotations

from capikit.harness import harness
from homeport.api.cluster.v1beta2 import MachineSet
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual


@virtual
async def test_a_machine_deployment_puts_its_machine_set_back() -> None:
    async with harness() as h:
        await h.create("one", 1, 2)
        await h.steady("one", 1, 2, "v1.30.0")
        (made,) = (await h.client.list(MachineSet, Query(namespace="default"))).items
        name = made.metadata.name
        for _ in range(2):
            await h.patch(MachineSet, name, {"spec": {"replicas": 4}})
            await h.until(MachineSet, name, lambda m: m.spec.replicas == 2 == m.status.replicas)
        await h.steady("one", 1, 2, "v1.30.0")
