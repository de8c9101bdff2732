"""Names of what belongs to a k0smotron Cluster."""

from __future__ import annotations

import hashlib

import pytest

from homeport.hosted.k0smotron.name import Names, shortened, volume_name


def test_objects_have_the_names_that_k0smotron_gives_them() -> None:
    names = Names("edge")
    assert names.statefulset == names.volume == names.ingress == "kmc-edge"
    assert names.config == "kmc-edge-config"
    assert names.entrypoint == "kmc-entrypoint-edge-config"
    assert names.monitoring == "kmc-prometheus-edge-config"
    assert names.etcd == "kmc-edge-etcd"
    assert names.defrag == "kmc-edge-defrag"
    assert names.telemetry == "kmc-edge-telemetry-config"
    assert {names.service(each) for each in ("ClusterIP", "NodePort", "LoadBalancer")} == {
        "kmc-edge",
        "kmc-edge-nodeport",
        "kmc-edge-lb",
    }


def test_a_long_name_keeps_its_beginning_and_gets_a_digest() -> None:
    long = "kmc-" + "x" * 70
    digest = hashlib.md5(long.encode(), usedforsecurity=False).hexdigest()
    assert shortened(long) == f"{long[:57]}-{digest[:5]}"
    assert len(shortened(long)) == 63
    assert shortened("a" * 63) == "a" * 63


def test_two_long_names_stay_apart() -> None:
    base = "c" * 60
    assert Names(base + "-1").statefulset != Names(base + "-2").statefulset
    # Kubernetes puts the names of Pods and revisions of a StatefulSet into labels, which have a limit of their own.
    assert all(len(name) <= 52 for name in (Names(base).statefulset, Names(base).etcd))
    assert all(len(name) <= 63 for name in (Names(base).entrypoint, Names(base).etcd, Names(base).service("NodePort")))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/etc/audit", "etc-audit"),
        ("/etc/k0s/audit.yaml", "etc-k0s-audit-yaml-"),
        ("/", ""),
        ("/Etc/Audit", "etc-audit-"),
    ],
)
def test_a_volume_is_named_after_the_path_it_is_mounted_at(path: str, name: str) -> None:
    made = volume_name(path)
    assert made.startswith(name)
    assert 1 <= len(made) <= 63
    assert volume_name("/etc/a.b") != volume_name("/etc/a_b")
