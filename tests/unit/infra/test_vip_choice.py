"""kube-vip is added for clusters that want it, where kubeadm runs static Pods."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ContractRef, Machine
from homeport.infra.cluster.vip import WANTED, with_vip

DATA = b"#cloud-config\nruncmd:\n- kubeadm init\n"


def _cluster(**annotations: str) -> Cluster:
    cluster = Cluster()
    cluster.metadata.annotations = dict(annotations)
    cluster.spec.control_plane_endpoint.host = "10.0.0.9"
    return cluster


def _machine(bootstrap: str) -> Machine:
    machine = Machine()
    machine.spec.version = "v1.30.0"
    if bootstrap:
        machine.spec.bootstrap.config_ref = ContractRef(api_group="bootstrap.example.com", kind=bootstrap, name="a")
    return machine


@pytest.mark.parametrize(
    ("bootstrap", "data", "added"),
    [
        ("KubeadmConfig", DATA, True),
        ("TalosConfig", DATA, False),
        ("K0sControllerConfig", b"#cloud-config\nruncmd: [k0s install controller]\n", False),
        ("", DATA, True),
        ("", b"#cloud-config\nruncmd: [k0s install controller]\n", False),
    ],
)
def test_kube_vip_is_added_for_bootstrap_kinds_that_use_it(bootstrap: str, data: bytes, added: bool) -> None:
    made = with_vip(data, _machine(bootstrap), _cluster(), "ens3")
    assert (b"kube-vip" in made) is added
    assert added or made == data


@pytest.mark.parametrize(("value", "added"), [("false", False), ("False", False), ("true", True)])
def test_a_cluster_can_refuse_kube_vip(value: str, added: bool) -> None:
    made = with_vip(DATA, _machine("KubeadmConfig"), _cluster(**{WANTED: value}), "ens3")
    assert (b"kube-vip" in made) is added
