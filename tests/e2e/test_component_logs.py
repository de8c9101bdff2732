"""Logs of components, where users of upstream's releases look for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import Cluster, stop
from e2e.test_homeport_command import Plane

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PLACES = {
    "capi-system": "capi-controller-manager",
    "capi-kubeadm-bootstrap-system": "capi-kubeadm-bootstrap-controller-manager",
    "capi-kubeadm-control-plane-system": "capi-kubeadm-control-plane-controller-manager",
    "capk-system": "capk-controller-manager",
    "capx-system": "capx-controller-manager",
    "caip-in-cluster-system": "caip-in-cluster-controller-manager",
    "k0smotron-system": "k0smotron-controller-manager",
    "butler-system": "butler-controller",
    "kcm-system": "kcm-controller-manager",
}
CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: a, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: NutanixCluster, name: missing}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    plane = Plane(tmp_path / "data")
    yield plane
    plane.homeport("down", check=False)


def test_each_component_has_a_deployment_with_the_log_of_its_controllers(
    plane: Plane, kubectl: str, tmp_path: Path
) -> None:
    plane.up()
    ours = Cluster("ours", kubectl, plane.data / "kubeconfig", tmp_path)
    for namespace, name in PLACES.items():
        ours.ok("wait", "--for=create", f"deployment/{name}", "-n", namespace, "--timeout=90s")
        ours.ok("wait", "--for=condition=Available", f"deployment/{name}", "-n", namespace, "--timeout=90s")
    ours.ok("apply", "-f", "-", stdin=CLUSTER)
    following = ours.start("logs", "-f", "-n", "capi-system", "deploy/capi-controller-manager")
    try:
        assert following.stdout is not None
        assert next((line for line in following.stdout if '"default/a"' in line), "")
    finally:
        stop(following)
    assert "default/a" not in ours.ok("logs", "-n", "capx-system", "deploy/capx-controller-manager")


def test_the_deployment_of_a_component_that_is_left_out_goes(plane: Plane, kubectl: str, tmp_path: Path) -> None:
    plane.up()
    ours = Cluster("ours", kubectl, plane.data / "kubeconfig", tmp_path)
    where = ("deployment/capx-controller-manager", "-n", "capx-system", "--timeout=90s")
    ours.ok("wait", "--for=create", *where)
    plane.homeport("down")
    plane.up("--without", "nutanix")
    ours.ok("wait", "--for=delete", *where)
