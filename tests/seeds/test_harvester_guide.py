"""Butler's guide for Harvester and its page of providers, from the Secret to clusters that are Ready, with every command."""

from __future__ import annotations

import ipaddress
import json
import shutil
from typing import Any

import yaml

from seeds.block import (
    H01_NETWORK,
    H02_TALOS_IMAGE,
    H03_ROCKY_IMAGE,
    H04_KEY,
    H06_SECRET,
    H07_PROVIDER_CONFIG,
    H08_BUTLER_CONFIG,
    H09_POOL,
    H10_WORKERS,
    H11_LOGS,
    H12_MACHINES,
    H13_SSH,
    H14_IMAGES,
    H15_IMAGE,
    H16_NODES,
    H17_LOGS,
    H18_REQUEST,
    P01_CLUSTER,
    P02_PROVIDER_CONFIG,
    complete,
    filled,
)
from seeds.shell import Shell

POOL = range(int(ipaddress.ip_address("10.40.1.0")), int(ipaddress.ip_address("10.40.1.50")) + 1)
REQUEST = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: MachineRequest
metadata: {name: single, namespace: butler-system}
spec: {providerRef: {name: harvester-prod}, machineName: single, role: worker, cpu: 2, memoryMB: 4096, diskGB: 20}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}], selector: {app: web}}
"""


def test_both_guides_lead_to_clusters_that_are_ready_and_their_commands_answer(shell: Shell) -> None:
    harvester = shell.in_context("harvester")
    shutil.copy(shell.data / "harvester-kubeconfig.yaml", shell.folder)  # the dashboard's download
    assert "harvester-node-0" in shell.ok(H16_NODES)
    shell.ok(H03_ROCKY_IMAGE)
    shell.ok(H02_TALOS_IMAGE if shutil.which("xz") else H02_TALOS_IMAGE.replace("xz -d", "test -s"))
    assert "nocloud-amd64.raw" in shell.ok("ls")
    what_the_dashboard_makes_exists(harvester)
    shell.ok(H06_SECRET)
    shell.apply(H07_PROVIDER_CONFIG)
    shell.apply(H08_BUTLER_CONFIG)
    shell.patch("butlerconfig/butler", json.dumps({"spec": {"sshAuthorizedKey": public_key(shell)}}))
    shell.apply(complete("TenantCluster", "web", H09_POOL))
    shell.patch("tenantcluster/web", H10_WORKERS)
    shell.apply(REQUEST)
    shell.apply(P02_PROVIDER_CONFIG)
    shell.apply(P01_CLUSTER)
    shell.ready("tenantcluster/web", "tenantcluster/my-cluster")

    web, mine = (shell.get(f"tenantcluster/{name}")["status"] for name in ("web", "my-cluster"))
    assert web["providerConfigRef"] == {"name": "harvester-prod", "namespace": "butler-system"}
    assert mine["providerConfigRef"] == {"name": "harvester-prod", "namespace": "default"}
    assert (web["workerNodesReady"], mine["workerNodesReady"]) == (3, 1)
    a_load_balancer_has_an_address_of_the_pool(shell)
    shell.ready("machinerequest/single", namespace="butler-system")
    the_vms_have_the_sizes_of_the_guide(harvester)
    the_guides_commands_answer(shell, harvester)
    if shutil.which("ssh"):
        a_worker_lets_the_key_of_the_guide_in(shell)


def what_the_dashboard_makes_exists(harvester: Shell) -> None:
    form = yaml.safe_load(H01_NETWORK)
    network = harvester.get(f"network-attachment-definitions/{form['Name']}", form["Namespace"])
    assert json.loads(network["spec"]["config"])["vlan"] == form["VLAN ID"]
    assert network["metadata"]["labels"]["network.harvesterhci.io/clusternetwork"] == form["Cluster Network"]
    harvester.ok("mkdir -p ~/.ssh")
    harvester.ok(H04_KEY)
    pair = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "KeyPair", "spec": {"publicKey": public_key(harvester)}}
    harvester.apply(json.dumps(pair | {"metadata": {"name": "butler-ssh", "namespace": "default"}}))
    images = harvester.ok(H14_IMAGES)
    for name in ("talos-1.9", "rocky-9-cloud"):
        assert name in images
        assert "Imported" in harvester.ok(filled(H15_IMAGE, name=name))


def public_key(shell: Shell) -> str:
    return (shell.folder / ".ssh" / "butler-ssh.pub").read_text().strip()


def a_worker_lets_the_key_of_the_guide_in(shell: Shell) -> None:
    """In place of ssh and an address that only the simulated network has."""
    (machine,) = shell.get("machine -l cluster.x-k8s.io/cluster-name=my-cluster -A")["items"]
    name, namespace = machine["metadata"]["name"], machine["metadata"]["namespace"]
    (line,) = [each for each in H13_SSH.splitlines() if each.startswith("ssh ")]
    script = f"homeport {line}".replace("rocky@<vm-ip>", f"--user rocky {name} -n {namespace} -- echo in")
    assert shell.ok(script).strip() == "in"


def a_load_balancer_has_an_address_of_the_pool(shell: Shell) -> None:
    tenant = shell.inside("web")
    tenant.apply(SERVICE)
    tenant.ok("kubectl wait --for=jsonpath='{.status.loadBalancer.ingress[0].ip}' service/web --timeout=30s")
    address = tenant.get("service/web")["status"]["loadBalancer"]["ingress"][0]["ip"]
    assert int(ipaddress.ip_address(address)) in POOL


def the_vms_have_the_sizes_of_the_guide(harvester: Shell) -> None:
    """As the guide overrides them, and as its table of defaults has them."""
    vms = harvester.get("virtualmachine", "default")["items"]
    claims = {each["metadata"]["name"]: each for each in harvester.get("pvc", "default")["items"]}
    assert sizes_of(vms, claims, "web-workers-") == [(8, "16384Mi", "100Gi")] * 3
    assert sizes_of(vms, claims, "my-cluster-workers-") == [(4, "8192Mi", "40Gi")]


def sizes_of(vms: list[Any], claims: dict[str, Any], prefix: str) -> list[tuple[int, str, str]]:
    found = []
    for vm in vms:
        if not vm["metadata"]["name"].startswith(prefix):
            continue
        spec = vm["spec"]["template"]["spec"]
        cpu, memory = spec["domain"]["cpu"], spec["domain"]["resources"]["limits"]["memory"]
        (disk,) = [each["persistentVolumeClaim"] for each in spec["volumes"] if "persistentVolumeClaim" in each]
        size = claims[disk["claimName"]]["spec"]["resources"]["requests"]["storage"]
        found.append((cpu["cores"] * cpu.get("sockets", 1) * cpu.get("threads", 1), memory, size))
    return found


def the_guides_commands_answer(shell: Shell, harvester: Shell) -> None:
    described = shell.ok(filled(H18_REQUEST, name="single", namespace="butler-system"))
    assert "Phase:" in described
    assert "10.40." in described
    assert "single" in harvester.ok(filled(H12_MACHINES, name="single", namespace="default"))
    assert harvester.follow(H11_LOGS, "virtualmachines")
    assert shell.follow(H17_LOGS, "butler-system/single")
