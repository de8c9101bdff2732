"""clusterctl, as Cluster API's users have it, on planes of ours: it looks, rolls out, and moves clusters between them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from capikit import clusterctl
from capikit.clusterctl import Clusterctl
from capikit.ours import controllers
from e2e.cluster import Cluster
from realkube import RealKube
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
FLEET = "fleet"
ADDONS = "addons.cluster.x-k8s.io/v1beta2"
DOMAINS = {"fd-1": ("nutanix-cluster-1", "vm-network"), "fd-2": ("nutanix-cluster-2", "vm-network-2")}


@dataclass(frozen=True)
class Site:
    """A management cluster as its users see it: by kubectl and clusterctl."""

    kubectl: Cluster
    clusterctl: Clusterctl

    def wait(self, *arguments: str, namespace: str = FLEET) -> None:
        for _ in range(5):
            done = self.kubectl.run("wait", "--timeout=30s", "-n", namespace, *arguments)
            if done.code == 0:
                return
        shown = self.kubectl.run(
            "get", "clusters,machines,nutanixclusters,nutanixmachines,events", "-A", "-o", "wide"
        ).out
        raise AssertionError(f"kubectl wait {' '.join(arguments)}: {done}\n{shown}")

    def settled(self, name: str, workers: int, namespace: str = FLEET) -> None:
        self.wait("--for=condition=Available", f"cluster/{name}", namespace=namespace)
        self.wait("--for=condition=RollingOut=False", f"machinedeployment/{name}-md-0", namespace=namespace)
        for each in ("replicas", "availableReplicas", "upToDateReplicas"):
            target = f"--for=jsonpath={{.status.{each}}}={workers}"
            self.wait(target, f"machinedeployment/{name}-md-0", namespace=namespace)

    def names(self, kinds: str, namespace: str = FLEET) -> set[str]:
        return set(self.kubectl.ok("get", kinds, "-n", namespace, "-o", "name").split())

    def scale(self, name: str, workers: int, namespace: str = FLEET) -> None:
        self.kubectl.ok("scale", f"machinedeployment/{name}-md-0", f"--replicas={workers}", "-n", namespace)
        self.settled(name, workers, namespace)

    def prepare(self) -> None:
        """What docs/howto/real-kubernetes.md says to do on a server of others."""
        self.kubectl.ok("apply", "--server-side", "-f", str(ROOT / "config" / "crds"))
        self.wait("--for=condition=Established", "crd", "--all")
        self.kubectl.ok("apply", "-f", str(ROOT / "config" / "clusterctl"))


def _homeport(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "homeport", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Plane(Site):
    """`homeport up`, with simulators beside it or with those of another."""

    def told(self, pattern: str) -> str:
        shown = _homeport("status", "--data", str(self.kubectl.kubeconfig.parent))
        found = re.search(pattern, shown)
        assert found is not None, shown
        return found[1]

    def way(self) -> tuple[str, ...]:
        """Options by which others reach what is simulated here."""
        return ("--proxy", self.told(r"proxy +(http://\S+)"), "--trust", self.told(r"authority (\S+)"))

    def vms(self) -> dict[str, Any]:
        """With all that Prism Central knows of them, such as how often each was changed."""
        name, _, value = Path(self.told(r"-H @(\S+)\)")).read_text().strip().partition(": ")
        request = urllib.request.Request(self.told(r"admin +(http://\S+)") + "/world", headers={name: value})
        with urllib.request.urlopen(request, timeout=30) as answer:
            world = yaml.load(answer.read(), yaml.CSafeLoader)
        return {vm["name"]: vm for vm in world.get("vms") or ()}


@pytest.fixture(scope="module")
def program() -> Path:
    found = clusterctl.find()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@contextmanager
def running(data: Path, kubectl: str, program: Path, *options: str) -> Iterator[Plane]:
    _homeport("up", "--data", str(data), "--listen", "127.0.0.1:0", "--detach", *options)
    try:
        yield Plane(*_hands(data / "kubeconfig", kubectl, program, data.parent))
    finally:
        _homeport("down", "--data", str(data))


def _hands(kubeconfig: Path, kubectl: str, program: Path, home: Path) -> tuple[Cluster, Clusterctl]:
    return Cluster(home.name, kubectl, kubeconfig, home), Clusterctl(program, kubeconfig, home)


@pytest.fixture(scope="module")
def plane(program: Path, kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with running(tmp_path_factory.mktemp("source") / "data", kubectl, program, "--sim") as made:
        yield made


@pytest.fixture(scope="module")
def one(plane: Plane) -> Plane:
    """With a cluster of one and one in the default namespace."""
    plane.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(manifest.cluster_objects("one", 1, 1)))
    plane.settled("one", 1, namespace="default")
    return plane


# -- looking -----------------------------------------------------------------------------------------------------


def test_the_kubeconfig_of_a_cluster_leads_to_its_nodes(one: Plane, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "workload"
    kubeconfig.write_text(one.clusterctl.ok("get", "kubeconfig", "one"))
    workload = Cluster("workload", one.kubectl.kubectl, kubeconfig, tmp_path)
    assert workload.ok("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}").split() == [
        manifest.VERSION,
        manifest.VERSION,
    ]


def test_a_cluster_is_described_as_a_tree_in_which_all_is_well(one: Plane) -> None:
    shown = one.clusterctl.ok("describe", "cluster", "one", "--show-machinesets", "--show-templates", "--echo")
    machines = [name.rpartition("/")[2] for name in one.names("machines", "default")]
    for expected in (
        r"Cluster default/one +2/2 +2 +2 +2 +True +Available",
        r"KubeadmControlPlane default/one-kcp, v1.28.0 +1/1 +1 +1 +1 +True +Available",
        r"NutanixCluster default/one +True +Ready",
        r"MachineDeployment default/one-md-0, v1.28.0 +1/1 +1 +1 +1 +True +Available",
        r"MachineSet default/one-md-0-\w+, v1.28.0 +1/1 +1 +1 +1",
        r"NutanixMachineTemplate default/one-cp-mt",
        r"KubeadmConfigTemplate default/one-md-0-kt",
        *(rf"Machine default/{each}, v1.28.0 +1 +1 +1 +1 +True +Ready" for each in machines),
        *(rf"NutanixMachine default/{each} +True +Ready" for each in machines),
        *(rf"KubeadmConfig default/{each} +True +Ready" for each in machines),
    ):
        assert re.search(expected, shown), f"{expected}\n{shown}"


def test_every_condition_is_shown_and_none_is_unknown(one: Plane) -> None:
    shown = one.clusterctl.ok("describe", "cluster", "one", "--show-conditions", "all")
    for expected in ("ControlPlaneInitialized", "EtcdClusterHealthy", "NodeHealthy", "PrismClientInit"):
        assert re.search(rf"─{expected} +True", shown), shown
    assert "Unknown" not in shown


# -- rolling out -------------------------------------------------------------------------------------------------


def test_rollouts_are_paused_resumed_and_begun_again(one: Plane) -> None:
    rollout = ("alpha", "rollout")
    deployment, control_plane = "machinedeployment/one-md-0", "kubeadmcontrolplane/one-kcp"
    for each in (deployment, control_plane):
        one.clusterctl.ok(*rollout, "pause", each)
        refused = one.clusterctl.run(*rollout, "restart", each)
        assert refused.returncode != 0
        assert "paused" in refused.stderr
    assert one.kubectl.ok("get", deployment, "-o", "jsonpath={.spec.paused}") == "true"
    one.wait("--for=condition=Paused", control_plane, namespace="default")
    for each in (deployment, control_plane):
        one.clusterctl.ok(*rollout, "resume", each)
    one.wait("--for=condition=Paused=False", control_plane, namespace="default")
    before = one.names("machines", "default")
    one.clusterctl.ok(*rollout, "restart", deployment)
    one.clusterctl.ok(*rollout, "restart", control_plane)
    for each in before:
        one.wait("--for=delete", each, namespace="default")
    one.settled("one", 1, namespace="default")
    one.wait("--for=jsonpath={.status.upToDateReplicas}=1", control_plane, namespace="default")
    assert len(one.names("machines", "default")) == 2


# -- moving ------------------------------------------------------------------------------------------------------


def _fleet(authority: str) -> list[dict[str, Any]]:
    """A cluster with everything that belongs to one and that somebody could leave behind."""
    meta = {"namespace": FLEET}
    domains = [
        {
            "apiVersion": manifest.INFRA,
            "kind": "NutanixFailureDomain",
            "metadata": {"name": name, **meta},
            "spec": {
                "prismElementCluster": {"type": "name", "name": element},
                "subnets": [{"type": "name", "name": subnet}],
            },
        }
        for name, (element, subnet) in DOMAINS.items()
    ]
    bundle = {"kind": "ConfigMap", "metadata": {"name": "bundle", **meta}, "data": {"ca.crt": authority}}
    objects = manifest.cluster_objects("two", 1, 1, "10.0.0.101", FLEET)
    for each in objects:
        if each["kind"] == "NutanixCluster":
            each["spec"]["prismCentral"]["additionalTrustBundle"] = {"kind": "ConfigMap", "name": "bundle"}
            each["spec"]["controlPlaneFailureDomains"] = [{"name": name} for name in DOMAINS]
        if each["kind"] == "Cluster":
            each["metadata"]["labels"] = {"greeted": "yes"}
        if each["metadata"]["name"] == "two-worker-mt":
            pool = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "range"}
            each["spec"]["template"]["spec"]["addressesFromPools"] = [pool]
    greeting = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting", "namespace": "default"}}
    health_check = {
        "apiVersion": manifest.CAPI,
        "kind": "MachineHealthCheck",
        "metadata": {"name": "two-mhc", **meta},
        "spec": {
            "clusterName": "two",
            "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "two"}},
            "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "300s"}],
        },
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FLEET}},
        *domains,
        {
            "apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
            "kind": "InClusterIPPool",
            "metadata": {"name": "range", **meta},
            "spec": {"addresses": ["10.0.0.20-10.0.0.23"], "prefix": 22, "gateway": "10.0.0.1"},
        },
        {"apiVersion": "v1", **bundle},
        *objects,
        health_check,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "greetings", **meta},
            "data": {"greeting.yaml": json.dumps({**greeting, "data": {"said": "hello"}})},
        },
        {
            "apiVersion": ADDONS,
            "kind": "ClusterResourceSet",
            "metadata": {"name": "greetings", **meta},
            "spec": {
                "clusterSelector": {"matchLabels": {"greeted": "yes"}},
                "resources": [{"kind": "ConfigMap", "name": "greetings"}],
            },
        },
    ]


def _ref(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"templateRef": {"apiVersion": api_version, "kind": kind, "name": name}}


def _by_class() -> list[dict[str, Any]]:
    """A class, and a cluster that is made from it."""
    newer = {
        group: api.replace("v1beta1", "v1beta2")
        for group, api in (("bootstrap", manifest.BOOTSTRAP), ("plane", manifest.CONTROL_PLANE))
    }
    registration = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}
    infra = manifest.infra_cluster("small", "10.0.0.102", FLEET)
    spec = {
        "NutanixClusterTemplate": infra["spec"],
        "KubeadmControlPlaneTemplate": {
            "kubeadmConfigSpec": {"initConfiguration": registration, "joinConfiguration": registration}
        },
        "KubeadmConfigTemplate": {"joinConfiguration": registration},
    }
    versions = {
        "NutanixClusterTemplate": manifest.INFRA,
        "KubeadmControlPlaneTemplate": newer["plane"],
        "KubeadmConfigTemplate": newer["bootstrap"],
    }
    templates = [
        {
            "apiVersion": versions[kind],
            "kind": kind,
            "metadata": {"name": "small", "namespace": FLEET},
            "spec": {"template": {"spec": body}},
        }
        for kind, body in spec.items()
    ]
    machines = _ref(manifest.INFRA, "NutanixMachineTemplate", "small")
    worker = {
        "class": "worker",
        "bootstrap": _ref(newer["bootstrap"], "KubeadmConfigTemplate", "small"),
        "infrastructure": machines,
    }
    cluster_class = {
        "infrastructure": _ref(manifest.INFRA, "NutanixClusterTemplate", "small"),
        "controlPlane": {
            **_ref(newer["plane"], "KubeadmControlPlaneTemplate", "small"),
            "machineInfrastructure": machines,
        },
        "workers": {"machineDeployments": [worker]},
    }
    topology = {
        "classRef": {"name": "small"},
        "version": manifest.VERSION,
        "controlPlane": {"replicas": 1},
        "workers": {"machineDeployments": [{"class": "worker", "name": "w", "replicas": 1}]},
    }
    return [
        *templates,
        manifest.template("small", manifest.machine_spec(), FLEET),
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "ClusterClass",
            "metadata": {"name": "small", "namespace": FLEET},
            "spec": cluster_class,
        },
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "three", "namespace": FLEET},
            "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}, "topology": topology},
        },
    ]


# What a cluster is made of: all of it goes, but for what is the namespace's own.
KINDS = "cluster-api,secrets,configmaps"
_OWN = {"configmap/kube-root-ca.crt"}


def moved(source: Site, target: Site, plane: Plane, workers: int) -> None:
    """Everything is there and nothing here, and no VM has noticed."""
    before, vms = source.names(KINDS) - _OWN, plane.vms()
    source.clusterctl.ok("move", "-n", FLEET, "--to-kubeconfig", str(target.kubectl.kubeconfig))
    assert source.names(KINDS) - _OWN == set()
    target.settled("two", workers)
    target.wait("--for=condition=Ready", "nutanixmachines", "--all")
    target.wait("--for=condition=Available", "cluster/three")
    target.wait("--for=condition=TopologyReconciled", "cluster/three")
    assert target.names(KINDS) - _OWN == before
    assert len(vms) > workers
    assert plane.vms() == vms
    # What clusterctl wrote was not written again: generations count changes.
    shown = ("-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}{'\\n'}{end}")
    kinds = "machinedeployments,kubeadmcontrolplanes,machinesets,nutanixmachinetemplates,kubeadmconfigtemplates"
    changed = [
        line for line in target.kubectl.ok("get", kinds, "-n", FLEET, *shown).splitlines() if not line.endswith(" 1")
    ]
    assert changed == []


@contextmanager
def real(binaries: dict[str, Path] | str, program: Path, home: Path, *options: str) -> Iterator[Site | None]:
    """A real kube-apiserver with our definitions and controllers; None where there is none to be had."""
    if isinstance(binaries, str):
        yield None
        return
    with RealKube(binaries) as kube:
        site = Site(*_hands(kube.kubeconfig, str(binaries["kubectl"]), program, home))
        site.prepare()
        with controllers(kube.kubeconfig, "--namespace", "homeport-system", *options):
            yield site


def test_a_cluster_moves_to_another_plane_and_on_to_a_real_kubernetes_and_its_machines_do_not_notice(
    plane: Plane, program: Path, binaries: dict[str, Path] | str, tmp_path: Path
) -> None:
    options = plane.way()
    objects = [*_fleet(Path(options[-1]).read_text()), *_by_class()]
    plane.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    plane.settled("two", 1)
    plane.wait("--for=condition=Available", "cluster/three")
    plane.wait("--for=create", "clusterresourcesetbinding/two")
    others = plane.names(KINDS, "default")

    (tmp_path / "other").mkdir()
    with running(tmp_path / "other" / "data", plane.kubectl.kubectl, program, *options) as other:
        moved(plane, other, plane, 1)
        assert plane.names(KINDS, "default") == others
        vms = plane.vms()
        other.scale("two", 2)
        assert vms.items() <= plane.vms().items()

        with real(binaries, program, tmp_path, *options) as last:
            if last is not None:
                moved(other, last, plane, 2)
                last.scale("two", 1)
            home = last or other
            home.kubectl.ok("delete", "clusters", "--all", "-n", FLEET, "--wait=false")
            for name in ("two", "three"):
                home.wait("--for=delete", f"cluster/{name}")
            assert not home.names("machines,nutanixmachines,nutanixclusters")
            assert not [name for name in plane.vms() if name.startswith(("two-", "three-"))]


def _refusal(plural: str) -> dict[str, Any]:
    """Nobody answers for this webhook: such objects can't be created."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [plural]}
    hook = {
        "name": "refusal.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/refuse"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refusal"},
        "webhooks": [hook],
    }


def test_a_move_that_was_interrupted_before_it_deleted_anything_is_resumed_and_repeated(
    plane: Plane, program: Path, tmp_path: Path
) -> None:
    options = plane.way()
    plane.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(_fleet(Path(options[-1]).read_text())))
    plane.settled("two", 1)
    before, vms = plane.names("clusters,machines,nutanixmachines"), plane.vms()
    (tmp_path / "other").mkdir()
    with running(tmp_path / "other" / "data", plane.kubectl.kubectl, program, *options) as other:
        move = ("move", "-n", FLEET, "--to-kubeconfig", str(other.kubectl.kubeconfig))
        # The target refuses what comes last, so clusterctl is in the middle of the move for as long as it takes.
        other.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(_refusal("nutanixmachines")))
        (machine,) = (each for each in before if each.startswith("machine.cluster.x-k8s.io/two-kcp-"))
        plane.clusterctl.interrupt(lambda: other.wait("--for=create", machine), *move)
        other.kubectl.ok("delete", "validatingwebhookconfiguration", "refusal")
        assert not other.names("nutanixmachines")
        assert plane.names("clusters,machines,nutanixmachines") == before
        refused = plane.clusterctl.run(*move)
        assert refused.returncode != 0
        assert "paused" in refused.stderr
        resume = ("--type", "merge", "-p", '{"spec": {"paused": false}}')
        plane.kubectl.ok("patch", "cluster", "two", "-n", FLEET, *resume)
        plane.clusterctl.ok(*move)
        assert not plane.names("clusters,machines,nutanixmachines")
        other.settled("two", 1)
        assert other.names("clusters,machines,nutanixmachines") == before
        assert plane.vms() == vms
        other.kubectl.ok("delete", "clusters", "--all", "-n", FLEET, "--wait=false")
        other.wait("--for=delete", "cluster/two")


@pytest.mark.skipif(not os.environ.get("HOMEPORT_UPSTREAM"), reason="takes long: `make upstream` runs it")
def test_a_cluster_looks_after_itself_rolls_out_its_own_control_plane_and_comes_back(
    one: Plane, program: Path, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(one.clusterctl.ok("get", "kubeconfig", "one"))
    itself = Site(*_hands(kubeconfig, one.kubectl.kubectl, program, tmp_path))
    itself.prepare()
    with controllers(kubeconfig, "--namespace", "homeport-system", *one.way()):
        vms = one.vms()
        one.clusterctl.ok("move", "--to-kubeconfig", str(kubeconfig))
        assert one.names("cluster-api", "default") == set()
        itself.settled("one", 1, namespace="default")
        assert one.vms() == vms
        (before,) = itself.kubectl.ok("get", "machines", "-l", "cluster.x-k8s.io/control-plane", "-o", "name").split()
        itself.clusterctl.ok("alpha", "rollout", "restart", "kubeadmcontrolplane/one-kcp")
        itself.wait("--for=delete", before, namespace="default")
        itself.settled("one", 1, namespace="default")
        vms = one.vms()
        itself.clusterctl.ok("move", "--to-kubeconfig", str(one.kubectl.kubeconfig))
    one.settled("one", 1, namespace="default")
    assert one.vms() == vms
    one.scale("one", 2, namespace="default")
    one.scale("one", 1, namespace="default")
