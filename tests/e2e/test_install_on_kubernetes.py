"""`homeport install` on a real kube-apiserver, and the controllers as its Deployments describe them.

They run with the ServiceAccount's token: whatever the installed roles do not allow is refused and found in their log.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capikit.installed import COMBINED, refusals, running
from e2e.test_clusterctl import ROOT
from homeport.app.kubernetes.layout import placements
from homeport.app.platform import chosen
from realkube import RealKube
from seeds.shell import Shell, opened

pytestmark = [pytest.mark.timeout(600)]

EXAMPLE = ROOT / "examples" / "02-cluster" / "cluster.yaml"


def homeport(*arguments: str) -> str:
    command = [sys.executable, "-m", "homeport", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A plane whose simulated infrastructure the controllers use."""
    with opened(tmp_path_factory.mktemp("site"), kubectl, "--sim") as made:
        yield made


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as made:
        yield made


def infrastructure(site: Shell) -> tuple[str, ...]:
    line = next(line for line in site.setup.splitlines() if "HTTPS_PROXY=" in line)
    proxy = line.partition("HTTPS_PROXY=")[2].partition(";")[0]
    return ("--proxy", proxy, "--trust", str(site.data / "sim" / "prism" / "ca.crt"))


def ok(kube: RealKube, *arguments: str) -> str:
    done = kube.kubectl(*arguments)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def await_all(kube: RealKube, what: str, condition: str) -> None:
    for _ in range(4):  # kubectl of RealKube ends after a minute
        waited = kube.kubectl("wait", what, f"--for={condition}", "--timeout=50s")
        if waited.returncode == 0:
            return
    pytest.fail(f"{waited.stderr}{ok(kube, 'get', what, '-o', 'yaml')}")


def machines(kube: RealKube) -> dict[str, str]:
    """Name > uid and VM: who is replaced has another."""
    found = json.loads(ok(kube, "get", "machines", "-o", "json"))["items"]
    return {each["metadata"]["name"]: f"{each['metadata']['uid']} {each['spec'].get('providerID')}" for each in found}


def test_one_file_is_enough_for_an_empty_cluster(kube: RealKube, site: Shell, tmp_path: Path) -> None:
    """And an upgrade to this version, in the other layout, replaces no machine."""
    file = tmp_path / "install.yaml"
    file.write_text(homeport("install", "--dry-run", "-o", "yaml", "--image", "registry.example/homeport:old"))
    ok(kube, "apply", "--server-side", "-f", str(file))
    with running(kube, *infrastructure(site)) as log:
        ok(kube, "apply", "-f", str(EXAMPLE))
        await_all(kube, "cluster/harbour", "condition=Available")
        await_all(kube, "kubeadmcontrolplane/harbour", "jsonpath={.status.availableReplicas}=3")
        # Nobody but the controllers could create these: their kinds were new.
        assert "cluster-api" in ok(kube, "get", "providers", "-n", "homeport-system", "-o", "name")
        assert "kcm" in ok(kube, "get", "management", "-o", "name")
    assert not refusals(log)
    before = machines(kube)
    assert len(before) == 5

    said = homeport("install", "--kubeconfig", str(kube.kubeconfig), "--layout", "split")
    assert "removed ClusterRole homeport-controller-manager-extensions, which this version does not have" in said
    with contextlib.ExitStack() as stack:
        names = ("capi", "capi-kubeadm-bootstrap", "capi-kubeadm-control-plane", "capx")
        places = (f"{name}-system/{name}-controller-manager" for name in names)
        logs = [stack.enter_context(running(kube, *infrastructure(site), name=place)) for place in places]
        ok(kube, "scale", "machinedeployment/harbour-workers", "--replicas=3")
        await_all(kube, "machinedeployment/harbour-workers", "jsonpath={.status.availableReplicas}=3")
    assert not [line for log in logs for line in refusals(log)]
    after = machines(kube)
    assert before.items() <= after.items()
    assert len(after) == 6


def test_every_deployment_of_the_split_layout_starts_with_its_own_role(kube: RealKube) -> None:
    homeport("install", "--kubeconfig", str(kube.kubeconfig), "--layout", "split")
    for place in placements(chosen().components, "split"):
        with running(kube, name=str(place)) as log:
            pass
        assert refusals(log) == [], place


def test_uninstall_keeps_what_users_have(kube: RealKube) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    homeport("install", *config)
    ok(kube, "create", "-f", str(EXAMPLE))
    refused = subprocess.run(
        [sys.executable, "-m", "homeport", "uninstall", *config, "--crds"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "Cluster default/harbour" in refused.stderr
    assert "Nothing was removed" in refused.stderr
    assert COMBINED.partition("/")[2] in ok(kube, "get", "deployments", "-A", "-o", "name")

    assert "kept: CustomResourceDefinitions, all objects" in homeport("uninstall", *config)
    for kind in ("deployments", "serviceaccounts", "clusterroles", "clusterrolebindings", "networkpolicies"):
        assert ok(kube, "get", kind, "-A", "-l", "homeport.dev/installed", "-o", "name") == ""
    assert "harbour" in ok(kube, "get", "clusters", "-o", "name")
    assert homeport("uninstall", *config).startswith("nothing is installed")


def test_definitions_go_when_no_object_of_a_user_is_left(kube: RealKube) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    homeport("install", *config)
    with running(kube):
        # The controllers have made objects themselves, which do not count.
        await_all(kube, "management/kcm", "condition=Ready")
    said = homeport("uninstall", *config, "--crds")
    assert f"removed {len(chosen().definitions())} CustomResourceDefinitions" in said
    ok(kube, "wait", "crds", "--all", "--for=delete", "--timeout=55s")
    assert "homeport-system" in ok(kube, "get", "namespaces", "-o", "name")


def test_controllers_of_others_are_not_joined(kube: RealKube) -> None:
    ok(kube, "create", "namespace", "capx-system")
    ok(kube, "create", "deployment", "capx-controller-manager", "-n", "capx-system", "--image=registry.example/capx:v1")
    command = [sys.executable, "-m", "homeport", "install", "--kubeconfig", str(kube.kubeconfig)]
    for layout, advice in (("combined", "kubectl scale -n capx-system"), ("split", "remove what created it")):
        done = subprocess.run([*command, "--layout", layout], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "Deployment capx-system/capx-controller-manager exists and was not created by 'homeport" in done.stderr
        assert advice in done.stderr
        assert ok(kube, "get", "crds", "-o", "name") == ""
