"""Clusters from a class on a real kube-apiserver, with upstream's definitions of Cluster API and our webhooks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from capikit import blueprint, upstream
from capikit.blueprint import deployments, infra_template, machines, reconciled
from capikit.outside import OutsideHarness, outside, settled
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
async def harness(kube: RealKube) -> AsyncIterator[OutsideHarness]:
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane", newest=True)) as made:
        yield made


async def steady(harness: OutsideHarness, version: str, workers: int) -> None:
    await harness.until(Cluster, "one", reconciled, 120, what="its topology being reconciled")
    plane = await blueprint.control_plane(harness, "one")
    at = f"one control plane at {version}"
    await harness.until(
        KubeadmControlPlane,
        plane.metadata.name,
        lambda k: settled(k, 1) and [v.version for v in k.status.versions] == [version],
        120,
        what=at,
    )
    (found,) = (await deployments(harness, "one")).values()
    await harness.until(
        MachineDeployment, found.metadata.name, lambda m: settled(m, workers), 120, what=f"{workers} workers"
    )


async def test_a_cluster_from_a_class_is_made_changed_upgraded_and_goes(harness: OutsideHarness) -> None:
    await blueprint.have_class(harness)
    with pytest.raises(Invalid, match=r"variables\[machine\]\.value\.cores"):
        await harness.plane.have(blueprint.topology("one", 1, {"a": 1}, variables={"machine": {"cores": 0}}))
    await harness.plane.have(blueprint.topology("one", 1, {"a": 1}))
    await steady(harness, "v1.30.0", 1)
    before = {*await machines(harness, "one"), *await machines(harness, "one", "a")}
    # Nothing is replaced when controllers begin anew, or when the same is applied again.
    await harness.restart()
    same = blueprint.topology("one", 1, {"a": 1})["spec"]["topology"]
    await harness.patch(Cluster, "one", {"spec": {"topology": same}, "metadata": {"labels": {"a": "b"}}})
    await harness.patch(
        Cluster, "one", {"spec": {"topology": {"workers": {"machineDeployments": [blueprint.deployment("a", 2)]}}}}
    )
    await steady(harness, "v1.30.0", 2)
    assert before <= {*await machines(harness, "one"), *await machines(harness, "one", "a")}
    # One change for the workers, then another version for all.
    await harness.patch(
        Cluster, "one", {"spec": {"topology": {"variables": [{"name": "machine", "value": {"cores": 8}}]}}}
    )
    await steady(harness, "v1.30.0", 2)
    assert (await infra_template(harness, (await deployments(harness, "one"))["a"]))["cores"] == 8
    assert {*await machines(harness, "one")} <= before
    await harness.patch(Cluster, "one", {"spec": {"topology": {"version": "v1.31.0"}}})
    await steady(harness, "v1.31.0", 2)
    with pytest.raises(Invalid, match="default/one"):
        await harness.client.delete(ClusterClass, Key("default", blueprint.CLASS))
    await harness.delete(Cluster, "one")
    await harness.gone(Cluster, "one", timeout=120)
    assert not harness.infra.machines
    await harness.client.delete(ClusterClass, Key("default", blueprint.CLASS))
