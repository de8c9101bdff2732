"""The simulated Harvester of `homeport up --sim` as its user meets it: kubeconfigs, restarts, backups."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster
from homeport.app.plane.instance import read_instance
from unit.sim.harvester.harvester_kit import vm_manifest

pytestmark = [pytest.mark.timeout(240)]


@dataclass
class Plane:
    data: Path
    kubectl: str

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def up(self) -> str:
        done = self.homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim=harvester")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

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
    def harvester(self) -> Cluster:
        return Cluster("harvester", self.kubectl, self.data / "harvester-kubeconfig.yaml", self.data)

    def with_kubeconfig(self, text: str) -> Cluster:
        path = self.data / "other-kubeconfig.yaml"
        path.write_text(text)
        return Cluster("harvester", self.kubectl, path, self.data)


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[Plane]:
    plane = Plane(tmp_path / "data", kubectl)
    yield plane
    plane.homeport("down")


def test_the_kubeconfig_works_and_that_of_a_node_has_the_wrong_server(plane: Plane) -> None:
    told = plane.up()
    path = plane.data / "harvester-kubeconfig.yaml"
    assert f"Simulated Harvester is ready at https://10.20.0.10:6443 (kubeconfig {path})" in told
    assert path.stat().st_mode & 0o777 == 0o600
    assert "harvester-node-0" in plane.harvester.ok("get", "nodes")

    node = plane.homeport("sim", "harvester", "--print-rke2")
    assert node.returncode == 0, node.stderr
    config = yaml.safe_load(node.stdout)
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    refused = plane.with_kubeconfig(node.stdout).run("get", "nodes")
    assert refused.code != 0
    right = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    config["clusters"][0]["cluster"].update(server=right["server"], **{"proxy-url": right["proxy-url"]})
    assert "harvester-node-0" in plane.with_kubeconfig(yaml.safe_dump(config)).ok("get", "nodes")

    # Another name than the certificate's, with and without verification.
    config["clusters"][0]["cluster"]["server"] = "https://10.20.0.12:6443"
    assert "harvester-node-0" in plane.with_kubeconfig(yaml.safe_dump(config)).ok("get", "nodes")
    wrong = dict(config["clusters"][0]["cluster"], **{"tls-server-name": "elsewhere.example.com"})
    config["clusters"][0]["cluster"] = wrong
    assert "certificate is valid for" in plane.with_kubeconfig(yaml.safe_dump(config)).run("get", "nodes").err
    del wrong["certificate-authority-data"]
    wrong["insecure-skip-tls-verify"] = True
    assert "harvester-node-0" in plane.with_kubeconfig(yaml.safe_dump(config)).ok("get", "nodes")


def test_limited_accounts_learn_what_they_may_do(plane: Plane) -> None:
    plane.up()
    config = yaml.safe_load((plane.data / "harvester-kubeconfig.yaml").read_text())
    answers = {}
    for account in ("homeport", "viewer"):
        token = plane.harvester.ok("create", "token", account, "-n", "default").strip()
        config["users"][0]["user"] = {"token": token}
        limited = plane.with_kubeconfig(yaml.safe_dump(config))
        asked = [
            limited.run("auth", "can-i", *words.split()).out.strip()
            for words in ("create virtualmachines.kubevirt.io", "list nodes", "create secrets", "delete nodes")
        ]
        answers[account] = asked
    assert answers == {"homeport": ["yes", "yes", "yes", "no"], "viewer": ["no", "yes", "no", "no"]}


def running(plane: Plane) -> tuple[str, str, str]:
    """UID, node and address of the VM, when it runs."""
    shown = plane.harvester.ok(
        "wait", "vmi/node-0", "--for=jsonpath={.status.interfaces[0].ipAddress}", "--timeout=60s", "-o", "json"
    )
    vmi = json.loads(shown)
    status = vmi["status"]
    assert status["phase"] == "Running"
    return vmi["metadata"]["uid"], status["nodeName"], status["interfaces"][0]["ipAddress"]


def machines(plane: Plane) -> str:
    found = re.search(r"simulator +harvester .*, (\d+ of \d+) machines running", plane.homeport("status").stdout)
    assert found is not None
    return found.group(1)


def test_vms_survive_a_kill_and_a_backup(plane: Plane, tmp_path: Path) -> None:
    plane.up()
    name = plane.harvester.ok(
        "get", "virtualmachineimage", "rocky-9-cloud", "-o", "jsonpath={.status.storageClassName}"
    )
    manifest = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", **vm_manifest("node-0", name)}
    plane.harvester.ok("create", "-f", "-", stdin=json.dumps(manifest))
    before = running(plane)
    assert machines(plane) == "1 of 1"

    plane.kill()
    plane.up()
    assert running(plane) == before
    assert machines(plane) == "1 of 1"

    archive = tmp_path / "backup.tar"
    done = plane.homeport("backup", str(archive))
    assert done.returncode == 0, done.stderr
    plane.harvester.ok("delete", "vm", "node-0")
    plane.homeport("down")

    other = Plane(tmp_path / "other", plane.kubectl)
    done = other.homeport("restore", str(archive))
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        other.up()
        assert running(other) == before
        assert machines(other) == "1 of 1"
    finally:
        other.homeport("down")
