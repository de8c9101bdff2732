"""Topologies on a real kube-apiserver, with upstream's definitions: its server-side apply decides what is a change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from capikit import blueprint, generic, upstream
from capikit.outside import OutsideYard, outside, settled
from capikit.yard import NAMESPACE
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, MergePatch, Query
from realkube import RealKube

pytestmark = [pytest.mark.timeout(300)]

OWNED = "topology.cluster.x-k8s.io/owned"
MADE: tuple[Any, ...] = (
    generic.CLUSTER, generic.TEMPLATE, blueprint.CONFIG_TEMPLATE,
    KubeadmControlPlane.__resource__, MachineDeployment.__resource__,
)  # fmt: skip


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests"):
        pytest.skip(reason)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
async def yard(kube: RealKube) -> AsyncIterator[OutsideYard]:
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane", newest=True)) as made:
        yield made


async def steady(yard: OutsideYard, workers: int, version: str) -> None:
    await yard.until(Cluster, "c", blueprint.reconciled, 120, what="its topology being reconciled")
    plane = (await blueprint.control_plane(yard, "c")).metadata.name
    await yard.until(
        KubeadmControlPlane, plane, lambda k: settled(k, 1) and k.status.version == version, 120, what=f"{version}"
    )
    (md,) = (await blueprint.deployments(yard, "c")).values()
    await yard.until(
        MachineDeployment,
        md.metadata.name,
        lambda m: settled(m, workers) and m.spec.template.spec.version == version,
        120,
        what=f"{workers} workers at {version}",
    )


async def made(yard: OutsideYard) -> dict[str, tuple[str, int]]:
    """UID and generation of all that the topology made: equal when nothing was changed."""
    found = {}
    for kind in MADE:
        for each in (await yard.client.list(kind, Query(namespace=NAMESPACE, labels=OWNED))).items:
            found[f"{kind.kind} {each.name}"] = (each.uid, int(each.metadata["generation"]))
    return found


async def change(yard: OutsideYard, **parts: Any) -> None:
    await yard.client.patch(Cluster, Key(NAMESPACE, "c"), MergePatch({"spec": {"topology": parts}}))


async def test_a_cluster_from_a_class_is_made_changed_and_upgraded_and_nothing_is_written_without_cause(
    yard: OutsideYard,
) -> None:
    await blueprint.have_class(yard)
    await yard.plane.have(blueprint.topology("c", 1, {"a": 1}))
    await steady(yard, 1, "v1.30.0")
    await yard.available("c", timeout=120)
    first = await made(yard)

    # A controller that knows nothing asks the server about everything, and changes nothing.
    await yard.restart()
    await yard.client.patch(Cluster, Key(NAMESPACE, "c"), MergePatch({"metadata": {"annotations": {"look": "again"}}}))
    await change(yard, workers={"machineDeployments": [blueprint.deployment("a", 2)]})
    await steady(yard, 2, "v1.30.0")
    now = await made(yard)
    (md,) = [key for key in now if key.startswith("MachineDeployment")]
    assert {key: value for key, value in now.items() if key != md} == {k: v for k, v in first.items() if k != md}

    # Replicas that nobody names any more stay.
    await change(yard, workers={"machineDeployments": [blueprint.deployment("a", None)]})
    await change(yard, variables=[{"name": "image", "value": "debian"}])
    await steady(yard, 2, "v1.30.0")
    (deployment,) = (await blueprint.deployments(yard, "c")).values()
    assert (await blueprint.infra_template(yard, deployment))["image"] == "debian"

    await change(yard, version="v1.31.0")
    await steady(yard, 2, "v1.31.0")
    await _until_two_templates(yard)

    await yard.delete(Cluster, "c")
    await yard.gone(Cluster, "c", timeout=120)
    assert not yard.infra.machines


async def _until_two_templates(yard: OutsideYard) -> None:
    async with asyncio.timeout(60):
        # A template goes when no MachineSet uses it any more: the last one is kept for a rollback.
        while len((await yard.client.list(generic.TEMPLATE, Query(namespace=NAMESPACE, labels=OWNED))).items) != 2:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
