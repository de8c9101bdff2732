"""A provider and its simulator as plugins of `homeport up`: nothing of them is in the product."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/05-provider-acme"

pytestmark = [pytest.mark.timeout(240)]


@dataclass
class Plane:
    data: Path
    kubectl: str

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        environment = {**os.environ, "PYTHONPATH": str(EXAMPLE)}
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)

    def run(self, *arguments: str) -> str:
        command = [self.kubectl, "--kubeconfig", str(self.data / "kubeconfig"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[Plane]:
    made = Plane(tmp_path / "data", kubectl)
    plugins = ("--plugin", "acme.component:COMPONENT", "--sim", "acme_sim.simulator:SIMULATOR")
    started = made.homeport("up", "--listen", "127.0.0.1:0", "--detach", *plugins)
    assert started.returncode == 0, started.stdout + started.stderr
    assert "Simulated Acme is ready" in started.stdout
    yield made
    made.homeport("down")


def test_a_kubeadm_cluster_on_a_plugins_provider_becomes_available_and_is_deleted(plane: Plane) -> None:
    plane.run("apply", "-f", str(EXAMPLE / "cluster.yaml"))
    plane.run("wait", "cluster", "anvil", "--for=condition=Available", "--timeout=150s")
    ids = plane.run("get", "acmemachines", "-o", "jsonpath={.items[*].spec.providerID}").split()
    assert len(ids) == 2
    assert all(each.startswith("acme://") for each in ids)
    status = plane.homeport("status").stdout
    assert "2 of 2 machines running" in status
    assert "token     acme-token" in status
    assert "admin" not in status, "this simulator has no admin endpoint"
    plane.run("delete", "cluster", "anvil", "--timeout=150s")
    assert plane.run("get", "acmemachines,acmeclusters", "-o", "name") == ""
    assert "0 of 0 machines running" in plane.homeport("status").stdout


def test_the_product_does_not_know_the_example() -> None:
    names = ("AcmeCluster", "AcmeMachine", "acme_sim", "provider-acme")
    texts = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    assert len(texts) > 500
    assert not [path for path, text in texts.items() if any(name in text for name in names)]
