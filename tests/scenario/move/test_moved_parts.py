"""What belongs to a cluster moves with it, and what can't move is named."""

from __future__ import annotations

from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0smotron.v1beta2 import K0smotronControlPlane
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.client.protocol import Key
from homeport.hosted.k0smotron.definition import definitions
from homeport.machinery import condition
from homeport.move.mover import Mover, Options
from homeport.move.side import CONFIG_MAP, NAMESPACE, SECRET
from homeport.runtime.testing import establish, plane, virtual
from scenario.addons.stage import addon, config_map
from scenario.hosted.k0smotron_stage import capi_objects, stage
from scenario.move.pair import have_cluster, pair
from scenario.move.test_move import moved_in_steps
from scenario.nutanix import manifest


def is_ready(found: Any) -> bool:
    return condition.is_true(found.status.conditions, "Ready")


@virtual
async def test_an_add_on_moves_and_is_not_installed_a_second_time() -> None:
    async with pair() as both:
        await have_cluster(both.source, workers=0)
        await both.source.have(addon("app", config_map("a", x="1")))
        await both.source.until(ClusterAddon, "app", is_ready)
        (workload,) = both.source.fleet.clusters()
        before = await workload.client().get(CONFIG_MAP, Key("default", "a"))
        await moved_in_steps(both, (40,), rest=120)
        await both.target.until(ClusterAddon, "app", is_ready)
        await both.target.plane.settle(60)
        assert await workload.client().get(CONFIG_MAP, Key("default", "a")) == before


@virtual
async def test_one_namespace_moves_with_its_labels_and_the_others_stay() -> None:
    async with pair() as both:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "blue"}}}
        await both.source.have(space, *manifest.cluster_objects("two", 1, 0, "10.0.0.101", "team"))
        await have_cluster(both.source, workers=0)
        await both.source.running("two", 1, namespace="team")
        stays = {name for name, node in (await both.nodes(both.source)).items() if node.key.namespace == "default"}
        await both.mover(namespace="team").run()
        assert set(await both.nodes(both.source)) == stays
        assert {node.key.namespace for node in (await both.nodes(both.target)).values()} == {"team"}
        await both.target.running("two", 1, namespace="team")
        assert (await both.target.client.get(NAMESPACE, Key("", "team"))).metadata["labels"]["team"] == "blue"
        await both.mover().run()
        await both.target.running("one", 1)


@virtual
async def test_a_secret_with_the_same_content_on_the_target_is_shared_and_another_one_refuses_the_move() -> None:
    async with pair() as both:
        await have_cluster(both.source, workers=0)
        await both.target.have(manifest.secret("another-password"))
        _, problems = await both.mover().plan()
        assert problems == [
            "Secret default/nutanix-credentials exists on the target and differs: delete or rename it on one side"
        ]
        await both.target.delete(SECRET, "nutanix-credentials")
        await both.target.have(manifest.secret())
        there = await both.target.client.get(SECRET, Key("default", "nutanix-credentials"))
        await both.mover().run()
        assert (await both.target.client.get(SECRET, Key("default", "nutanix-credentials"))).uid == there.uid
        await both.target.running("one", 1)


@virtual
async def test_a_control_plane_that_runs_on_the_source_is_refused_by_name() -> None:
    async with stage() as s, plane() as target:
        await establish(target.client, *capi_definitions(), *definitions())
        await s.have(*capi_objects())
        await s.available("edge-cp", K0smotronControlPlane)
        mover = Mover(s.client, target.client, Options(), lambda text: None, s.plane.clock)
        _, problems = await mover.plan()
        hosted = [each for each in problems if "runs on the source as StatefulSet default/kmc-edge" in each]
        assert hosted, problems
        assert "Delete it first, or move other namespaces with --namespace" in hosted[0]
