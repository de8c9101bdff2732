from __future__ import annotations

from typing import Any

import pytest

from homeport.controlplane.kubeadm.workload.addon import (
    AddonError,
    check_coredns,
    coredns_image,
    kube_proxy_image,
    migrated_corefile,
    parse_image,
)
from homeport.controlplane.kubeadm.workload.clusterconfig import updated, with_dns

CURRENT: dict[str, Any] = {
    "apiVersion": "kubeadm.k8s.io/v1beta3",
    "kind": "ClusterConfiguration",
    "kubernetesVersion": "v1.30.2",
    "clusterName": "one",
    "networking": {"podSubnet": "192.168.0.0/16"},
    "apiServer": {"extraArgs": {"v": "2"}, "timeoutForControlPlane": "4m0s"},
    "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
    "featureGates": {"Old": True},
}
WANTED: dict[str, Any] = {
    "apiServer": {
        "extraArgs": [{"name": "v", "value": "3"}],
        "extraEnvs": [{"name": "A", "value": "b"}],
        "certSANs": ["one.example.com"],
    },
    "etcd": {"local": {"extraArgs": [{"name": "quota-backend-bytes", "value": "8"}]}},
    "encryptionAlgorithm": "ECDSA-P256",
    "certificateValidityPeriodDays": 90,
}


def test_the_configuration_follows_in_the_form_that_kubeadm_reads() -> None:
    made = updated(CURRENT, WANTED, "v1.30.5")
    assert made["apiVersion"] == "kubeadm.k8s.io/v1beta3"
    assert made["kubernetesVersion"] == "v1.30.5"
    assert made["apiServer"] == {
        "extraArgs": {"v": "3"},
        "certSANs": ["one.example.com"],
        "timeoutForControlPlane": "4m0s",
    }
    assert made["etcd"] == {"local": {"extraArgs": {"quota-backend-bytes": "8"}, "dataDir": "/var/lib/etcd"}}
    assert made["networking"] == CURRENT["networking"]
    assert "featureGates" not in made
    assert "encryptionAlgorithm" not in made


def test_from_1_31_on_the_configuration_is_of_the_newer_form() -> None:
    made = updated(CURRENT, WANTED, "v1.31.0")
    assert made["apiVersion"] == "kubeadm.k8s.io/v1beta4"
    assert made["apiServer"] == WANTED["apiServer"]
    assert made["encryptionAlgorithm"] == "ECDSA-P256"
    assert made["certificateValidityPeriod"] == "2160h0m0s"


def test_nothing_changes_twice() -> None:
    for version in ("v1.30.5", "v1.31.0"):
        once = updated(CURRENT, WANTED, version)
        assert updated(once, WANTED, version) == once


def test_external_etcd_stays_external() -> None:
    external = {"external": {"endpoints": ["https://e:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}}
    assert updated({**CURRENT, "etcd": external}, {"etcd": external}, "v1.30.5")["etcd"] == external


def test_the_image_of_coredns_is_written_down() -> None:
    assert with_dns(CURRENT, {"imageTag": "v1.11.3"})["dns"] == {"imageTag": "v1.11.3"}
    assert "dns" not in with_dns({**CURRENT, "dns": {"imageTag": "v1.11.1"}}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("registry.k8s.io/kube-proxy:v1.30.2", ("registry.k8s.io", "kube-proxy", "v1.30.2")),
        ("localhost:5000/a/b/c:tag", ("localhost:5000/a/b", "c", "tag")),
        ("localhost:5000/c", ("localhost:5000", "c", "")),
        ("r/c:t@sha256:0123", ("r", "c", "t")),
    ],
)
def test_image_references_are_parsed(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_image(text) == expected


def test_kube_proxy_has_the_version_of_the_control_plane() -> None:
    assert kube_proxy_image("registry.k8s.io/kube-proxy:v1.30.2", "v1.31.0", "") == "registry.k8s.io/kube-proxy:v1.31.0"
    assert kube_proxy_image("a/kube-proxy:v1", "v1.31.0+x", "own/k8s/") == "own/k8s/kube-proxy:v1.31.0_x"


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, "registry.k8s.io/coredns/coredns:v1.11.1"),
        ({"dns": {"imageTag": "v1.11.3"}}, "registry.k8s.io/coredns/coredns:v1.11.3"),
        ({"dns": {"imageRepository": "own/dns", "imageTag": "v1.12.0"}}, "own/dns/coredns:v1.12.0"),
        ({"imageRepository": "registry.k8s.io"}, "registry.k8s.io/coredns/coredns:v1.11.1"),
    ],
)
def test_coredns_has_the_image_that_the_user_names(configuration: dict[str, Any], expected: str) -> None:
    assert coredns_image("registry.k8s.io/coredns/coredns:v1.11.1", configuration) == expected


def test_coredns_is_not_downgraded() -> None:
    check_coredns("r/coredns:v1.11.1", "r/coredns:v1.11.1-patched")
    with pytest.raises(AddonError, match="can't be downgraded"):
        check_coredns("r/coredns:v1.11.1", "r/coredns:v1.10.0")
    with pytest.raises(AddonError, match="no version"):
        check_coredns("r/coredns:v1.11.1", "r/coredns:latest")


COREFILE = """.:53 {
    errors
    kubernetes cluster.local in-addr.arpa {
       pods insecure
       upstream
       resyncperiod 5m
    }
    federation cluster.local {
       prod example.com
    }
    proxy . /etc/resolv.conf
    cache 30
}
"""


def test_a_corefile_loses_what_the_newer_coredns_does_not_read() -> None:
    made = migrated_corefile(COREFILE, (1, 3, 1), (1, 8, 0))
    assert made.splitlines() == [
        ".:53 {",
        "    errors",
        "    kubernetes cluster.local in-addr.arpa {",
        "       pods insecure",
        "    }",
        "    forward . /etc/resolv.conf",
        "    cache 30",
        "}",
    ]
    assert migrated_corefile(COREFILE, (1, 8, 0), (1, 11, 3)) == COREFILE
