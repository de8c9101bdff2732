"""A tenant cluster from two lines of a manifest: it comes up, changes, and leaves nothing behind."""

from __future__ import annotations

import pytest

from homeport.client.protocol import Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.butler.stage import NAMESPACE, tenants

PROVIDERS = ("harvester", "nutanix")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_lines_become_a_cluster_that_scales_upgrades_and_leaves_nothing(provider: str) -> None:
    @virtual
    async def run() -> None:
        async with tenants(provider) as stage:
            before = await stage.vms()
            await stage.have(stage.tenant("shop"))
            made = await stage.ready("shop")
            assert made.status.provider == provider
            assert made.status.kubeconfig_secret_ref is not None
            assert (made.status.worker_nodes_ready, made.status.worker_nodes_desired) == (1, 1)
            image = condition.find(made.status.conditions, "ImageReady") or {}
            assert "workers use image rocky-9-cloud, which is rocky" in image["message"]
            assert "talos-1.9 of the ProviderConfig is talos" in image["message"]
            assert made.status.observed_state is not None
            assert {each.status for each in made.status.observed_state.addons} == {"Healthy"}
            (first,) = await stage.machines("shop")

            await stage.patch("shop", {"workers": {"replicas": 3}})
            await stage.ready("shop")
            names = {each.metadata.name for each in await stage.machines("shop")}
            assert len(names) == 3
            assert first.metadata.name in names

            await stage.patch("shop", {"kubernetesVersion": "v1.35.0"})
            upgraded = await stage.ready("shop")
            assert upgraded.status.observed_state is not None
            assert upgraded.status.observed_state.kubernetes_version == "v1.35.0"
            assert {each.spec.version for each in await stage.machines("shop")} == {"v1.35.0"}

            await stage.patch("shop", {"workers": {"machineTemplate": {"cpu": 8}}})
            await stage.ready("shop")
            after = {each.metadata.name for each in await stage.machines("shop")}
            assert len(after) == 3

            await stage.delete("shop")
            await stage.gone("shop")
            assert await stage.vms() == before
            left = [each.name for each in (await stage.client.list(NAMESPACE, Query())).items]
            assert not [each for each in left if each.startswith("shop")]

    run()
