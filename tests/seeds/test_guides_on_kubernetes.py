"""The same blocks on a real kube-apiserver, after `homeport install`.

The controllers run as the installed Deployment describes them, with the rights of its ServiceAccount and no others. No
kubelet runs there, so no Pod does: control planes are on machines, and a hosted one waits and says for what. The
infrastructure is that of a plane beside it, `--sim`, which the controllers reach through its proxy.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from capikit.installed import refusals, running
from capikit.podnetwork import NetworkedKube
from e2e.test_homeport_command import eventually
from homeport.addons.catalogue import standin
from present import present
from seeds.block import (
    H06_SECRET,
    H07_PROVIDER_CONFIG,
    H08_BUTLER_CONFIG,
    H09_POOL,
    H10_WORKERS,
    N03_SECRET,
    N04_PROVIDER_CONFIG,
    N05_BUTLER_CONFIG,
    N06_ENDPOINT,
    N07_POOL,
    N08_WORKERS,
    N10_GET_SECRET,
    N12_MACHINES,
    N15_INSECURE,
    P01_CLUSTER,
    P02_PROVIDER_CONFIG,
    complete,
    filled,
)
from seeds.shell import Shell

SYSTEM = "butler-system"
STANDALONE = "  controlPlane: {type: standalone}\n"
# Those of the stand-ins, which this test gives the controllers in place of charts from the internet.
VERSIONS = {"spec": {"defaultAddonVersions": {"cilium": "0.0.0", "metallb": "0.0.0"}}}
NETWORK = {"spec": {"network": {"mode": "ipam", "poolRefs": [{"name": "lan"}]}}}
LAN = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata: {name: lan, namespace: butler-system}
spec: {cidr: 10.40.0.200-10.40.0.220}
"""
METRICS = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ManagementAddon
metadata: {name: metrics}
spec: {addon: metrics-server, version: 0.0.0}
"""


@pytest.fixture(scope="module")
def real(shell: Shell, binaries: dict[str, Path] | str) -> Iterator[Shell]:
    """A shell whose kubectl talks to a real kube-apiserver. `shell` has the simulated infrastructure."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    charts = str(Path(present(standin.__file__)).parent)
    proxy = present(re.search(r"HTTPS_PROXY=(\S+);", shell.setup)).group(1)
    authority = str(shell.data / "sim" / "prism" / "ca.crt")
    with NetworkedKube(binaries) as kube:
        shell.ok(f"homeport install --kubeconfig {kube.kubeconfig}")
        options = ("--proxy", proxy, "--trust", authority, "--charts", charts)
        with running(kube, *options) as log:
            yield Shell(shell.folder, shell.kubectl, f"{shell.setup}\nexport KUBECONFIG={kube.kubeconfig}")
        assert not refusals(log)


def test_clusters_of_both_guides_become_ready(real: Shell) -> None:
    real.ok(N03_SECRET)
    real.apply(N04_PROVIDER_CONFIG)
    real.apply(N05_BUTLER_CONFIG)
    real.patch("butlerconfig/butler", N07_POOL)
    real.patch("butlerconfig/butler", VERSIONS)
    real.apply(complete("TenantCluster", "shop", N08_WORKERS) + STANDALONE)
    shutil.copy(real.data / "harvester-kubeconfig.yaml", real.folder)
    real.ok(H06_SECRET)
    real.apply(LAN)
    real.apply(H07_PROVIDER_CONFIG)
    real.patch("providerconfig/harvester-prod", NETWORK, SYSTEM)
    real.apply(P01_CLUSTER + STANDALONE)
    real.ready("tenantcluster/shop", "tenantcluster/my-cluster")
    shop, mine = (real.get(f"tenantcluster/{name}")["status"] for name in ("shop", "my-cluster"))
    assert (shop["provider"], shop["workerNodesReady"], shop["controlPlaneEndpoint"]) == (
        "nutanix",
        3,
        "10.127.14.30:6443",
    )
    assert (mine["provider"], mine["workerNodesReady"]) == ("harvester", 1)
    real.inside("shop").ok("kubectl wait --for=condition=Ready nodes --all --timeout=10s")
    machine, *_ = real.get("nutanixmachine", shop["tenantNamespace"])["items"]
    name, namespace = machine["metadata"]["name"], machine["metadata"]["namespace"]
    assert machine["spec"]["providerID"] in real.ok(filled(N12_MACHINES, n=name, namespace=namespace))
    assert "NUTANIX_USER" in real.ok(N10_GET_SECRET)


def test_the_other_blocks_are_accepted(real: Shell) -> None:
    """By the schema, which is strict, and by the webhooks of the controllers."""
    dry = "--dry-run=server"
    real.apply(complete("ClusterBootstrap", "management", N06_ENDPOINT, SYSTEM), dry)
    refused = real.run(f"kubectl apply {dry} -f -", complete("TenantCluster", "pooled", N07_POOL))
    assert "overlaps the platform's own pool, spec.platform.metalLBPool of ButlerConfig butler" in refused.err
    real.apply(complete("TenantCluster", "pooled", H09_POOL), dry)
    real.apply(complete("TenantCluster", "sized", H10_WORKERS), dry)
    real.apply(N04_PROVIDER_CONFIG)
    real.patch("providerconfig/nutanix-prod", N15_INSECURE, SYSTEM)
    real.apply(H08_BUTLER_CONFIG, dry)
    real.apply(P02_PROVIDER_CONFIG, dry)
    real.apply(P01_CLUSTER.replace("name: my-cluster", "name: other-cluster"), dry)  # that one has machines


def test_add_ons_of_the_management_cluster_are_for_those_with_all_rights(real: Shell) -> None:
    """The API server itself refuses others: the controllers brought it the policy. They need all rights themselves."""
    real.ok("homeport install --management-addons --kubeconfig $KUBECONFIG")
    real.ok("kubectl create clusterrole addons --verb=* --resource=managementaddons.butler.butlerlabs.dev")
    real.ok("kubectl create clusterrolebinding addons --clusterrole=addons --user=ann")
    # A server enforces a policy some moments after it was created; what is older is not acted on.
    eventually(lambda: real.run("kubectl apply --as=ann --dry-run=server -f -", METRICS).code, bool, "the policy")
    refused = real.run("kubectl apply --as=ann -f -", METRICS)
    assert refused.code != 0
    assert "only somebody with the verb * on * may write it" in refused.err
    eventually(lambda: _install_metrics(real), bool, "the add-on is installed", 90)
    assert "metrics-server" in real.ok("kubectl get deployments -n kube-system -o name")
    real.ok("kubectl delete managementaddon/metrics --timeout=60s")
    assert "metrics-server" not in real.ok("kubectl get deployments -n kube-system -o name")


def _install_metrics(real: Shell) -> bool:
    """As the message of one that came before the policy advises: delete it, and create it again."""
    real.ok("kubectl delete managementaddon/metrics --ignore-not-found --timeout=60s")
    real.ok("kubectl apply -f -", METRICS)
    return real.run("kubectl wait --for=condition=Installed managementaddon/metrics --timeout=15s").code == 0
