"""The complete manifest of the guide, applied by kubectl to `homeport up --sim`, and deleted again the same way."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(300)]

NAME = "my-nutanix-cluster"
CCM_IMAGE = "registry.example.com/mirror/homeport:1"
_KINDS = ("clusters", "nutanixclusters", "machines", "nutanixmachines", "kubeadmcontrolplanes", "machinedeployments")


def _homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "homeport", *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[Cluster]:
    data = tmp_path / "data"
    more = ("--data", str(data), "--ccm-image", CCM_IMAGE)
    done = _homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    yield Cluster("ours", kubectl, data / "kubeconfig", tmp_path)
    _homeport("down", "--data", str(data))


def _manifest() -> str:
    """Ours, which says the same as the guide; or the file that HOMEPORT_REFERENCE names, as it stands."""
    reference = os.environ.get("HOMEPORT_REFERENCE", "")
    if reference:
        return Path(reference).read_text()
    return yaml.safe_dump_all(manifest.cluster_objects())


def _wait(cluster: Cluster, *arguments: str) -> None:
    """kubectl gives up after 30 s each time: less than the runner of commands has patience for."""
    for _ in range(7):
        done = cluster.run("wait", "--timeout=30s", *arguments)
        if done.code == 0:
            return
    shown = cluster.run("get", "clusters,machines,nutanixclusters,nutanixmachines,events", "-o", "wide").out
    raise AssertionError(f"kubectl wait {' '.join(arguments)}: {done}\n{shown}")


def test_the_manifest_of_the_guide_gives_a_cluster_that_works_and_deleting_it_leaves_nothing(
    plane: Cluster, tmp_path: Path
) -> None:
    text = _manifest()
    plane.ok("apply", "-f", "-", stdin=text)
    _wait(plane, "--for=jsonpath={.status.phase}=Provisioned", f"cluster/{NAME}")
    _wait(plane, "--for=condition=Available", f"cluster/{NAME}")
    _wait(plane, "--for=jsonpath={.status.readyReplicas}=3", f"kubeadmcontrolplane/{NAME}-kcp")
    _wait(plane, "--for=jsonpath={.status.readyReplicas}=3", f"machinedeployment/{NAME}-md-0")
    phases = plane.ok("get", "machines", "-o", "jsonpath={.items[*].status.phase}").split()
    assert phases == ["Running"] * 6

    secret = plane.ok("get", "secret", f"{NAME}-kubeconfig", "-o", "jsonpath={.data.value}")
    kubeconfig = tmp_path / "workload"
    kubeconfig.write_bytes(base64.b64decode(secret))
    workload = Cluster("workload", plane.kubectl, kubeconfig, tmp_path)
    nodes = json.loads(workload.ok("get", "nodes", "-o", "json"))["items"]
    assert len(nodes) == 6
    assert all(node["spec"]["providerID"].startswith("nutanix://") for node in nodes)

    manager = ("deployment/homeport-cloud-controller-manager", "-n", "kube-system", "-o", "yaml")
    assert f"image: {CCM_IMAGE}" in workload.ok("get", *manager)

    plane.ok("delete", "--wait=false", "-f", "-", stdin=text)
    _wait(plane, "--for=delete", f"cluster/{NAME}")
    _wait(plane, "--for=delete", f"nutanixcluster/{NAME}")
    _wait(plane, "--for=delete", "secret/nutanix-credentials")
    for kind in _KINDS:
        assert plane.ok("get", kind, "-A", "-o", "name") == ""
