"""On a server that asks no webhook of ours, the controller holds changes that would do harm, and says why."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import MergePatch
from reconcile.controlplane.control_plane_kit import KEY, Kit, cluster, control_plane, join, kit, template, workload


async def changed(k: Kit, spec: dict[str, Any], subresource: str = "") -> list[str]:
    """Reconciles a change that nobody refused. What the control plane says about it."""
    kind = KubeadmControlPlane.__resource__
    await k.client.patch(kind, KEY, MergePatch({"spec": spec}), subresource=subresource)
    for _ in range(3):
        assert (await k.reconcile()).error is None
    return [str(each.get("message") or "") for each in (await k.kcp()).status.conditions]


@pytest.mark.parametrize(
    ("spec", "subresource", "words"),
    [
        ({"replicas": 2}, "", "spec.replicas is 2: an even number of etcd members is not safe"),
        ({"replicas": 4}, "scale", "spec.replicas is 4: an even number of etcd members is not safe"),
        ({"version": "v1.32.0"}, "", "upgrade one minor version at a time"),
        ({"version": "v2.0.0"}, "", "upgrade one minor version at a time"),
        ({"version": "v1.28.0"}, "", "a downgrade of more than one minor version is not possible"),
        ({"version": "v1.29.8"}, "", "a finished upgrade can't be taken back"),
    ],
)
async def test_an_unsafe_change_makes_and_removes_no_machine_until_it_is_taken_back(
    spec: dict[str, Any], subresource: str, words: str
) -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        (first,) = await k.machines()
        async with workload(k) as client:
            await join(k, client, first)
            said = await changed(k, spec, subresource)
            assert any(words in each for each in said), said
            assert [each.metadata.uid for each in await k.machines()] == [first.metadata.uid]
            said = await changed(k, {"replicas": 1, "version": "v1.30.2"})
            assert not any(words in each for each in said)
            (left,) = await k.machines()
            assert (left.metadata.uid, left.metadata.deletion_timestamp) == (first.metadata.uid, None)
