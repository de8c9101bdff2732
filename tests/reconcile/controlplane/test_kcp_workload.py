from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.remote import pki
from homeport.client.protocol import Client, Key, MergePatch
from homeport.machinery import condition
from present import present
from reconcile.controlplane.control_plane_kit import (
    CLUSTER,
    CONFIG_MAP,
    DAEMON_SET,
    EXTERNAL,
    INITIALIZED,
    KEY,
    NODE,
    POD,
    Kit,
    cluster,
    control_plane,
    join,
    kit,
    template,
    workload,
)


def external(**spec: Any) -> dict[str, Any]:
    return control_plane(kubeadmConfigSpec={"clusterConfiguration": EXTERNAL}, **spec)


async def brought(k: Kit) -> list[dict[str, Any]]:
    """What a user brings for an external etcd."""
    made = await pki.generate(["etcd"], now=k.plane.clock.now())
    client = pki.client_certificate(made["etcd"], "apiserver", now=k.plane.clock.now())
    return [
        pki.as_secret(CLUSTER, "etcd", pki.KeyPair(made["etcd"].certificate), None),
        pki.as_secret(CLUSTER, "apiserver-etcd-client", client, None),
    ]


async def begun(k: Kit, client: Client, **spec: Any) -> None:
    """One machine, which has joined."""
    await joined(k, client, **spec)
    await k.connect()


async def joined(k: Kit, client: Client, **spec: Any) -> None:
    """The same, while nothing is connected to the cluster yet."""
    await k.start(cluster(), external(**spec), template(), *(await brought(k)))
    await k.reconcile()
    (machine,) = await k.machines()
    await join(k, client, machine)


async def version_in(client: Client) -> tuple[str, str]:
    found = await client.get(CONFIG_MAP, Key("kube-system", "kubeadm-config"))
    configuration = yaml.safe_load(found["data"]["ClusterConfiguration"])
    proxy = await client.get(DAEMON_SET, Key("kube-system", "kube-proxy"))
    image = proxy["spec"]["template"]["spec"]["containers"][0]["image"]
    return configuration["kubernetesVersion"], image.rpartition(":")[2]


async def test_a_cluster_is_initialised_when_kubeadm_left_its_configuration() -> None:
    async with kit() as k, workload(k) as client:
        await begun(k, client)
        found = await k.reconcile()
        assert found.error is None
        kcp = await k.kcp()
        assert kcp.status.initialization.control_plane_initialized is True
        said = await k.said()
        assert said["Available"]["status"] == "True"
        assert "EtcdClusterHealthy" not in said  # it is not ours
        (machine,) = await k.machines()
        assert condition.is_true(machine.status.conditions, "APIServerPodHealthy")
        assert condition.is_true(machine.status.conditions, "UpToDate")
        assert condition.find(machine.status.conditions, "EtcdMemberHealthy") is None


class Meanwhile:
    """A client of a workload cluster; something else happens while that is asked for the first time."""

    def __init__(self, inner: Any, happens: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._happens: Callable[[], Awaitable[None]] | None = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, *given: Any, **options: Any) -> Any:
        happens, self._happens = self._happens, None
        if happens is not None:
            await happens()
        return await self._inner.get(*given, **options)


async def test_a_machine_that_changes_while_its_cluster_is_asked_gets_its_conditions_in_the_next_loop() -> None:
    async with kit() as k, workload(k) as client:
        await joined(k, client)
        (machine,) = await k.machines()
        key = Key("default", machine.metadata.name)
        cache = k.plane.manager.informers.get(Machine).cache
        theirs = {"type": "Theirs", "status": "True", "reason": "Good", "message": ""}

        async def change() -> None:
            await k.mark(machine, conditions=[{**theirs, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
            while condition.find(present(cache.get(key)).status.conditions, "Theirs") is None:
                await cache.news(key=key)

        k.reachable = Meanwhile(k.reachable, change)
        await k.connect()
        found = await k.reconcile()
        assert found.error is None
        (machine,) = await k.machines()
        assert condition.find(machine.status.conditions, "APIServerPodHealthy") is None
        found = await k.reconcile()
        assert found.error is None
        (machine,) = await k.machines()
        assert condition.is_true(machine.status.conditions, "Theirs")
        assert condition.is_true(machine.status.conditions, "APIServerPodHealthy")


async def test_a_control_plane_that_its_cluster_adopts_in_a_moment_reports_nothing_before() -> None:
    async with kit() as k:
        await k.have(cluster(), control_plane(), template())
        found = await k.reconcile()
        assert found.written == ()
        assert found.wait is not None
        assert found.wait.reason == "WaitingForCluster"
        assert found.wait.after == pytest.approx(2.0, abs=0.5)


async def test_the_next_machine_is_made_as_soon_as_the_last_is_well() -> None:
    async with kit() as k, workload(k) as client:
        await begun(k, client, replicas=3)
        await k.reconcile()
        assert len(await k.machines()) == 2
        joining = max(await k.configs(), key=lambda each: each.metadata.resource_version)
        assert joining.spec.join_configuration.control_plane is not None
        await k.reconcile()
        assert len(await k.machines()) == 2


async def test_nothing_is_added_beside_a_component_that_is_not_well() -> None:
    async with kit() as k, workload(k) as client:
        await begun(k, client, replicas=3)
        (machine,) = await k.machines()
        key = Key("kube-system", f"kube-scheduler-{machine.metadata.name}")
        await client.patch(POD, key, MergePatch({"status": {"phase": "Pending"}}), subresource="status")
        found = await k.reconcile()
        assert len(await k.machines()) == 1
        assert found.wait is not None
        assert f"Pod kube-scheduler-{machine.metadata.name}" in found.wait.message


async def test_the_configuration_of_the_cluster_is_updated_before_a_machine_joins_and_the_proxy_after_all_did() -> None:
    async with kit() as k, workload(k) as client:
        await begun(k, client)
        await k.reconcile()
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"spec": {"version": "v1.31.0"}}))
        await k.reconcile()
        machines = await k.machines()
        assert sorted(each.spec.version for each in machines) == ["v1.30.2", "v1.31.0"]
        assert await version_in(client) == ("v1.31.0", "v1.30.2")
        said = await k.said()
        assert "Version v1.30.2, v1.31.0 is desired" in said["RollingOut"]["message"]
        new = next(each for each in machines if each.spec.version == "v1.31.0")
        await join(k, client, new)
        await k.reconcile()
        left = [each for each in await k.machines() if not each.metadata.deletion_timestamp]
        assert [each.metadata.name for each in left] == [new.metadata.name]
        await k.reconcile()
        assert await version_in(client) == ("v1.31.0", "v1.31.0")
        assert (await k.said())["RollingOut"]["status"] == "False"


async def test_kube_proxy_can_be_left_alone() -> None:
    async with kit() as k, workload(k, version="v1.29.0") as client:
        await begun(k, client)
        note = {"metadata": {"annotations": {"controlplane.cluster.x-k8s.io/skip-kube-proxy": ""}}}
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch(note))
        await k.reconcile()
        assert (await version_in(client))[1] == "v1.29.0"
        await k.client.patch(
            KubeadmControlPlane,
            KEY,
            MergePatch({"metadata": {"annotations": {"controlplane.cluster.x-k8s.io/skip-kube-proxy": None}}}),
        )
        await k.reconcile()
        assert (await version_in(client))[1] == "v1.30.2"


async def test_a_node_that_lost_its_marks_is_reported() -> None:
    async with kit() as k, workload(k) as client:
        await begun(k, client)
        await k.reconcile()
        (machine,) = await k.machines()
        await client.patch(NODE, Key("", machine.metadata.name), MergePatch({"spec": {"taints": None}}))
        await k.see(NODE, Key("", machine.metadata.name), lambda node: not (node.get("spec") or {}).get("taints"))
        await k.reconcile()
        (machine,) = await k.machines()
        said = condition.find(machine.status.conditions, "NodeKubeadmLabelsAndTaintsSet")
        assert said is not None
        assert said["reason"] == "NotSet"


@pytest.mark.parametrize("initialized", [True, False])
async def test_a_cluster_that_can_not_be_reached_keeps_its_machines(initialized: bool) -> None:
    async with kit() as k:
        status = INITIALIZED if initialized else None
        await k.start(cluster(), external(replicas=1), template(), *(await brought(k)))
        await k.reconcile()
        if status:
            await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"status": status}), subresource="status")
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"spec": {"version": "v1.31.0"}}))
        for _ in range(2):
            found = await k.reconcile()
            assert found.error is None
        machines = await k.machines()
        assert len(machines) == 1
        assert not machines[0].metadata.deletion_timestamp
