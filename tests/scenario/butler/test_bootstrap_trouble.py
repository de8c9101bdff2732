"""A management cluster whose names are taken, whose parts are missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from scenario.butler.management import MGMT, bootstrap, bootstrapped
from scenario.butler.stage import SECRET, Stage, butler, tenants

OFF = {
    "storage": {"type": "none"},
    "loadBalancer": {"type": "none"},
    "certManager": {"enabled": False},
    "ingress": {"enabled": False},
    "gitOps": {"enabled": False},
}


async def waits(stage: Stage, reason: str, *words: str, timeout: float = 900.0) -> ClusterBootstrap:
    """The ClusterBootstrap once it is not Ready for this reason."""

    def fits(found: ClusterBootstrap) -> bool:
        said = condition.find(found.status.conditions, "Ready") or {}
        text = str(said.get("message"))
        return said.get("reason") == reason and all(each in text for each in words)

    made: ClusterBootstrap = await stage.plane.until(ClusterBootstrap, MGMT, fits, timeout, what=f"{reason} {words}")
    return made


async def gone(stage: Stage) -> None:
    await stage.client.delete(ClusterBootstrap, MGMT)
    await stage.plane.gone(ClusterBootstrap, MGMT, 1800)


@virtual
async def test_what_is_wrong_is_reported_before_any_machine_is_made() -> None:
    async with tenants("harvester") as stage:
        await stage.have(bootstrap(stage, single=True, addons=OFF, providerRef={"name": "sight"}))
        await waits(stage, "ProviderNotFound", 'ProviderConfig "sight" not found', "did you mean 'site'")
        wrong: dict[str, Any] = {"spec": {"providerRef": {"name": "site"}, "provider": "nutanix"}}
        await stage.client.patch(ClusterBootstrap, MGMT, MergePatch(wrong))
        found = await waits(stage, "ProviderMismatch", "is of type harvester")
        assert (found.status.phase, found.status.failure_reason) == ("Failed", "ProviderMismatch")
        assert await stage.vms() == []
        await gone(stage)


@virtual
async def test_objects_of_others_with_the_same_names_are_left_alone() -> None:
    async with tenants("harvester") as stage:
        size = {"cpu": 1, "memoryMB": 2048, "diskGB": 20}
        other = {
            "providerRef": {"name": "site"},
            "machineName": "mgmt-cp-0",
            "role": "worker",
            "userData": "#!",
            **size,
        }
        await stage.have(butler("MachineRequest", "mgmt-cp-0", SYSTEM_NAMESPACE, other))
        await stage.have(bootstrap(stage, single=True, addons=OFF))
        found = await waits(stage, "NameTaken", "MachineRequest butler-system/mgmt-cp-0 exists")
        assert found.status.phase == "Failed"
        await gone(stage)
        kept = await stage.client.get(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-cp-0"))
        assert not kept.metadata.deletion_timestamp
        assert kept.spec.role == "worker"


@pytest.mark.timeout(300)
@virtual
async def test_lost_secrets_and_lost_control_planes_are_reported_and_not_replaced() -> None:
    async with tenants("harvester") as stage:
        await stage.have(bootstrap(stage, single=True, workers=1, addons=OFF))
        await bootstrapped(stage)
        talos = Key(SYSTEM_NAMESPACE, "mgmt-talos")
        secret = await stage.client.get(SECRET, talos)
        await stage.client.delete(SECRET, talos)
        await stage.restart()
        await waits(stage, "TalosSecretsLost", "restore it from a backup")
        meta = {"name": talos.name, "namespace": talos.namespace, "labels": secret.metadata["labels"]}
        await stage.have({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": secret["data"]})
        await stage.restart()
        await bootstrapped(stage)
        # A control plane, whose etcd is gone, is not made again.
        await stage.client.delete(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-cp-0"))
        await waits(stage, "ControlPlaneMachineMissing", "mgmt-cp-0")
        assert await stage.vms() == ["mgmt-worker-0"]
        await gone(stage)
        assert await stage.vms() == []
        assert (await stage.client.list(Cluster, Query())).items == []


@pytest.mark.parametrize("seconds", [0.5, 8.0, 30.0])
def test_a_bootstrap_that_is_deleted_while_it_comes_up_leaves_nothing(seconds: float) -> None:
    @virtual
    async def run() -> None:
        async with tenants("nutanix") as stage:
            await stage.have(bootstrap(stage, single=True, addons=OFF))
            await asyncio.sleep(seconds)  # virtual
            await gone(stage)
            assert await stage.vms() == []

    run()
