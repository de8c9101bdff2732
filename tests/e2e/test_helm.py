"""Real Helm and `homeport chart` on a simulated workload cluster: one installs, the other goes on."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reader import ROOT
from e2e.cluster import Cluster
from realhelm import Helm, find_programs

pytestmark = [pytest.mark.timeout(300)]

CHART = ROOT / "examples" / "08-chart" / "buoy"
MANIFEST = ROOT / "examples" / "02-cluster" / "cluster.yaml"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1
"""


def homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homeport", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)


def ok(*arguments: str) -> str:
    done = homeport(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Cluster]:
    """A cluster with one control plane and one worker."""
    folder = tmp_path_factory.mktemp("plane")
    data = folder / "data"
    ok("up", "--listen", "127.0.0.1:0", "--detach", "--sim", "--data", str(data))
    try:
        plane = Cluster("ours", kubectl, data / "kubeconfig", folder)
        small = MANIFEST.read_text().replace("replicas: 3", "replicas: 1").replace("replicas: 2", "replicas: 1")
        plane.ok("apply", "-f", "-", stdin=small)
        for _ in range(8):  # kubectl gives up before the runner of commands does
            if plane.run("wait", "--for=condition=Available", "cluster/harbour", "--timeout=30s").code == 0:
                break
        kubeconfig = folder / "workload"
        secret = plane.ok("get", "secret", "harbour-kubeconfig", "-o", "jsonpath={.data.value}")
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_bytes(base64.b64decode(secret))
        yield Cluster("workload", kubectl, kubeconfig, folder)
    finally:
        homeport("down", "--data", str(data))


@pytest.fixture(params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest, workload: Cluster, tmp_path: Path) -> Helm:
    found = find_programs()
    if isinstance(found, str):
        pytest.skip(found)
    return Helm(found[request.param], tmp_path / "home", workload.kubeconfig)


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for path in CHART.rglob("*"):
        if path.is_file():
            target = tmp_path / "buoy" / path.relative_to(CHART)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "buoy" / "templates" / "deployment.yaml").write_text(DEPLOYMENT)
    return tmp_path / "buoy"


def test_a_release_goes_back_and_forth_on_a_workload_cluster(helm: Helm, workload: Cluster, chart: Path) -> None:
    space = f"harbour-{helm.program.name}"
    there = ("-n", space, "--kubeconfig", str(workload.kubeconfig))
    helm.ok(
        "install",
        "web",
        str(chart),
        "-n",
        space,
        "--create-namespace",
        "--set",
        "replicas=1",
        "--wait",
        "--timeout",
        "90s",
    )
    told = ok("chart", "install", "web", str(chart), *there, "--set", "replicas=2", "--set", "greeting=Hello")
    assert "release web revision 2 is deployed" in told
    ready = workload.ok("get", "deployment", "web", "-n", space, "-o", "jsonpath={.status.readyReplicas}")
    assert ready == "2"  # the command waits until the objects are ready
    helm.ok("upgrade", "web", str(chart), "-n", space, "--set", "replicas=1", "--wait", "--timeout", "90s")
    history = json.loads(helm.ok("history", "web", "-n", space, "-o", "json"))
    assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]
    ok("chart", "rollback", "web", "2", *there)
    page = workload.ok("get", "configmap", "web-page", "-n", space, "-o", "jsonpath={.data}")
    assert "Hello from revision 2" in page
    helm.ok("rollback", "web", "1", "-n", space, "--wait", "--timeout", "90s")
    told = ok("chart", "uninstall", "web", *there)
    assert f"kept: ConfigMap {space}/web-log" in told
    assert json.loads(helm.ok("list", "-n", space, "-o", "json")) == []
    assert workload.ok("get", "deployments,services", "-n", space, "-o", "name") == ""
