"""Limits of a team count what exists at the provider, whatever its members write."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import Team, TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.platforms.butler.name import finalizer
from homeport.runtime.testing import virtual
from scenario.butler.stage import Stage, butler, is_ready, tenants

TEAM = Key("", "harbour")


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    return butler("TenantCluster", name, "harbour", {"workers": {"replicas": 2}, **spec})


async def patch(stage: Stage, name: str, body: dict[str, Any]) -> None:
    await stage.client.patch(TenantCluster, Key("harbour", name), MergePatch(body))


async def make_team(stage: Stage) -> None:
    await stage.have(
        butler("ButlerConfig", "butler", "", {"multiTenancy": {"mode": "Optional"}}),
        butler("Team", "harbour", "", {"resourceLimits": {"maxClusters": 1, "maxTotalNodes": 2}}),
    )
    await stage.plane.until(Team, TEAM, lambda team: team.status.phase == "Ready", 60, what="being Ready")


async def used(stage: Stage, clusters: int, nodes: int) -> Team:
    def fits(team: Team) -> bool:
        usage = team.status.resource_usage
        return usage is not None and (usage.clusters, usage.total_nodes) == (clusters, nodes)

    found: Team = await stage.plane.until(Team, TEAM, fits, 600, what=f"using {clusters} clusters and {nodes} nodes")
    return found


async def left_behind(stage: Stage) -> Key:
    """A cluster whose TenantCluster was deleted in mode Observe."""
    await make_team(stage)
    await stage.have(cluster("quay"))
    tenant = await stage.plane.until(TenantCluster, Key("harbour", "quay"), is_ready, 1200, what="being Ready")
    await patch(stage, "quay", {"spec": {"managementPolicy": {"mode": "Observe"}, "workers": {"replicas": 0}}})
    await used(stage, 1, 2)
    await stage.client.delete(TenantCluster, Key("harbour", "quay"))
    await stage.plane.gone(TenantCluster, Key("harbour", "quay"), 300)
    return Key(tenant.status.tenant_namespace, "quay")


@virtual
async def test_a_cluster_that_was_left_behind_counts_until_it_is_gone() -> None:
    async with tenants("harvester") as stage:
        there = await left_behind(stage)
        vms = await stage.vms()
        team = await used(stage, 1, 2)
        assert f"1 Cluster without a TenantCluster ({there})" in team.status.quota_message
        with pytest.raises(Invalid, match="would use 2 clusters of 1"):
            await stage.have(cluster("pier"))
        assert await stage.vms() == vms
        # One of the same name would get its addresses as well.
        limits = {"resourceLimits": {"maxClusters": 2, "maxTotalNodes": 8}}
        await stage.client.patch(Team, TEAM, MergePatch({"spec": limits}))
        await stage.have(cluster("quay"))
        key = Key("harbour", "quay")
        failed = await stage.plane.until(
            TenantCluster, key, lambda each: each.status.phase == "Failed", 300, what="being refused"
        )
        words = f"Cluster {there} of an earlier TenantCluster with this name still exists"
        assert words in str(failed.status.conditions)
        assert await stage.vms() == vms
        # An administrator deletes what was left.
        await stage.client.delete(Cluster, there)
        await stage.plane.until(TenantCluster, key, is_ready, 1800, what="being Ready")
        await used(stage, 1, 2)


@virtual
async def test_a_team_whose_finalizer_was_forced_away_goes_on_using_its_quota() -> None:
    """No role of a team may do it; whoever may, does not empty the account of the team."""
    async with tenants("nutanix") as stage:
        await make_team(stage)
        await stage.have(cluster("quay"))
        await stage.plane.until(TenantCluster, Key("harbour", "quay"), is_ready, 1200, what="being Ready")
        await stage.plane.stop()
        await stage.client.delete(TenantCluster, Key("harbour", "quay"))
        assert (
            finalizer("TenantCluster")
            in (await stage.client.get(TenantCluster, Key("harbour", "quay"))).metadata.finalizers
        )
        await patch(stage, "quay", {"metadata": {"finalizers": None}})
        await stage.start()
        await used(stage, 1, 2)
        await stage.client.delete(Team, TEAM)
        held = await stage.plane.until(
            Team, TEAM, lambda team: team.status.phase == "Terminating", 60, what="being held"
        )
        assert "without a TenantCluster" in str(held.status.conditions)
