"""The cluster templates of Nutanix' provider as it ships them, rendered by clusterctl, and a simulated world for them.

What they name (`fake-cluster`, `fake-subnet`, ...) is there in the world; the rest comes from variables, as a user sets
them. `tools/upstream/build templates` fetches them.
"""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from capikit import upstream
from capikit.clusterctl import Clusterctl
from homeport.sim.prism.world import default_text

SHIPPED = "templates/cluster-template"
SAMPLES = "templates/testdata/cluster-with"
TESTED = "test/e2e/data/infrastructure-nutanix/v1beta1/cluster-template"
CLASS = f"{SHIPPED}-clusterclass.yaml"
NETWORK = "test/e2e/data/cni/kindnet/kindnet.yaml"
_OTHER = "00000000-0000-0000-0000-000000000001"
_SAMPLE_VIP = "IP: 1.2.3.4"  # the same in all samples
_WEBHOOK = base64.b64encode(b"nobody calls it").decode()

VARIABLES = {
    "NUTANIX_ENDPOINT": "prism-central.example.com",
    "NUTANIX_PORT": "9440",
    "NUTANIX_USER": "admin",
    "NUTANIX_PASSWORD": "password",
    "NUTANIX_SSH_AUTHORIZED_KEY": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMe61GqA9gqeX3zDCiwuU8zEDt3ckLnfVm8ZxN7UuFyL u@h",
    "NUTANIX_PRISM_ELEMENT_CLUSTER_NAME": "nutanix-cluster-1",
    "NUTANIX_MACHINE_TEMPLATE_IMAGE_NAME": "ubuntu-22.04-kube-v1.30.0",
    "NUTANIX_SUBNET_NAME": "vm-network",
    "NUTANIX_PROJECT_NAME": "kubernetes-project",
    "NUTANIX_API_KEY": "admin-api-key",
    "IMAGE_LOOKUP_BASE_OS": "ubuntu-22.04",
    "IMAGE_LOOKUP_FORMAT": '"{{.BaseOS}}-kube-v{{.K8sVersion}}.*"',
    "WEBHOOK_CA": _WEBHOOK,
    "WEBHOOK_CERT": _WEBHOOK,
    "WEBHOOK_KEY": _WEBHOOK,
    **{f"NUTANIX_FAILURE_DOMAIN_{number}_NAME": f"fd-{number}" for number in (1, 2, 3)},
    **{f"NUTANIX_FAILURE_DOMAIN_{number}_PRISM_ELEMENT_NAME": f"nutanix-cluster-{number}" for number in (1, 2, 3)},
    **{f"NUTANIX_FAILURE_DOMAIN_{number}_SUBNET_NAME": f"vm-network-{number}" for number in (1, 2, 3)},
}


@dataclass(frozen=True)
class Flavour:
    """`path` is a template of the module, or a folder that kustomize makes one of.

    A sample is a Cluster with a name of its own, for the provider's class.
    """

    path: str
    name: str
    machines: int = 2
    sample: bool = False
    variables: dict[str, str] = field(default_factory=dict)


def lacking() -> str:
    """Why the tests of templates must be skipped, in a sentence; '' when the templates are there."""
    return upstream.lacking("templates")


def folder() -> Path:
    return upstream.folder() / "templates"


def render(flavour: Flavour, tool: Clusterctl, kubectl: str, vip: str) -> str:
    """All that a user applies in the flavour's namespace, which is called like the cluster."""
    objects = [_generated(flavour, flavour.path, tool, kubectl, vip)]
    if flavour.sample:
        objects.insert(0, _generated(flavour, CLASS, tool, kubectl, vip))
        objects.insert(0, yaml.safe_dump_all(_beside_sample(flavour.name)))
    return "\n---\n".join(objects)


def _generated(flavour: Flavour, path: str, tool: Clusterctl, kubectl: str, vip: str) -> str:
    source = folder() / path
    if source.is_dir():
        command = [kubectl, "kustomize", "--load-restrictor", "LoadRestrictionsNone", str(source)]
        text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    else:
        text = source.read_text()
    made = tool.home / f"{flavour.name}.yaml"
    made.write_text(text.replace(_SAMPLE_VIP, f"IP: {vip}") if flavour.sample else text)
    given = {**VARIABLES, "CONTROL_PLANE_ENDPOINT_IP": vip, "CNI_RESOURCES": _network(), **flavour.variables}
    counts = ("--control-plane-machine-count=1", "--worker-machine-count=1", "--kubernetes-version=v1.30.0")
    target = f"--target-namespace={flavour.name}"
    return tool.ok("generate", "cluster", flavour.name, "--from", str(made), target, *counts, variables=given)


def _network() -> str:
    """As the provider's own tests hand one over: the data of a ConfigMap."""
    return json.dumps({"cni.yaml": (folder() / NETWORK).read_text()})


def _beside_sample(namespace: str) -> list[dict[str, Any]]:
    """What samples name and do not bring: the credentials and, in one of them, a trust bundle."""
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": "password"}}}]
    bundle = f"{namespace}-pc-trusted-ca-bundle"
    secret = {"name": "nutanix-quick-start-pc-creds", "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": secret,
            "stringData": {"credentials": json.dumps(listed)},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": bundle, "namespace": namespace},
            "binaryData": {"ca.crt": ""},
        },
    ]


def world() -> str:
    """The built-in world, and in it whatever samples name."""
    found = yaml.safe_load(default_text())
    elements = {"fake-cluster": "", "fake": "", "cluster1": "", "cluster2": "", "third": _OTHER}
    for number, (name, ext_id) in enumerate(elements.items()):
        hosts = [{"name": f"{name}-host-1", "address": f"1.2.{number}.250"}]
        found["clusters"].append({"name": name, "hosts": hosts, **({"extId": ext_id} if ext_id else {})})
        container = {"name": "SelfServiceContainer", "cluster": name}
        found["containers"].append({**container, "extId": f"8a77ce4a-00ff-44ea-a281-4c81b127000{number}"})
    subnets = {
        "fake-subnet": ("fake-cluster", "fake"),
        "shared-subnet": ("fake-cluster",),
        "controlplane-subnet": ("fake-cluster",),
        "worker-subnet": ("fake-cluster",),
        "subnet1": ("cluster1",),
        "subnet2": ("cluster2",),
        "third-subnet": ("third",),
    }
    for number, (name, clusters) in enumerate(subnets.items()):
        wanted = {"extId": _OTHER} if name == "third-subnet" else {}
        network = f"1.2.{3 + number}"
        found["subnets"].append(
            {
                "name": name,
                "clusters": list(clusters),
                "vlan": 300 + number,
                "cidr": f"{network}.0/24",
                "gateway": f"{network}.1",
                "pools": [f"{network}.100-{network}.240"],
                **wanted,
            }
        )
    found["images"].append({"name": "ubuntu-2204-kube-v1.29.2.qcow2", "os": "ubuntu"})
    found["projects"] += [{"name": "fake-project"}, {"name": "other-project", "extId": _OTHER}]
    found["categories"].append({"key": "fake-category-key", "value": "fake-category-value"})
    at = {"cluster": "fake-cluster", "host": "fake-cluster-host-1", "count": 4}
    found["gpus"] += [{"name": "fake-gpu", "deviceId": 41, **at}, {"name": "numbered-gpu", "deviceId": 42, **at}]
    return str(yaml.safe_dump(found))
