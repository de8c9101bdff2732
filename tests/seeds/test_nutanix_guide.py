"""Butler's guide for Nutanix, from the Secret to a cluster that is Ready, with every command of its troubleshooting."""

from __future__ import annotations

import base64
import ipaddress
import json
from typing import Any

import pytest
import yaml

from seeds.block import (
    N01_TALOS_IMAGE,
    N02_ROCKY_IMAGE,
    N03_SECRET,
    N04_PROVIDER_CONFIG,
    N05_BUTLER_CONFIG,
    N06_ENDPOINT,
    N07_POOL,
    N08_WORKERS,
    N09_LIST_CLUSTERS,
    N10_GET_SECRET,
    N11_LOGS,
    N12_MACHINES,
    N13_LIST_SUBNETS,
    N14_LIST_IMAGES,
    complete,
    filled,
)
from seeds.shell import Shell

SYSTEM = "butler-system"
POOL = range(int(ipaddress.ip_address("10.127.14.30")), int(ipaddress.ip_address("10.127.14.50")) + 1)


def names(answer: str) -> set[str]:
    return {each["status"].get("name", "") for each in json.loads(answer)["entities"]}


@pytest.fixture(scope="module")
def configured(shell: Shell) -> Shell:
    shell.ok(N03_SECRET)
    shell.apply(N04_PROVIDER_CONFIG)
    shell.apply(N05_BUTLER_CONFIG)
    shell.patch("butlerconfig/butler", N07_POOL)
    return shell


def test_the_guide_leads_to_a_cluster_that_is_ready_and_its_commands_answer(configured: Shell) -> None:
    shell = configured
    shell.ok(N01_TALOS_IMAGE)
    shell.ok(N02_ROCKY_IMAGE)
    assert {"nutanix-amd64.qcow2", "Rocky-9-GenericCloud.latest.x86_64.qcow2"} <= set(shell.ok("ls").split())
    shell.apply(complete("TenantCluster", "shop", N08_WORKERS))
    resolved_names_are_in_the_status(shell)
    prism_answers(shell)
    shell.ready("tenantcluster/shop")
    shell.ready("butlerconfig/butler")

    tenant = shell.get("tenantcluster/shop")["status"]
    assert (tenant["phase"], tenant["workerNodesReady"], tenant["provider"]) == ("Ready", 3, "nutanix")
    address = tenant["controlPlaneEndpoint"].removesuffix(":6443")
    assert int(ipaddress.ip_address(address)) in POOL
    refused = shell.run("kubectl apply -f -", complete("TenantCluster", "same-pool", N07_POOL))
    assert "overlaps the platform's own pool" in refused.err
    shell.inside("shop").ok("kubectl wait --for=condition=Ready nodes --all --timeout=10s")
    assert sizes_of_vms(shell, "shop-workers-") == [(8, 16 * 1024, 100 * 1024)] * 3
    machines_and_logs_are_where_the_guide_looks(shell, tenant["tenantNamespace"])
    assert_secret_is_shown(shell.ok(N10_GET_SECRET))


def resolved_names_are_in_the_status(shell: Shell) -> None:
    shell.ready("providerconfig/nutanix-prod", namespace=SYSTEM)
    status = shell.get("providerconfig/nutanix-prod", SYSTEM)["status"]
    resolved = {each["name"]: each["id"] for each in status["resolved"]}
    assert {"cluster-01", "workload-subnet", "talos-1.9"} <= resolved.keys()
    assert all(len(each) == 36 for each in resolved.values())


def prism_answers(shell: Shell) -> None:
    assert "cluster-01" in names(shell.ok(N09_LIST_CLUSTERS))
    assert "workload-subnet" in names(shell.ok(N13_LIST_SUBNETS))
    images = json.loads(shell.ok(N14_LIST_IMAGES))["entities"]
    kinds = {each["status"]["name"]: each["status"]["resources"]["image_type"] for each in images}
    assert (kinds["talos-1.9"], kinds["rocky-9-cloud"], kinds["talos-1.9-iso"]) == (
        "DISK_IMAGE",
        "DISK_IMAGE",
        "ISO_IMAGE",
    )


def sizes_of_vms(shell: Shell, prefix: str) -> list[tuple[int, int, int]]:
    answer = shell.ok(N14_LIST_IMAGES.replace("images/list", "vms/list"))
    found = [each["status"] for each in json.loads(answer)["entities"] if each["status"]["name"].startswith(prefix)]
    return [(vm_cpus(each), each["resources"]["memory_size_mib"], system_disk_mib(each)) for each in found]


def vm_cpus(vm: dict[str, Any]) -> int:
    return int(vm["resources"]["num_sockets"]) * int(vm["resources"]["num_vcpus_per_socket"])


def system_disk_mib(vm: dict[str, Any]) -> int:
    return max(
        int(each["disk_size_mib"])
        for each in vm["resources"]["disk_list"]
        if each["device_properties"]["device_type"] == "DISK"
    )


def machines_and_logs_are_where_the_guide_looks(shell: Shell, namespace: str) -> None:
    (machine, *others) = shell.get("nutanixmachine", namespace)["items"]
    assert len(others) == 2
    shown = shell.ok(filled(N12_MACHINES, n=machine["metadata"]["name"], namespace=namespace))
    assert machine["spec"]["providerID"] in shown
    assert "Conditions:" in shown
    shell.follow(N11_LOGS, f'"{namespace}/shop-workers-')


def assert_secret_is_shown(shown: str) -> None:
    data = yaml.safe_load(shown)["data"]
    assert base64.b64decode(data["NUTANIX_USER"]).decode() == "admin"
    assert set(data) >= {"NUTANIX_PASSWORD", "NUTANIX_ENDPOINT", "NUTANIX_PORT", "NUTANIX_INSECURE"}


def test_a_management_cluster_answers_at_the_address_that_the_guide_reserves(configured: Shell) -> None:
    """With the sizes of the guide's table: three control planes, and no worker."""
    shell, name = configured, "clusterbootstrap/management"
    reference = "  providerRef: {name: nutanix-prod}\n"
    shell.apply(complete("ClusterBootstrap", "management", N06_ENDPOINT, SYSTEM) + reference)
    shell.ready(name, namespace=SYSTEM)
    status = shell.get(name, SYSTEM)["status"]
    assert status["controlPlaneEndpoint"] == "10.127.14.29:6443"
    assert [each["name"] for each in status["machines"]] == [f"management-cp-{number}" for number in range(3)]
    assert sizes_of_vms(shell, "management-") == [(4, 16 * 1024, 100 * 1024)] * 3
    secret = f"secret/{status['kubeconfigSecretRef']['name']} -n {SYSTEM}"
    shell.ok(f"kubectl get {secret} -o jsonpath={{.data.value}} | base64 -d > management.yaml")
    shell.ok("kubectl --kubeconfig=management.yaml wait --for=condition=Ready nodes --all --timeout=10s")
