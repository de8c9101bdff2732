"""Clusters from a class on a real kube-apiserver, with upstream's definitions of Cluster API and our webhooks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from capikit import blueprint, upstream
from capikit.blueprint import deployments, infra_template, machines, reconciled
from capikit.outside import OutsideYard, outside, settled
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from realkube import RealKube

pytestmark = [pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("takes long: `make upstream` runs it")
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


async def steady(yard: OutsideYard, version: str, workers: int) -> None:
    await yard.until(Cluster, "one", reconciled, 120, what="its topology being reconciled")
    plane = await blueprint.control_plane(yard, "one")
    at = f"one control plane at {version}"
    await yard.until(
        KubeadmControlPlane,
        plane.metadata.name,
        lambda k: settled(k, 1) and [v.version for v in k.status.versions] == [version],
        120,
        what=at,
    )
    (found,) = (await deployments(yard, "one")).values()
    await yard.until(
        MachineDeployment, found.metadata.name, lambda m: settled(m, workers), 120, what=f"{workers} workers"
    )


async def test_a_cluster_from_a_class_is_made_changed_upgraded_and_goes(yard: OutsideYard) -> None:
    await blueprint.have_class(yard)
    with pytest.raises(Invalid, match=r"variables\[machine\]\.value\.cores"):
        await yard.plane.have(blueprint.topology("one", 1, {"a": 1}, variables={"machine": {"cores": 0}}))
    await yard.plane.have(blueprint.topology("one", 1, {"a": 1}))
    await steady(yard, "v1.30.0", 1)
    before = {*await machines(yard, "one"), *await machines(yard, "one", "a")}
    # Nothing is replaced when controllers begin anew, or when the same is applied again.
    await yard.restart()
    same = blueprint.topology("one", 1, {"a": 1})["spec"]["topology"]
    await yard.patch(Cluster, "one", {"spec": {"topology": same}, "metadata": {"labels": {"a": "b"}}})
    await yard.patch(
        Cluster, "one", {"spec": {"topology": {"workers": {"machineDeployments": [blueprint.deployment("a", 2)]}}}}
    )
    await steady(yard, "v1.30.0", 2)
    assert before <= {*await machines(yard, "one"), *await machines(yard, "one", "a")}
    # One change for the workers, then another version for all.
    await yard.patch(
        Cluster, "one", {"spec": {"topology": {"variables": [{"name": "machine", "value": {"cores": 8}}]}}}
    )
    await steady(yard, "v1.30.0", 2)
    assert (await infra_template(yard, (await deployments(yard, "one"))["a"]))["cores"] == 8
    assert {*await machines(yard, "one")} <= before
    await yard.patch(Cluster, "one", {"spec": {"topology": {"version": "v1.31.0"}}})
    await steady(yard, "v1.31.0", 2)
    with pytest.raises(Invalid, match="default/one"):
        await yard.client.delete(ClusterClass, Key("default", blueprint.CLASS))
    await yard.delete(Cluster, "one")
    await yard.gone(Cluster, "one", timeout=120)
    assert not yard.infra.machines
    await yard.client.delete(ClusterClass, Key("default", blueprint.CLASS))
