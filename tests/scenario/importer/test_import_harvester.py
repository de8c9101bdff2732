"""Clusters on Harvester that somebody else created become Homeport's, and their VMs stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.app.importer.undo import undo
from homeport.client.protocol import Key
from homeport.providers.harvester.infracluster.resource import CLUSTER_UID, MACHINE_UID, VM
from homeport.runtime.cache import labels_of
from homeport.runtime.testing import virtual
from scenario.importer.forgotten import NAMESPACE, NEW, Forgotten, forgotten_on_harvester


async def _vms(found: Forgotten) -> dict[str, Any]:
    return {vm.uid: vm.get("spec") for vm in await found.site.there(VM)}


@virtual
async def test_a_cluster_on_harvester_is_imported_scaled_and_given_back(tmp_path: Path) -> None:
    async with forgotten_on_harvester(tmp_path, 1, 2) as found:
        before = await _vms(found)
        await found.apply()
        machines = await found.site.running(NEW, 1, 2)
        assert {each.spec.provider_id.rpartition("/")[2] for each in machines} == set(before)
        assert await _vms(found) == before
        await found.site.condition(KubevirtCluster, NEW, "NoOrphanedMachines", "True")
        infra = await found.site.client.get(KubevirtCluster, Key(NAMESPACE, NEW))
        labels = [labels_of(vm) for vm in await found.site.there(VM)]
        assert {each[CLUSTER_UID] for each in labels} == {infra.metadata.uid}

        await found.site.patch(MachineDeployment, f"{NEW}-md-0", {"spec": {"replicas": 3}})
        await found.site.running(NEW, 1, 3)
        after = await _vms(found)
        assert {id_: after.get(id_) for id_ in before} == before
        [added] = set(after) - set(before)

        said: list[str] = []
        await undo(
            found.site.client, Key(NAMESPACE, NEW), found.site.clock, found.site.dial, said.append, dry_run=False
        )
        assert await found.site.all(Machine) == []
        assert set(await _vms(found)) == {*before, added}
        assert not any(MACHINE_UID in labels_of(vm) for vm in await found.site.there(VM))
