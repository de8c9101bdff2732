"""`homeport bootstrap`: killed at its steps and run again, it makes one management cluster and moves the plane there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import Cluster
from e2e.conftest import homeport

pytestmark = [pytest.mark.timeout(900)]

CONFIG = """
provider: harvester
cluster: {{name: mgmt, topology: single-node, controlPlane: {{replicas: 1, cpu: 4, memoryMB: 8192, diskGB: 60}}}}
network: {{vip: 10.40.0.200, loadBalancerPool: {{start: 10.40.0.200, end: 10.40.0.220}}}}
addons: {{storage: {{type: none}}, gitOps: {{type: none}}, ingress: {{enabled: false}}}}
providerConfig:
  harvester:
    kubeconfigPath: {path}
    namespace: default
    networkName: default/workloads
    imageName: default/talos-1.9
"""
# Steps of the installation of the controllers, after everything has moved.
INSTALL = ("installing the controllers", "CustomResourceDefinitions", "applying", "homeport-controller-manager")
TENANT = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ButlerConfig
metadata: {name: butler}
spec: {platform: {metalLBPool: 10.40.0.230-10.40.0.240}}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata: {name: shop, namespace: default}
spec:
  providerConfigRef: {name: harvester, namespace: butler-system}
  controlPlane: {type: standalone}
  workers: {replicas: 1}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("bootstrap") / "data"
    started = homeport("up", "--sim", "--data", str(found), "--listen", "127.0.0.1:0", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    yield found
    stopped = homeport("down", "--data", str(found))
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr


def bootstrap(data: Path, file: Path, until: str = "") -> tuple[int | None, str]:
    """Exit code and output. `until`: it is killed as soon as it prints that; the code is None then."""
    command = [sys.executable, "-m", "homeport", "bootstrap", "-f", str(file), "--data", str(data)]
    said = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if until and until in line:
                process.kill()
                return None, said
        return process.wait(), said


def test_a_bootstrap_that_is_killed_at_its_steps_is_finished_by_running_it_again(
    data: Path, kubectl: str, tmp_path: Path
) -> None:
    file = tmp_path / "mgmt.yaml"
    file.write_text(CONFIG.format(path=data / "harvester-kubeconfig.yaml"))
    refused = tmp_path / "wrong.yaml"
    refused.write_text("provider: harvester\nclutser: {}\n")
    code, said = bootstrap(data, refused)
    assert (code, "did you mean cluster?" in said) == (1, True)
    for step in (
        "applied Secret",
        "ProvisioningMachines",
        "BootstrappingCluster",
        "pausing",
        "copying",
        "resuming",
        *INSTALL,
    ):
        code, said = bootstrap(data, file, until=step)
        assert code in (None, 0), said
    code, said = bootstrap(data, file)
    assert code == 0, said
    files = data / "bootstrap"
    assert {each.name: each.stat().st_mode & 0o777 for each in files.iterdir()} == {
        "mgmt-kubeconfig": 0o600,
        "mgmt-talosconfig": 0o600,
    }
    old = Cluster("old", kubectl, data / "kubeconfig", tmp_path)
    new = Cluster("new", kubectl, files / "mgmt-kubeconfig", tmp_path)
    names = "jsonpath={.items[*].metadata.name}"
    assert new.ok("get", "nodes", "-o", names) == "mgmt-cp-0"
    assert new.ok("get", "machinerequests", "-n", "butler-system", "-o", names) == "mgmt-cp-0"
    assert old.ok("get", "machinerequests,providerconfigs,clusters", "-A", "-o", names) == ""
    assert old.ok("get", "clusterbootstraps", "-A", "-o", "jsonpath={.items[*].status.phase}") == "Ready"
    assert new.ok("get", "machinerequests,clusters", "-A", "-o", "jsonpath={.items[*].spec.paused}") == ""
    harvester = Cluster("harvester", kubectl, data / "harvester-kubeconfig.yaml", tmp_path)
    assert harvester.ok("get", "vm", "-A", "-o", names) == "mgmt-cp-0"
    assert "the controllers run in the cluster, in the namespace homeport-system" in said
    check_controllers(new)
    # No command is needed between the bootstrap and the first tenant.
    (tmp_path / "tenant.yaml").write_text(TENANT)
    new.ok("apply", "-f", str(tmp_path / "tenant.yaml"))
    new.ok("wait", "tenantcluster/shop", "--for=condition=Ready", "--timeout=300s", seconds=310)
    assert old.ok("get", "machines,tenantclusters", "-A", "-o", names) == ""
    made = harvester.ok("get", "vm", "-A", "-o", names).split()
    assert len(made) == len(set(made)) == 3
    new.ok("delete", "-f", str(tmp_path / "tenant.yaml"), "--timeout=300s", seconds=310)
    assert harvester.ok("get", "vm", "-A", "-o", names) == "mgmt-cp-0"
    code, said = bootstrap(data, file)
    assert (code, "homeport-controller-manager: available" in said) == (0, True), said


def check_controllers(new: Cluster) -> None:
    """Two replicas run a program, and one of them leads."""
    pods = new.ok("get", "pods", "-n", "homeport-system", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert len(pods) == 2
    assert new.ok("get", "lease", "homeport", "-n", "homeport-system", "-o", "jsonpath={.spec.holderIdentity}") in pods
    reasons = '{.items[*].status.conditions[?(@.type=="sim.homeport.dev/Simulated")].reason}'
    assert new.ok("get", "pods", "-n", "homeport-system", "-o", f"jsonpath={reasons}") == "Program Program"
    assert "Homeport runs its controllers" in new.ok("logs", "-n", "homeport-system", pods[0])
