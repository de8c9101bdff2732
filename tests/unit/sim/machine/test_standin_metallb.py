"""MetalLB in simulated clusters: Services get addresses, and nodes answer there."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.snapshot import Snapshot
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT, NODE, SERVICE
from homeport.sim.machine.workload.standin.metallb.pool import PoolProblem, check_overlap, parse_pool
from unit.sim.machine.sim_kit import Sim, simulation
from unit.sim.machine.standin_kit import (
    EVERYWHERE,
    METALLB,
    POOL,
    addresses,
    advertisement,
    balanced,
    events,
    install_metallb,
    pool,
    settle,
    workers,
    workload,
)
from unit.sim.machine.test_sim_snapshot import again


class Greeter:
    """A program that listens on its machine."""

    async def accept(self, sock: socket.socket, source: str) -> None:
        sock.sendall(b"hello")
        sock.close()


async def web(cluster: WorkloadCluster) -> None:
    """Pods of the host's network on all workers: their machines listen for them."""
    pod = {"hostNetwork": True, "tolerations": EVERYWHERE}
    await cluster.put([(workload("web", "default", "web", pod=pod), DAEMON_SET)])
    await settle(cluster)
    for node in cluster.kubelets.values():
        node.guest.host.listen(80, Greeter())


async def prepared(sim: Sim, *pools: Any, nodes: tuple[str, ...] = ("md-0", "md-1")) -> WorkloadCluster:
    cluster = await workers(sim, *nodes)
    await install_metallb(cluster)
    await web(cluster)
    await cluster.put([*(pools or [pool("main", "10.0.0.200-10.0.0.201")]), advertisement()])
    return cluster


async def greeting(sim: Sim, address: str, port: int = 80) -> bytes:
    near = await sim.network.connect("outside", address, port)
    near.setblocking(False)
    try:
        return await asyncio.get_running_loop().sock_recv(near, 100)
    finally:
        near.close()


@virtual
async def test_a_service_gets_an_address_of_the_pool_which_leads_to_its_pods() -> None:
    async with simulation() as sim:
        cluster = await prepared(sim)
        await cluster.put([balanced("web")])
        await settle(cluster)
        assert await addresses(cluster, "web") == ["10.0.0.200"]
        found = await cluster.client().get(SERVICE, Key("default", "web"))
        assert found.metadata["annotations"]["metallb.io/ip-allocated-from-pool"] == "main"
        said = await events(cluster, "web")
        assert ("IPAllocated", 'Assigned IP ["10.0.0.200"]') in said
        holder = sim.network.holder("10.0.0.200")
        assert holder is not None
        assert holder.name in ("md-0", "md-1")
        assert ("nodeAssigned", f'announcing from node "{holder.name}" with protocol "layer2"') in said
        assert await greeting(sim, "10.0.0.200") == b"hello"
        with pytest.raises(ConnectionRefusedError):  # the machine's own ports are not those of the Service
            await greeting(sim, "10.0.0.200", 10250)


@virtual
async def test_the_address_moves_when_its_node_is_lost_and_is_no_address_of_a_node() -> None:
    async with simulation() as sim:
        cluster = await prepared(sim)
        await cluster.put([balanced("web")])
        await settle(cluster)
        first = sim.network.holder("10.0.0.200")
        assert first is not None
        await asyncio.sleep(400)  # kubelets have reported their addresses again
        node = await cluster.client().get(NODE, Key("", first.name))
        assert "10.0.0.200" not in [each["address"] for each in node["status"]["addresses"]]
        sim.power_off(first.name)
        await asyncio.sleep(2)
        assert sim.network.holder("10.0.0.200") is None
        await asyncio.sleep(6)
        second = sim.network.holder("10.0.0.200")
        assert second is not None
        assert second is not first
        assert await addresses(cluster, "web") == ["10.0.0.200"]
        assert await greeting(sim, "10.0.0.200") == b"hello"


@virtual
async def test_without_an_address_left_a_service_stays_pending_until_one_is_free() -> None:
    async with simulation() as sim:
        cluster = await prepared(sim)
        await cluster.put([balanced("one"), balanced("two")])
        await settle(cluster)
        await cluster.put([balanced("three")])
        await settle(cluster)
        assert await addresses(cluster, "three") == []
        text = 'Failed to allocate IP for "default/three": no available IPs'
        assert ("AllocationFailed", text) in await events(cluster, "three")
        await cluster.client().delete(SERVICE, Key("default", "one"))
        await settle(cluster)
        assert await addresses(cluster, "three") == ["10.0.0.200"]


@virtual
async def test_without_pools_services_are_pending_and_nothing_is_said() -> None:
    async with simulation() as sim:
        cluster = await workers(sim, "md-0")
        await install_metallb(cluster)
        await cluster.put([balanced("web")])
        await settle(cluster)
        assert await addresses(cluster, "web") == []
        assert await events(cluster, "web") == []


@virtual
@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        ({}, {"loadBalancerIP": "10.0.0.201"}, ["10.0.0.201"]),
        ({"metallb.io/loadBalancerIPs": "10.0.0.201"}, {}, ["10.0.0.201"]),
        ({"metallb.universe.tf/loadBalancerIPs": "10.0.0.201"}, {}, ["10.0.0.201"]),
        ({"metallb.io/address-pool": "reserved"}, {}, ["10.0.1.1"]),  # not .0: buggy
        ({"metallb.universe.tf/address-pool": "reserved"}, {}, ["10.0.1.1"]),
        ({}, {}, ["10.0.0.200"]),
        ({}, {"loadBalancerClass": "example.com/other"}, []),
        ({}, {"loadBalancerIP": "10.9.9.9"}, '"10.9.9.9" is not allowed in config'),
        ({"metallb.io/address-pool": "absent"}, {}, 'unknown pool "absent"'),
        (
            {"metallb.io/address-pool": "reserved", "metallb.io/loadBalancerIPs": "10.0.0.200"},
            {},
            'requested loadBalancer IP(s) ["10.0.0.200"] is not compatible with requested address pool reserved',
        ),
        (
            {"metallb.io/loadBalancerIPs": "10.0.0.200"},
            {"loadBalancerIP": "10.0.0.200"},
            "service can not have both metallb.io/loadBalancerIPs and svc.Spec.LoadBalancerIP",
        ),
        ({"metallb.io/loadBalancerIPs": "here"}, {}, 'invalid metallb.io/loadBalancerIPs: "here"'),
        (
            {"metallb.io/loadBalancerIPs": "fd00::1"},
            {},
            'requested loadBalancer IP(s) ["fd00::1"] does not match the ipFamily of the service',
        ),
    ],
)
async def test_a_service_says_which_address_it_wants(
    annotations: dict[str, str], spec: dict[str, str], expected: list[str] | str
) -> None:
    async with simulation() as sim:
        reserved = pool("reserved", "10.0.1.0/30", autoAssign=False, avoidBuggyIPs=True)
        cluster = await prepared(sim, pool("main", "10.0.0.200-10.0.0.201"), reserved, nodes=("md-0",))
        await cluster.put([balanced("web", annotations=annotations, **spec)])
        await settle(cluster)
        if isinstance(expected, list):
            assert await addresses(cluster, "web") == expected
        else:
            assert await addresses(cluster, "web") == []
            text = f'Failed to allocate IP for "default/web": {expected}'
            assert ("AllocationFailed", text) in await events(cluster, "web")


@virtual
async def test_services_with_the_same_sharing_key_share_an_address_if_their_ports_differ() -> None:
    shared = {"metallb.io/allow-shared-ip": "dns", "metallb.io/loadBalancerIPs": "10.0.0.200"}
    async with simulation() as sim:
        cluster = await prepared(sim)
        await cluster.put([balanced("tcp", 53, annotations=shared)])
        await cluster.put([balanced("udp", ("UDP", 53), annotations=shared)])
        await settle(cluster)
        assert await addresses(cluster, "tcp") == await addresses(cluster, "udp") == ["10.0.0.200"]
        await cluster.put([balanced("again", 53, annotations=shared)])
        other = {**shared, "metallb.io/allow-shared-ip": "other"}
        await cluster.put([balanced("stranger", 54, annotations=other)])
        await settle(cluster)
        assert await addresses(cluster, "again") == await addresses(cluster, "stranger") == []
        said = dict(await events(cluster, "again"))
        assert said["AllocationFailed"].endswith('port tcp/53 is already in use on "10.0.0.200"')
        said = dict(await events(cluster, "stranger"))
        assert said["AllocationFailed"].endswith(
            'can\'t change sharing key for "default/stranger", address also in use by default/tcp,default/udp'
        )


@virtual
async def test_the_webhook_refuses_pools_that_overlap() -> None:
    async with simulation() as sim:
        cluster = await prepared(sim, nodes=("md-0",))
        body, kind = pool("second", "10.0.0.201/32")
        text = (
            'admission webhook "ipaddresspoolvalidationwebhook.metallb.io" denied the request: '
            'CIDR "10.0.0.201/32" in pool "second" overlaps with already defined CIDR "10.0.0.200/31"'
        )
        with pytest.raises(Forbidden) as refused:
            await cluster.client().create(body, kind=kind)
        assert text in str(refused.value)
        await cluster.client().patch(POOL, Key(METALLB, "main"), MergePatch({"spec": {"addresses": ["10.0.0.200/31"]}}))
        body, kind = pool("second", "10.0.2.0/24")
        await cluster.client().create(body, kind=kind)


@virtual
async def test_nothing_happens_when_the_controller_is_gone_and_addresses_go_with_the_speakers() -> None:
    async with simulation() as sim:
        cluster = await prepared(sim)
        await cluster.put([balanced("web")])
        await settle(cluster)
        client = cluster.client()
        await client.patch(DEPLOYMENT, Key(METALLB, "controller"), MergePatch({"spec": {"replicas": 0}}))
        await settle(cluster)
        await cluster.put([balanced("late")])
        await settle(cluster)
        assert await addresses(cluster, "late") == []
        assert await greeting(sim, "10.0.0.200") == b"hello"
        await client.delete(DAEMON_SET, Key(METALLB, "speaker"))
        await settle(cluster)
        assert sim.network.holder("10.0.0.200") is None
        assert await addresses(cluster, "web") == ["10.0.0.200"]


@virtual
async def test_only_nodes_that_an_advertisement_selects_announce() -> None:
    async with simulation() as sim:
        cluster = await workers(sim, "md-0", "md-1")
        await install_metallb(cluster, registry="mirror.example.com:5000/quay.io")
        await web(cluster)
        chosen: dict[str, Any] = {
            "nodeSelectors": [{"matchLabels": {"kubernetes.io/hostname": "md-1"}}],
            "ipAddressPools": ["main"],
        }
        await cluster.put([pool("main", "10.0.0.200/32"), pool("other", "10.0.0.210/32"), advertisement(**chosen)])
        await cluster.put([balanced("web"), balanced("unannounced", loadBalancerIP="10.0.0.210")])
        await settle(cluster)
        holder = sim.network.holder("10.0.0.200")
        assert holder is not None
        assert holder.name == "md-1"
        assert await addresses(cluster, "unannounced") == ["10.0.0.210"]
        assert sim.network.holder("10.0.0.210") is None


def test_pools_are_read_as_metallb_reads_them() -> None:
    def parsed(*given: str, **spec: Any) -> Any:
        return parse_pool(pool("p", *given, **spec)[0])

    assert [str(each) for each in parsed("10.0.0.254-10.0.1.1").addresses(4)] == [
        "10.0.0.254",
        "10.0.0.255",
        "10.0.1.0",
        "10.0.1.1",
    ]
    assert [str(each) for each in parsed("10.0.0.254-10.0.1.1", avoidBuggyIPs=True).addresses(4)] == [
        "10.0.0.254",
        "10.0.1.1",
    ]
    assert [str(each) for each in parsed("10.0.0.0/31", "fd00::/127").addresses(6)] == ["fd00::", "fd00::1"]
    for wrong in ("10.0.0.1", "10.0.0.5-10.0.0.1", "a-b", "10.0.0.1-fd00::1", "10.0.0.0/40"):
        with pytest.raises(PoolProblem, match="invalid CIDR"):
            parsed(wrong)
    with pytest.raises(PoolProblem, match="has no prefixes defined"):
        parsed()
    with pytest.raises(PoolProblem, match="overlaps with already defined CIDR"):
        check_overlap([parsed("10.0.0.0/24", "10.0.0.5/32")])


@virtual
async def test_addresses_are_kept_over_a_restart(tmp_path: Path) -> None:
    async with simulation() as before:
        cluster = await prepared(before, nodes=("md-0",))
        await cluster.put([balanced("first"), balanced("web")])
        await settle(cluster)
        await cluster.client().delete(SERVICE, Key("default", "first"))
        await settle(cluster)
        assert await addresses(cluster, "web") == ["10.0.0.201"]
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        await sim.boot("cp-0", address="10.0.0.11", again=True)
        await sim.boot("md-0", address="10.0.0.12", again=True)
        await settle(sim.cluster, 30)
        assert await addresses(sim.cluster, "web") == ["10.0.0.201"]
        holder = sim.network.holder("10.0.0.201")
        assert holder is not None
        assert holder.name == "md-0"
        body, kind = pool("second", "10.0.0.201/32")
        with pytest.raises(Forbidden):  # the webhook answers again, with the same authority
            await sim.cluster.client().create(body, kind=kind)
