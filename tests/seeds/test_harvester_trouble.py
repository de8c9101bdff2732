"""What the guide for Harvester lists as trouble, made on purpose: the tenant cluster itself reports the cause and its cure,
and recovers after the correction."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from seeds.block import H06_SECRET, H07_PROVIDER_CONFIG, H12_MACHINES, H18_REQUEST, P01_CLUSTER, filled
from seeds.shell import Shell

SYSTEM = "butler-system"
CONFIG = "providerconfig/harvester-prod"
CLUSTER = "tenantcluster/my-cluster"
GOOD = yaml.safe_load(H07_PROVIDER_CONFIG)["spec"]["harvester"]


@dataclass(frozen=True)
class Trouble:
    reason: str
    words: tuple[str, ...]  # of the message: the field or object, and the cure
    config: dict[str, Any] = field(default_factory=dict)  # of spec.harvester
    cluster: dict[str, Any] = field(default_factory=dict)  # of the kubeconfig's cluster; None removes a field
    user: dict[str, Any] = field(default_factory=dict)  # in place of the kubeconfig's user


TROUBLES = {
    "server URL of a node": Trouble(
        "Unreachable", ("https://127.0.0.1:6443", "external address"), cluster={"server": "https://127.0.0.1:6443"}
    ),
    "port that a firewall blocks": Trouble(
        "Unreachable", ("10.20.0.10:6444", "firewall"), cluster={"server": "https://10.20.0.10:6444"}
    ),
    "certificate that is not trusted": Trouble(
        "CertificateNotTrusted",
        ("certificate-authority-data", "insecure-skip-tls-verify"),
        cluster={"certificate-authority-data": None},
    ),
    "token that is not valid": Trouble(
        "CredentialsInvalid",
        ("Secret butler-system/harvester-kubeconfig", "download the kubeconfig again"),
        user={"token": "expired"},
    ),
    "wrong key": Trouble(
        "InvalidConfiguration",
        ("Secret butler-system/harvester-kubeconfig has no key config", "correct credentialsRef.key"),
        config={"credentialsRef": {"key": "config"}},
    ),
    "missing network": Trouble(
        "NotFound",
        ("spec.harvester.networkName: network 'default/workload' does not exist", "did you mean 'default/workloads'?"),
        config={"networkName": "default/workload"},
    ),
    "missing image": Trouble(
        "NotFound",
        ("spec.harvester.imageName: image 'default/talos-1.8' not found", "did you mean 'talos-1.9'?"),
        config={"imageName": "default/talos-1.8"},
    ),
    "missing storage class": Trouble(
        "NotFound", ("spec.harvester.storageClassName", "harvester-longhorn"), config={"storageClassName": "longhorn"}
    ),
    "image that was not imported": Trouble(
        "ImageNotReady",
        ("spec.harvester.imageName: image default/half has no file yet", "upload it in the Harvester dashboard"),
        config={"imageName": "default/half"},
    ),
}
HALF_IMAGE = """
apiVersion: harvesterhci.io/v1beta1
kind: VirtualMachineImage
metadata: {name: half, namespace: default}
spec: {displayName: half, sourceType: upload}
"""
REQUEST = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: MachineRequest
metadata: {name: stuck, namespace: butler-system}
spec: {providerRef: {name: harvester-prod}, machineName: stuck, role: worker, cpu: 2, memoryMB: 4096, diskGB: 20}
"""


@pytest.fixture(scope="module")
def site(shell: Shell) -> Shell:
    """A cluster that is Ready."""
    shutil.copy(shell.data / "harvester-kubeconfig.yaml", shell.folder)
    shell.ok(H06_SECRET)
    shell.apply(H07_PROVIDER_CONFIG)
    shell.apply(P01_CLUSTER)
    shell.in_context("harvester").apply(HALF_IMAGE)
    shell.ready(CLUSTER)
    return shell


@pytest.fixture
def corrected(site: Shell) -> Iterator[Shell]:
    """As `site`, also after a test that failed."""
    yield site
    correct(site)


def kubeconfig(shell: Shell, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    made = yaml.safe_load((shell.data / "harvester-kubeconfig.yaml").read_text())
    entry = made["clusters"][0]["cluster"] | cluster
    made["clusters"][0]["cluster"] = {key: value for key, value in entry.items() if value is not None}
    made["users"][0]["user"] = user or made["users"][0]["user"]
    return str(yaml.safe_dump(made))


def change_secret(shell: Shell, text: str) -> None:
    shell.patch("secret/harvester-kubeconfig", {"stringData": {"kubeconfig": text}}, SYSTEM)


def correct(shell: Shell) -> None:
    shell.patch(CONFIG, {"spec": {"harvester": GOOD}}, SYSTEM)
    change_secret(shell, kubeconfig(shell, {}, {}))


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble_is_reported_on_the_cluster_with_its_cure_and_goes_with_the_correction(
    corrected: Shell, name: str
) -> None:
    """A cluster that works stays Ready: its condition ProviderReady has the cause."""
    shell, trouble = corrected, TROUBLES[name]
    if trouble.config:
        shell.patch(CONFIG, {"spec": {"harvester": trouble.config}}, SYSTEM)
    if trouble.cluster or trouble.user:
        change_secret(shell, kubeconfig(shell, trouble.cluster, trouble.user))
    text = shell.waits(CLUSTER, trouble.reason, kind="ProviderReady")
    assert [word for word in trouble.words if word not in text] == [], text
    assert shell.waits(CONFIG, trouble.reason, namespace=SYSTEM) in text
    correct(shell)
    shell.ok(f"kubectl wait --for=condition=ProviderReady {CLUSTER} --timeout=60s")


def test_a_kubeconfig_that_is_not_one_is_reported_without_its_content(corrected: Shell) -> None:
    shell = corrected
    change_secret(shell, "secret-stuff: [")
    text = shell.waits(CLUSTER, "InvalidConfiguration", kind="ProviderReady")
    assert "Secret butler-system/harvester-kubeconfig" in text
    assert "secret-stuff" not in text


def test_the_verification_of_the_certificate_can_be_turned_off(corrected: Shell) -> None:
    shell = corrected
    insecure = {"certificate-authority-data": None, "insecure-skip-tls-verify": True}
    change_secret(shell, kubeconfig(shell, {"certificate-authority-data": None}, {}))
    shell.waits(CONFIG, "CertificateNotTrusted", namespace=SYSTEM)
    change_secret(shell, kubeconfig(shell, insecure, {}))
    shell.ready(CONFIG, namespace=SYSTEM)
    shell.patch(CLUSTER, {"spec": {"workers": {"replicas": 2}}})  # a VM is created with it
    shell.ok(f"kubectl wait --for=jsonpath='{{.status.workerNodesReady}}'=2 {CLUSTER} --timeout=90s")


@pytest.mark.parametrize(
    ("vlan", "words"),
    [(50, ("default/vlan-50 has a DHCP server",)), (99, ("the switch carries its VLAN to the hosts",))],
    ids=["without DHCP", "VLAN that no switch carries"],
)
def test_a_network_without_addresses_is_reported_for_the_workers(
    corrected: Shell, vlan: int, words: tuple[str, ...]
) -> None:
    shell, harvester = corrected, corrected.in_context("harvester")
    network = harvester.get("network-attachment-definitions/workloads", "default")
    config = json.loads(network["spec"]["config"]) | {"vlan": vlan}
    labels = network["metadata"]["labels"] | {"network.harvesterhci.io/vlan-id": str(vlan)}
    network["metadata"] = {"name": f"vlan-{vlan}", "namespace": "default", "labels": labels}
    network["spec"] = {"config": json.dumps(config)}
    harvester.apply(json.dumps(network))
    shell.patch(CONFIG, {"spec": {"harvester": {"networkName": f"default/vlan-{vlan}"}}}, SYSTEM)
    shell.says(CLUSTER, *words)
    correct(shell)
    shell.ready(CLUSTER)


def test_a_machine_request_that_is_stuck_says_why_and_goes_on_after_the_correction(corrected: Shell) -> None:
    shell, harvester = corrected, corrected.in_context("harvester")
    shell.patch(CONFIG, {"spec": {"harvester": {"imageName": "default/talos-1.8"}}}, SYSTEM)
    shell.apply(REQUEST)
    text = shell.waits("machinerequest/stuck", "NotFound", namespace=SYSTEM)
    described = shell.ok(filled(H18_REQUEST, name="stuck", namespace=SYSTEM))
    assert "talos-1.8" in text
    assert "Failed" in described
    assert "Failure Message:" in described
    correct(shell)
    shell.ready("machinerequest/stuck", namespace=SYSTEM)
    assert "Running" in harvester.ok(filled(H12_MACHINES, name="stuck", namespace="default"))
