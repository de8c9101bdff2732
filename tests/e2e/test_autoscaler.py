"""Kubernetes' own cluster-autoscaler, unaware of us, takes a MachineDeployment from zero and back to zero."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(600)]

NAME, GROUP = "auto", "auto-md-0"
BUILD = Path(__file__).resolve().parents[2] / "tools" / "autoscaler" / "build"
_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
_CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
# It looks often, and has no patience: otherwise the test would take half an hour.
_FLAGS = (
    "--cloud-provider=clusterapi",
    "--clusterapi-cloud-config-authoritative",
    f"--node-group-auto-discovery=clusterapi:namespace=default,clusterName={NAME}",
    "--leader-elect=false",
    "--address=127.0.0.1:0",
    "--scan-interval=2s",
    "--new-pod-scale-up-delay=0s",
    "--scale-down-unneeded-time=5s",
    "--scale-down-delay-after-add=3s",
    "--scale-down-delay-after-delete=1s",
    "--node-delete-delay-after-taint=1s",
    "--skip-nodes-with-system-pods=false",
    "--kube-client-qps=50",
    "--v=2",
)


@pytest.fixture(scope="module")
def autoscaler() -> Path:
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("takes minutes: `make upstream` runs it")
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    program = Path(asked.stdout.strip()) / "cluster-autoscaler"
    if not program.exists():
        pytest.skip(f"no {program}: run tools/autoscaler/build")
    return program


def _homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "homeport", *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture
def plane(autoscaler: Path, tmp_path: Path, kubectl: str) -> Iterator[Cluster]:
    data = tmp_path / "data"
    listen = ("--listen", "127.0.0.1:0", "--sim-listen", "prism=127.0.0.1:0")
    done = _homeport("up", *listen, "--detach", "--sim", "--data", str(data))
    assert done.returncode == 0, done.stdout + done.stderr
    yield Cluster("ours", kubectl, data / "kubeconfig", tmp_path)
    _homeport("down", "--data", str(data))


def _objects(capacity: dict[str, str]) -> str:
    """One control plane, and workers of which there are none yet."""
    objects = manifest.cluster_objects(NAME, 1, 1)
    (group,) = (each for each in objects if each["kind"] == "MachineDeployment")
    group["spec"]["replicas"] = 0
    group["metadata"]["annotations"] = {f"{_SIZE}-min-size": "0", f"{_SIZE}-max-size": "2"} | {
        f"{_CAPACITY}/{name}": amount for name, amount in capacity.items()
    }
    return yaml.safe_dump_all(objects)


def _pods(name: str, cpu: str, memory: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@contextmanager
def _running(autoscaler: Path, plane: Cluster, workload: Cluster, folder: Path, version: str) -> Iterator[Path]:
    log = folder / "autoscaler.log"
    command = [str(autoscaler), *_FLAGS, f"--cloud-config={plane.kubeconfig}", f"--kubeconfig={workload.kubeconfig}"]
    with log.open("wb") as out:
        started = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "CAPI_VERSION": version})
        try:
            yield log
        finally:
            started.terminate()
            started.wait(timeout=30)


def _wait(cluster: Cluster, log: Path | None, *arguments: str) -> None:
    """kubectl gives up after 30 s each time: less than the runner of commands has patience for."""
    for _ in range(7):
        done = cluster.run("wait", "--timeout=30s", *arguments)
        if done.code == 0:
            return
    said = log.read_text(errors="replace")[-6000:] if log is not None else ""
    raise AssertionError(f"kubectl wait {' '.join(arguments)}: {done}\n{said}")


def _replicas(plane: Cluster) -> str:
    return plane.ok("get", "machinedeployment", GROUP, "-o", "jsonpath={.spec.replicas}")


@pytest.mark.parametrize(
    ("version", "capacity"),
    [
        # The template says what its machines have.
        ("v1beta1", {}),
        # This autoscaler can't follow a reference without a version: there, annotations say it.
        ("v1beta2", {"cpu": "4", "memory": "16Gi"}),
    ],
    ids=["capacity of the template", "capacity by annotations"],
)
def test_workers_come_from_nothing_for_a_pod_and_go_with_it(
    autoscaler: Path, plane: Cluster, tmp_path: Path, version: str, capacity: dict[str, str]
) -> None:
    plane.ok("apply", "-f", "-", stdin=_objects(capacity))
    _wait(plane, None, "--for=condition=Available", f"cluster/{NAME}")
    kubeconfig = tmp_path / "workload"
    secret = plane.ok("get", "secret", f"{NAME}-kubeconfig", "-o", "jsonpath={.data.value}")
    kubeconfig.write_bytes(base64.b64decode(secret))
    workload = Cluster("workload", plane.kubectl, kubeconfig, tmp_path)

    # One fits a worker of 4 CPUs and 16 GiB, the other no machine that there could be.
    workload.ok("apply", "-f", "-", stdin=yaml.safe_dump_all([_pods("fits", "3", "12Gi"), _pods("giant", "5", "1Gi")]))
    _wait(workload, None, "--for=condition=PodScheduled=False", "pod", "-l", "app=fits")
    assert _replicas(plane) == "0"

    with _running(autoscaler, plane, workload, tmp_path, version) as log:
        _wait(workload, log, "--for=condition=Ready", "pod", "-l", "app=fits")
        _wait(plane, log, "--for=jsonpath={.status.readyReplicas}=1", f"machinedeployment/{GROUP}")
        _wait(workload, log, "--for=condition=PodScheduled=False", "pod", "-l", "app=giant")
        assert _replicas(plane) == "1"
        selector = f"cluster.x-k8s.io/deployment-name={GROUP}"
        (machine,) = plane.ok("get", "machines", "-l", selector, "-o", "name").split()

        workload.ok("delete", "deployment", "fits")
        _wait(plane, log, "--for=jsonpath={.spec.replicas}=0", f"machinedeployment/{GROUP}")
        _wait(plane, log, "--for=delete", machine)
    nodes = workload.ok("get", "nodes", "-o", "name").split()
    assert len(nodes) == 1
    assert "md-0" not in nodes[0]
