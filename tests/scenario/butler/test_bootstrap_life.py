"""A management cluster from nothing: machines, Talos, etcd, add-ons, and nothing is left when it goes."""

from __future__ import annotations

import pytest

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from homeport.platforms.butler.bootstrap.name import ETCD_ANNOTATION
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from scenario.butler.management import MGMT, VIPS, bootstrap, bootstrapped, consoles, inside
from scenario.butler.stage import SECRET, butler, tenants

PROVIDERS = ("harvester", "nutanix")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.timeout(300)
def test_three_control_planes_and_two_workers_become_ready_and_leave_nothing(provider: str) -> None:
    @virtual
    async def run() -> None:
        async with tenants(provider) as stage:
            before = await stage.vms()
            await stage.have(bootstrap(stage, workers=2))
            made = await bootstrapped(stage)
            names = [*(f"mgmt-cp-{n}" for n in range(3)), *(f"mgmt-worker-{n}" for n in range(2))]
            assert sorted(set(await stage.vms()) - set(before)) == names
            assert [each.name for each in made.status.machines if each.ready and each.talos_configured] == names
            assert made.status.phase == "Ready"
            assert made.status.control_plane_endpoint == f"{VIPS[provider]}:6443"
            assert set(made.status.addons_installed) == {
                "cilium",
                "metallb",
                "cert-manager",
                "longhorn",
                "traefik",
                "flux",
            }
            assert made.metadata.annotations[ETCD_ANNOTATION].startswith("mgmt-cp-0/")
            assert sum(text.count("bootstrap request received") for text in consoles(stage).values()) == 1
            async with inside(stage) as there:
                assert (await there.list(ClusterBootstrap, Query())).items == []  # the platform's kinds are served
            text = str(dict(await stage.client.get(ClusterBootstrap.__resource__, MGMT)))
            assert "BEGIN" not in text
            await stage.client.delete(ClusterBootstrap, MGMT)
            await stage.plane.gone(ClusterBootstrap, MGMT, 1200)
            assert await stage.vms() == before
            space = Query(namespace=SYSTEM_NAMESPACE)
            await stage.plane.settle(60)
            assert [each.name for each in (await stage.client.list(SECRET, space)).items] == ["site-credentials"]
            assert (await stage.client.list(Cluster, space)).items == []

    run()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.timeout(300)
def test_a_single_node_without_a_virtual_address_is_sent_its_configuration(provider: str) -> None:
    @virtual
    async def run() -> None:
        async with tenants(provider) as stage:
            await stage.have(bootstrap(stage, single=True, workers=1, vip=False))
            made = await bootstrapped(stage)
            first = await stage.client.get(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-cp-0"))
            assert first.spec.user_data_secret_ref is None
            assert made.status.control_plane_endpoint == f"{first.status.ip_address}:6443"
            assert "received a machine configuration in maintenance mode" in consoles(stage)["mgmt-cp-0"]
            worker = await stage.client.get(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-worker-0"))
            assert worker.spec.user_data_secret_ref is not None

    run()


@pytest.mark.timeout(300)
@virtual
async def test_a_single_node_with_a_virtual_address_and_no_workers_runs_all_pods() -> None:
    async with tenants("harvester") as stage:
        # It names no provider, so it gets the default one.
        other = butler("ProviderConfig", "other", SYSTEM_NAMESPACE, {**stage.config()["spec"]})
        config = butler("ButlerConfig", "butler", "", {"defaultProviderConfigRef": {"name": "site"}})
        await stage.have(other, config, bootstrap(stage, single=True, providerRef=None))
        made = await bootstrapped(stage)
        assert [each.name for each in made.status.machines] == ["mgmt-cp-0"]
        first = await stage.client.get(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-cp-0"))
        assert first.spec.provider_ref == ProviderRef(name="site", namespace=SYSTEM_NAMESPACE)
        assert condition.is_true(made.status.conditions, "AddonsReady")
