"""What the guide for Nutanix lists as trouble, made on purpose: the tenant cluster itself reports the cause and its cure,
and recovers after the correction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

import pytest
import yaml

from seeds.block import (
    N03_SECRET,
    N04_PROVIDER_CONFIG,
    N07_POOL,
    N09_LIST_CLUSTERS,
    N14_LIST_IMAGES,
    N15_INSECURE,
    complete,
)
from seeds.shell import Shell

SYSTEM = "butler-system"
CONFIG = "providerconfig/nutanix-prod"
GOOD = yaml.safe_load(N04_PROVIDER_CONFIG)["spec"]["nutanix"]
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}], selector: {app: web}}
"""


@dataclass(frozen=True)
class Trouble:
    reason: str
    words: tuple[str, ...]  # of the message: the field or object, and the cure
    config: dict[str, Any] = field(default_factory=dict)  # of spec.nutanix
    secret: dict[str, str | None] = field(default_factory=dict)


TROUBLES = {
    "wrong password": Trouble(
        "CredentialsInvalid",
        ("Secret butler-system/nutanix-credentials", "correct the user name, password or API key"),
        secret={"NUTANIX_PASSWORD": "wrong-password"},
    ),
    "missing key": Trouble(
        "InvalidConfiguration",
        ("Secret butler-system/nutanix-credentials has no key NUTANIX_PASSWORD", "add the user and password"),
        secret={"NUTANIX_PASSWORD": None},
    ),
    "wrong address and port": Trouble(
        "Unreachable",
        ("10.127.14.99:9441 can't be reached", "check the address, and that no firewall blocks port 9441"),
        config={"prismCentral": {"address": "10.127.14.99", "port": 9441}},
    ),
    "wrong cluster": Trouble(
        "NotFound",
        ("spec.nutanix.cluster: cluster 'cluster-1' not found", "did you mean 'cluster-01'"),
        config={"cluster": {"name": "cluster-1"}},
    ),
    "wrong subnet": Trouble(
        "NotFound",
        (
            "spec.nutanix.subnet: subnet 'workloads' not found on cluster 'cluster-01'",
            "did you mean 'workload-subnet'?",
        ),
        config={"subnet": {"name": "workloads"}},
    ),
    "wrong UUID of the subnet": Trouble(
        "NotFound",
        ("spec.nutanix.subnet", "00000000-0000-4000-8000-000000000000", "there are: 'workload-subnet'"),
        config={"subnet": {"name": None, "uuid": "00000000-0000-4000-8000-000000000000"}},
    ),
    "wrong image": Trouble(
        "NotFound",
        ("spec.nutanix.image: image 'talos-1.8' not found", "did you mean 'talos-1.9'"),
        config={"image": {"name": "talos-1.8"}},
    ),
    "ISO image": Trouble(
        "ImageIsISO",
        ("spec.nutanix.image: 'talos-1.9-iso' is an ISO installer image", "a disk image (type DISK, qcow2 or raw)"),
        config={"image": {"name": "talos-1.9-iso"}},
    ),
    "self-signed certificate": Trouble(
        "CertificateNotTrusted",
        ("self-signed.example.com:9440", "key ca.pem of Secret", "set spec.nutanix.prismCentral.insecure: true"),
        config={"prismCentral": {"address": "self-signed.example.com"}},
    ),
}
RIGHT_SECRET = {"NUTANIX_USER": "admin", "NUTANIX_PASSWORD": "your-password"}


@pytest.fixture(scope="module")
def site(shell: Shell) -> Shell:
    """A cluster that is Ready."""
    shell.ok(N03_SECRET)
    shell.apply(N04_PROVIDER_CONFIG)
    shell.apply(complete("TenantCluster", "shop", N07_POOL))
    shell.ready("tenantcluster/shop")
    return shell


@pytest.fixture
def corrected(site: Shell) -> Iterator[Shell]:
    """As `site`, also after a test that failed."""
    yield site
    correct(site)


def correct(shell: Shell) -> None:
    part = {**GOOD, **{name: {**GOOD[name], "uuid": None} for name in ("cluster", "subnet", "image")}}
    shell.patch(CONFIG, {"spec": {"nutanix": part}}, SYSTEM)
    change_secret(shell, dict(RIGHT_SECRET))


def change_secret(shell: Shell, values: dict[str, str | None], name: str = "nutanix-credentials") -> None:
    removed = {"data": {key: None for key, value in values.items() if value is None}}
    shell.patch(f"secret/{name}", removed | {"stringData": {k: v for k, v in values.items() if v is not None}}, SYSTEM)


def vms(shell: Shell, prefix: str) -> list[str]:
    entities = json.loads(shell.ok(N14_LIST_IMAGES.replace("images/list", "vms/list")))["entities"]
    return [each["status"]["name"] for each in entities if each["status"]["name"].startswith(prefix)]


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble_is_reported_on_the_cluster_with_its_cure_and_goes_with_the_correction(
    corrected: Shell, name: str
) -> None:
    """A cluster that works stays Ready: its condition ProviderReady has the cause."""
    shell, trouble = corrected, TROUBLES[name]
    if trouble.config:
        shell.patch(CONFIG, {"spec": {"nutanix": trouble.config}}, SYSTEM)
    if trouble.secret:
        change_secret(shell, trouble.secret)
    text = shell.waits("tenantcluster/shop", trouble.reason, kind="ProviderReady")
    assert [word for word in trouble.words if word not in text] == [], text
    assert "wrong-password" not in text
    assert shell.waits(CONFIG, trouble.reason, namespace=SYSTEM) in text
    correct(shell)
    shell.ok("kubectl wait --for=condition=ProviderReady tenantcluster/shop --timeout=60s")


def test_insecure_or_a_trusted_authority_is_the_cure_of_a_self_signed_certificate(corrected: Shell) -> None:
    shell = corrected
    shell.patch(CONFIG, {"spec": {"nutanix": {"prismCentral": {"address": "self-signed.example.com"}}}}, SYSTEM)
    shell.waits("tenantcluster/shop", "CertificateNotTrusted", kind="ProviderReady")
    shell.patch(CONFIG, N15_INSECURE, SYSTEM)
    shell.ready(CONFIG, namespace=SYSTEM)
    shell.patch("tenantcluster/shop", {"spec": {"workers": {"replicas": 2}}})  # a VM is created through it
    shell.ok("kubectl wait --for=jsonpath='{.status.workerNodesReady}'=2 tenantcluster/shop --timeout=60s")
    shell.patch(CONFIG, {"spec": {"nutanix": {"prismCentral": {"insecure": False}}}}, SYSTEM)
    shell.waits(CONFIG, "CertificateNotTrusted", namespace=SYSTEM)
    authority = (shell.data / "sim" / "prism" / "self-signed" / "ca.crt").read_text()
    change_secret(shell, {"ca.pem": authority})
    shell.ready(CONFIG, namespace=SYSTEM)
    change_secret(shell, {"ca.pem": None})


def test_cluster_subnet_and_image_may_be_named_by_uuid(corrected: Shell) -> None:
    shell = corrected
    status = shell.get(CONFIG, SYSTEM)["status"]
    ids = {each["name"]: each["id"] for each in status["resolved"]}
    named = {name: {"name": None, "uuid": ids[GOOD[name]["name"]]} for name in ("cluster", "subnet", "image")}
    shell.patch(CONFIG, {"spec": {"nutanix": named}}, SYSTEM)
    shell.ok(f"kubectl wait --for=jsonpath='{{.status.observedGeneration}}'={generation(shell)} {CONFIG} -n {SYSTEM}")
    shell.ready(CONFIG, namespace=SYSTEM)
    shell.ready("tenantcluster/shop")


def generation(shell: Shell) -> int:
    return int(shell.get(CONFIG, SYSTEM)["metadata"]["generation"])


def test_load_balancers_have_addresses_of_the_pool_of_the_cluster(site: Shell) -> None:
    tenant = site.inside("shop")
    tenant.apply(SERVICE)
    tenant.ok("kubectl wait --for=jsonpath='{.status.loadBalancer.ingress[0].ip}' service/web --timeout=30s")
    address = tenant.get("service/web")["status"]["loadBalancer"]["ingress"][0]["ip"]
    assert IPv4Address("10.127.14.30") <= IPv4Address(address) <= IPv4Address("10.127.14.50")


def test_a_new_cluster_reports_one_trouble_after_the_other_makes_no_vm_and_is_ready_after_the_last(
    shell: Shell,
) -> None:
    """In an order in which nobody should do it: the cluster first, its credentials last."""
    cluster, config = "tenantcluster/late", "providerconfig/late"
    shell.apply(complete("TenantCluster", "late", "spec: {providerConfigRef: {name: late}}"))
    assert 'ProviderConfig "late" not found' in shell.waits(cluster, "ProviderNotFound")
    manifest = yaml.safe_load(N04_PROVIDER_CONFIG)
    manifest["metadata"]["name"] = "late"
    manifest["spec"]["nutanix"] |= {"credentialsRef": {"name": "late"}, "subnet": {"name": "vm-network"}}
    shell.apply(yaml.safe_dump(manifest))
    text = shell.waits(cluster, "CredentialsNotFound")
    assert "Secret butler-system/late does not exist: create it" in text
    shell.ok(N03_SECRET.replace("nutanix-credentials", "late").replace("your-password", "old-password"))
    text = shell.waits(cluster, "CredentialsInvalid")
    assert "correct the user name, password or API key" in text
    change_secret(shell, dict(RIGHT_SECRET), "late")
    text = shell.waits(cluster, "NotFound")
    assert "subnet 'vm-network' not found on cluster 'cluster-01'" in text
    assert vms(shell, "late-") == []
    shell.patch(config, {"spec": {"nutanix": {"subnet": {"name": "workload-subnet"}}}}, SYSTEM)
    shell.ready(cluster)
    assert len(vms(shell, "late-")) == 1


def test_an_account_that_may_not_create_vms_is_reported_for_the_workers(corrected: Shell) -> None:
    """Prism Central does not tell in advance."""
    shell = corrected
    change_secret(shell, {"NUTANIX_USER": "viewer", "NUTANIX_PASSWORD": "password"})
    shell.patch("tenantcluster/shop", {"spec": {"workers": {"replicas": 3}}})
    shell.says("tenantcluster/shop", "user viewer is not authorized", "grant the role to the user of Secret")
    correct(shell)
    shell.ok("kubectl wait --for=jsonpath='{.status.workerNodesReady}'=3 tenantcluster/shop --timeout=60s")


def test_a_subnet_without_addresses_is_reported_for_the_workers(corrected: Shell) -> None:
    """The guide: verify that DHCP is configured."""
    shell = corrected
    clusters = json.loads(shell.ok(N09_LIST_CLUSTERS))["entities"]
    (element,) = [each["metadata"]["uuid"] for each in clusters if each["status"]["name"] == "cluster-01"]
    subnet = {
        "metadata": {"kind": "subnet"},
        "spec": {
            "name": "silent",
            "resources": {"subnet_type": "VLAN", "vlan_id": 99},
            "cluster_reference": {"kind": "cluster", "uuid": element},
        },
    }
    url = "https://prism-central.example.com:9440/api/nutanix/v3/subnets"
    shell.ok(f"curl -sf -u admin:password {url} -H 'Content-Type: application/json' -d @-", json.dumps(subnet))
    shell.patch(CONFIG, {"spec": {"nutanix": {"subnet": {"name": "silent"}}}}, SYSTEM)
    shell.says("tenantcluster/shop", "address", "DHCP")
    correct(shell)
    shell.ready("tenantcluster/shop")
