"""k0rdent's guide for Nutanix with helm, kubectl and clusterctl: both clusters, every command, deletion and recovery."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seeds.block import filled
from seeds.k0rdent_block import (
    K01_HELM_KCM,
    K02_WAIT_KCM,
    K03_HELM_CAPX,
    K04_WAIT_CAPX,
    K05_GLOBAL_CREDENTIALS,
    K06_CLUSTER_CREDENTIALS,
    K10_HOSTED,
    K11_STANDALONE,
    K12_CLUSTER_STATUS,
    K13_MACHINES,
    K14_CONTROL_PLANES,
    K15_KUBECONFIGS,
    K16_NODES,
    K21_CAPX_LOGS,
    K22_CAPI_LOGS,
    K23_K0SMOTRON_LOGS,
    K24_DESCRIBE_MACHINE,
    K25_DESCRIBE_CLUSTER,
    K26_RESET,
    K27_FINALIZERS,
)
from seeds.shell import Shell

SPACE = "kcm-system"
HOSTED, STANDALONE = "nutanix-hcp-demo", "nutanix-standalone-demo"


def vms(shell: Shell, prefix: str = "") -> dict[str, dict[str, Any]]:
    """VMs at the simulated Prism Central, by name."""
    url = "https://10.1.1.100:9440/api/nutanix/v3/vms/list"
    header = '-H "Content-Type: application/json"'
    answer = shell.ok(f"curl -s -u admin:password {url} {header} -d '{{\"length\": 100}}'")
    found = {each["status"]["name"]: each for each in json.loads(answer)["entities"]}
    return {name: each for name, each in found.items() if name.startswith(prefix)}


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def installed(equipped: Shell) -> Shell:
    shell = equipped
    shell.ok(K01_HELM_KCM)
    shell.ok(K02_WAIT_KCM)
    shell.ok(K03_HELM_CAPX)
    shell.ok(K04_WAIT_CAPX)
    return shell


@pytest.fixture(scope="module")
def deployed(installed: Shell) -> Shell:
    shell = installed
    shell.ok(K05_GLOBAL_CREDENTIALS)
    shell.ok(K06_CLUSTER_CREDENTIALS)
    shell.ok(K10_HOSTED)
    shell.ok(K11_STANDALONE)
    shell.ready(f"cld/{HOSTED}", f"cld/{STANDALONE}", namespace=SPACE)
    shell.ok(K15_KUBECONFIGS)
    return shell


def test_helm_installs_both_charts_and_management_is_ready(installed: Shell) -> None:
    releases = json.loads(installed.ok(f"helm list -n {SPACE} -o json"))
    assert {each["name"]: (each["chart"], each["status"]) for each in releases} == {
        "kcm": ("kcm-1.2.0", "deployed"),
        "nutanix-capx": ("nutanix-capx-1.0.0", "deployed"),
    }
    given = json.loads(installed.ok(f"helm get values kcm -n {SPACE} -o json"))
    assert given == {"controller": {"enableTelemetry": False}, "velero": {"enabled": False}}
    status = installed.get("management/kcm")["status"]
    assert all(each["success"] for each in status["components"].values())
    assert "infrastructure-nutanix" in status["availableProviders"]


def test_both_clusters_are_ready_and_the_commands_that_watch_them_answer(deployed: Shell) -> None:
    shell = deployed
    shown = shell.ok(K12_CLUSTER_STATUS)
    for name in (HOSTED, STANDALONE):
        assert [SPACE, name, "True"] in [row[:3] for row in rows(shown)]
    assert f"Cluster {SPACE}/{HOSTED}, v1.29.2+k0s.0" in shown
    assert f"K0smotronControlPlane {SPACE}/{HOSTED}-hcp-cp" in shown

    machines = [row[1] for row in rows(shell.ok(K13_MACHINES)) if row and row[0] == SPACE]
    assert sorted(machines) == sorted([*vms(shell), *vms(shell)])
    assert len(vms(shell, HOSTED)) == 2
    assert len(vms(shell, STANDALONE)) == 5

    planes = [row[1:4] for row in rows(shell.ok(K14_CONTROL_PLANES)) if row and row[0] == SPACE]
    assert planes == [[f"{HOSTED}-hcp-cp", HOSTED, "1"], [f"{STANDALONE}-standalone-cp", STANDALONE, "3"]]


def test_vms_have_the_sizes_of_their_role(deployed: Shell) -> None:
    def size(vm: dict[str, Any]) -> tuple[int, int]:
        resources = vm["status"]["resources"]
        return resources["num_sockets"] * resources["num_vcpus_per_socket"], resources["memory_size_mib"]

    assert {size(vm) for vm in vms(deployed, HOSTED).values()} == {(2, 4096)}
    assert {size(vm) for vm in vms(deployed, f"{STANDALONE}-md").values()} == {(2, 4096)}
    assert [size(vm) for vm in vms(deployed, f"{STANDALONE}-standalone-cp").values()] == [(4, 8192)] * 3


def test_nodes_of_both_clusters_are_ready_with_their_roles(deployed: Shell) -> None:
    nodes = {row[0]: row[1:3] for row in rows(deployed.ok(K16_NODES)) if row[0] != "NAME"}
    assert nodes.keys() == vms(deployed).keys()
    for name, shown in nodes.items():
        role = "control-plane" if name.startswith(f"{STANDALONE}-standalone-cp") else "worker"
        assert shown == ["Ready", role], name


def test_logs_and_descriptions_are_where_the_guide_looks(deployed: Shell) -> None:
    shell, machine = deployed, min(vms(deployed, f"{HOSTED}-md"))
    assert f'"{SPACE}/{machine}"' in shell.ok(K21_CAPX_LOGS)
    core = shell.ok(K22_CAPI_LOGS)
    assert f'"{SPACE}/{HOSTED}"' in core
    assert "waiting for nothing" not in core
    assert f'"{SPACE}/{HOSTED}-hcp-cp"' in shell.ok(K23_K0SMOTRON_LOGS)
    described = shell.ok(filled(K24_DESCRIBE_MACHINE, **{"machine-name": machine}))
    assert "VMProvisioned" in described
    assert "CreatingVM" in described
    described = shell.ok(filled(K25_DESCRIBE_CLUSTER, **{"cluster-name": HOSTED}))
    assert "InfrastructureReady" in described
    assert "TopologyCreate" in described


def test_uninstalling_the_provider_s_chart_takes_nothing_from_clusters(deployed: Shell) -> None:
    shell = deployed
    before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in shell.get("clusterclass", SPACE)["items"]}
    assert before.keys() >= {"nutanix-k0s-hcp", "nutanix-k0s-standalone"}
    shell.ok(f"helm uninstall nutanix-capx -n {SPACE}")
    after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in shell.get("clusterclass", SPACE)["items"]}
    assert after == before
    shell.ok(K03_HELM_CAPX)
    shell.ok(K04_WAIT_CAPX)
    shell.ready(f"cld/{HOSTED}", f"cld/{STANDALONE}", namespace=SPACE, seconds=5)


def test_the_patch_of_finalizers_leaks_no_vm_and_a_cluster_can_be_deployed_again_at_once(deployed: Shell) -> None:
    shell, stuck = deployed, min(vms(deployed, f"{HOSTED}-md"))
    shell.ok(filled(K27_FINALIZERS, **{"machine-name": stuck}))
    shell.says(f"cld/{HOSTED}", stuck, "has been deleted, but the Machine still exists", namespace=SPACE)
    shell.ok(filled(K26_RESET, **{"cluster-name": HOSTED}))
    assert not vms(shell, HOSTED)
    shell.ok(K10_HOSTED)
    shell.ok(filled(K26_RESET, **{"cluster-name": STANDALONE}))
    assert not vms(shell, STANDALONE)
    shell.ready(f"cld/{HOSTED}", namespace=SPACE)
    shell.ok(f"clusterctl get kubeconfig {HOSTED} -n {SPACE} > again.kubeconfig")
    nodes = {row[0] for row in rows(shell.ok("kubectl --kubeconfig=./again.kubeconfig get nodes --no-headers"))}
    assert nodes == vms(shell, HOSTED).keys()  # none of the first cluster
    shell.ok(filled(K26_RESET, **{"cluster-name": HOSTED}))
    assert not vms(shell)
    left = shell.ok(f"kubectl get cluster-api,pvc,statefulsets -n {SPACE} -o name").split()
    assert not [each for each in left if HOSTED in each or STANDALONE in each]
