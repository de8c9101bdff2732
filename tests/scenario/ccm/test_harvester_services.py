"""Services of type LoadBalancer of clusters on Harvester and KubeVirt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.ccm.balancer import FINALIZER
from homeport.ccm.node import initialised
from homeport.ccm.service import SERVICE, ingress
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.providers.harvester.cloud.balancer import IP_POOL as POOL_OF_SERVICE
from homeport.providers.harvester.cloud.support import BALANCERS
from homeport.providers.harvester.infracluster.resource import IP_POOL, LOAD_BALANCER, VMI
from homeport.runtime.testing import virtual
from homeport.sim.network import Balancer, Loopback
from scenario.ccm.cloud import until_node, workload
from scenario.harvester import manifest
from scenario.harvester.site import Site, harvester_site, world

NAME = "one"
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
WEB = Key("default", "web")


def pool(name: str, first: str, last: str) -> dict[str, Any]:
    return {
        "apiVersion": "loadbalancer.harvesterhci.io/v1beta1",
        "kind": "IPPool",
        "metadata": {"name": name},
        "spec": {"ranges": [{"subnet": "10.40.0.0/16", "rangeStart": first, "rangeEnd": last}]},
    }


def service(*ports: tuple[int, int], **annotations: str) -> dict[str, Any]:
    listed = [{"name": f"p{port}", "port": port, "nodePort": node_port} for port, node_port in ports]
    return {
        "metadata": {"name": WEB.name, "namespace": WEB.namespace, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": listed},
    }


async def until(site: Site, key: Key, predicate: Callable[[Any], bool], timeout: float = 120.0) -> Any:
    deadline = site.clock.monotonic() + timeout
    while True:
        try:
            found = await workload(site).client().get(SERVICE, key)
        except NotFound:
            found = None
        if predicate(found):
            return found
        assert site.clock.monotonic() < deadline, f"not within {timeout} s: {found}"
        await asyncio.sleep(1.0)


async def balancers(site: Site) -> list[Any]:
    return list((await site.infra.list(LOAD_BALANCER, Query(namespace="default"))).items)


async def listen(site: Site, *ports: int) -> None:
    """What kube-proxy does on every Node: its node ports lead to the Pods."""
    for vmi in (await site.infra.list(VMI, Query(namespace="default"))).items:
        host = site.network.holder(vmi["status"]["interfaces"][0]["ipAddress"])
        assert host is not None
        for port in ports:
            host.listen(port, Loopback("127.0.0.1", port))


def behind(site: Site, address: str, port: int) -> int:
    """The node port that a connection to this address ends at; 0 if nothing answers."""
    if site.network.host("user") is None:
        site.network.attach("user", ["10.40.2.1"])
    try:
        found = site.network.find("user", address, port)[2]
    except OSError:
        return 0
    assert isinstance(found, Balancer)
    answering = found.behind()
    return answering.port if isinstance(answering, Loopback) else 0


async def ready(site: Site, control_planes: int = 1, workers: int = 0) -> None:
    for machine in await site.running(NAME, control_planes, workers):
        await until_node(site, machine.metadata.name, initialised)


@virtual
async def test_a_service_is_reached_at_an_address_of_a_pool_until_it_is_deleted() -> None:
    async with harvester_site() as site:
        await site.infra.create(pool("web", "10.40.1.10", "10.40.1.20"), kind=IP_POOL)
        await site.infra.create(pool("other", "10.40.1.30", "10.40.1.40"), kind=IP_POOL)
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 1)))
        await ready(site, 1, 1)
        foreign = {
            "metadata": {"name": "mine", "namespace": "default"},
            "spec": {
                "workloadType": "vm",
                "ipam": "pool",
                "ipPool": "other",
                "listeners": [{"name": "a", "port": 80, "protocol": "TCP", "backendPort": 80}],
            },
        }
        await site.infra.create(foreign, kind=LOAD_BALANCER)
        await listen(site, 30080, 30443, 30081)
        client = workload(site).client()
        await client.create(service((80, 30080), (443, 30443), **{POOL_OF_SERVICE: "web"}), kind=SERVICE)
        found = await until(site, WEB, lambda s: bool(ingress(s)))
        (address,) = ingress(found)
        assert address.startswith("10.40.1.1")
        assert FINALIZER in found.metadata["finalizers"]
        await asyncio.sleep(10)  # the load balancer probes
        assert (behind(site, address, 80), behind(site, address, 443)) == (30080, 30443)
        # Other ports at the same address.
        ports = [{"name": "p81", "port": 81, "nodePort": 30081}]
        await client.patch(SERVICE, WEB, MergePatch({"spec": {"ports": ports}}))
        await asyncio.sleep(20)
        assert ingress(await client.get(SERVICE, WEB)) == [address]
        assert (behind(site, address, 80), behind(site, address, 81)) == (0, 30081)
        await client.delete(SERVICE, WEB)
        await until(site, WEB, lambda s: s is None)
        assert [each.name for each in await balancers(site)] == ["mine"]
        assert behind(site, address, 81) == 0


@virtual
async def test_a_service_that_is_no_longer_a_load_balancer_gives_its_address_back() -> None:
    async with harvester_site() as site:
        await site.infra.create(pool("web", "10.40.1.10", "10.40.1.20"), kind=IP_POOL)
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 0)))
        await ready(site)
        client = workload(site).client()
        await client.create(service((80, 30080), **{POOL_OF_SERVICE: "web"}), kind=SERVICE)
        await until(site, WEB, lambda s: bool(ingress(s)))
        await client.patch(SERVICE, WEB, MergePatch({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}))
        await until(site, WEB, lambda s: not ingress(s) and FINALIZER not in (s.metadata.get("finalizers") or ()))
        assert await balancers(site) == []


@virtual
async def test_an_event_of_the_service_says_why_it_has_no_address() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 0)))
        await ready(site)
        client = workload(site).client()
        await client.create(service((80, 30080)), kind=SERVICE)
        await asyncio.sleep(60)
        notes = [each["note"] for each in (await client.list(EVENT, Query(namespace="default"))).items]
        assert len([each for each in notes if "no matched IPPool" in each]) == 1
        await site.infra.create(pool("web", "10.40.1.10", "10.40.1.20"), kind=IP_POOL)
        await client.patch(SERVICE, WEB, MergePatch({"metadata": {"annotations": {POOL_OF_SERVICE: "web"}}}))
        await until(site, WEB, lambda s: bool(ingress(s)))


@virtual
async def test_load_balancers_go_with_their_cluster() -> None:
    async with harvester_site() as site:
        await site.infra.create(pool("web", "10.40.1.10", "10.40.1.20"), kind=IP_POOL)
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 0)))
        await ready(site)
        await workload(site).client().create(service((80, 30080), **{POOL_OF_SERVICE: "web"}), kind=SERVICE)
        await until(site, WEB, lambda s: bool(ingress(s)))
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_an_annotation_of_the_cluster_leaves_services_to_others() -> None:
    async with harvester_site() as site:
        objects = manifest.external(manifest.cluster_objects(NAME, 1, 0))
        objects[0]["metadata"]["annotations"] = {BALANCERS: "false"}
        await site.have(*objects)
        await ready(site)
        await workload(site).client().create(service((80, 30080)), kind=SERVICE)
        await asyncio.sleep(60)
        assert FINALIZER not in ((await workload(site).client().get(SERVICE, WEB)).metadata.get("finalizers") or ())
        assert await balancers(site) == []


@virtual
async def test_on_kubevirt_a_service_of_the_infrastructure_cluster_is_the_load_balancer() -> None:
    async with harvester_site(world_file=world(harvester=False)) as site:
        objects = manifest.external(manifest.cluster_objects(NAME, 1, 0))
        objects[1] = manifest.infra_cluster(NAME, "10.52.200.200")
        objects[3] = manifest.template(f"{NAME}-cp", manifest.container_machine())
        await site.have(*objects)
        await ready(site)
        client = workload(site).client()
        made = await client.create(service((80, 30080)), kind=SERVICE)
        place = Key("default", f"svc-{made.uid}")
        await asyncio.sleep(10)
        outside = await site.infra.get(SERVICE, place)
        assert outside["spec"]["selector"] == {
            "cluster.x-k8s.io/cluster-name": NAME,
            "capk.cluster.x-k8s.io/kubevirt-machine-namespace": "default",
        }
        assert [(each["port"], each["targetPort"]) for each in outside["spec"]["ports"]] == [(80, 30080)]
        # Whoever serves Services there.
        body = {"metadata": {"annotations": {"kube-vip.io/loadbalancerIPs": "10.20.0.77"}}}
        await site.infra.patch(SERVICE, place, MergePatch(body))
        assert ingress(await until(site, WEB, lambda s: bool(ingress(s)))) == ["10.20.0.77"]
        await client.delete(SERVICE, WEB)
        await until(site, WEB, lambda s: s is None)
        assert place.name not in [
            each.name for each in (await site.infra.list(SERVICE, Query(namespace="default"))).items
        ]
