"""The cloud controller manager is brought into workload clusters."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.local import LocalClient
from homeport.capi.capi import Capi
from homeport.capi.definition import kind as capi_definition
from homeport.ccm import deploy
from homeport.ccm.cloud import POOL
from homeport.ccm.deploy import MANAGED
from homeport.ccm.manifest import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NAME,
    SECRET,
    SECRET_NAME,
    SERVICE_ACCOUNT,
)
from homeport.ccm.node import NODE
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.providers.nutanix import definition as nutanix_definition
from homeport.providers.nutanix.cloud.support import CLOUD
from homeport.runtime.testing import Plane, plane, shared_pki, virtual
from reconcile.ccm.cloud_kit import node

C = Key("default", "c")
OURS = Key("kube-system", NAME)
THEIRS = Key("kube-system", "nutanix-cloud-controller-manager")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")


def cluster(**annotations: str) -> dict[str, Any]:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "c"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c", "annotations": annotations},
        "spec": {"infrastructureRef": ref, "controlPlaneEndpoint": {"host": "10.0.0.100", "port": 6443}},
    }


def infra(**more: Any) -> dict[str, Any]:
    central = {"address": "pc.example.com", "port": 9440, "credentialRef": {"kind": "Secret", "name": "creds"}, **more}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixCluster",
        "metadata": {"name": "c"},
        "spec": {"prismCentral": central, "controlPlaneEndpoint": {"host": "10.0.0.100", "port": 6443}},
    }


def secret(password: str = "one") -> dict[str, Any]:
    data = {"prismCentral": {"username": "u", "password": password}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "creds"},
        "stringData": {"credentials": json.dumps([{"type": "basic_auth", "data": data}])},
    }


def theirs() -> dict[str, Any]:
    labels = {"app": "other"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": THEIRS.name, "namespace": THEIRS.namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


class Refusing(LocalClient):
    """A workload cluster that lets nobody apply anything."""

    async def apply(self, *args: Any, **more: Any) -> Any:
        raise Forbidden("no")


@dataclass
class Site:
    plane: Plane
    capi: Capi
    server: EmbeddedServer
    workload: Client

    async def connect(self, client: Client | None = None) -> None:
        await self.capi.remotes.attach(C, client or self.workload)

    async def have(self, *objects: Mapping[str, Any]) -> None:
        await self.plane.have(*objects)

    async def join(self, name: str) -> None:
        body = node(name)
        await self.workload.create(body, kind=NODE)

    async def initialise(self, name: str) -> None:
        await self.workload.patch(
            NODE, Key("", name), MergePatch({"spec": {"taints": None, "providerID": "nutanix://1"}})
        )

    async def found(self, kind: Resource, key: Key = OURS, timeout: float = 60.0) -> Any:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await self.workload.get(kind, key)
                except NotFound:
                    await asyncio.sleep(0.5)

    async def absent(self) -> bool:
        await asyncio.sleep(120)
        try:
            await self.workload.get(DEPLOYMENT, OURS)
        except NotFound:
            return True
        return False

    async def events(self) -> dict[str, str]:
        await asyncio.sleep(5)
        found = (await self.plane.client.list(EVENT, Query(namespace="default"))).items
        return {each["reason"]: each["note"] for each in found}


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    crds = [*capi_definition.definitions(), *nutanix_definition.definitions()]
    async with plane(crds=crds) as p:
        server = await EmbeddedServer.open(None, shared_pki(), clock=p.clock.now)
        capi = Capi.make(p.manager)
        deploy.install(p.manager, capi, [CLOUD])
        try:
            await p.start()
            yield Site(p, capi, server, server.client(field_manager="test"))
        finally:
            await p.stop()
            await server.close(drain_seconds=0.1)


@virtual
async def test_a_node_that_waits_brings_a_cloud_controller_manager() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await s.found(DEPLOYMENT)
        config = json.loads((await s.found(CONFIG_MAP))["data"]["nutanix_config.json"])
        assert config["prismCentral"]["address"] == "pc.example.com"
        assert config["prismCentral"]["credentialRef"] == {
            "kind": "Secret",
            "name": SECRET_NAME,
            "namespace": "kube-system",
        }
        assert config["ignoredNodeIPs"] == ["10.0.0.100"]
        assert "CloudControllerManagerApplied" in await s.events()


@virtual
async def test_a_cluster_whose_nodes_do_not_wait_gets_none() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.workload.create(node("cp-0", taints=(), provider_id="nutanix://1"), kind=NODE)
        assert await s.absent()


@virtual
async def test_an_annotation_keeps_it_away() -> None:
    async with site() as s:
        await s.have(cluster(**{MANAGED: "false"}), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        assert await s.absent()


@virtual
async def test_a_paused_cluster_and_one_that_is_deleted_are_left_alone() -> None:
    async with site() as s:
        paused = cluster()
        paused["spec"]["paused"] = True
        paused["metadata"]["finalizers"] = ["example.com/held"]
        await s.have(paused, infra(), secret())
        await s.connect()
        await s.join("cp-0")
        assert await s.absent()
        await s.plane.client.delete(Cluster, C)
        await s.plane.client.patch(Cluster, C, MergePatch({"spec": {"paused": False}}))
        assert await s.absent()


@virtual
async def test_somebody_else_s_is_respected_and_ours_gives_way_to_one_that_comes_later() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await s.found(DEPLOYMENT)
        await s.workload.create(theirs(), kind=DAEMON_SET)
        await s.join("cp-1")
        assert await s.absent()
        assert "nutanix-cloud-controller-manager" in (await s.events())["CloudControllerManagerRemoved"]
        await s.join("cp-2")
        assert await s.absent()


@virtual
async def test_what_somebody_deletes_comes_back() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await s.found(DEPLOYMENT)
        await s.initialise("cp-0")
        for kind, key in ((DEPLOYMENT, OURS), (CONFIG_MAP, OURS), (CLUSTER_ROLE, Key("", NAME))):
            await s.workload.delete(kind, key)
            await s.found(kind, key, timeout=1000)
        for kind in (SERVICE_ACCOUNT, DEPLOYMENT):
            await s.workload.delete(kind, OURS)
        await s.found(SERVICE_ACCOUNT, timeout=5)
        await s.found(DEPLOYMENT, timeout=5)


@virtual
async def test_ours_comes_back_when_the_one_of_somebody_else_has_gone() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await s.found(DEPLOYMENT)
        await s.initialise("cp-0")
        for kind, key in ((DEPLOYMENT, THEIRS), (DAEMON_SET, THEIRS)):
            await s.workload.create(theirs(), kind=kind)
            if kind is DAEMON_SET:
                await s.join("cp-1")  # a DaemonSet is noticed with the next Node
                await s.initialise("cp-1")
            assert await s.absent()
            await s.workload.delete(kind, key)
            await s.found(DEPLOYMENT, timeout=600)


@virtual
async def test_ours_comes_after_one_that_was_there_before_us_and_not_between_two_of_theirs() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.workload.create(theirs(), kind=DEPLOYMENT)
        await s.join("cp-0")
        await s.connect()
        await s.initialise("cp-0")
        assert await s.absent()
        await s.workload.delete(DEPLOYMENT, THEIRS)
        await asyncio.sleep(5)
        await s.workload.create(theirs(), kind=DEPLOYMENT)
        assert await s.absent()
        assert await s.events() == {}
        await s.workload.delete(DEPLOYMENT, THEIRS)
        await s.found(DEPLOYMENT)


@virtual
async def test_new_credentials_reach_the_workload_cluster_and_nothing_else_is_written() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        before = (await s.found(DEPLOYMENT))["metadata"]["resourceVersion"]
        await s.plane.client.patch(
            SECRET, Key("default", "creds"), MergePatch({"data": _encoded(secret("two")["stringData"])})
        )
        await asyncio.sleep(10)
        held = await s.workload.get(SECRET, Key("kube-system", SECRET_NAME))
        assert b'"two"' in base64.b64decode(held["data"]["credentials"])
        assert (await s.workload.get(DEPLOYMENT, OURS))["metadata"]["resourceVersion"] == before


def _encoded(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


@virtual
async def test_missing_credentials_are_reported_on_the_cluster_and_their_coming_goes_on() -> None:
    async with site() as s:
        await s.have(cluster(), infra())
        await s.connect()
        await s.join("cp-0")
        assert await s.absent()
        assert "default/creds does not exist" in (await s.events())["InvalidConfiguration"]
        await s.have(secret())
        await s.found(DEPLOYMENT, timeout=5)


@virtual
async def test_a_cluster_that_refuses_is_reported_and_tried_again() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect(Refusing(s.server.registry))
        await s.join("cp-0")
        assert "can't be applied" in (await s.events())["CloudControllerManagerNotApplied"]
        await s.connect()
        await s.found(DEPLOYMENT)


@virtual
async def test_addresses_for_services_come_from_an_annotation_of_the_cluster() -> None:
    async with site() as s:
        await s.have(cluster(**{POOL: "10.0.0.30-10.0.0.39"}), infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await s.found(DEPLOYMENT)
        config = json.loads((await s.found(CONFIG_MAP))["data"]["nutanix_config.json"])
        assert config["addressPools"] == {"default": "10.0.0.30-10.0.0.39"}
        rules = (await s.workload.get(CLUSTER_ROLE, Key("", NAME)))["rules"]
        assert any("services/status" in rule["resources"] for rule in rules)


async def _placed(s: Site, *, on_control_planes: bool) -> None:
    terms = [{"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    wanted = (None, affinity) if on_control_planes else ({"kubernetes.io/os": "linux"}, None)
    async with asyncio.timeout(60):
        while True:
            pod = (await s.found(DEPLOYMENT))["spec"]["template"]["spec"]
            if (pod.get("nodeSelector"), pod.get("affinity")) == wanted:
                return
            await asyncio.sleep(0.5)


@virtual
async def test_without_control_plane_nodes_it_runs_on_workers_and_moves_when_there_is_one() -> None:
    async with site() as s:
        await s.have(cluster(), infra(), secret())
        await s.connect()
        await s.join("worker-0")
        await _placed(s, on_control_planes=False)
        label = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
        await s.workload.patch(NODE, Key("", "worker-0"), MergePatch(label))
        await _placed(s, on_control_planes=True)


@virtual
async def test_with_a_kubeadm_control_plane_it_waits_for_its_nodes() -> None:
    async with site() as s:
        body = cluster()
        ref = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c"}
        body["spec"]["controlPlaneRef"] = ref
        await s.have(body, infra(), secret())
        await s.connect()
        await s.join("cp-0")
        await _placed(s, on_control_planes=True)
