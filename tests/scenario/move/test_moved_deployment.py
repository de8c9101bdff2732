"""A ClusterDeployment moves with its Cluster, its Credential, its templates and its services."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ClusterTemplate, Credential, ServiceSet
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import chosen
from homeport.capi.environment import Environment
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.move import MoveRefused
from homeport.runtime.definition import establish
from homeport.runtime.testing import Plane, plane, virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from scenario.k0rdent.stage import SPACE, Stage, credential, deployments, hosted, is_ready, secret, standalone
from scenario.k0rdent.test_services import chart, service, template
from scenario.move.pair import Pair
from scenario.move.test_move import moved_in_steps
from scenario.move.test_moved_tenant import Shelved
from scenario.nutanix.site import Site

NAME = "nutanix-standalone-demo"
KEY = Key(SPACE, NAME)


@asynccontextmanager
async def planes(*, equipped: bool = True) -> AsyncIterator[tuple[Stage, Plane, Pair]]:
    """`equipped` False: the target has no objects of k0rdent."""
    async with deployments() as stage, plane() as p:
        site: Site = stage.site
        target = Shelved(p, site.network, site.fleet, site.prism, site.dial)
        install_hooks(chosen().register(Environment(p.client, site.dial, p.server)), p.server)
        await establish(p.client, *chosen().definitions())
        for each in (site, target):
            await publish_inventory(each.client, chosen().inventory())
        if equipped:
            await create_namespaces(p.client, chosen().namespaces())
            await create_objects(p.client, chosen().objects())
        await target.begin()
        if equipped:
            await p.until(ClusterClass, Key(SPACE, "nutanix-k0s-standalone"), _is_usable, 600, what="its variables")
        try:
            yield stage, p, Pair(site, target)
        finally:
            await p.stop()


def _is_usable(obj: ClusterClass) -> bool:
    return condition.is_true(obj.status.conditions, "VariablesReady")


def small() -> dict[str, Any]:
    body = standalone(workersNumber=1)
    body["spec"]["config"]["controlPlaneNumber"] = 1
    return body


@pytest.mark.timeout(400)
@virtual
async def test_a_deployment_with_services_moves_though_the_process_dies_and_is_not_made_a_second_time() -> None:
    async with planes() as (stage, p, both):
        body = small()
        body["spec"]["serviceSpec"] = {"services": [service("web")]}
        await stage.have(chart("web", "1.0.0"), template("web"), secret(), credential(), body)
        await stage.ready(NAME)
        before, vms = set(await both.nodes(stage.site)), copy.deepcopy(both.world())
        kinds = {each.partition(" ")[0] for each in before}
        assert {"ClusterDeployment", "Cluster", "Credential", "ServiceSet", "ServiceTemplate", "Secret"} <= kinds
        assert not {"Management", "Release", "ClusterTemplate", "ClusterClass"} & kinds
        await moved_in_steps(both, (3, 17, 30), rest=30)
        assert await both.nodes(stage.site) == {}
        assert before <= set(await both.nodes(both.target))
        moved = await p.until(ClusterDeployment, KEY, is_ready, 1800, what="being Ready")
        await p.settle(120)
        assert both.world() == vms
        cluster: Cluster = await p.client.get(Cluster, KEY)
        assert [each.uid for each in cluster.metadata.owner_references] == [moved.metadata.uid]
        sets = (await p.client.list(ServiceSet, Query(namespace=SPACE))).items
        assert [each.metadata.owner_references[0].uid for each in sets] == [moved.metadata.uid]
        await p.client.get(Credential, Key(SPACE, "nutanix-cluster-identity-cred"))
        # The source keeps what every plane has, and uses it for other clusters.
        await stage.client.get(ClusterTemplate, Key(SPACE, "nutanix-k0s-standalone"))
        with pytest.raises(NotFound):
            await stage.client.get(ClusterDeployment, KEY)

        await p.client.patch(ClusterDeployment, KEY, MergePatch({"spec": {"config": {"workersNumber": 2}}}))
        await p.until(ClusterDeployment, KEY, is_ready, 1800, what="being Ready with two workers")
        assert vms.items() <= both.world().items()
        assert len(both.world()) == 3
        await p.client.delete(ClusterDeployment, KEY)
        await p.gone(ClusterDeployment, KEY, 2400)
        assert both.world() == {}


@virtual
async def test_a_hosted_deployment_is_refused_by_name_before_anything_is_paused() -> None:
    async with planes() as (stage, _, both):
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        await stage.ready("nutanix-hcp-demo")
        _, problems = await both.mover().plan()
        assert [
            each
            for each in problems
            if each.startswith(f"ClusterDeployment {SPACE}/nutanix-hcp-demo: its control plane")
            and "runs on the source as StatefulSet" in each
        ], problems
        with pytest.raises(MoveRefused, match="it can't move"):
            await both.mover().run()
        cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, "nutanix-hcp-demo"))
        assert not cluster.spec.paused
        assert await both.nodes(both.target) == {}


@virtual
async def test_a_target_without_the_classes_of_the_plane_is_refused() -> None:
    async with planes(equipped=False) as (stage, _, both):
        await stage.have(secret(), credential(), small())
        await stage.ready(NAME)
        with pytest.raises(MoveRefused, match=f"Cluster {SPACE}/{NAME} needs ClusterClass {SPACE}/nutanix-k0s-standal"):
            await both.mover().run()
        assert not (await stage.client.get(Cluster, KEY)).spec.paused
