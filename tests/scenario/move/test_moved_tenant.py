"""A TenantCluster moves with its namespace, its provider and its credentials."""

from __future__ import annotations

import copy

import pytest

from homeport.api.butler.v1alpha1 import ProviderConfig, TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import chosen
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.environment import Environment
from homeport.client.protocol import Key, MergePatch
from homeport.move import MoveRefused
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import plane, virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from scenario.butler.stage import SPACE, butler, is_ready, tenants
from scenario.move.pair import Pair
from scenario.move.test_move import moved_in_steps
from scenario.nutanix.site import Site

POOL = "10.127.14.30-10.127.14.50"


class Shelved(Site):
    """With the charts of the simulation, as the other plane has them."""

    def install(self, manager: Manager) -> None:
        charts = ChartSettings(simulated=True)
        chosen().install(manager, Environment(manager.client, self.dial, self.plane.server, charts=charts))


@pytest.mark.timeout(300)
@virtual
async def test_a_tenant_on_machines_moves_and_is_not_made_a_second_time() -> None:
    async with tenants("nutanix") as stage, plane() as p:
        site: Site = stage.site
        target = Shelved(p, site.network, site.fleet, site.prism, site.dial)
        install_hooks(chosen().register(Environment(p.client, site.dial, p.server)), p.server)
        await establish(p.client, *chosen().definitions())
        for each in (site, target):
            await publish_inventory(each.client, chosen().inventory())
        await target.begin()
        both = Pair(site, target)
        try:
            await stage.have(stage.tenant("shop", controlPlane={"type": "standalone"}, workers={"replicas": 1}))
            await stage.waits("shop", "NoEndpointPool")
            await stage.have(butler("ButlerConfig", "butler", "", {"platform": {"metalLBPool": POOL}}))
            await stage.ready("shop")
            space = await stage.namespace("shop")
            endpoint = (await site.client.get(NutanixCluster, Key(space, "shop"))).spec.control_plane_endpoint
            before, vms = set(await both.nodes(site)), copy.deepcopy(both.world())
            with pytest.raises(MoveRefused, match=f"Cluster {space}/shop belongs to TenantCluster {SPACE}/shop"):
                await both.mover(namespace=space).run()
            await moved_in_steps(both, (30,), rest=300)
            assert await both.nodes(site) == {}
            assert before <= set(await both.nodes(target))
            key = Key(SPACE, "shop")
            moved = await p.until(TenantCluster, key, is_ready, 1200)
            assert moved.status.tenant_namespace == space
            await p.until(ProviderConfig, Key(SYSTEM_NAMESPACE, "site"), lambda found: found.status.validated, 600)
            await p.settle(120)
            assert both.world() == vms
            arrived = await p.client.get(NutanixCluster, Key(space, "shop"))
            assert arrived.spec.control_plane_endpoint == endpoint
            assert [each.metadata.name for each in (await p.client.list(Cluster)).items] == ["shop"]
            await p.client.patch(TenantCluster, key, MergePatch({"spec": {"workers": {"replicas": 2}}}))
            await p.until(TenantCluster, key, lambda t: is_ready(t) and t.status.worker_nodes_ready == 2, 1800)
            assert vms.items() <= both.world().items()
        finally:
            await p.stop()


@virtual
async def test_a_tenant_whose_control_plane_runs_on_the_plane_is_refused_by_name() -> None:
    async with tenants("nutanix") as stage, plane() as p:
        await establish(p.client, *chosen().definitions())
        await stage.have(stage.tenant("shop", workers={"replicas": 1}))
        await stage.ready("shop")
        space = await stage.namespace("shop")
        both = Pair(stage.site, Site(p, stage.site.network, stage.site.fleet, stage.site.prism, stage.site.dial))
        _, problems = await both.mover().plan()
        assert [each for each in problems if f"runs on the source as Deployment {space}/" in each], problems
        with pytest.raises(MoveRefused, match="it can't move"):
            await both.mover().run()
        assert not (await stage.client.get(Cluster, Key(space, "shop"))).spec.paused
