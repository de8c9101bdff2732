from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any

import orjson
import pytest

from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE, ETCD_MEMBER
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT
from homeport.sim.machine.workload.standin.wire import ask
from unit.sim.machine.k0s_kit import (
    K0S_IMAGE,
    balancing,
    cluster_spec,
    controller_data,
    controller_token,
    encode_token,
    k0s_token,
    worker_data,
)
from unit.sim.machine.sim_kit import VIP, Sim, simulation


async def first(sim: Sim, *flags: str, **more: Any) -> str:
    return await sim.boot("cp-0", controller_data(sim.secrets, *flags, **more), image=K0S_IMAGE)


async def join(sim: Sim, name: str, *flags: str, **more: Any) -> str:
    token = await controller_token(sim, **more)
    return await sim.boot(name, controller_data(None, *flags, token=token), image=K0S_IMAGE)


async def three(sim: Sim, *flags: str) -> None:
    await first(sim, *flags)
    for name in ("cp-1", "cp-2"):
        console = await join(sim, name, *flags)
        assert name in sim.cluster.etcd.members, console


async def member(sim: Sim, name: str) -> Any:
    return await sim.cluster.client().get(ETCD_MEMBER, Key("", name))


def joined(found: Any) -> str:
    return str(found["status"]["conditions"][0]["status"])


@virtual
async def test_a_controller_is_not_a_node_unless_it_is_asked_to_be() -> None:
    async with simulation() as sim:
        console = await first(sim)
        assert sim.cluster.initialized, console
        assert await sim.node("cp-0") is None
        assert sim.cluster.version() == "v1.31.5+k0s"
        assert 'level=info msg="Controller has started"' in console


@virtual
async def test_a_controller_uses_the_certificates_that_it_is_given_or_makes_its_own() -> None:
    async with simulation() as sim:
        await first(sim)
        assert sim.cluster.pki.ca_pem == sim.secrets.ca.certificate
    async with simulation() as sim:
        await sim.boot("cp-0", controller_data(None), image=K0S_IMAGE)
        machine = sim.fleet.find("cp-0")
        assert machine is not None
        assert machine.disk.read("/var/lib/k0s/pki/ca.crt") == sim.cluster.pki.ca_pem


@virtual
async def test_an_external_address_that_nobody_holds_keeps_workers_away() -> None:
    async with simulation() as sim:
        console = await first(sim, config={"api": {"externalAddress": "10.1.1.201"}})
        assert sim.cluster.initialized
        assert "The external address 10.1.1.201:6443 does not answer" in console
        console = await sim.boot("md-0", worker_data(await k0s_token(sim)), image=K0S_IMAGE)
        assert await sim.node("md-0") is None
        assert "no machine has the address 10.1.1.201" in console


@virtual
async def test_controllers_join_one_after_the_other_and_publish_themselves() -> None:
    async with simulation() as sim:
        await three(sim, "--env AUTOPILOT_HOSTNAME=$(hostname)-machine")
        assert set(sim.cluster.etcd.members) == {"cp-0", "cp-1", "cp-2"}
        assert len(sim.cluster.etcd.voters) == 3
        nodes = (await sim.cluster.client().list(CONTROL_NODE)).items
        assert {node["metadata"]["name"]: node["status"]["k0sVersion"] for node in nodes} == {
            f"cp-{number}-machine": "v1.31.5+k0s.0" for number in range(3)
        }
        found = await member(sim, "cp-2")
        assert found["status"]["memberID"] == f"{sim.cluster.etcd.members['cp-2'].id:x}"
        assert joined(found) == "True"
        assert len(sim.cluster.serving()) == 3
        machine = sim.fleet.find("cp-1")
        assert machine is not None
        assert machine.disk.read("/var/lib/k0s/pki/ca.key") == sim.secrets.ca.key
        assert machine.disk.read("/var/lib/k0s/pki/etcd/ca.crt") == sim.secrets.etcd.certificate


@virtual
async def test_controllers_that_join_at_the_same_time_all_arrive() -> None:
    async with simulation() as sim:
        await first(sim)
        token = await controller_token(sim)
        for name in ("cp-1", "cp-2", "cp-3", "cp-4"):
            sim.power_on(name, controller_data(None, token=token), image=K0S_IMAGE)
        await sim.fleet.settled()
        assert len(sim.cluster.etcd.voters) == 5


@virtual
async def test_a_controller_needs_a_valid_token_for_controllers() -> None:
    async with simulation() as sim:
        await first(sim)
        unknown = encode_token(sim, f"https://{VIP}:9443", "controller-bootstrap", "nobody.0123456789abcdef")
        tokens = {
            "worker": (await k0s_token(sim), "wrong token type kubelet-bootstrap, expected type: controller-bootstrap"),
            "other": (await controller_token(sim, joins=False), "401 Unauthorized"),
            "unknown": (unknown, "401 Unauthorized"),
        }
        for name, (token, reason) in tokens.items():
            console = await sim.boot(name, controller_data(None, token=token), image=K0S_IMAGE)
            assert reason in console
            assert "k0scontroller: Error: failed to join controller" in console
        expired = await controller_token(sim, identity="ctl002", ttl="1m")
        await asyncio.sleep(90)
        assert "401 Unauthorized" in await sim.boot("late", controller_data(None, token=expired), image=K0S_IMAGE)
        assert set(sim.cluster.etcd.members) == {"cp-0"}


@virtual
async def test_a_member_leaves_and_may_come_back_under_its_name() -> None:
    async with simulation() as sim:
        await three(sim)
        client = sim.cluster.client()
        await client.patch(ETCD_MEMBER, Key("", "cp-2"), MergePatch({"spec": {"leave": True}}))
        await asyncio.sleep(1)
        assert set(sim.cluster.etcd.members) == {"cp-0", "cp-1"}
        found = await member(sim, "cp-2")
        assert (joined(found), found["status"]["reconcileStatus"]) == ("False", "Success")
        assert found["status"]["message"] == "Member removed from cluster"
        assert [plane.node for plane in sim.cluster.serving()] == ["cp-0", "cp-1"]
        sim.remove("cp-2")
        await join(sim, "cp-2")
        found = await member(sim, "cp-2")
        assert (joined(found), found["spec"]["leave"]) == ("True", False)
        assert len(sim.cluster.etcd.voters) == 3


@virtual
async def test_the_only_controller_may_not_leave() -> None:
    async with simulation() as sim:
        await first(sim)
        await sim.cluster.client().patch(ETCD_MEMBER, Key("", "cp-0"), MergePatch({"spec": {"leave": True}}))
        await asyncio.sleep(1)
        found = await member(sim, "cp-0")
        assert "The only active controller cannot leave" in found["status"]["message"]
        assert sim.cluster.serving()


@virtual
async def test_without_quorum_the_api_stops_and_members_cannot_leave() -> None:
    async with simulation() as sim:
        await three(sim)
        sim.power_off("cp-1")
        sim.power_off("cp-2")
        assert not sim.cluster.serving()
        await sim.boot("cp-1", image=K0S_IMAGE, again=True)
        assert len(sim.cluster.serving()) == 2


@virtual
async def test_the_virtual_address_moves_with_all_ports_when_its_holder_dies() -> None:
    async with simulation() as sim:
        await three(sim)
        holder = sim.network.holder(VIP)
        assert holder is not None
        sim.power_off(holder.name)
        await asyncio.sleep(5)
        heir = sim.network.holder(VIP)
        assert heir is not None
        assert heir.name != holder.name
        assert "Entering MASTER STATE" in sim.console(heir.name)
        for port in (6443, 8132, 9443):
            sock = await sim.network.connect("outside", VIP, port)
            sock.close()
        console = await join(sim, "cp-3")
        assert "cp-3" in sim.cluster.etcd.members, console


@virtual
async def test_all_virtual_addresses_are_held() -> None:
    async with simulation() as sim:
        config = cluster_spec(network={"controlPlaneLoadBalancing": balancing(VIP, "10.0.0.101")})
        await first(sim, config=config)
        assert sim.network.holder("10.0.0.101") is sim.network.holder(VIP) is not None


@virtual
async def test_the_join_api_answers_over_https() -> None:
    async with simulation() as sim:
        await first(sim)
        context = ssl.create_default_context(cadata=sim.secrets.ca.certificate.decode())

        async def get(path: str, **headers: str) -> Any:
            sock = await sim.network.connect("outside", VIP, 9443)
            return await ask(sock, context, VIP, f"GET {path}", headers)

        assert (await get("/v1beta1/ca")).status == 401
        assert (await get("/version")).status == 404
        await controller_token(sim)
        answer = await get("/v1beta1/ca", authorization="Bearer ctl001.0123456789abcdef")
        assert answer.status == 200
        assert base64.b64decode(orjson.loads(answer.body)["cert"]) == sim.secrets.ca.certificate


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"network": {"provider": "magic"}}, "unsupported network provider: magic"),
        ({"network": {"podCIDR": "10.0.0.0"}, "storage": {"type": "paper"}}, "unsupported storage type: paper"),
        (
            {"network": {"controlPlaneLoadBalancing": {**balancing("10.0.0.9"), "type": "F5"}}},
            "unsupported CPLB type: F5",
        ),
        (
            {
                "network": {
                    "controlPlaneLoadBalancing": {
                        "enabled": True,
                        "keepalived": {"vrrpInstances": [{"virtualIPs": ["10.0.0.9"], "authPass": "123456789"}]},
                    }
                }
            },
            "AuthPass must be 8 characters or less; spec: network: controlPlaneLoadBalancing: keepalived: "
            "VirtualIPs must be a CIDR. Got: 10.0.0.9",
        ),
    ],
)
def test_a_configuration_that_k0s_refuses_is_refused_at_the_installation(spec: dict[str, Any], error: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            console = await first(sim, config=spec)
            assert "Error: invalid node config: " in console
            assert error in console
            assert not sim.fleet.clusters()

    run()


@pytest.mark.parametrize(
    ("network", "flags", "there", "missing"),
    [
        ({}, (), ["kube-router", "kube-proxy", "konnectivity-agent"], ["calico-node"]),
        ({"provider": "calico"}, (), ["calico-node"], ["kube-router"]),
        ({"provider": "custom"}, (), [], ["calico-node", "kube-router"]),
        ({"kubeProxy": {"disabled": True}}, (), ["kube-router"], ["kube-proxy"]),
        ({}, ("--disable-components konnectivity-server,coredns",), [], ["konnectivity-agent"]),
    ],
)
def test_the_network_is_as_configured(
    network: dict[str, Any], flags: tuple[str, ...], there: list[str], missing: list[str]
) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await first(sim, *flags, config={"network": network})
            client = sim.cluster.client()
            names = {each["metadata"]["name"] for each in (await client.list(DAEMON_SET)).items}
            assert names >= set(there)
            assert not names & set(missing)
            deployments = {each["metadata"]["name"] for each in (await client.list(DEPLOYMENT)).items}
            assert ("coredns" in deployments) is ("--disable-components" not in " ".join(flags))
            assert ("calico-kube-controllers" in deployments) is ("calico-node" in there)

    run()


@virtual
async def test_a_controller_publishes_itself_when_the_api_is_back() -> None:
    async with simulation() as sim:
        await first(sim)
        client = sim.cluster.client()
        await client.delete(CONTROL_NODE, Key("", "cp-0"))
        await asyncio.sleep(60)
        assert not (await client.list(CONTROL_NODE)).items  # as k0s: not before it starts again
        sim.power_off("cp-0")
        await sim.boot("cp-0", image=K0S_IMAGE, again=True)
        assert [each["metadata"]["name"] for each in (await client.list(CONTROL_NODE)).items] == ["cp-0"]
        assert sim.fleet.machines[sim.id("cp-0")].host.service(2379) is None
