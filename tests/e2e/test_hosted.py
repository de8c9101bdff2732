"""Hosted control planes on a plane that a user starts: simulated, and with real programs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml

from e2e.hosted_kit import HostingPlane, real_plane
from homeport.builtin.workload.process import end_leftovers

pytestmark = [pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def simulated(tmp_path: Path, kubectl: str) -> Iterator[HostingPlane]:
    plane = HostingPlane(tmp_path / "data", kubectl, "--sim")
    plane.up()
    try:
        yield plane
    finally:
        plane.homeport("down")


@pytest.fixture
def real(tmp_path: Path, kubectl: str, binaries: dict[str, Path] | str) -> Iterator[HostingPlane]:
    with real_plane(tmp_path, kubectl, binaries) as plane:
        yield plane


def test_kubectl_uses_a_simulated_control_plane_that_survives_a_restart(simulated: HostingPlane) -> None:
    simulated.datastore()
    one = simulated.control_plane("one", replicas=2)
    assert one.address.startswith("10.240.")
    config = simulated.config("one")
    assert "v1.33.1" in simulated.kubectl("version", config=config)
    simulated.kubectl("create", "configmap", "note", "--from-literal=a=b", config=config)
    assert "Serving securely" in simulated.kubectl("logs", "deploy/one", "-c", "kube-apiserver")
    simulated.done("down")
    simulated.up()
    simulated.until(lambda: simulated.ready("one", 2), "it is back")
    found = simulated.kubectl("get", "configmap", "note", "-o", "jsonpath={.data.a}", config=config)
    assert found == "b"


def test_real_programs_run_a_control_plane_and_none_is_left_behind(real: HostingPlane) -> None:
    real.datastore()
    real.control_plane("one")
    config = real.config("one")
    assert "v1.37" in real.kubectl("version", config=config)
    real.kubectl("create", "deployment", "web", "--image=nginx:1", config=config)
    real.until(lambda: "web-" in real.kubectl("get", "pods", config=config), "the controller manager made a Pod")
    real.until(
        lambda: "no nodes available" in real.kubectl("get", "events", config=config), "the scheduler looked at it"
    )
    assert len(real.processes()) == 4
    assert "Serving securely" in real.kubectl("logs", "deploy/one", "-c", "kube-apiserver")
    for folder in ("workload", "workload/pods", "workload/claims"):
        assert (real.data / folder).stat().st_mode & 0o077 == 0, folder
    _crash_and_recover(real, config)
    _kill_the_plane(real, config)
    real.done("down")
    assert real.processes() == []


def _crash_and_recover(real: HostingPlane, config: Path) -> None:
    (pod,) = json.loads(real.kubectl("get", "pods", "-l", "app=one", "-o", "json"))["items"]
    file = real.data / "workload" / "pods" / pod["metadata"]["uid"] / "kube-apiserver" / "pid"
    os.kill(int(file.read_text().split()[0]), signal.SIGKILL)

    def restarted() -> bool:
        found = json.loads(real.kubectl("get", "pods", "-l", "app=one", "-o", "json"))["items"][0]["status"]
        count = next(c["restartCount"] for c in found["containerStatuses"] if c["name"] == "kube-apiserver")
        return bool(count == 1 and real.ready("one", 1))

    real.until(restarted, "the API server runs again")
    real.until(lambda: real.try_kubectl("get", "deploy", "web", config=config).returncode == 0, "it answers")


def _kill_the_plane(real: HostingPlane, config: Path) -> None:
    before = set(real.processes())
    real.kill()
    assert before & set(real.processes()), "at least etcd outlives the plane"
    real.up()
    real.until(lambda: not before & set(real.processes()), "the old processes have ended")
    real.until(lambda: real.ready("one", 1) and len(real.processes()) == 4, "it runs again")
    real.until(lambda: real.try_kubectl("get", "deploy", "web", config=config).returncode == 0, "it kept its data")


def _use_a_tenant(plane: HostingPlane) -> None:
    config = plane.tenant("tenant")
    listed = plane.kubectl("get", "deployments,daemonsets", "-n", "kube-system", config=config)
    assert "coredns" in listed
    assert "kube-proxy" in listed


def test_a_tenant_control_plane_is_simulated(simulated: HostingPlane) -> None:
    _use_a_tenant(simulated)


def test_a_tenant_control_plane_runs_with_real_programs(real: HostingPlane) -> None:
    _use_a_tenant(real)
    assert len(real.processes()) == 4
    _upgrade_without_a_failed_request(real)
    real.kubectl("delete", "tcp", "tenant", "--timeout=80s")
    real.until(lambda: len(real.processes()) == 1, "only etcd is left")


def _upgrade_without_a_failed_request(real: HostingPlane) -> None:
    """The Pods of the new version answer before those of the old one end."""
    config = real.config("tenant")
    before = set(real.processes())
    asked: list[str] = []
    upgraded = Event()

    def ask() -> None:
        while not upgraded.is_set():
            answer = real.try_kubectl("get", "--raw", "/readyz", config=config)
            asked.append(answer.stdout or answer.stderr)

    user = Thread(target=ask)
    user.start()
    try:
        real.kubectl("patch", "tcp", "tenant", "--type=merge", "-p", '{"spec": {"kubernetes": {"version": "v1.34.0"}}}')
        path = "jsonpath={.status.kubernetesResources.version.version}"
        real.kubectl("wait", "tcp/tenant", f"--for={path}=v1.34.0", "--timeout=85s")
        real.until(lambda: len(set(real.processes()) & before) == 1, "the old ones have ended, and etcd has not")
    finally:
        upgraded.set()
        user.join()
    assert len(asked) > 3
    assert set(asked) == {"ok"}
    assert len(real.processes()) == 4


def test_a_backup_has_the_data_of_real_datastores_and_a_restore_keeps_younger_data(
    real: HostingPlane, tmp_path: Path, kubectl: str, binaries: dict[str, Path]
) -> None:
    _use_a_tenant(real)
    note = ("configmap", "note", "-o", "jsonpath={.data.a}")
    real.kubectl("create", "configmap", "note", "--from-literal=a=b", config=real.config("tenant"))
    file = str(tmp_path / "plane.backup")
    real.done("backup", file)
    assert list(real.data.glob("backup-*")) == []
    real.kubectl("create", "configmap", "later", config=real.config("tenant"))
    real.done("down")
    folder = binaries["etcd"].parent
    other = HostingPlane(tmp_path / "other" / "data", kubectl, "--hosted-binaries", str(folder))
    other.done("restore", file)
    other.up()
    try:
        other.until(lambda: other.ready("tenant", 1), "the control plane runs on another machine")
        assert other.kubectl("get", *note, config=real.config("tenant")) == "b"
        assert other.try_kubectl("get", "configmap", "later", config=real.config("tenant")).returncode != 0
    finally:
        other.homeport("down")
        end_leftovers(other.data / "workload")
    assert "are unchanged" in real.done("restore", file)
    real.up()
    real.until(lambda: real.ready("tenant", 1), "the control plane runs again")
    assert real.kubectl("get", *note, config=real.config("tenant")) == "b"
    real.kubectl("get", "configmap", "later", config=real.config("tenant"))


def _hosted_cluster() -> list[dict[str, Any]]:
    """The example on Nutanix, with a control plane of Pods in place of machines."""
    objects = [each for each in yaml.safe_load_all((EXAMPLES / "02-cluster" / "cluster.yaml").read_text()) if each]
    kept = [each for each in objects if each["kind"] != "KubeadmControlPlane"]
    for each in kept:
        if each["kind"] == "Cluster":
            each["spec"]["controlPlaneRef"]["kind"] = "StewardControlPlane"
        if each["kind"] == "NutanixCluster":
            del each["spec"]["controlPlaneEndpoint"]
    spec = {"replicas": 2, "version": "v1.29.0", "network": {"serviceType": "LoadBalancer"}}
    spec |= {"kubelet": {"cgroupfs": "systemd"}, "addons": {"coreDNS": {}, "kubeProxy": {}}}
    made = {"apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "StewardControlPlane"}
    return [*kept, {**made, "metadata": {"name": "harbour"}, "spec": spec}]


def test_machines_join_a_hosted_control_plane_and_stay_over_a_restart(simulated: HostingPlane) -> None:
    simulated.apply(*_hosted_cluster())
    simulated.kubectl("wait", "cluster/harbour", "--for=condition=Available", "--timeout=85s")
    simulated.done("down")
    simulated.up()

    def settled() -> bool:
        machines = json.loads(simulated.kubectl("get", "machines", "-o", "json"))["items"]
        names = {each["status"].get("nodeRef", {}).get("name") for each in machines}
        done = simulated.try_kubectl("wait", "cluster/harbour", "--for=condition=Available", "--timeout=1s")
        return len(names) == 2 and done.returncode == 0 and simulated.ready("harbour", 2)

    simulated.until(settled, "the cluster is available again")


def test_a_folder_without_programs_is_refused(tmp_path: Path, kubectl: str) -> None:
    plane = HostingPlane(tmp_path / "data", kubectl, "--hosted-binaries", str(tmp_path))
    refused = plane.homeport("up", "--listen", "127.0.0.1:0", "--hosted-binaries", str(tmp_path))
    assert refused.returncode == 1
    assert f"--hosted-binaries: {tmp_path} has no kube-apiserver" in refused.stderr
    refused = plane.homeport("up", "--sim", "--hosted-binaries", str(tmp_path))
    assert "can't be combined with --sim" in refused.stderr
