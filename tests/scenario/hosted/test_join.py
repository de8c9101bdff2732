"""Simulated machines that join hosted control planes."""

from __future__ import annotations

from pathlib import Path

from capikit.handmade import HandmadePlane
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.clock import run_virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.object import bootstrap_token, config_maps
from homeport.sim.machine.workload.trust.authority import spki_hash
from homeport.sim.machine.workload.trust.rbac import kubeadm_rbac
from scenario.hosted.stage import DEPLOYMENT, Stage, stage
from unit.sim.machine.sim_kit import TOKEN, Secrets, Sim, join_data

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")


async def _admit_nodes(s: Stage, one: HandmadePlane) -> WorkloadCluster:
    """What whoever manages a hosted control plane puts into it."""
    (cluster,) = s.fleet.hosted.values()
    kind = {"apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration"}
    cluster.facts.configuration = {**kind, "kubernetesVersion": one.version}
    cluster.facts.endpoint = (one.address, one.port)
    await cluster.put([*config_maps(cluster.facts, cluster.pki), *kubeadm_rbac(cluster.facts)])
    await cluster.put([bootstrap_token({"token": TOKEN, "ttl": "1h"}, s.plane.clock.now())])
    await cluster.controllers.idle()
    return cluster


def _machines(s: Stage) -> Sim:
    return Sim(s.network, s.fleet, s.plane.clock, Secrets.make(s.plane.clock))


def _join(s: Stage, one: HandmadePlane, token: str = TOKEN) -> bytes:
    hashes = [spki_hash(one.issuer.certificate)]
    secrets = Secrets.make(s.plane.clock)
    return join_data(secrets, endpoint=f"{one.address}:{one.port}", hashes=hashes, token=token)


async def _is_ready(s: Stage, one: HandmadePlane, name: str) -> bool:
    node = await s.client(one).get(NODE, Key("", name))
    return condition.is_true(node["status"]["conditions"], "Ready")


def test_a_machine_joins_and_runs_pods(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore(), version="v1.30.2")
            await _admit_nodes(s, one)
            machines = _machines(s)
            console = await machines.boot("worker-0", _join(s, one))
            assert "This node has joined the cluster" in console, console
            client = s.client(one)
            node = await client.get(NODE, Key("", "worker-0"))
            assert condition.is_true(node["status"]["conditions"], "Ready")
            labels = {"app": "web"}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
            spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
            meta = {"name": "web", "namespace": "default"}
            await client.create({"metadata": meta, "spec": spec}, kind=DEPLOYMENT)
            await s.plane.settle(30)
            pods = (await client.list(POD)).items
            assert [pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["labels"].get("app")] == ["worker-0"] * 2
            assert all(pod["status"]["phase"] == "Running" for pod in pods)

    run_virtual(main())


def test_nodes_stay_over_restarts_of_the_control_plane_and_of_the_site(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore(), version="v1.30.2")
            await _admit_nodes(s, one)
            machines = _machines(s)
            await machines.boot("worker-0", _join(s, one))
            for pod in s.pods("one"):
                await s.plane.delete(POD, pod["metadata"]["name"])
            await s.plane.settle(60)
            assert await _is_ready(s, one, "worker-0")
            await s.leave()
            await s.enter()
            again = _machines(s)
            again._ids = machines._ids
            again.power_on("worker-0", again=True, address="10.0.0.11")
            await s.plane.settle(120)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "the control plane is back")
            await s.plane.until(lambda: _is_ready(s, one, "worker-0"), "the node is back")

    run_virtual(main())


def test_a_node_is_missed_while_the_control_plane_is_scaled_to_zero_and_found_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore(), version="v1.30.2")
            await _admit_nodes(s, one)
            await _machines(s).boot("worker-0", _join(s, one))
            for replicas in (0, 1):
                body = MergePatch({"spec": {"replicas": replicas}})
                await s.plane.client.patch(DEPLOYMENT, Key("default", "one"), body)
                await s.plane.settle(300)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "the control plane is back")
            await s.plane.until(lambda: _is_ready(s, one, "worker-0"), "the node is back")

    run_virtual(main())


def test_a_machine_with_a_wrong_token_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore(), version="v1.30.2")
            await _admit_nodes(s, one)
            console = await _machines(s).boot("worker-0", _join(s, one, "abcdef.0000000000000000"))
            assert "could not find a JWS signature" in console or "verify JWS signature" in console, console

    run_virtual(main())


def test_without_the_bootstrap_signer_nobody_can_join(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            made = HandmadePlane("one", s.etcd, await s.datastore(), version="v1.30.2")
            s.admit("one", made.prefix)
            await s.have(made.service())
            made.address = await s.address("one")
            secret, conf, deployment = made.objects()
            manager = deployment["spec"]["template"]["spec"]["containers"][1]
            manager["command"] = [each for each in manager["command"] if not each.startswith("--controllers")]
            await s.have(secret, conf, deployment)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is ready")
            await _admit_nodes(s, made)
            console = await _machines(s).boot("worker-0", _join(s, made))
            assert "could not find a JWS signature in the cluster-info ConfigMap" in console

    run_virtual(main())
