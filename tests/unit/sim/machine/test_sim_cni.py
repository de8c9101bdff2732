"""Which Pods bring a network for Pods to their node, and which only look like it."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.sim.machine.workload.network.cni import bringer, brings_network, finds_api


def pod(name: str = "net", *, proxy: bool = False, **spec: Any) -> dict[str, Any]:
    labels = {"k8s-app": "kube-proxy"} if proxy else {}
    meta = {"name": name, "namespace": "kube-system", "labels": labels}
    return {
        "metadata": meta,
        "spec": {"nodeName": "n", "hostNetwork": True, "containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": "Running"},
    }


def configuring(path: str = "/etc/cni/net.d", image: str = "net", init: bool = False, **more: Any) -> dict[str, Any]:
    mount = {"name": "conf", "mountPath": "/host/etc/cni/net.d", **more.pop("mount", {})}
    writer = {"name": "writer", "image": image, "volumeMounts": [mount], "env": more.pop("env", [])}
    plain = {"name": "c", "image": image}
    spec: dict[str, Any] = {"initContainers": [writer], "containers": [plain]} if init else {"containers": [writer]}
    return pod(volumes=[{"name": "conf", "hostPath": {"path": path}}], **{**spec, **more})


@pytest.mark.parametrize(
    ("found", "brings"),
    [
        (configuring(), True),
        (configuring(init=True), True),
        (configuring("/etc/cni/net.d/"), True),
        (configuring("/etc/cni"), True),
        (configuring("/opt/cni/bin"), False),
        (configuring("/var/lib/cni"), False),
        (configuring(mount={"readOnly": True}), False),
        (configuring(mount={"name": "other"}), False),
        (configuring(hostNetwork=False), False),
        (configuring(image="ghcr.io/k8snetworkplumbingwg/multus-cni:v4"), False),
        (configuring(image="docker.io/istio/install-cni:1.26"), False),
        (pod(volumes=[{"name": "conf", "hostPath": {"path": "/etc/cni/net.d"}}]), False),
        (pod(volumes=[{"name": "conf", "emptyDir": {}}]), False),
    ],
)
def test_who_writes_the_configuration_of_a_network_brings_it(found: dict[str, Any], brings: bool) -> None:
    assert brings_network(found) is brings


@pytest.mark.parametrize(
    ("env", "finds"),
    [
        ([], False),
        ([{"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.100"}], True),
        ([{"name": "KUBERNETES_SERVICE_HOST", "value": ""}], False),
        ([{"name": "KUBERNETES_SERVICE_HOST", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "h"}}}], True),
        ([{"name": "CONTROL_PLANE_ENDPOINT", "value": "10.0.0.100:6443"}], True),
        ([{"name": "KUBERNETES_SERVICE_PORT", "value": "6443"}], False),
    ],
)
def test_a_pod_finds_the_api_without_kube_proxy_when_it_has_its_address(env: list[dict[str, Any]], finds: bool) -> None:
    assert finds_api(configuring(env=env)) is finds


def test_a_network_needs_kube_proxy_or_the_address_of_the_api() -> None:
    told = configuring(env=[{"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.100"}])
    assert bringer([configuring()], "n") == ""
    assert bringer([configuring(), pod("proxy", proxy=True)], "n") == "kube-system/net"
    assert bringer([told], "n") == "kube-system/net"
    assert bringer([told], "another") == ""
    pending = {**told, "status": {"phase": "Pending"}}
    assert bringer([pending], "n") == ""
