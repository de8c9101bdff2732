from __future__ import annotations

import pytest

from homeport import controlplane
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.webhook.embedded import install
from homeport.runtime.webhook.hook import Hooks
from reconcile.controlplane.control_plane_kit import KEY, cluster, control_plane, kit, template


async def test_scaling_is_checked_like_the_object_itself() -> None:
    async with kit() as k:
        hooks = Hooks()
        controlplane.register(hooks)
        install(hooks, k.plane.server)
        await k.start(cluster(), control_plane(), template())
        kind = KubeadmControlPlane.__resource__
        for replicas in (0, 2):
            with pytest.raises(Invalid, match=r"spec\.replicas"):
                await k.client.patch(kind, KEY, MergePatch({"spec": {"replicas": replicas}}), subresource="scale")
        await k.client.patch(kind, KEY, MergePatch({"spec": {"replicas": 3}}), subresource="scale")
        assert (await k.kcp()).spec.replicas == 3


async def test_the_last_machine_stays_though_no_replicas_are_asked_for() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        (machine,) = await k.machines()
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"spec": {"replicas": 0}}))
        for _ in range(2):
            assert (await k.reconcile()).error is None
        left = await k.client.get(type(machine), Key("default", machine.metadata.name))
        assert not left.metadata.deletion_timestamp
