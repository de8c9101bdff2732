"""Load balancers of a simulated Harvester: addresses, status, and connections that reach the VMs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import shared_pki
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import CONFIG_MAP, ENDPOINT_SLICE, IP_POOL, LOAD_BALANCER, POD, SERVICE, VMI
from homeport.sim.harvester.loop import Loop
from homeport.sim.network import Network

RANGE = {"subnet": "10.20.0.0/16", "rangeStart": "10.20.1.1", "rangeEnd": "10.20.1.2", "gateway": "10.20.0.1"}
EVERYONE = [{"namespace": "*", "project": "*", "guestCluster": "*"}]
LISTENER = {"name": "api", "port": 6443, "protocol": "TCP", "backendPort": 6443}


class Program:
    """Answers with a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def accept(self, sock: socket.socket, source: str) -> None:
        await asyncio.get_running_loop().sock_sendall(sock, self.name.encode())
        sock.close()


class Inert(Loop):
    def __init__(self, name: str) -> None:
        super().__init__(name, self.ignore)

    def add(self, key: str, after: float = 0.0) -> None: ...

    async def ignore(self, key: str) -> float | None: ...


class Site:
    def __init__(self, harvester: Harvester, network: Network) -> None:
        self.harvester = harvester
        self.network = network
        self.client = harvester.client()

    async def create(self, kind: Resource, name: str, spec: dict[str, Any], **more: Any) -> None:
        meta = {"name": name, **({"namespace": "default"} if kind.namespaced else {}), **more.pop("metadata", {})}
        await self.client.create({"metadata": meta, "spec": spec, **more}, kind=kind)
        await self.harvester.settled()

    async def balancer(self, name: str = "lb", **spec: Any) -> dict[str, Any]:
        wanted = {"listeners": [LISTENER], "backendServerSelector": {"role": ["cp"]}, **spec}
        await self.create(LOAD_BALANCER, name, wanted)
        return await self.get(LOAD_BALANCER, name)

    async def get(self, kind: Resource, name: str) -> dict[str, Any]:
        await self.harvester.settled()
        return await self.client.get(kind, Key("default" if kind.namespaced else "", name))

    async def machine(self, name: str, address: str) -> None:
        """A VMI that reports an address, and what answers there."""
        self.network.attach(f"vm {name}", [address]).listen(6443, Program(name))
        spec = {"domain": {"devices": {}}, "networks": []}
        status = {"phase": "Running", "interfaces": [{"name": "nic-0", "ipAddress": address}]}
        await self.create(VMI, name, spec, metadata={"labels": {"role": "cp"}}, status=status)

    async def call(self, address: str, port: int = 6443) -> str:
        sock = await self.network.connect("outside", address, port)
        try:
            return (await asyncio.get_running_loop().sock_recv(sock, 100)).decode()
        finally:
            sock.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    network = Network()
    harvester = await Harvester.open(shared_pki(), network=network)
    for loop in ("instance", "machine", "launcher"):  # the VMs of these tests are only reports
        await harvester.loops[loop].close()
        harvester.loops[loop] = Inert(loop)
    made = Site(harvester, network)
    await made.create(IP_POOL, "management", {"ranges": [RANGE], "selector": {"scope": EVERYONE}})
    yield made
    await harvester.close()


def ready(obj: dict[str, Any]) -> tuple[str, str]:
    found = next(each for each in obj["status"]["conditions"] if each["type"] == "Ready")
    return found["status"], found.get("message", "")


async def test_a_pool_counts_its_addresses_and_is_marked(site: Site) -> None:
    pool = await site.get(IP_POOL, "management")
    assert (pool["status"]["total"], pool["status"]["available"], ready(pool)) == (2, 2, ("True", ""))
    assert pool["metadata"]["labels"]["loadbalancer.harvesterhci.io/global-ip-pool"] == "true"


async def test_a_load_balancer_gets_an_address_before_it_has_servers(site: Site) -> None:
    found = await site.balancer()
    assert found["status"]["address"] == "10.20.1.1"
    assert ready(found) == ("False", "no running backend servers")
    allocated = {"ipPool": "management", "ip": "10.20.1.1", "mask": "255.255.0.0", "gateway": "10.20.0.1"}
    assert found["status"]["allocatedAddress"] == allocated
    pool = await site.get(IP_POOL, "management")
    assert pool["status"]["allocated"] == {"10.20.1.1": "default/lb"}
    assert (await site.get(SERVICE, "lb"))["spec"]["loadBalancerIP"] == "10.20.1.1"


async def test_connections_to_its_address_reach_the_vms_in_turn(site: Site) -> None:
    await site.balancer()
    await site.machine("cp-0", "10.40.5.1")
    await site.machine("cp-1", "10.40.5.2")
    found = await site.get(LOAD_BALANCER, "lb")
    assert (ready(found), found["status"]["backendServers"]) == (("True", ""), ["10.40.5.1", "10.40.5.2"])
    assert {await site.call("10.20.1.1"), await site.call("10.20.1.1")} == {"cp-0", "cp-1"}
    with pytest.raises(OSError, match="refused"):
        await site.call("10.20.1.1", 22)


async def test_a_vm_without_an_address_is_distinguished_from_no_vm(site: Site) -> None:
    await site.balancer()
    await site.create(VMI, "silent", {"domain": {"devices": {}}}, metadata={"labels": {"role": "cp"}})
    assert ready(await site.get(LOAD_BALANCER, "lb")) == ("False", "running backend servers have no IP")


async def test_an_exhausted_pool_is_reported_and_a_freed_address_helps(site: Site) -> None:
    for name in ("a", "b"):
        await site.balancer(name)
    status, message = ready(await site.balancer("c"))
    assert (status, "no IP addresses available in range set: 10.20.1.1-10.20.1.2" in message) == ("False", True)
    await site.client.delete(LOAD_BALANCER, Key("default", "a"))
    await site.harvester.settled()
    site.harvester.balancing.balancer.add("default/c")  # in place of the second that it waits
    assert (await site.get(LOAD_BALANCER, "c"))["status"]["address"] == "10.20.1.1"


async def test_deletion_leaves_nothing_but_history_and_the_same_name_gets_the_same_address(site: Site) -> None:
    await site.balancer("first")
    await site.balancer("second")
    await site.client.delete(LOAD_BALANCER, Key("default", "second"))
    await site.harvester.settled()
    for kind in (LOAD_BALANCER, SERVICE, ENDPOINT_SLICE):
        with pytest.raises(NotFound):
            await site.client.get(kind, Key("default", "second"))
    assert site.network.holder("10.20.1.2") is None
    pool = await site.get(IP_POOL, "management")
    assert pool["status"]["allocated"] == {"10.20.1.1": "default/first"}
    assert pool["status"]["allocatedHistory"] == {"10.20.1.2": "default/second"}
    assert (await site.balancer("second"))["status"]["address"] == "10.20.1.2"


async def test_a_health_check_keeps_a_vm_out_until_its_port_answers(site: Site) -> None:
    await site.balancer(healthCheck={"port": 6443})
    await site.machine("cp-0", "10.40.5.1")
    host = site.network.host("vm cp-0")
    assert host is not None
    host.unlisten(6443)
    loop = site.harvester.balancing.balancer
    for _ in range(3):
        loop.add("default/lb")
        await site.harvester.settled()
    assert "not probed as healthy total:1" in ready(await site.get(LOAD_BALANCER, "lb"))[1]
    host.listen(6443, Program("cp-0"))
    for _ in range(3):
        loop.add("default/lb")
        await site.harvester.settled()
    assert ready(await site.get(LOAD_BALANCER, "lb")) == ("True", "")


async def test_a_load_balancer_of_a_guest_cluster_gets_an_address_and_nothing_else(site: Site) -> None:
    found = await site.balancer(workloadType="cluster", listeners=[])
    assert (ready(found), found["status"]["allocatedAddress"]["ip"]) == (("True", ""), "10.20.1.1")
    with pytest.raises(NotFound):
        await site.client.get(SERVICE, Key("default", "lb"))


@pytest.mark.parametrize(
    ("kind", "name", "spec", "words"),
    [
        (LOAD_BALANCER, "x", {"listeners": []}, "needs to have at least one listener"),
        (LOAD_BALANCER, "x", {"listeners": [LISTENER, LISTENER]}, "duplicate name api"),
        (LOAD_BALANCER, "x", {"listeners": [{**LISTENER, "port": 70000}]}, "must <= 65535"),
        (LOAD_BALANCER, "x", {"listeners": [LISTENER], "healthCheck": {"port": 22}}, "not in listener backend port"),
        (IP_POOL, "x", {"ranges": []}, "range can't be empty"),
        (IP_POOL, "x", {"ranges": [RANGE]}, "overlap with other pools"),
        (IP_POOL, "x", {"ranges": [{"subnet": "10.9.0.0/24"}], "selector": {"scope": EVERYONE}}, "already a global"),
    ],
)
async def test_what_cannot_work_is_refused(
    site: Site, kind: Resource, name: str, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApiError, match=words):
        await site.create(kind, name, spec)


async def test_a_pool_in_use_cannot_be_deleted(site: Site) -> None:
    await site.balancer()
    with pytest.raises(ApiError, match="before releasing all the allocated IP"):
        await site.client.delete(IP_POOL, Key("", "management"))


async def test_the_way_of_an_address_cannot_be_changed(site: Site) -> None:
    await site.balancer()
    with pytest.raises(ApiError, match="can't change the IPAM"):
        await site.client.patch(LOAD_BALANCER, Key("default", "lb"), MergePatch({"spec": {"ipam": "dhcp"}}))


# -- Services ----------------------------------------------------------------------------------------------------


def service(**more: Any) -> dict[str, Any]:
    return {"type": "LoadBalancer", "ports": [{"port": 6443}], "selector": {"role": "cp"}, **more}


async def test_a_service_gets_the_address_that_it_asks_for_and_leads_to_its_pods(site: Site) -> None:
    await site.create(SERVICE, "api", service(loadBalancerIP="10.20.9.9"))
    assert (await site.get(SERVICE, "api"))["status"]["loadBalancer"]["ingress"][0]["ip"] == "10.20.9.9"
    site.network.attach("vm pod", ["10.52.0.9"]).listen(6443, Program("pod"))
    await site.create(POD, "p", {"containers": [{"name": "c", "image": "i"}]}, metadata={"labels": {"role": "cp"}})
    status = {"phase": "Running", "podIP": "10.52.0.9", "podIPs": [{"ip": "10.52.0.9"}]}
    await site.client.patch(POD, Key("default", "p"), MergePatch({"status": status}), subresource="status")
    await site.harvester.settled()
    assert await site.call("10.20.9.9") == "pod"
    await site.client.delete(SERVICE, Key("default", "api"))
    await site.harvester.settled()
    assert site.network.holder("10.20.9.9") is None


async def test_a_service_that_asks_for_nothing_waits_for_the_ranges_of_kube_vip(site: Site) -> None:
    for name in ("one", "two"):
        await site.create(SERVICE, name, service())
    assert not (await site.get(SERVICE, "one"))["status"]["loadBalancer"].get("ingress")
    config = {
        "metadata": {"name": "kubevip", "namespace": "kube-system"},
        "data": {"range-global": "10.20.2.1-10.20.2.9"},
    }
    await site.client.create(config, kind=CONFIG_MAP)
    found = [(await site.get(SERVICE, name))["status"]["loadBalancer"]["ingress"][0]["ip"] for name in ("one", "two")]
    assert sorted(found) == ["10.20.2.1", "10.20.2.2"]
