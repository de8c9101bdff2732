"""Images and add-ons of Butler on `homeport up --sim`, with kubectl."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import Cluster

pytestmark = [pytest.mark.timeout(300)]

SCHEMATIC = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
OBJECTS = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata: {name: nutanix, namespace: butler-system}
spec:
  type: nutanix
  nutanix:
    credentialsRef: {name: nutanix}
    prismCentral: {address: prism-central.example.com}
    cluster: {name: cluster-01}
    subnet: {name: workload-subnet}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata: {name: harvester, namespace: butler-system}
spec:
  type: harvester
  harvester: {credentialsRef: {name: harvester}, networkName: default/workloads}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata: {name: shop, namespace: butler-tenants}
spec: {providerConfigRef: {name: harvester}, workers: {replicas: 1}}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantAddon
metadata: {name: metrics, namespace: butler-tenants}
spec: {clusterRef: {name: shop}, addon: metrics-server}
"""
IMAGE = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ImageSync
metadata: {{name: {name}, namespace: butler-system}}
spec:
  providerConfigRef: {{name: {name}}}
  factoryRef: {{schematicID: {schematic}, version: v1.9.3}}
"""


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[Cluster]:
    data = tmp_path / "data"

    def homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    done = homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim")
    assert done.returncode == 0, done.stdout + done.stderr
    made = Cluster("plane", kubectl, data / "kubeconfig", tmp_path)
    secret = ("create", "secret", "generic", "-n", "butler-system")
    made.ok(*secret, "nutanix", "--from-literal=NUTANIX_USER=admin", "--from-literal=NUTANIX_PASSWORD=password")
    made.ok(*secret, "harvester", f"--from-file=kubeconfig={data}/harvester-kubeconfig.yaml")
    yield made
    homeport("down")


def test_images_of_the_factory_and_an_add_on_arrive(plane: Cluster) -> None:
    images = [IMAGE.format(name=name, schematic=SCHEMATIC) for name in ("nutanix", "harvester")]
    plane.ok("apply", "-f", "-", stdin="---".join([OBJECTS, *images]))
    plane.ok("wait", "--for=condition=Ready", "imagesync", "--all", "-n", "butler-system", "--timeout=120s")
    refs = plane.ok("get", "imagesync", "-A", "-o", "jsonpath={.items[*].status.providerImageRef}").split()
    assert len(refs) == 2
    assert any(each.startswith("default/talos-v1.9.3-nocloud-amd64-") for each in refs)
    plane.ok("wait", "--for=condition=Ready", "ta/metrics", "-n", "butler-tenants", "--timeout=200s")
    assert "Installed" in plane.ok("get", "ta", "-n", "butler-tenants")
    plane.ok("delete", "ta", "metrics", "-n", "butler-tenants", "--timeout=60s")
    assert "builtin" in plane.ok("get", "ad", "cilium", "-o", "yaml")
