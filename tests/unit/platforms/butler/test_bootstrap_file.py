"""Files of `homeport bootstrap`: manifests, and the configuration of butleradm."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery import yaml
from homeport.platforms.butler.bootstrap.file import BootstrapFile, FileError, read_bootstrap_file

NUTANIX: dict[str, Any] = {
    "provider": "nutanix",
    "cluster": {"name": "mgmt", "topology": "ha", "controlPlane": {"replicas": 3, "cpu": 4}},
    "network": {"vip": "10.0.0.9", "loadBalancerPool": {"start": "10.0.0.20", "end": "10.0.0.30"}},
    "talos": {"version": "v1.9.3", "schematic": "e" * 64},
    "addons": {"storage": {"type": "none"}},
    "providerConfig": {
        "nutanix": {
            "endpoint": "https://pc.example.com",
            "port": 9440,
            "username": "admin",
            "password": "secret",
            "clusterUUID": "a",
            "subnetUUID": "b",
            "imageUUID": "c",
        }
    },
}
HARVESTER = {"kubeconfigPath": "hv.yaml", "namespace": "default", "networkName": "default/vms", "imageName": "talos"}


def no_file(path: str) -> str:
    raise OSError(2, "No such file or directory", path)


def read(config: Any, files: dict[str, str] | None = None) -> BootstrapFile:
    text = config if isinstance(config, str) else yaml.dump(config)
    return read_bootstrap_file(text.encode(), "mgmt.yaml", files.__getitem__ if files else no_file)


def test_the_configuration_of_butleradm_becomes_a_secret_a_provider_and_a_bootstrap() -> None:
    found = read(NUTANIX)
    secret, provider, bootstrap = found.objects
    assert secret["metadata"] == {"name": "nutanix-credentials", "namespace": "butler-system"}
    assert secret["stringData"] == {"username": "admin", "password": "secret"}
    assert provider["spec"]["credentialsRef"] == {"name": "nutanix-credentials"}
    assert provider["spec"]["nutanix"]["clusterUUID"] == "a"
    assert "password" not in str(provider)
    assert bootstrap["spec"]["providerRef"] == {"name": "nutanix", "namespace": "butler-system"}
    assert (found.model.name, found.model.vip, found.model.control_plane.replicas) == ("mgmt", "10.0.0.9", 3)
    assert found.warnings == ()


def test_the_kubeconfig_of_harvester_is_read_from_its_file() -> None:
    config = {**NUTANIX, "provider": "harvester", "providerConfig": {"harvester": HARVESTER}}
    secret, provider, _ = read(config, {"hv.yaml": "a kubeconfig"}).objects
    assert secret["stringData"] == {"kubeconfig": "a kubeconfig"}
    assert provider["spec"]["harvester"] == {key: HARVESTER[key] for key in ("namespace", "networkName", "imageName")}


def test_the_console_and_its_passwords_are_left_out_with_a_warning() -> None:
    console = {"enabled": True, "auth": {"adminPassword": "very secret"}}
    found = read({**NUTANIX, "addons": {"storage": {"type": "none"}, "console": console}})
    assert "very secret" not in str(found.objects)
    assert found.warnings == ("addons.console has no effect: Homeport does not install a console",)


def test_manifests_are_kept_and_the_bootstrap_is_applied_last() -> None:
    text = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ClusterBootstrap
metadata: {name: mgmt}
spec:
  providerRef: {name: site}
  network: {vip: 10.0.0.9}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata: {name: site, namespace: other}
spec: {type: nutanix}
---
apiVersion: v1
kind: Secret
metadata: {name: site}
"""
    kinds = [(each["kind"], each["metadata"]["namespace"]) for each in read(text).objects]
    assert kinds == [("Secret", "butler-system"), ("ProviderConfig", "other"), ("ClusterBootstrap", "butler-system")]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in NUTANIX.items() if key != name}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("a: [", "mgmt.yaml"),
        ("- 1", "expected manifests with a ClusterBootstrap"),
        ("kind: Secret\napiVersion: v1\nmetadata: {name: a}\n", "expected one ClusterBootstrap, found 0"),
        ({**NUTANIX, "clutser": {}}, "unknown field clutser: did you mean cluster?"),
        ({**without("cluster")}, "cluster.name is required"),
        ({**NUTANIX, "provider": "proxmox"}, "proxmox is not supported yet"),
        ({**NUTANIX, "provider": "harvester"}, "providerConfig.harvester is required"),
        (
            {**NUTANIX, "providerConfig": {"nutanix": {"endpoint": "https://pc", "username": "admin"}}},
            "providerConfig.nutanix.password is required",
        ),
        (
            {**NUTANIX, "provider": "harvester", "providerConfig": {"harvester": HARVESTER}},
            "kubeconfigPath: hv.yaml can't be read",
        ),
        ({**without("network")}, "spec.network.vip"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(config: Any, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read(config)
