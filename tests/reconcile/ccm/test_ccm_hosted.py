"""The cloud controller manager of clusters with hosted control planes runs in the plane."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from capikit.generic import definition
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.cloud import CloudFile
from homeport.capi.definition import kind as capi_definition
from homeport.ccm import deploy
from homeport.ccm.cloud import POOL
from homeport.ccm.manifest import DAEMON_SET, DEPLOYMENT, NAME, SECRET, SECRET_NAME, Settings, render
from homeport.ccm.node import NODE, initialised
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.providers.nutanix import definition as nutanix_definition
from homeport.providers.nutanix.cloud.support import CLOUD
from homeport.runtime.controller import Controller
from homeport.runtime.share import Share
from homeport.runtime.testing import plane, shared_pki, virtual
from reconcile.ccm.cloud_kit import MemoryCloud, node
from reconcile.ccm.test_ccm_deploy import OURS, Site, cluster, infra, secret, theirs

C = Key("default", "c")
GROUP = "controlplane.example.com"
HOSTED = Resource(GROUP, "v1", "HostedControlPlane", "hostedcontrolplanes")


def hosted_cluster(**annotations: str) -> dict[str, Any]:
    body = cluster(**annotations)
    body["spec"]["controlPlaneRef"] = {"apiGroup": GROUP, "kind": HOSTED.kind, "name": "c"}
    return body


def control_plane() -> dict[str, Any]:
    return {
        "apiVersion": HOSTED.api_version,
        "kind": HOSTED.kind,
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"replicas": 2},
    }


@dataclass
class HostedSite(Site):
    controller: Controller
    clouds: list[MemoryCloud]  # in the order in which they were opened
    texts: list[str]  # the configurations that they were opened with

    async def node(self, name: str, seconds: float = 60.0) -> Any:
        """Once it is initialised."""
        async with asyncio.timeout(seconds):
            while not initialised(found := await self.workload.get(NODE, Key("", name))):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        return found

    async def kube_system(self, kind: Resource) -> list[str]:
        return [each.name for each in (await self.workload.list(kind, Query(namespace="kube-system"))).items]


@asynccontextmanager
async def hosted_site(*machines: str) -> AsyncIterator[HostedSite]:
    clouds: list[MemoryCloud] = []
    texts: list[str] = []

    def parse(text: str, namespace: str) -> CloudFile:
        known = CLOUD.parse(text, namespace)

        def open_cloud(*given: Any) -> MemoryCloud:
            clouds.append(MemoryCloud(*machines))
            texts.append(text)
            return clouds[-1]

        return CloudFile(open_cloud, known.pools)

    crds = [*capi_definition.definitions(), *nutanix_definition.definitions(), definition(HOSTED, "v1beta2")]
    async with plane(crds=crds) as p:
        server = await EmbeddedServer.open(None, shared_pki(), clock=p.clock.now)
        capi = Capi.make(p.manager)
        controller = deploy.install(p.manager, capi, [replace(CLOUD, parse=parse)])
        try:
            await p.start()
            yield HostedSite(p, capi, server, server.client(field_manager="test"), controller, clouds, texts)
        finally:
            await p.stop()
            await server.close(drain_seconds=0.1)


@virtual
async def test_nodes_are_initialised_and_nothing_of_the_manager_is_in_the_cluster() -> None:
    async with hosted_site("w-0") as s:
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        found = await s.node("w-0")
        assert found["spec"]["providerID"] == "memory://w-0"
        assert found["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z1"
        assert await s.kube_system(DEPLOYMENT) == []
        assert await s.kube_system(SECRET) == []
        (text,) = s.texts
        assert '"name": "creds"' in text  # the Secret that the NutanixCluster refers to
        assert "CloudControllerManagerStarted" in await s.events()


@virtual
async def test_until_the_control_plane_is_known_nothing_goes_into_the_cluster() -> None:
    async with hosted_site("w-0") as s:
        await s.have(hosted_cluster(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        assert await s.absent()
        assert s.clouds == []
        await s.have(control_plane())
        await s.node("w-0", 5)


@virtual
async def test_what_an_earlier_release_left_in_the_cluster_is_removed_credentials_first() -> None:
    async with hosted_site("w-0") as s:
        for body, kind in render(Settings("nutanix", "nutanix_config.json", "{}", {"credentials": "secret"})):
            await s.workload.apply(body, Write(field_manager="homeport"), kind=kind)
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.join("w-0")
        await s.connect()
        await s.node("w-0")
        assert NAME not in await s.kube_system(DEPLOYMENT)
        assert SECRET_NAME not in await s.kube_system(SECRET)


@virtual
async def test_a_manager_of_somebody_else_ends_ours_and_its_removal_brings_ours_back() -> None:
    async with hosted_site("w-0", "w-1") as s:
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        await s.node("w-0")
        await s.workload.create(theirs(), kind=DEPLOYMENT)
        await asyncio.sleep(10)
        assert [each.closed for each in s.clouds] == [True]
        await s.join("w-1")
        await asyncio.sleep(60)
        assert not initialised(await s.workload.get(NODE, Key("", "w-1")))
        await s.workload.delete(DEPLOYMENT, Key("kube-system", theirs()["metadata"]["name"]))
        await s.node("w-1")


@virtual
async def test_a_plane_that_starts_goes_on_with_nodes_that_were_initialised_before() -> None:
    async with hosted_site() as s:
        gone = node("w-0", taints=(), ready=False, provider_id="memory://w-0")
        gone["metadata"]["labels"] = {"node.kubernetes.io/instance-type": "small"}
        await s.workload.create(gone, kind=NODE)
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        async with asyncio.timeout(120):
            while (await s.workload.list(NODE)).items:  # noqa: ASYNC110
                await asyncio.sleep(1)


@virtual
async def test_a_cluster_whose_nodes_need_none_gets_none() -> None:
    async with hosted_site("w-0") as s:
        await s.workload.create(node("w-0", taints=()), kind=NODE)
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        await asyncio.sleep(600)
        assert s.clouds == []


@virtual
async def test_services_get_addresses_of_the_cluster_s_pool_and_another_pool_is_another_manager() -> None:
    service = Resource("", "v1", "Service", "services")
    async with hosted_site("w-0") as s:
        await s.have(hosted_cluster(**{POOL: "10.0.0.30-10.0.0.39"}), control_plane(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        await s.node("w-0")
        spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}}
        web = Key("default", "web")
        await s.workload.create({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}, kind=service)
        for pool, address in (("10.0.0.30-10.0.0.39", "10.0.0.30"), ("10.0.1.30-10.0.1.39", "10.0.1.30")):
            await s.plane.client.patch(Cluster, C, MergePatch({"metadata": {"annotations": {POOL: pool}}}))
            async with asyncio.timeout(60):
                while True:
                    found = await s.workload.get(service, web)
                    if found["status"]["loadBalancer"].get("ingress", [{}])[0].get("ip") == address:
                        break
                    await asyncio.sleep(0.5)
        assert [each.closed for each in s.clouds] == [True, False]


@virtual
async def test_a_paused_cluster_and_one_of_another_shard_have_no_manager_here() -> None:
    async with hosted_site("w-0") as s:
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        await s.node("w-0")
        held: list[str] = []
        clock = s.plane.clock
        s.controller.share = Share(lambda shard: shard in held, lambda key, obj: str(key), s.controller.cache, clock)
        await s.controller.let_go()
        assert [each.closed for each in s.clouds] == [True]
        held.append(str(C))
        s.controller.take_over(lambda shard: True)
        await asyncio.sleep(5)
        assert [each.closed for each in s.clouds] == [True, False]
        await s.plane.client.patch(Cluster, C, MergePatch({"spec": {"paused": True}}))
        await asyncio.sleep(5)
        assert [each.closed for each in s.clouds] == [True, True]


@virtual
async def test_a_daemon_set_of_somebody_else_counts_too() -> None:
    async with hosted_site("w-0") as s:
        await s.workload.create(theirs(), kind=DAEMON_SET)
        await s.have(hosted_cluster(), control_plane(), infra(), secret())
        await s.connect()
        await s.join("w-0")
        await asyncio.sleep(120)
        assert s.clouds == []
        assert OURS.name not in await s.kube_system(DEPLOYMENT)
