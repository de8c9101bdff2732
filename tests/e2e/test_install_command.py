"""`homeport install --no-controllers`: a Kubernetes cluster is prepared for controllers that run elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capikit.ours import controllers
from e2e.cluster import Cluster
from e2e.test_clusterctl import ROOT
from homeport.app.platform import chosen
from realkube import RealKube

pytestmark = [pytest.mark.timeout(300)]


def homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homeport", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture(scope="module")
def real(binaries: dict[str, Path] | str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as kube:
        yield Cluster("real", str(binaries["kubectl"]), kube.kubeconfig, tmp_path_factory.mktemp("home"))


def versions(cluster: Cluster) -> dict[str, str]:
    found = json.loads(cluster.ok("get", "crd,namespaces,providers", "-A", "-o", "json"))["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in found}


def test_a_cluster_is_prepared_once_and_the_controllers_run_on_it(real: Cluster) -> None:
    command = ("install", "--no-controllers", "--kubeconfig", str(real.kubeconfig))
    done = homeport(*command)
    assert done.returncode == 0, done.stderr
    assert f"next: homeport up --kubeconfig {real.kubeconfig} --namespace homeport-system" in done.stdout
    before = versions(real)
    names = {each["metadata"]["name"] for each in chosen().definitions()}
    assert {f"CustomResourceDefinition/{name}" for name in names} <= before.keys()
    assert {f"Namespace/{name}" for name in chosen().namespaces()} <= before.keys()
    assert {f"Provider/{each.label}" for each in chosen().inventory()} <= before.keys()
    # Nothing converts there, so only the stored version is served.
    served = "jsonpath={.spec.versions[?(@.served==true)].name}"
    assert real.ok("get", "crd", "clusters.cluster.x-k8s.io", "-o", served) == "v1beta2"
    assert homeport(*command).returncode == 0
    assert versions(real) == before
    with controllers(real.kubeconfig, "--namespace", "homeport-system") as log:
        assert log.exists()


def test_what_kubectl_applied_before_is_adopted(real: Cluster) -> None:
    real.ok("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "config" / "crds"))
    assert homeport("install", "--kubeconfig", str(real.kubeconfig)).returncode == 0


def test_a_plane_needs_no_installation(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    started = homeport("up", "--data", data, "--listen", "127.0.0.1:0", "--detach")
    assert started.returncode == 0, started.stderr
    try:
        done = homeport("install", "--kubeconfig", f"{data}/kubeconfig")
        assert done.returncode == 1
        assert "installs everything at its start: nothing to do" in done.stderr
    finally:
        homeport("down", "--data", data)


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_user_without_the_rights_learns_which_are_needed(real: Cluster, tmp_path: Path, command: str) -> None:
    real.ok("create", "serviceaccount", f"nobody-{command}")
    token = real.ok("create", "token", f"nobody-{command}").strip()
    known = json.loads(real.ok("config", "view", "--raw", "--flatten", "-o", "json"))
    known["users"] = [{"name": each["name"], "user": {"token": token}} for each in known["users"]]
    poor = tmp_path / "kubeconfig"
    poor.write_text(json.dumps(known))
    refused = homeport(command, "--kubeconfig", str(poor))
    assert refused.returncode == 1
    assert f"nobody-{command}" in refused.stderr
    assert "needs the rights of ClusterRole cluster-admin" in refused.stderr
    assert "Traceback" not in refused.stderr
