"""Add-ons of simulated clusters as their user meets them, with real kubectl."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeport.api.meta import Resource
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT, Json
from homeport.sim.machine.workload.standin.certmanager.injector import API_SERVICE
from scenario.harvester.site import harvester_site
from scenario.harvester.test_csi import started as harvester_started
from scenario.nutanix import manifest as nutanix_manifest
from scenario.nutanix.csi import CLASS, Csi
from scenario.nutanix.site import nutanix_site
from unit.sim.machine.sim_kit import simulation
from unit.sim.machine.standin_kit import EVERYWHERE, advertisement, install_metallb, pool, workers, workload
from unit.sim.machine.test_standin_certmanager import install as install_certmanager

pytestmark = [pytest.mark.timeout(240)]

Kubectl = Callable[..., Awaitable[str]]
THEIR_CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


def using(kubectl: str, cluster: WorkloadCluster, folder: Path) -> Kubectl:
    """Runs kubectl as the cluster's administrator. Manifests are given as objects."""
    config = folder / "kubeconfig"
    config.write_text(cluster.pki.client_kubeconfig(cluster.server.url, "admin", ("system:masters",)))

    async def run(*words: str, apply: tuple[Json, ...] = ()) -> str:
        process = await asyncio.create_subprocess_exec(
            kubectl,
            f"--kubeconfig={config}",
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate(yaml.safe_dump_all(apply).encode())
        assert process.returncode == 0, error.decode()
        return out.decode()

    return run


def kind(body: Json, resource: Resource) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


async def test_a_service_gets_an_address_of_metallb(kubectl: str, tmp_path: Path) -> None:
    async with simulation() as sim:
        cluster = await workers(sim, "md-0")
        run = using(kubectl, cluster, tmp_path)
        await install_metallb(cluster)
        pods = workload("web", "default", "web", pod={"hostNetwork": True, "tolerations": EVERYWHERE})
        objects = (kind(*pool("main", "10.0.0.200-10.0.0.210")), kind(*advertisement()), kind(pods, DAEMON_SET))
        await run("apply", "-f", "-", apply=objects)
        await run("rollout", "status", "daemonset/web", "--timeout=60s")
        await run("create", "service", "loadbalancer", "web", "--tcp=80:80")
        await run(
            "wait", "service/web", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}=10.0.0.200", "--timeout=60s"
        )
        assert "10.0.0.200" in await run("get", "service", "web")
        assert "Assigned IP" in await run("describe", "service", "web")


async def test_a_certificate_becomes_ready(kubectl: str, tmp_path: Path) -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        run = using(kubectl, cluster, tmp_path)
        await install_certmanager(cluster)
        meta = {"apiVersion": "cert-manager.io/v1", "metadata": {"name": "web", "namespace": "default"}}
        issuer = {**meta, "kind": "Issuer", "spec": {"selfSigned": {}}}
        spec = {"secretName": "web-tls", "dnsNames": ["web.example.com"], "issuerRef": {"name": "web"}}
        await run("apply", "-f", "-", apply=(issuer, {**meta, "kind": "Certificate", "spec": spec}))
        await run("wait", "certificate/web", "--for=condition=Ready", "--timeout=60s")
        assert set(json.loads(await run("get", "secret", "web-tls", "-o", "json"))["data"]) == {
            "ca.crt",
            "tls.crt",
            "tls.key",
        }


async def test_kubectl_top_shows_nodes_and_pods(kubectl: str, tmp_path: Path) -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        run = using(kubectl, cluster, tmp_path)
        reference = {"name": "metrics-server", "namespace": "kube-system"}
        spec: Json = {"group": "metrics.k8s.io", "version": "v1beta1", "service": reference}
        spec |= {"groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True}
        service = kind({"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec}, API_SERVICE)
        server = workload("metrics-server", "kube-system", "registry.example.com/metrics-server/metrics-server:v0.8.0")
        await run("apply", "-f", "-", apply=(service, kind(server, DEPLOYMENT)))
        await run("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout=60s")
        assert "cp-0" in await run("top", "nodes")
        assert "metrics-server" in await run("top", "pods", "-n", "kube-system")


def claim(storage: str) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "data", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


async def bind_and_delete(run: Kubectl, storage: str, volumes: Callable[[], Awaitable[list[Any]]]) -> None:
    before = await volumes()
    await run("apply", "-f", "-", apply=(claim(storage),))
    await run("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=100s")
    assert len(await volumes()) == len(before) + 1
    volume = await run("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
    await run("delete", "pvc", "data", "--timeout=60s")
    await run("wait", f"pv/{volume}", "--for=delete", "--timeout=60s")
    assert await volumes() == before


async def test_a_claim_is_a_volume_group_in_prism_until_it_is_deleted(kubectl: str, tmp_path: Path) -> None:
    async with nutanix_site() as site:
        await site.have(*nutanix_manifest.cluster_objects("one", 1, 1))
        await site.running("one", 1, 1)
        csi = Csi(site)
        await csi.install()

        async def volumes() -> list[Any]:
            return [each.name for each in csi.groups()]

        await bind_and_delete(using(kubectl, csi.cluster, tmp_path), CLASS, volumes)


async def test_a_claim_is_a_claim_in_harvester_until_it_is_deleted(kubectl: str, tmp_path: Path) -> None:
    async with harvester_site() as site:
        cluster = await harvester_started(site)

        async def volumes() -> list[Any]:
            return sorted(each.name for each in (await site.infra.list(THEIR_CLAIM)).items)

        await bind_and_delete(using(kubectl, cluster, tmp_path), "harvester", volumes)
