"""Which clusters get no network plugin, as far as objects show."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.app.doctor.examine import examine
from homeport.app.doctor.fact import Facts
from homeport.app.object.networkplugin import without_network_plugin

API = {"Cluster": "cluster.x-k8s.io/v1beta2", "ClusterAddon": "addons.homeport.dev/v1alpha1"}


def obj(kind: str, name: str, spec: dict[str, Any], namespace: str = "default", **more: Any) -> Unstructured:
    meta = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}", "labels": more.pop("labels", {})}
    version = API.get(kind, "addons.cluster.x-k8s.io/v1beta2")
    return Unstructured({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, **more})


def cluster(plane: str = "KubeadmControlPlane", **more: Any) -> Unstructured:
    return obj("Cluster", "quay", {"controlPlaneRef": {"kind": plane, "name": "quay"}}, **more)


def selecting(kind: str, **spec: Any) -> Unstructured:
    return obj(kind, "net", {"clusterSelector": {"matchLabels": {"net": "on"}}, **spec})


LABELLED = {"net": "on"}


@pytest.mark.parametrize(
    "bringing",
    [
        obj("ClusterAddon", "net", {"clusterName": "quay", "addon": "cilium"}),
        obj("ClusterAddon", "net", {"clusterName": "quay", "chart": {"name": "antrea"}}),
        obj("ClusterAddon", "net", {"clusterName": "quay", "manifests": [{"name": "own"}]}),
        selecting("ClusterAddon", addon="flannel"),
        selecting("ClusterResourceSet"),
        selecting("HelmChartProxy"),
        obj("KubeadmControlPlane", "quay", {"postKubeadmCommands": ["kubectl apply -f /etc/calico.yaml"]}),
    ],
)
def test_a_network_plugin_may_come_from(bringing: Unstructured) -> None:
    assert without_network_plugin([cluster(labels=LABELLED)], [bringing]) == []


@pytest.mark.parametrize(
    "other",
    [
        obj("ClusterAddon", "net", {"clusterName": "quay", "addon": "metrics-server"}),
        obj("ClusterAddon", "net", {"clusterName": "pier", "addon": "cilium"}),
        obj("ClusterAddon", "net", {"clusterName": "quay", "addon": "cilium"}, namespace="else"),
        obj("ClusterResourceSet", "net", {"clusterSelector": {"matchLabels": {"net": "off"}}}),
        obj("ClusterResourceSet", "net", {"clusterSelector": {}}),
        obj("KubeadmControlPlane", "pier", {"postKubeadmCommands": ["kubectl apply -f /etc/calico.yaml"]}),
        obj("KubeadmControlPlane", "quay", {"version": "v1.30.0"}),
    ],
)
def test_a_network_plugin_does_not_come_from(other: Unstructured) -> None:
    quay = cluster(labels=LABELLED)
    assert without_network_plugin([quay], [other]) == [quay]


def test_distributions_bring_their_own() -> None:
    assert without_network_plugin([cluster("K0sControlPlane"), obj("Cluster", "bare", {})], []) == []


def test_the_doctor_notes_it_until_the_first_control_plane_is_up() -> None:
    [found] = examine(Facts(now=0.0, objects=[cluster()]))
    assert (found.cause, found.serious, found.place) == ("NoNetworkPluginExpected", False, "Cluster quay")
    assert "clusterName quay and addon cilium, calico or flannel" in found.message
    up = cluster(status={"initialization": {"controlPlaneInitialized": True}})
    assert examine(Facts(now=0.0, objects=[up])) == []
