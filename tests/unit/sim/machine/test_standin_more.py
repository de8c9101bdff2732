"""Smaller stand-ins: Calico's operator, ingress controllers, metrics-server; and how other Pods are reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import describe
from homeport.sim.machine.image import Image
from homeport.sim.machine.workload.kind import CONFIG_MAP, DAEMON_SET, DEPLOYMENT, NAMESPACE, POD, SERVICE, Json
from homeport.sim.machine.workload.pod.container import Program, Run
from homeport.sim.machine.workload.standin.calico import INSTALLATION
from homeport.sim.machine.workload.standin.certmanager.injector import API_SERVICE
from homeport.sim.machine.workload.standin.ingress import INGRESS, INGRESS_CLASS
from homeport.sim.machine.workload.standin.mark import SIMULATED
from unit.sim.machine.sim_kit import Sim, simulation
from unit.sim.machine.standin_kit import (
    DEFINITION,
    EVERYWHERE,
    VALIDATING,
    addresses,
    advertisement,
    balanced,
    definition,
    install_metallb,
    pool,
    settle,
    webhook,
    workers,
    workload,
)

NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")


def without_network(machine: guest.Machine) -> Image:
    return replace(describe(machine), cni=False)


async def node_ready(sim: Sim, name: str) -> bool:
    node = await sim.node(name)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


@virtual
async def test_calicos_operator_brings_the_network_when_there_is_an_installation() -> None:
    async with simulation(images=without_network) as sim:
        cluster = await sim.cluster_up()
        space = "tigera-operator"
        pod = {"hostNetwork": True, "tolerations": EVERYWHERE}
        operator = workload("tigera-operator", space, "quay.io/tigera/operator:v1.38.3", pod=pod)
        await cluster.put(
            [({"metadata": {"name": space}}, NAMESPACE), (definition(INSTALLATION, status=True), DEFINITION)]
        )
        await cluster.put([(operator, DEPLOYMENT)])
        await settle(cluster, 60)
        assert not await node_ready(sim, "cp-0")
        await cluster.put([({"metadata": {"name": "default"}, "spec": {}}, INSTALLATION)])
        await settle(cluster, 60)
        assert await node_ready(sim, "cp-0")
        found = await cluster.client().get(INSTALLATION, Key("", "default"))
        assert {each["type"]: each["status"] for each in found["status"]["conditions"]}["Ready"] == "True"
        node = await cluster.client().get(DAEMON_SET, Key("calico-system", "calico-node"))
        assert node["status"]["numberReady"] == 1
        await cluster.client().delete(INSTALLATION, Key("", "default"))
        await settle(cluster)
        with pytest.raises(NotFound):
            await cluster.client().get(DAEMON_SET, Key("calico-system", "calico-node"))


@virtual
async def test_an_ingress_has_the_address_of_its_controller() -> None:
    async with simulation() as sim:
        cluster = await workers(sim, "md-0")
        await install_metallb(cluster)
        await cluster.put([pool("main", "10.0.0.200/32"), advertisement()])
        space = "ingress-nginx"
        port = {"containerPort": 8443, "name": "webhook"}
        image = "registry.example.com/ingress-nginx/controller:v1.13.0"
        hook = {"name": "ingress-nginx-controller-admission", "namespace": space}
        ports = [{"port": 80, "name": "http"}]
        front = {"type": "LoadBalancer", "selector": {"app": "ingress"}, "ports": ports}
        rule = {"apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "resources": ["ingresses"]}
        await cluster.put([({"metadata": {"name": space}}, NAMESPACE)])
        await cluster.put(
            [
                (workload("ingress", space, image, container={"ports": [port]}), DEPLOYMENT),
                ({"metadata": {"name": "ingress", "namespace": space}, "spec": front}, SERVICE),
                (
                    {
                        "metadata": hook,
                        "spec": {"selector": {"app": "ingress"}, "ports": [{"port": 443, "targetPort": "webhook"}]},
                    },
                    SERVICE,
                ),
                ({"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}, INGRESS_CLASS),
                ({"metadata": {"name": "hook"}, "webhooks": [webhook("v.example.com", hook, "/x", rule)]}, VALIDATING),
            ]
        )
        await settle(cluster)
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        for name, kind in (("mine", "nginx"), ("other", "other")):
            spec = {"ingressClassName": kind, "defaultBackend": backend}
            await cluster.put([({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, INGRESS)])
        await settle(cluster)
        mine = await cluster.client().get(INGRESS, Key("default", "mine"))
        assert mine["status"]["loadBalancer"]["ingress"] == [{"ip": "10.0.0.200"}]
        other = await cluster.client().get(INGRESS, Key("default", "other"))
        assert not (other["status"].get("loadBalancer") or {}).get("ingress")


@virtual
async def test_metrics_server_serves_usage_while_it_runs() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        client = cluster.client()
        with pytest.raises(NotFound):
            await client.list(NODE_METRICS)
        reference = {"name": "metrics-server", "namespace": "kube-system"}
        spec: Json = {"group": "metrics.k8s.io", "version": "v1beta1", "service": reference}
        spec |= {"groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True}
        await cluster.put([({"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec}, API_SERVICE)])
        image = "registry.example.com/metrics-server/metrics-server:v0.8.0"
        asked = {"resources": {"requests": {"cpu": "1", "memory": "400Mi"}}}
        await cluster.put([(workload("metrics-server", "kube-system", image, container=asked), DEPLOYMENT)])
        await settle(cluster)
        (node,) = (await client.list(NODE_METRICS)).items
        assert node.name == "cp-0"
        assert node["usage"]["cpu"].endswith("m")
        found = await client.list(POD_METRICS, Query(namespace="kube-system", labels="app=metrics-server"))
        assert found.items[0]["containers"][0]["usage"] == {"cpu": "250m", "memory": "102400Ki"}
        service = await client.get(API_SERVICE, Key("", "v1beta1.metrics.k8s.io"))
        assert service["status"]["conditions"][0]["status"] == "True"
        first = node["timestamp"]
        await settle(cluster, 90)
        assert (await client.list(NODE_METRICS)).items[0]["timestamp"] > first
        stopped = MergePatch({"spec": {"replicas": 0}})
        await client.patch(DEPLOYMENT, Key("kube-system", "metrics-server"), stopped)
        await settle(cluster, 40)
        with pytest.raises(NotFound):
            await client.list(NODE_METRICS)


@virtual
async def test_pods_tell_whether_something_runs_for_their_image() -> None:
    async def run(program: Program) -> None:
        await program.client.close()

    def programs(container: Mapping[str, Any]) -> Run | None:
        return run if container["image"] == "real" else None

    async with simulation(programs=programs) as sim:
        cluster = await sim.cluster_up()
        for name, image in (("unknown", "example.com/chart/app:1"), ("real", "real"), ("metrics", "metrics-server:1")):
            await cluster.put([(workload(name, "default", image), DEPLOYMENT)])
        await settle(cluster)

        async def status(name: str) -> Json:
            (pod,) = (await cluster.client().list(POD, Query(namespace="default", labels=f"app={name}"))).items
            found: Json = pod["status"]
            return found

        def condition(status: Json) -> Json:
            return next(each for each in status["conditions"] if each["type"] == SIMULATED)

        statuses = {name: await status(name) for name in ("unknown", "real", "metrics")}
        found = {name: condition(each) for name, each in statuses.items()}
        assert {name: (each["status"], each["reason"]) for name, each in found.items()} == {
            "unknown": ("True", "NoProgram"),
            "real": ("False", "Program"),
            "metrics": ("True", "StandIn"),
        }
        assert "only appear to run" in found["unknown"]["message"]
        # The column STATUS of `kubectl get pods` has the reason if there is one.
        shown = {name: each.get("reason", each["phase"]) for name, each in statuses.items()}
        assert shown == {"unknown": "Simulated", "real": "Running", "metrics": "Running"}


@virtual
async def test_kube_vip_gives_services_addresses_of_its_ranges_and_announces_them() -> None:
    async with simulation() as sim:
        cluster = await workers(sim, "md-0")
        env = [{"name": "svc_enable", "value": "true"}]
        pod = {"hostNetwork": True, "tolerations": EVERYWHERE, "nodeSelector": {"kubernetes.io/hostname": "md-0"}}
        image = "ghcr.io/kube-vip/kube-vip:v1.0.0"
        await cluster.put(
            [(workload("kube-vip-ds", "kube-system", image, container={"env": env}, pod=pod), DAEMON_SET)]
        )
        await cluster.put([balanced("asking", loadBalancerIP="10.0.0.230"), balanced("waiting")])
        await settle(cluster)
        assert await addresses(cluster, "asking") == ["10.0.0.230"]
        holder = sim.network.holder("10.0.0.230")
        assert holder is not None
        assert holder.name == "md-0"
        assert await addresses(cluster, "waiting") == []
        ranges = {"range-global": "10.0.0.240-10.0.0.240"}
        provider = workload(
            "kube-vip-cloud-provider", "kube-system", "ghcr.io/kube-vip/kube-vip-cloud-provider:v0.0.12"
        )
        config = {"metadata": {"name": "kubevip", "namespace": "kube-system"}, "data": ranges}
        await cluster.put([(config, CONFIG_MAP), (provider, DEPLOYMENT), balanced("late")])
        await settle(cluster)
        given = [await addresses(cluster, name) for name in ("waiting", "late")]
        assert sorted(given) == [[], ["10.0.0.240"]]
