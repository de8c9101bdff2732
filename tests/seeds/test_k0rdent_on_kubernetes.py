"""k0rdent's guide on a real kube-apiserver, after `homeport install`.

The controllers run as the installed Deployment describes them, with the rights of its ServiceAccount and no others. No
kubelet runs there, so no Pod does: the cluster with a hosted control plane waits and says for what. The
infrastructure is that of a plane beside it, `--sim`, which the controllers reach through its proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capikit.installed import refusals, running
from capikit.podnetwork import NetworkedKube
from present import present
from seeds.k0rdent_block import (
    K02_WAIT_KCM,
    K05_GLOBAL_CREDENTIALS,
    K06_CLUSTER_CREDENTIALS,
    K10_HOSTED,
    K11_STANDALONE,
    K13_MACHINES,
    K14_CONTROL_PLANES,
    K17_UUIDS,
    K20_LABELS,
    manifest,
    with_values,
)
from seeds.shell import Shell
from seeds.test_k0rdent_guide import HOSTED, SPACE, STANDALONE, rows, vms

NO_CSI: dict[str, Any] = {"csi": {"enabled": False}}
TYPO = """
apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: {name: typo, namespace: kcm-system}
spec:
  template: nutanix-k0s-hcp
  credential: nutanix-cluster-identity-cred
  config: {workersNumbr: 2}
"""


@pytest.fixture(scope="module")
def real(shell: Shell, binaries: dict[str, Path] | str) -> Iterator[Shell]:
    """A shell whose kubectl talks to a real kube-apiserver. `shell` has the simulated infrastructure."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    proxy = present(re.search(r"HTTPS_PROXY=(\S+);", shell.setup)).group(1)
    authority = str(shell.data / "sim" / "prism" / "ca.crt")
    with NetworkedKube(binaries) as kube:
        shell.ok(f"homeport install --kubeconfig {kube.kubeconfig}")
        with running(kube, "--proxy", proxy, "--trust", authority) as log:
            shell.ok(f"kubectl --kubeconfig {kube.kubeconfig} wait --for=create management/kcm --timeout=60s")
            yield Shell(shell.folder, shell.kubectl, f"{shell.setup}\nexport KUBECONFIG={kube.kubeconfig}")
        assert not refusals(log)


@pytest.fixture(scope="module")
def deployed(real: Shell) -> Shell:
    real.ok(K02_WAIT_KCM)
    real.ok(K05_GLOBAL_CREDENTIALS)
    real.ok(K06_CLUSTER_CREDENTIALS)
    real.apply(with_values(K11_STANDALONE, STANDALONE, "10.1.1.201", NO_CSI), "--server-side")
    real.apply(with_values(K10_HOSTED, HOSTED, "10.1.1.200", NO_CSI))
    return real


def test_management_and_the_templates_are_ready(real: Shell) -> None:
    real.ok(K02_WAIT_KCM)
    status = real.get("management/kcm")["status"]
    assert "infrastructure-nutanix" in status["availableProviders"]
    templates = {each["metadata"]["name"]: each["status"] for each in real.get("clustertemplates", SPACE)["items"]}
    assert templates["nutanix-k0s-hcp"]["valid"]
    assert templates["nutanix-k0s-standalone"]["valid"]


def test_a_typo_is_refused_and_the_blocks_are_accepted(real: Shell) -> None:
    """By the webhooks of the controllers."""
    real.ok(K02_WAIT_KCM)
    refused = real.run("kubectl apply -f -", TYPO)
    assert refused.code != 0
    assert 'spec.config.workersNumbr: Invalid value: unknown field; did you mean "workersNumber"' in refused.err
    for block in (K10_HOSTED, K11_STANDALONE):
        real.apply(with_values(block, "other", "10.1.1.209", K17_UUIDS, K20_LABELS), "--dry-run=server")


def test_the_standalone_cluster_becomes_ready_scales_and_leaves_nothing(deployed: Shell) -> None:
    shell = deployed
    shell.ready(f"cld/{STANDALONE}", namespace=SPACE)
    assert len(vms(shell, STANDALONE)) == 5
    machines = [row[1] for row in rows(shell.ok(K13_MACHINES)) if row and row[0] == SPACE]
    assert set(machines) >= vms(shell, STANDALONE).keys()
    assert [SPACE, f"{STANDALONE}-standalone-cp", STANDALONE, "3"] in [
        row[:4] for row in rows(shell.ok(K14_CONTROL_PLANES))
    ]
    shell.patch(f"cld/{STANDALONE}", {"spec": {"config": {"workersNumber": 1}}}, SPACE)
    shell.ok(f"kubectl wait --for=jsonpath={{.status.replicas}}=1 machinedeployment/{STANDALONE}-md -n {SPACE}")
    shell.ready(f"cld/{STANDALONE}", namespace=SPACE)
    assert (
        yaml.safe_load(shell.ok(f"kubectl get cld/{STANDALONE} -n {SPACE} -o yaml"))["spec"]["template"]
        == (manifest(K11_STANDALONE)["spec"]["template"])
    )
    shell.ok(f"kubectl delete cld/{STANDALONE} -n {SPACE} --timeout=110s")
    assert not vms(shell, STANDALONE)
    shell.ok(f"kubectl get secret/nutanix-cluster-creds -n {SPACE}")


def test_a_hosted_control_plane_waits_for_its_pods_and_can_be_deleted(deployed: Shell) -> None:
    members = f"kmc-{HOSTED}-etcd"
    said = f"waiting for the first member of StatefulSet {members} to become ready: Pod {members}-0"
    deployed.says(f"cld/{HOSTED}", f"K0smotronControlPlane {HOSTED}-hcp-cp", said, namespace=SPACE)
    assert deployed.get(f"statefulset/{members}", SPACE)["spec"]["replicas"] == 1
    deployed.ok(f"kubectl delete cld/{HOSTED} -n {SPACE} --timeout=110s")
    assert not vms(deployed, HOSTED)
