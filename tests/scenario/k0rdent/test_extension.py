"""Charts in the configuration of k0s, as the guide has them: installed by k0s itself, hosted and on machines."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.app.simulation.registry import start_registry
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.k0s.definition import CHART
from scenario.addons.stage import DEPLOYMENT
from scenario.k0rdent.stage import SECRET, SPACE, credential, deployments, hosted, secret, standalone

NAME = "demo"


def charts() -> dict[str, Any]:
    listed = [
        {
            "name": "nutanix-csi-storage",
            "chartname": "nutanix/nutanix-csi-storage",
            "namespace": "ntnx-system",
            "version": "3.0.0",
        },
        {
            "name": "nutanix-cloud-controller-manager",
            "chartname": "nutanix/nutanix-cloud-controller-manager",
            "namespace": "kube-system",
            "version": "0.3.0",
        },
    ]
    repositories = [{"name": "nutanix", "url": "https://nutanix.github.io/helm/"}]
    return {"spec": {"extensions": {"helm": {"repositories": repositories, "charts": listed}}}}


@pytest.mark.parametrize("make", [hosted, standalone])
def test_k0s_installs_the_charts_of_its_configuration_and_the_add_on_is_left_out(make: Any, tmp_path: Path) -> None:
    @virtual
    async def run() -> None:
        async with deployments() as stage:
            registry = start_registry(stage.site.network, tmp_path, stage.site.clock)
            try:
                body = make(NAME, workersNumber=1, k0s={"version": "v1.29.2+k0s.0", "config": charts()})
                await stage.have(secret(), credential(), body)
                await stage.ready(NAME)
                inside = await stage.inside(NAME)
                await asyncio.sleep(120)
                found = await inside.get(CHART, Key("kube-system", "k0s-addon-chart-nutanix-csi-storage"))
                assert found["status"]["version"] == "3.0.0"
                assert not found["status"].get("error")
                records = (await inside.list(SECRET, Query(labels="owner=helm"))).items
                names = {each.metadata["labels"]["name"] for each in records}
                assert names == {"nutanix-csi-storage", "nutanix-cloud-controller-manager"}
                await inside.get(DEPLOYMENT, Key("ntnx-system", "nutanix-csi-controller"))
                addons = (await stage.client.list(ClusterAddon, Query(namespace=SPACE))).items
                assert f"{NAME}-nutanix-csi" not in {each.metadata.name for each in addons}

                none = {"spec": {"config": {"k0s": {"config": None}}}}
                await stage.client.patch(ClusterDeployment, Key(SPACE, NAME), MergePatch(none))
                await asyncio.sleep(600)
                await stage.ready(NAME)
                with pytest.raises(NotFound):
                    await inside.get(CHART, Key("kube-system", "k0s-addon-chart-nutanix-csi-storage"))
                addon: ClusterAddon = await stage.client.get(ClusterAddon, Key(SPACE, f"{NAME}-nutanix-csi"))
                assert addon.status.phase == "Installed"
            finally:
                await registry.close()

    run()
