"""The running configuration of kubeadm, read back into the words of a KubeadmControlPlane."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.app.importer.configuration import cluster_configuration, cluster_network, endpoint
from homeport.bootstrap.kubeadm.configuration import Facts
from homeport.bootstrap.kubeadm.configuration import cluster_configuration as rendered
from homeport.controlplane.kubeadm.workload.clusterconfig import updated

GIVEN: dict[str, Any] = {
    "apiServer": {
        "extraArgs": [{"name": "audit-log-path", "value": "/var/log/a"}, {"name": "v", "value": "2"}],
        "extraVolumes": [{"name": "audit", "hostPath": "/var/log", "mountPath": "/var/log"}],
        "certSANs": ["10.0.0.100", "api.example.com"],
    },
    "controllerManager": {"extraArgs": [{"name": "cloud-provider", "value": "external"}]},
    "etcd": {"local": {"dataDir": "/var/lib/etcd", "extraArgs": [{"name": "quota-backend-bytes", "value": "1"}]}},
    "dns": {"imageTag": "v1.11.3"},
    "featureGates": {"ControlPlaneKubeletLocalMode": True},
    "imageRepository": "registry.example.com/k8s",
    "certificatesDir": "/etc/kubernetes/pki",
}


@pytest.mark.parametrize(("version", "api"), [("v1.30.0", "v1beta3"), ("v1.33.0", "v1beta4")])
def test_what_kubeadm_was_given_is_read_back(version: str, api: Any) -> None:
    """Through the document that kubeadm stores in the cluster, in both of its versions."""
    facts = Facts("one", version, "10.0.0.100:6443", ("10.244.0.0/16",), ("10.96.0.0/12",), "cluster.local")
    document = rendered(GIVEN, {}, facts, api)
    assert cluster_configuration(document) == GIVEN


@pytest.mark.parametrize(("version", "api"), [("v1.30.0", "v1beta3"), ("v1.33.0", "v1beta4")])
def test_the_stored_document_does_not_change_when_a_machine_joins(version: str, api: Any) -> None:
    facts = Facts("one", version, "10.0.0.100:6443", ("10.244.0.0/16",))
    document = rendered(GIVEN, {}, facts, api)
    assert updated(document, cluster_configuration(document), version) == document


def test_periods_of_validity_become_days() -> None:
    found = cluster_configuration(
        {"certificateValidityPeriod": "8760h0m0s", "caCertificateValidityPeriod": "87600h0m0s"}
    )
    assert found == {"certificateValidityPeriodDays": 365, "caCertificateValidityPeriodDays": 3650}


def test_the_default_registry_is_not_set() -> None:
    assert cluster_configuration({"imageRepository": "registry.k8s.io"}) == {}


def test_networks_are_read_for_both_families() -> None:
    networking = {"podSubnet": "10.244.0.0/16,fd00::/56", "serviceSubnet": "10.96.0.0/12", "dnsDomain": "home.lab"}
    assert cluster_network({"networking": networking}) == {
        "pods": {"cidrBlocks": ["10.244.0.0/16", "fd00::/56"]},
        "services": {"cidrBlocks": ["10.96.0.0/12"]},
        "serviceDomain": "home.lab",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.100:6443", ("10.0.0.100", 6443)),
        ("api.example.com", ("api.example.com", 6443)),
        ("[fd00::1]:8443", ("fd00::1", 8443)),
        ("fd00::1", ("fd00::1", 6443)),
        ("", None),
    ],
)
def test_the_endpoint_has_a_host_and_a_port(text: str, expected: tuple[str, int] | None) -> None:
    assert endpoint({"controlPlaneEndpoint": text}) == expected
