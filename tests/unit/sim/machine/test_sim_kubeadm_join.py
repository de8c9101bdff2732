from __future__ import annotations

import asyncio

import pytest

from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import POD, ROLE_BINDING, SECRET
from unit.sim.machine.sim_kit import TOKEN, Secrets, join_data, make_pair, simulation


@virtual
async def test_a_worker_joins_with_labels_taints_and_provider_id() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        data = join_data(
            sim.secrets,
            args={"provider-id": "nutanix://u-1", "cloud-provider": "external"},
            taints=[{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}],
        )
        console = await sim.boot("md-0", data)
        assert "This node has joined the cluster" in console, console
        node = await sim.node("md-0")
        assert node["spec"]["providerID"] == "nutanix://u-1"
        assert {taint["key"] for taint in node["spec"]["taints"]} == {
            "node.cluster.x-k8s.io/uninitialized",
            "node.cloudprovider.kubernetes.io/uninitialized",
        }
        assert "node-role.kubernetes.io/control-plane" not in node["metadata"]["labels"]
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        assert ready["status"] == "True"


@virtual
async def test_a_node_may_have_a_name_of_the_full_length() -> None:
    name = "a-" * 31 + "z"
    assert len(name) == 63
    async with simulation() as sim:
        await sim.cluster_up()
        await sim.boot(name, join_data(sim.secrets))
        assert (await sim.node(name))["metadata"]["name"] == name


@virtual
async def test_three_control_planes_are_three_etcd_members_with_one_virtual_address() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        for name in ("cp-1", "cp-2"):
            assert "has joined" in await sim.boot(name, join_data(sim.secrets, control_plane=True)), sim.console(name)
        assert set(cluster.etcd.members) == {"cp-0", "cp-1", "cp-2"}
        assert cluster.etcd.leader == "cp-0"
        assert len(cluster.serving()) == 3
        node = await sim.node("cp-2")
        assert {taint["key"] for taint in node["spec"]["taints"]} == {"node-role.kubernetes.io/control-plane"}
        assert (await cluster.client().get(POD, Key("kube-system", "etcd-cp-2")))["status"]["phase"] == "Running"
        assert sim.network.conflicts() == []


async def refused(sim: object, data: bytes, *reasons: str, **more: object) -> None:
    console = await sim.boot("md-0", data, **more)  # type: ignore[attr-defined]
    for reason in reasons:
        assert reason in console, console
    assert await sim.node("md-0") is None  # type: ignore[attr-defined]


@virtual
async def test_an_unknown_token_is_refused() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await refused(
            sim,
            join_data(sim.secrets, token="zzzzzz.0123456789abcdef"),
            'JWS signature in the cluster-info ConfigMap for token ID "zzzzzz"',
            "context deadline exceeded",
        )


@virtual
async def test_a_token_with_another_secret_is_refused() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await refused(sim, join_data(sim.secrets, token="abcdef.ffffffffffffffff"), "failed to verify JWS signature")


@virtual
async def test_an_expired_token_is_refused() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await asyncio.sleep(16 * 60)
        await refused(sim, join_data(sim.secrets), "could not find a JWS signature")


@virtual
async def test_a_token_that_comes_while_the_machine_tries_is_taken() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await cluster.client().delete(SECRET, Key("kube-system", "bootstrap-token-abcdef"))
        sim.power_on("md-0", join_data(sim.secrets))
        await asyncio.sleep(5)
        await sim.add_token()
        await sim.fleet.settled()
        assert "has joined" in sim.console("md-0")


@virtual
async def test_another_authority_than_the_pinned_one_is_refused() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await refused(
            sim,
            join_data(sim.secrets, hashes=[make_pair(sim.clock).hash]),
            "cluster CA found in cluster-info ConfigMap is invalid",
        )


@virtual
async def test_discovery_without_a_pinned_authority_must_be_asked_for() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await refused(sim, join_data(sim.secrets, hashes=[]), "unsafeSkipCAVerification")


@virtual
async def test_an_endpoint_that_nobody_holds_is_not_joined() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await refused(
            sim,
            join_data(sim.secrets, endpoint="10.0.0.200:6443"),
            "dial tcp 10.0.0.200:6443",
            "no machine has the address 10.0.0.200",
        )


@virtual
async def test_a_machine_behind_a_partition_joins_when_it_heals() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        sim.network.partition("split", ["md-0"])
        sim.power_on("md-0", join_data(sim.secrets))
        await asyncio.sleep(5)
        assert "i/o timeout" in sim.console("md-0")
        sim.network.heal("split")
        await sim.fleet.settled()
        assert "has joined" in sim.console("md-0")


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("ubuntu-kube-v1.31.0", "the kubelet version is higher than the control plane version"),
        ("ubuntu-kube-v1.33.0", "control plane version >= 1.32.0"),
        ("ubuntu-22.04", "kubeadm: not found"),
    ],
)
def test_a_worker_of_another_version_is_refused(image: str, reason: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await sim.cluster_up()
            await refused(sim, join_data(sim.secrets), reason, image=image)

    run()


@virtual
async def test_a_ready_namesake_is_refused() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        console = await sim.boot("x", join_data(sim.secrets).replace(b"{{ ds.meta_data.hostname }}", b"cp-0"))
        assert 'a Node with name "cp-0" and status "Ready" already exists' in console


@virtual
async def test_rights_that_were_taken_from_bootstrappers_are_missed() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await cluster.client().delete(ROLE_BINDING, Key("kube-system", "kubeadm:nodes-kubeadm-config"))
        await refused(
            sim,
            join_data(sim.secrets),
            'configmaps "kubeadm-config" is forbidden: User "system:bootstrap:abcdef" cannot get',
        )


@virtual
async def test_a_control_plane_without_or_with_other_certificates_is_refused() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await refused(
            sim,
            join_data(sim.secrets, control_plane=True, files=[]),
            "open /etc/kubernetes/pki/ca.crt: no such file or directory",
        )
        sim.remove("md-0")
        other = Secrets(sim.secrets.ca, make_pair(sim.clock), sim.secrets.proxy, sim.secrets.sa)
        await refused(
            sim,
            join_data(sim.secrets, control_plane=True, files=other.files()),
            "list of etcd endpoints",
            "signed by unknown authority",
        )
        assert set(cluster.etcd.members) == {"cp-0"}


@virtual
async def test_a_kubeconfig_file_serves_discovery_as_well() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        text = cluster.pki.cluster_info(cluster.facts.server)
        join = f"apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  tlsBootstrapToken: {TOKEN}\n  file:\n    kubeConfigPath: /d.yaml\n"
        from unit.sim.machine.sim_kit import cloud_config

        data = cloud_config(
            [{"path": "/d.yaml", "content": text}, {"path": "/j.yaml", "content": join}],
            "kubeadm join --config /j.yaml",
        )
        assert "has joined" in await sim.boot("md-0", data), sim.console("md-0")
        assert await sim.node("md-0") is not None


@virtual
async def test_a_machine_whose_address_comes_late_waits_for_it() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        sim.power_on("md-0", join_data(sim.secrets), address="")
        await asyncio.sleep(5)
        assert "waiting for an address" in sim.console("md-0")
        sim.fleet.readdressed(sim.id("md-0"), ("10.0.0.77",))
        await sim.fleet.settled()
        node = await sim.node("md-0")
        assert {"type": "InternalIP", "address": "10.0.0.77"} in node["status"]["addresses"]
