"""Add-ons of `homeport up --sim` as kubectl shows them: Ready in order, over a crash, upgraded and removed."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cluster import Cluster
from homeport.app.plane.instance import read_instance

pytestmark = [pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = (ROOT / "examples/02-cluster/cluster.yaml").read_text().replace("replicas: 3", "replicas: 1")
ADDONS = (ROOT / "examples/07-addons/addons.yaml").read_text()
# What users of the add-ons do: a volume, a certificate, a Service with an address.
USE = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: nutanix-volume, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers: [{name: c, image: example/c, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, dnsNames: [web.example.com], issuerRef: {name: self}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}]}
"""
NAMES = ("cilium", "metallb", "cert-manager", "nutanix-csi")


@dataclass
class Plane:
    data: Path
    kubectl: str

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def up(self) -> None:
        done = self.homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim=prism")
        assert done.returncode == 0, done.stdout + done.stderr

    def kill(self) -> None:
        instance = read_instance(self.data)
        assert instance is not None
        process = os.pidfd_open(instance.pid)
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            assert select.select([process], [], [], 30)[0], "the plane does not end"
        finally:
            os.close(process)

    @property
    def management(self) -> Cluster:
        return Cluster("management", self.kubectl, self.data / "kubeconfig", self.data)

    def workload(self) -> Cluster:
        encoded = self.management.ok("get", "secret", "harbour-kubeconfig", "-o", "jsonpath={.data.value}")
        path = self.data / "harbour-kubeconfig.yaml"
        path.write_bytes(base64.b64decode(encoded))
        return Cluster("harbour", self.kubectl, path, self.data)


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[Plane]:
    made = Plane(tmp_path / "data", kubectl)
    yield made
    made.homeport("down")


def test_add_ons_become_ready_survive_a_crash_are_upgraded_and_removed(plane: Plane) -> None:
    plane.up()
    management = plane.management
    management.ok("apply", "-f", "-", stdin=CLUSTER)
    management.ok("apply", "-f", "-", stdin=ADDONS)
    for name in NAMES:
        management.ok("wait", "--for=condition=Ready", f"clusteraddon/{name}", "--timeout=180s")
    workload = plane.workload()
    agents = json.loads(workload.ok("get", "daemonset", "cilium", "-n", "kube-system", "-o", "json"))
    assert agents["metadata"]["labels"]["addons.homeport.dev/simulated"] == "true"
    assert agents["status"]["numberReady"] == 3
    records = workload.ok("get", "secrets", "-A", "-l", "owner=helm", "-o", "name").split()
    assert len(records) == 4

    workload.ok("apply", "-f", "-", stdin=USE)
    workload.ok("wait", "--for=condition=Ready", "pod/user", "--timeout=60s")
    workload.ok("wait", "--for=condition=Ready", "certificate/web", "--timeout=60s")
    workload.ok("wait", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "service/web", "--timeout=60s")
    workload.ok("delete", "pod/user", "pvc/data", "certificate/web", "service/web", "--timeout=60s")

    plane.kill()
    plane.up()
    management = plane.management
    management.ok("patch", "clusteraddon", "cilium", "--type=merge", "-p", '{"spec":{"version":"1.20.0"}}')
    management.ok("wait", "--for=jsonpath={.status.version}=1.20.0", "clusteraddon/cilium", "--timeout=120s")
    for name in NAMES:
        management.ok("wait", "--for=condition=Ready", f"clusteraddon/{name}", "--timeout=120s")
    # The crash and the restart changed nothing: one more revision of what was upgraded, and none of the others.
    workload = plane.workload()
    records = workload.ok("get", "secrets", "-A", "-l", "owner=helm", "-o", "name").split()
    assert len(records) == 5

    management.ok("delete", "clusteraddon", "--all", "--timeout=120s")
    assert workload.ok("get", "secrets", "-A", "-l", "owner=helm", "-o", "name") == ""
    left = workload.ok("get", "deployments,daemonsets", "-A", "-l", "addons.homeport.dev/simulated", "-o", "name")
    assert left == ""
    management.ok("delete", "cluster", "harbour", "--timeout=120s")


def test_a_mistake_is_refused_with_what_was_meant(plane: Plane) -> None:
    plane.up()
    wrong = ADDONS.replace("addon: metallb", "addon: metalb").replace("[10.0.0.240-10.0.0.250]", "[]")
    refused = plane.management.run("apply", "-f", "-", stdin=wrong)
    assert refused.code != 0
    assert "did you mean metallb?" in refused.err
    missing = plane.management.run("apply", "-f", "-", stdin=ADDONS.replace("[10.0.0.240-10.0.0.250]", "[]"))
    assert "spec.parameters.addresses: Required value: add-on metallb needs it" in missing.err
