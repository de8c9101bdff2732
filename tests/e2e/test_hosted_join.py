"""Clusters on Harvester with a hosted control plane, as kubectl's user meets them: a plane that is killed, moved by its
backup, and asked to remove everything."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.hosted_kit import HostingPlane

pytestmark = [pytest.mark.timeout(600)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "06-harvester"


class HarvesterPlane(HostingPlane):
    """With the example's cluster `quay`, whose control plane runs as Pods."""

    @property
    def infra(self) -> Path:
        return self.data / "harvester-kubeconfig.yaml"

    def prepare(self) -> None:
        self.kubectl("apply", "-f", str(EXAMPLE / "image.yaml"), config=self.infra)
        image = "virtualmachineimage/ubuntu-22.04-kube-v1.30.0"
        self.kubectl("wait", image, "--for=condition=Imported", "--timeout=60s", config=self.infra)
        self.kubectl("create", "secret", "generic", "harvester-kubeconfig", f"--from-file=kubeconfig={self.infra}")
        self.apply(*hosted_objects())

    def available(self, workers: int) -> None:
        def settled() -> bool:
            found = json.loads(self.kubectl("get", "cluster,machinedeployment", "-o", "json"))["items"]
            status = {each["kind"]: each.get("status") or {} for each in found}
            conditions = {each["type"]: each["status"] for each in status["Cluster"].get("conditions", ())}
            return conditions.get("Available") == "True" and [
                status["MachineDeployment"].get(name) for name in ("replicas", "availableReplicas")
            ] == [workers, workers]

        self.until(settled, f"the cluster is available with {workers} workers")

    def report(self) -> str:
        """And what Harvester has, and what the plane said last."""
        kinds = "virtualmachines,virtualmachineinstances,pods,persistentvolumeclaims"
        there = self.try_kubectl("get", kinds, "-A", "-o", "wide", config=self.infra).stdout
        machines = self.try_kubectl("get", "cluster,machinedeployment,machines,kubevirtmachines", "-o", "wide").stdout
        said = (self.data / "homeport.log").read_text(errors="replace").splitlines()
        last = said[-80:]
        return "\n".join((super().report(), machines, there, *last))

    def vms(self) -> dict[str, str]:
        """UIDs by name."""
        found = json.loads(self.kubectl("get", "virtualmachines", "-A", "-o", "json", config=self.infra))["items"]
        names = [each["metadata"]["name"] for each in found]
        assert len(names) == len(set(names))
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}

    def machines(self) -> set[str]:
        return set(self.kubectl("get", "machines", "-o", "jsonpath={.items[*].metadata.name}").split())

    def nodes(self) -> set[str]:
        text = self.kubectl("get", "secret", "quay-kubeconfig", "-o", "jsonpath={.data.value}")
        config = self.data.parent / "quay.kubeconfig"
        config.write_bytes(base64.b64decode(text))
        return set(self.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}", config=config).split())


def hosted_objects() -> list[dict[str, Any]]:
    objects = [each for each in yaml.safe_load_all((EXAMPLE / "cluster.yaml").read_text()) if each]
    kept = [each for each in objects if each["kind"] != "KubeadmControlPlane"]
    external = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}
    for each in kept:
        if each["kind"] == "Cluster":
            each["spec"]["controlPlaneRef"] |= {"kind": "StewardControlPlane", "name": "quay"}
        if each["kind"] == "MachineDeployment":
            each["spec"]["selector"] = {"matchLabels": {}}
        if each["kind"] == "KubevirtCluster":
            del each["spec"]["controlPlaneEndpoint"]
        if each["kind"] == "KubeadmConfigTemplate":
            each["spec"]["template"]["spec"]["joinConfiguration"] |= external
    spec = {"replicas": 1, "version": "v1.30.0", "addons": {"coreDNS": {}, "kubeProxy": {}}}
    made = {"apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "StewardControlPlane"}
    return [*kept, {**made, "metadata": {"name": "quay", "namespace": "default"}, "spec": spec}]


@pytest.fixture
def plane(tmp_path: Path, kubectl: str) -> Iterator[HarvesterPlane]:
    made = HarvesterPlane(tmp_path / "data", kubectl, "--sim=harvester")
    made.up()
    try:
        made.prepare()
        yield made
    finally:
        made.homeport("down")


def test_a_plane_that_is_killed_while_it_scales_goes_on_and_no_vm_is_made_twice(plane: HarvesterPlane) -> None:
    plane.available(2)
    before = plane.vms()
    plane.kubectl("scale", "machinedeployment/quay-workers", "--replicas=4")
    plane.until(lambda: len(plane.machines()) == 4, "the Machines exist")
    plane.kill()
    plane.up()
    plane.available(4)
    after = plane.vms()
    assert after.keys() == plane.machines() == plane.nodes()
    assert before.items() <= after.items()
    plane.kubectl("delete", "cluster", "quay", "--timeout=85s")
    assert plane.vms() == {}
    for kind in ("persistentvolumeclaims", "secrets"):
        assert "quay" not in plane.kubectl("get", kind, "-n", "default", "-o", "name", config=plane.infra)
    plane.until(
        lambda: "quay" not in plane.kubectl("get", "secrets,services,deployments,tcp", "-A", "-o", "name"),
        "nothing of the cluster is left",
    )


def test_a_backup_brings_control_planes_and_workers_back_and_destroys_no_vm(
    plane: HarvesterPlane, tmp_path: Path, kubectl: str
) -> None:
    plane.available(2)
    before = plane.vms()
    file = str(tmp_path / "plane.backup")
    plane.done("backup", file)
    plane.kubectl("scale", "machinedeployment/quay-workers", "--replicas=3")
    plane.available(3)
    grown = plane.vms()
    plane.done("down")
    _on_another_machine(tmp_path, kubectl, file, before)
    # Here the site goes on: the third worker is younger than the plane's objects.
    plane.done("restore", file)
    plane.up()
    plane.available(2)
    assert plane.vms() == grown
    assert plane.machines() == before.keys()
    plane.until(lambda: plane.nodes() == grown.keys(), "all workers are connected")


def _on_another_machine(folder: Path, kubectl: str, file: str, vms: dict[str, str]) -> None:
    other = HarvesterPlane(folder / "other", kubectl, "--sim=harvester")
    other.done("restore", file)
    other.up()
    try:
        other.available(2)
        assert other.vms() == vms
        other.until(lambda: other.nodes() == vms.keys(), "the workers are connected")
    finally:
        other.homeport("down")
