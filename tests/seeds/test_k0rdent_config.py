"""The parts of values that k0rdent's guide lists, and its troubles made on purpose: the ClusterDeployment reports them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from seeds.k0rdent_block import (
    K05_GLOBAL_CREDENTIALS,
    K06_CLUSTER_CREDENTIALS,
    K07_USE_CREDENTIALS,
    K08_TRUST_BUNDLE,
    K09_USE_TRUST_BUNDLE,
    K10_HOSTED,
    K11_STANDALONE,
    K17_UUIDS,
    K18_SUBNETS,
    K19_PROJECT,
    K20_LABELS,
    K28_EXTENSIONS,
    K29_HELM_CHILD,
    with_values,
)
from seeds.shell import Shell
from seeds.test_k0rdent_guide import SPACE, vms

ONE: dict[str, Any] = {"workersNumber": 1}
NO_CSI: dict[str, Any] = {"csi": {"enabled": False}}
KUBE = "kube-system"
UUID = "550e8400-e29b-41d4-a716-44665544000"


@dataclass(frozen=True)
class Trouble:
    host: str
    words: tuple[str, ...]  # of the message: the field or object, and the cure
    values: str | dict[str, Any] = field(default_factory=dict)
    cure: dict[str, Any] | None = None  # of spec.config; None: the field can't be changed
    block: str = K10_HOSTED


TROUBLES = {
    "wrong-password": Trouble(
        "10.1.1.210",
        (
            "Prism Central 10.1.1.100:9440 rejects the credentials of Secret kcm-system/wrong-creds",
            "correct the user name, password or API key in it",
        ),
    ),
    "wrong-image": Trouble(
        "10.1.1.211",
        ("image 'ubuntu-22.04' not found on Prism Central 10.1.1.100:9440", "did you mean 'ubuntu-22.04-k0s'"),
        {"machineDefaults": {"image": {"type": "name", "name": "ubuntu-22.04"}}},
        {"machineDefaults": {"image": {"name": "ubuntu-22.04-k0s"}}},
    ),
    "address-of-dhcp": Trouble(
        "10.1.2.77",
        ("10.1.2.77 is in the pool 10.1.2.1-10.1.15.250 of subnet 'VM-Network'", "choose an address outside"),
        block=K11_STANDALONE,
    ),
    "placeholder-certificate": Trouble(
        "10.1.1.212",
        (
            "ConfigMap kcm-system/nutanix-ca-bundle: key ca-bundle.crt does not hold a valid certificate in PEM format",
            "replace the placeholder with the CA certificate of Prism Central",
        ),
        K09_USE_TRUST_BUNDLE,
        {"nutanix": {"prismCentral": {"additionalTrustBundleConfigMapName": None}}},
    ),
}


def wrong(text: str) -> str:
    """Another Secret and Credential than those of the guide, with a password that Prism Central rejects."""
    return (
        text.replace("nutanix-cluster-creds", "wrong-creds")
        .replace("nutanix-cluster-identity-cred", "wrong-cred")
        .replace("cluster-specific-password", "wrong-password")
    )


@pytest.fixture(scope="module")
def site(equipped: Shell) -> Shell:
    """Everything at once; nothing is awaited."""
    shell = equipped
    for command in (K05_GLOBAL_CREDENTIALS, K06_CLUSTER_CREDENTIALS, wrong(K06_CLUSTER_CREDENTIALS), K08_TRUST_BUNDLE):
        shell.ok(command)
    bodies = [
        with_values(K10_HOSTED, "uuids", "10.1.1.202", K17_UUIDS, ONE),
        with_values(K10_HOSTED, "extensions", "10.1.1.204", K28_EXTENSIONS, ONE),
        with_values(K10_HOSTED, "labels", "10.1.1.203", K07_USE_CREDENTIALS, K20_LABELS, ONE, NO_CSI),
        with_values(
            *(K11_STANDALONE, "subnets", "10.1.16.20", K18_SUBNETS, K19_PROJECT, K28_EXTENSIONS, ONE),
            {"controlPlaneNumber": 1},
        ),
    ]
    for name, each in TROUBLES.items():
        body = with_values(each.block, name, each.host, each.values, ONE, NO_CSI)
        bodies.append(wrong(body) if name == "wrong-password" else body)
    shell.apply("---\n".join(bodies))
    return shell


def inside(shell: Shell, name: str) -> Shell:
    """With the kubeconfig of a cluster's administrator."""
    shell.ok(f"clusterctl get kubeconfig {name} -n {SPACE} > {name}.kubeconfig")
    return Shell(shell.folder, shell.kubectl, f"{shell.setup}\nexport KUBECONFIG=./{name}.kubeconfig")


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble_is_reported_on_the_cluster_deployment_with_its_cure(site: Shell, name: str) -> None:
    site.says(f"cld/{name}", *TROUBLES[name].words, namespace=SPACE)
    assert not vms(site, name)


def test_clusters_recover_after_the_correction(site: Shell) -> None:
    right = wrong(K06_CLUSTER_CREDENTIALS).replace("wrong-password", "cluster-specific-password")
    site.ok(right)
    for name, each in TROUBLES.items():
        if each.cure:
            site.patch(f"cld/{name}", {"spec": {"config": each.cure}}, SPACE)
    recovered = [f"cld/{name}" for name, each in TROUBLES.items() if each.cure or name == "wrong-password"]
    site.ready(*recovered, namespace=SPACE)


def test_image_cluster_and_subnet_may_be_named_by_uuid(site: Shell) -> None:
    site.ready("cld/uuids", namespace=SPACE)
    (vm,) = vms(site, "uuids-").values()
    resources = vm["status"]["resources"]
    assert vm["status"]["cluster_reference"]["uuid"] == f"{UUID}1"
    assert [each["subnet_reference"]["uuid"] for each in resources["nic_list"]] == [f"{UUID}2"]
    assert f"{UUID}0" in [each.get("data_source_reference", {}).get("uuid") for each in resources["disk_list"]]


def test_vms_have_both_subnets_the_project_and_the_categories(site: Shell) -> None:
    site.ready("cld/subnets", namespace=SPACE)
    found = vms(site, "subnets-").values()
    assert len(found) == 2
    for vm in found:
        networks = [each["subnet_reference"]["name"] for each in vm["status"]["resources"]["nic_list"]]
        assert networks == ["Primary-Network", "Storage-Network"]
        assert vm["metadata"]["project_reference"]["name"] == "k0s-production"
        wanted = {"environment": "production", "workload": "k0s", "managed-by": "k0rdent"}
        assert vm["metadata"]["categories"].items() >= wanted.items()


def test_nodes_have_the_labels_and_taints(site: Shell) -> None:
    site.ready("cld/labels", namespace=SPACE)
    (node,) = inside(site, "labels").get("nodes")["items"]
    wanted = {"node-role.kubernetes.io/worker": "", "nutanix.com/cluster": "pe-cluster-01"}
    assert node["metadata"]["labels"].items() >= wanted.items()
    assert {"key": "workload", "value": "batch", "effect": "NoSchedule"} in node["spec"]["taints"]
    used = site.get("nutanixcluster/labels-cluster", SPACE)["spec"]["prismCentral"]["credentialRef"]
    assert used["name"] == "nutanix-cluster-creds"


@pytest.mark.parametrize("name", ["subnets", "extensions"])
def test_k0s_installs_the_charts_of_its_configuration(site: Shell, name: str) -> None:
    """On machines, and in a hosted control plane. The add-on for CSI leaves the place to the chart."""
    site.ready(f"cld/{name}", namespace=SPACE)
    child = inside(site, name)
    for release, namespace in (("nutanix-csi-storage", "ntnx-system"), ("nutanix-cloud-controller-manager", KUBE)):
        path = f"chart/k0s-addon-chart-{release}"
        child.ok(f"kubectl wait --for=jsonpath='{{.status.releaseName}}'={release} {path} -n {KUBE} --timeout=60s")
        child.ok(f"helm status {release} -n {namespace}")
    listed = child.ok("helm list -A")
    assert "nutanix-csi-storage-3.0.0" in listed
    assert "nutanix-cloud-controller-manager-0.3.0" in listed
    assert f"{name}-nutanix-csi" not in site.ok(f"kubectl get clusteraddon -n {SPACE} -o name")


def test_helm_installs_csi_and_ccm_over_the_add_on_which_returns_when_they_are_uninstalled(site: Shell) -> None:
    site.ready("cld/uuids", namespace=SPACE)
    site.ready("clusteraddon/uuids-nutanix-csi", namespace=SPACE)
    child = inside(site, "uuids")
    child.ok(K29_HELM_CHILD)
    child.ok("kubectl rollout status deployment/nutanix-csi-controller -n ntnx-system --timeout=60s")
    child.ok("kubectl rollout status deployment/nutanix-cloud-controller-manager -n kube-system --timeout=60s")
    site.says(
        "clusteraddon/uuids-nutanix-csi", "release ntnx-system/nutanix-csi was installed with Helm", namespace=SPACE
    )
    site.ready("cld/uuids", namespace=SPACE)
    assert "nutanix-csi" in child.ok("helm list -n ntnx-system")
    child.ok("helm uninstall nutanix-csi -n ntnx-system")
    newest = site.get("clusteraddon/uuids-nutanix-csi", SPACE)["status"]["targetVersion"]
    path = "jsonpath={.status.version}"
    site.ok(f"kubectl wait --for={path}={newest} clusteraddon/uuids-nutanix-csi -n {SPACE} --timeout=60s")
    child.ok("kubectl rollout status deployment/nutanix-csi-controller -n ntnx-system --timeout=60s")
