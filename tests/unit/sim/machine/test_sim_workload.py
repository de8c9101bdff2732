from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from homeport.api.meta import Resource
from homeport.apiserver.auth import certificate as certs
from homeport.client.errors import TooManyRequests
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.clock import parse_time
from homeport.runtime.testing import virtual
from homeport.sim.machine.fleet import describe
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.kind import (
    ATTACHMENT,
    BUDGET,
    CLAIM,
    DAEMON_SET,
    DEPLOYMENT,
    LEASE,
    NODE,
    POD,
    REQUEST,
    VOLUME,
)
from unit.sim.machine.sim_kit import Secrets, Sim, init_data, join_data, simulation


async def three(sim: Sim) -> None:
    await sim.cluster_up()
    for name in ("cp-1", "cp-2"):
        await sim.boot(name, join_data(sim.secrets, control_plane=True))


async def ready(sim: Sim, name: str) -> str:
    node = await sim.node(name)
    return str(next(each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"))


@virtual
async def test_heartbeats_renew_the_lease_of_a_node() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await asyncio.sleep(65)
        lease = await cluster.client().get(LEASE, Key("kube-node-lease", "cp-0"))
        assert sim.clock.now() - parse_time(lease["spec"]["renewTime"]) <= 10.5


@virtual
async def test_a_node_that_is_lost_is_unknown_and_tainted_until_it_comes_back() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        sim.power_off("md-0")
        await asyncio.sleep(30)
        assert await ready(sim, "md-0") == "True"
        await asyncio.sleep(30)
        assert await ready(sim, "md-0") == "Unknown"
        assert {taint["effect"] for taint in (await sim.node("md-0"))["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
        sim.power_on("md-0", again=True)
        await sim.fleet.settled()
        await asyncio.sleep(15)
        assert await ready(sim, "md-0") == "True"
        assert "taints" not in (await sim.node("md-0"))["spec"]


@virtual
async def test_a_partition_looks_like_a_lost_node() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        sim.network.partition("split", ["md-0"])
        await asyncio.sleep(60)
        assert await ready(sim, "md-0") == "Unknown"
        sim.network.heal("split")
        await asyncio.sleep(15)
        assert await ready(sim, "md-0") == "True"


@virtual
async def test_the_virtual_address_moves_when_its_holder_is_lost() -> None:
    async with simulation() as sim:
        await three(sim)
        sim.power_off("cp-0")
        with pytest.raises(OSError, match="no machine has the address"):
            sim.network.find("outside", "10.0.0.100", 6443)
        await asyncio.sleep(16)  # the lease of the lost one
        holder = sim.network.holder("10.0.0.100")
        assert holder is not None
        assert holder.name == "cp-1"
        assert sim.cluster.etcd.leader == "cp-1"


@virtual
async def test_losing_the_quorum_takes_the_cluster_down_until_a_member_is_back() -> None:
    async with simulation() as sim:
        await three(sim)
        cluster = sim.cluster
        sim.power_off("cp-0")
        assert len(cluster.serving()) == 2
        sim.power_off("cp-1")
        assert cluster.serving() == []
        with pytest.raises(ConnectionRefusedError):
            sim.network.find("outside", "10.0.0.13", 6443)
        with pytest.raises(EtcdError, match="no leader"):
            cluster.etcd.add("cp-9", "10.0.0.9")
        sim.power_on("cp-1", again=True)
        await sim.fleet.settled()
        await asyncio.sleep(16)
        assert len(cluster.serving()) == 2
        assert sim.network.find("outside", "10.0.0.100", 6443)[0].name in ("cp-1", "cp-2")


@virtual
async def test_a_minority_behind_a_partition_stops_serving_and_the_majority_goes_on() -> None:
    async with simulation() as sim:
        await three(sim)
        sim.network.partition("split", ["cp-0"])
        assert {plane.node for plane in sim.cluster.serving()} == {"cp-1", "cp-2"}
        sim.network.heal("split")
        assert len(sim.cluster.serving()) == 3


@virtual
async def test_a_removed_member_leaves_the_others_a_quorum() -> None:
    async with simulation() as sim:
        await three(sim)
        cluster = sim.cluster
        cluster.etcd.move_leader(cluster.etcd.members["cp-1"].id)
        assert cluster.etcd.leader == "cp-1"
        cluster.etcd.remove(cluster.etcd.members["cp-0"].id)
        sim.remove("cp-0")
        await sim.fleet.settled()
        await asyncio.sleep(20)
        assert {plane.node for plane in cluster.serving()} == {"cp-1", "cp-2"}
        sim.power_off("cp-1")
        assert cluster.serving() == []
        with pytest.raises(EtcdError):
            cluster.etcd.remove(cluster.etcd.members["cp-1"].id)


@virtual
async def test_the_last_control_plane_takes_the_cluster_with_it() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        sim.remove("cp-0")
        await asyncio.sleep(1)
        assert cluster.closed
        assert sim.fleet.clusters() == []
        assert sim.network.holder("10.0.0.100") is None


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    }


async def running(sim: Sim) -> list[Any]:
    page = await sim.cluster.client().list(POD, Query(namespace="default"))
    return [pod for pod in page.items if pod["status"].get("phase") == "Running"]


@virtual
async def test_a_drain_moves_pods_and_honours_budgets() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        for name in ("md-0", "md-1"):
            await sim.boot(name, join_data(sim.secrets))
        client = cluster.client()
        await client.create(deployment(2), kind=DEPLOYMENT)
        await client.create(
            {
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
            },
            kind=BUDGET,
        )
        await cluster.controllers.idle()
        assert {pod["spec"]["nodeName"] for pod in await running(sim)} == {"md-0", "md-1"}
        await client.patch(NODE, Key("", "md-0"), MergePatch({"spec": {"unschedulable": True}}))
        victim = next(pod for pod in await running(sim) if pod["spec"]["nodeName"] == "md-0")
        key = Key("default", victim["metadata"]["name"])
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": "default"},
        }
        with pytest.raises(TooManyRequests):
            await client.create(eviction, kind=POD, key=key, subresource="eviction")
        await client.patch(BUDGET, Key("default", "web"), MergePatch({"spec": {"minAvailable": 1}}))
        await cluster.controllers.idle()
        await client.create(eviction, kind=POD, key=key, subresource="eviction")
        await cluster.controllers.idle()
        pods = await running(sim)
        assert [pod["spec"]["nodeName"] for pod in pods] == ["md-1", "md-1"]
        assert (await client.get(DEPLOYMENT, Key("default", "web")))["status"]["availableReplicas"] == 2


@virtual
async def test_pods_and_lease_of_a_deleted_node_go() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        client = cluster.client()
        sim.remove("md-0")
        await client.delete(NODE, Key("", "md-0"))
        await cluster.controllers.idle()
        await asyncio.sleep(15)
        pods = (await client.list(POD, Query(namespace="kube-system"))).items
        assert not [pod for pod in pods if pod["spec"].get("nodeName") == "md-0"]
        leases = (await client.list(LEASE, Query(namespace="kube-node-lease"))).items
        assert [lease["metadata"]["name"] for lease in leases] == ["cp-0"]
        assert len(sim.fleet.heart) == 1


@virtual
async def test_pods_leave_a_node_that_stays_lost() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        for name in ("md-0", "md-1"):
            await sim.boot(name, join_data(sim.secrets))
        await cluster.client().create(deployment(2), kind=DEPLOYMENT)
        await cluster.controllers.idle()
        sim.power_off("md-0")
        await asyncio.sleep(400)
        live = [pod for pod in await running(sim) if not pod["metadata"].get("deletionTimestamp")]
        assert [pod["spec"]["nodeName"] for pod in live] == ["md-1", "md-1"]


@virtual
async def test_a_scaled_down_or_deleted_deployment_takes_its_pods_along() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        client = cluster.client()
        await client.create(deployment(3), kind=DEPLOYMENT)
        await cluster.controllers.idle()
        assert len(await running(sim)) == 3
        await client.patch(DEPLOYMENT, Key("default", "web"), MergePatch({"spec": {"replicas": 1}}))
        await cluster.controllers.idle()
        assert len(await running(sim)) == 1
        await client.delete(DEPLOYMENT, Key("default", "web"))
        await cluster.controllers.idle()
        assert await running(sim) == []


@virtual
async def test_a_rebooted_control_plane_serves_again_without_joining_twice() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        sim.power_off("cp-0")
        assert cluster.serving() == []
        sim.power_on("cp-0", again=True)
        await sim.fleet.settled()
        await asyncio.sleep(16)
        assert len(cluster.serving()) == 1
        assert sim.console("cp-0").count("initialized successfully") == 1
        assert sim.network.find("outside", "10.0.0.100", 6443)[0].name == "cp-0"


@virtual
async def test_heartbeats_of_hours_do_not_pile_up() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await asyncio.sleep(2 * 3600)
        assert cluster.server.store.stats().history_changes < 100


@virtual
async def test_a_node_tells_its_new_address_and_never_a_virtual_one() -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        sim.fleet.readdressed(sim.id("md-0"), ("10.0.0.200",))
        await asyncio.sleep(310)
        for name, address in (("md-0", "10.0.0.200"), ("cp-0", "10.0.0.11")):
            addresses = (await sim.node(name))["status"]["addresses"]
            assert [each["address"] for each in addresses if each["type"] == "InternalIP"] == [address]


@virtual
async def test_two_clusters_with_one_address_are_a_conflict_and_machines_of_the_first_find_the_second() -> None:
    async with simulation() as sim:
        first = await sim.cluster_up()
        other = Secrets.make(sim.clock)
        console = await sim.boot("other-0", init_data(other))
        assert sim.network.conflicts()[0].address == "10.0.0.100"
        assert len(sim.fleet.clusters()) == 2
        assert not first.closed
        assert "initialized successfully" in console  # the newest claim answers, as on a real segment
        console = await sim.boot("md-0", join_data(sim.secrets))
        assert "could not find a JWS signature" in console


@virtual
async def test_requests_of_kubelets_are_approved_signed_and_swept_away() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        client = cluster.client()
        (request,) = (await client.list(REQUEST)).items
        assert request["spec"]["username"] == "system:bootstrap:abcdef"
        assert request["status"]["conditions"][0]["type"] == "Approved"
        signed = x509.load_pem_x509_certificate(base64.b64decode(request["status"]["certificate"]))
        signed.verify_directly_issued_by(cluster.pki.issuer.certificate)
        assert signed.subject.rfc4514_string() == "CN=system:node:md-0,O=system:nodes"
        await asyncio.sleep(3700)
        assert (await client.list(REQUEST)).items == []


@virtual
async def test_the_request_of_a_user_waits_for_somebody_to_approve_it() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        client = cluster.client()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
        csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(certs.make_key(), hashes.SHA256())
        spec = {
            "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
            "expirationSeconds": 3600,
        }
        await client.create({"metadata": {"name": "jane"}, "spec": spec}, kind=REQUEST)
        await cluster.controllers.idle()
        assert "certificate" not in (await client.get(REQUEST, Key("", "jane")))["status"]
        verdict = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]}}
        await client.patch(REQUEST, Key("", "jane"), MergePatch(verdict), subresource="approval")
        await cluster.controllers.idle()
        found = await client.get(REQUEST, Key("", "jane"))
        signed = x509.load_pem_x509_certificate(base64.b64decode(found["status"]["certificate"]))
        assert (signed.not_valid_after_utc - signed.not_valid_before_utc).total_seconds() == 3900


def claimed(name: str, volume: str) -> list[tuple[dict[str, Any], Resource]]:
    """A volume of a CSI driver, and a claim that is bound to it."""
    meta = {"name": name, "namespace": "default"}
    csi = {"driver": "csi.nutanix.com", "volumeHandle": volume}
    capacity = {"storage": "1Gi"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": capacity}, "volumeName": volume}
    spec = {"capacity": capacity, "accessModes": ["ReadWriteOnce"], "csi": csi, "claimRef": meta}
    return [({"metadata": {"name": volume}, "spec": spec}, VOLUME), ({"metadata": meta, "spec": claim}, CLAIM)]


def pod_with(claim: str, node: str) -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    return {"metadata": {"name": f"with-{claim}", "namespace": "default"}, "spec": spec}


@virtual
async def test_volumes_are_attached_with_their_pods_and_detached_after_them() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        client = cluster.client()
        await cluster.put(claimed("data", "pv-1"))
        await client.create(pod_with("data", "md-0"), kind=POD)
        await cluster.controllers.idle()
        (attachment,) = (await client.list(ATTACHMENT)).items
        assert attachment["spec"]["nodeName"] == "md-0"
        assert attachment["spec"]["source"] == {"persistentVolumeName": "pv-1"}
        assert attachment["status"]["attached"] is True
        await client.delete(POD, Key("default", "with-data"))
        await cluster.controllers.idle()
        assert (await client.list(ATTACHMENT)).items == []


@virtual
async def test_a_volume_stays_attached_to_a_node_that_does_not_answer_until_the_node_is_gone() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        client = cluster.client()
        await cluster.put(claimed("data", "pv-1"))
        await client.create(pod_with("data", "md-0"), kind=POD)
        await cluster.controllers.idle()
        sim.power_off("md-0")
        await client.delete(POD, Key("default", "with-data"), grace_seconds=0)
        await cluster.controllers.idle()
        assert len((await client.list(ATTACHMENT)).items) == 1
        await client.delete(NODE, Key("", "md-0"))
        await cluster.controllers.idle()
        assert (await client.list(ATTACHMENT)).items == []


def cni() -> dict[str, Any]:
    labels = {"app": "cni"}
    mount = {"name": "conf", "mountPath": "/etc/cni/net.d"}
    pod = {
        "hostNetwork": True,
        "containers": [{"name": "c", "image": "i", "volumeMounts": [mount]}],
        "volumes": [{"name": "conf", "hostPath": {"path": "/etc/cni/net.d"}}],
        "tolerations": [{"operator": "Exists"}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"metadata": {"name": "cni", "namespace": "kube-system"}, "spec": spec}


@virtual
async def test_without_a_network_for_pods_nodes_are_not_ready_until_there_is_one() -> None:
    async with simulation(images=lambda machine: replace(describe(machine), cni=False)) as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))

        async def ready() -> dict[str, Any]:
            node = await sim.node("md-0")
            return next(each for each in node["status"]["conditions"] if each["type"] == "Ready")

        await asyncio.sleep(60)
        assert (await ready())["status"] == "False"
        assert "cni plugin not initialized" in (await ready())["message"]
        assert {"not-ready"} == {each["key"].rpartition("/")[2] for each in (await sim.node("md-0"))["spec"]["taints"]}
        await cluster.client().create(cni(), kind=DAEMON_SET)
        await asyncio.sleep(20)
        assert (await ready())["status"] == "True"
        assert not (await sim.node("md-0"))["spec"].get("taints")
