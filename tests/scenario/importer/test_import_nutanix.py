"""Clusters on Nutanix that somebody else created become Homeport's, and their VMs stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.runtime.testing import virtual
from scenario.importer.forgotten import NEW, Forgotten, forgotten_on_nutanix


def _vms(found: Forgotten) -> dict[str, tuple[object, ...]]:
    """Everything of the VMs but their marks."""
    return {
        vm.ext_id: (vm.name, vm.power, vm.sockets, vm.memory_bytes, vm.disks, vm.nics, vm.powered_at)
        for vm in found.site.vms()
    }


@pytest.mark.parametrize("v4", [True, False])
@virtual
async def test_a_forgotten_cluster_is_imported_with_its_vms(v4: bool, tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 2, v4=v4) as found:
        before = _vms(found)
        await found.apply()
        machines = await found.site.running(NEW, 1, 2)
        assert {each.spec.provider_id.rpartition("/")[2] for each in machines} == set(before)
        assert _vms(found) == before
        assert (await found.site.list(Cluster))[0].metadata.name == NEW
        assert len(await found.site.list(Machine)) == 3
