"""Nutanix' own cluster templates, as they are shipped and rendered by clusterctl, on `homeport up --sim`."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from capikit import clusterctl, template
from capikit.clusterctl import Clusterctl
from capikit.template import CLASS, SAMPLES, SHIPPED, TESTED, Flavour
from e2e.cluster import Cluster, Output

pytestmark = [pytest.mark.timeout(420)]

BARE = {"NUTANIX_MACHINE_TEMPLATE_IMAGE_NAME": "rocky-9-kube-v1.30.0-no-cni"}
FLAVOURS = [
    Flavour(f"{SHIPPED}.yaml", "plain"),
    Flavour(f"{SHIPPED}-csi3.yaml", "csi3"),
    Flavour(f"{SHIPPED}-failure-domains.yaml", "failure-domains", machines=4),
    Flavour(f"{SHIPPED}-image-lookup.yaml", "image-lookup"),
    Flavour(f"{SHIPPED}-topology.yaml", "topology"),
    Flavour("templates/overlays/base/api-key", "api-key"),
    Flavour(f"{TESTED}-project", "project", variables=BARE),
    Flavour(f"{TESTED}-additional-categories", "categories", variables=BARE),
    Flavour(f"{SAMPLES}-gpu.yaml", "cluster-with-gpu", machines=3, sample=True),
    Flavour(f"{SAMPLES}-project-name.yaml", "cluster-with-project-name", machines=3, sample=True),
    Flavour(f"{SAMPLES}-project-uuid.yaml", "cluster-with-project-uuid", machines=3, sample=True),
    Flavour(f"{SAMPLES}-additional-categories.yaml", "cluster-with-additional-categories", machines=3, sample=True),
    Flavour(f"{SAMPLES}-control-plane-endpoint.yaml", "cluster-with-control-plane-endpoint", machines=3, sample=True),
    Flavour(f"{SAMPLES}-failure-domain.yaml", "cluster-with-failure-domains", machines=3, sample=True),
    Flavour(f"{SAMPLES}-subnets.yaml", "cluster-with-subnets", machines=3, sample=True),
]


@dataclass
class Site:
    """A plane on which every flavour was applied, each in a namespace of its own; clusters come up side by side."""

    plane: Cluster
    home: Path
    tool: Clusterctl
    applied: dict[str, Output] = field(default_factory=dict)

    def apply(self, flavour: Flavour, vip: str) -> None:
        self.plane.ok("create", "namespace", flavour.name)
        if flavour.name == "topology":
            self.plane.ok("apply", "-f", "-", stdin=self.render(Flavour(CLASS, "topology"), vip))
        text = self.render(flavour, vip)
        self.applied[flavour.name] = self.plane.run("apply", "-f", "-", stdin=text)

    def render(self, flavour: Flavour, vip: str) -> str:
        return template.render(flavour, self.tool, self.plane.kubectl, vip)

    def workload(self, name: str) -> Cluster:
        secret = self.plane.ok("get", "secret", f"{name}-kubeconfig", "-n", name, "-o", "jsonpath={.data.value}")
        path = self.home / f"{name}.kubeconfig"
        path.write_bytes(base64.b64decode(secret))
        return Cluster(name, self.plane.kubectl, path, self.home)

    def wait(self, name: str, *arguments: str) -> None:
        for _ in range(6):
            done = self.plane.run("wait", "--timeout=30s", "-n", name, *arguments)
            if done.code == 0:
                return
        kinds = "clusters,machines,nutanixclusters,nutanixmachines,clusterresourcesets,events"
        raise AssertionError(f"{name}: {done}\n{self.plane.run('get', kinds, '-n', name, '-o', 'wide').out}")


def _homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "homeport", *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    program = clusterctl.find()
    if isinstance(program, str):
        pytest.skip(program)
    if reason := template.lacking():
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("templates")
    world, data = home / "world.yaml", home / "data"
    world.write_text(template.world())
    listen = ("--listen", "127.0.0.1:0", "--sim-listen", "prism=127.0.0.1:0")
    done = _homeport("up", *listen, "--detach", "--sim", "--sim-world", f"prism={world}", "--data", str(data))
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        plane = Cluster("ours", kubectl, data / "kubeconfig", home)
        made = Site(plane, home, Clusterctl(program, data / "kubeconfig", home))
        for number, flavour in enumerate(FLAVOURS):
            made.apply(flavour, f"1.2.3.{10 + number}" if flavour.sample else f"10.0.0.{30 + number}")
        yield made
    finally:
        _homeport("down", "--data", str(data))


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_a_shipped_template_gives_a_cluster_that_is_available(site: Site, flavour: Flavour) -> None:
    name = flavour.name
    assert site.applied[name].code == 0, site.applied[name]
    site.wait(name, "--for=condition=Available", f"cluster/{name}")
    machines = _listed(site.plane, "machines", "-n", name)
    assert [each["status"]["phase"] for each in machines] == ["Running"] * flavour.machines
    workload = site.workload(name)
    nodes = _listed(workload, "nodes")
    assert len(nodes) == flavour.machines
    for node in nodes:
        assert node["spec"]["providerID"].startswith("nutanix://")
        taints = {each["key"] for each in node["spec"].get("taints") or ()}
        assert not taints & {"node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/not-ready"}


def test_the_manager_that_a_template_brings_works_alone_and_whatever_runs_has_a_log(site: Site) -> None:
    site.wait("plain", "--for=condition=Available", "cluster/plain")
    workload = site.workload("plain")
    managers = [each["metadata"]["name"] for each in _listed(workload, "deployments", "-n", "kube-system")]
    assert "nutanix-cloud-controller-manager" in managers
    assert "homeport-cloud-controller-manager" not in managers
    lease = workload.ok("get", "lease", "-n", "kube-system", "cloud-controller-manager", "-o", "yaml")
    assert "holderIdentity: nutanix-cloud-controller-manager-" in lease
    for pod in _listed(workload, "pods", "-A"):
        assert pod["status"]["phase"] == "Running"
        meta = pod["metadata"]
        workload.ok("logs", "-n", meta["namespace"], meta["name"], "--all-containers")


def test_deleting_what_a_template_made_leaves_nothing(site: Site) -> None:
    site.wait("plain", "--for=condition=Available", "cluster/plain")
    site.plane.ok("delete", "cluster", "plain", "-n", "plain", "--wait=false")
    site.wait("plain", "--for=delete", "cluster/plain")
    for kind in ("machines", "nutanixclusters", "nutanixmachines", "kubeadmcontrolplanes", "machinedeployments"):
        assert site.plane.ok("get", kind, "-n", "plain", "-o", "name") == ""


def _listed(cluster: Cluster, *what: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(cluster.ok("get", *what, "-o", "json"))["items"]
    return items
