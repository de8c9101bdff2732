"""Faults of clusters on Harvester, and the cause that the doctor must name first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from e2e.doctor_fault import Change, Fault, Json
from homeport.machinery.yaml import load_all

EXAMPLE = Path(__file__).parents[2] / "examples" / "06-harvester"
# Of Harvester itself: one with Kubernetes, and one that nobody has uploaded.
IMAGES = [
    *load_all((EXAMPLE / "image.yaml").read_text()),
    {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "VirtualMachineImage",
        "metadata": {"name": "half", "namespace": "default"},
        "spec": {"displayName": "half", "sourceType": "upload"},
    },
]


def cluster(vip: str, name: str = "quay") -> list[Json]:
    """One control plane and one worker. The kubeconfig is written in when the plane is known."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "harvester-kubeconfig"}}
    made: list[Json] = [{**secret, "stringData": {"kubeconfig": dict}}]
    made += load_all((EXAMPLE / "cluster.yaml").read_text().replace("quay", name))
    for each in made:
        each["metadata"].pop("namespace", None)
        if each["kind"] == "MachineDeployment":
            each["spec"]["replicas"] = 1
        if each["kind"] == "KubevirtCluster":
            each["spec"]["controlPlaneEndpoint"]["host"] = vip.replace("10.0.0.", "10.40.0.")
    return made


def kubeconfig(change: Callable[[Json], Json]) -> tuple[Change, ...]:
    """Harvester's own kubeconfig, changed."""
    return (("Secret", "harvester-kubeconfig", "stringData.kubeconfig", change),)


def server(**fields: Any) -> Callable[[Json], Json]:
    """Changes the cluster of a kubeconfig; None removes a field."""

    def change(config: Json) -> Json:
        entry = config["clusters"][0]["cluster"] | fields
        config["clusters"][0]["cluster"] = {name: value for name, value in entry.items() if value is not None}
        return config

    return change


def expired(config: Json) -> Json:
    config["users"][0]["user"] = {"token": "expired"}
    return config


def template(path: str, value: Any) -> tuple[Change, ...]:
    return (("KubevirtMachineTemplate", "quay", f"spec.template.spec.{path}", value),)


def planted(cause: str, words: tuple[str, ...], changes: tuple[Change, ...] = (), **more: Any) -> Fault:
    return Fault(cause, words, changes, **{"base": cluster, "name": "quay", "simulator": "harvester", **more})


_VM = "virtualMachineTemplate.spec.template.spec"

HARVESTER_FAULTS: dict[str, Fault] = {
    # -- kubeconfig
    "harvester-secret-missing": planted(
        "InvalidConfiguration", ("harvester-kubeconfig",), without=(("Secret", "harvester-kubeconfig"),)
    ),
    "harvester-secret-misspelt": planted(
        "InvalidConfiguration",
        ("harvester-kubeconfg", "did you mean 'harvester-kubeconfig'"),
        (("KubevirtCluster", "quay", "spec.infraClusterSecretRef.name", "harvester-kubeconfg"),),
    ),
    "harvester-wrong-key": planted(
        "InvalidConfiguration",
        ("harvester-kubeconfig", "has no key kubeconfig"),
        (("Secret", "harvester-kubeconfig", "stringData", {"config": "x"}),),
    ),
    "harvester-token-expired": planted(
        "AccessDenied", ("harvester-kubeconfig", "download the kubeconfig again"), kubeconfig(expired)
    ),
    "harvester-address-of-a-node": planted(
        "Unreachable", ("127.0.0.1", "external address"), kubeconfig(server(server="https://127.0.0.1:6443"))
    ),
    "harvester-port-blocked": planted(
        "Unreachable", ("10.20.0.10:6444", "firewall"), kubeconfig(server(server="https://10.20.0.10:6444"))
    ),
    "harvester-untrusted-certificate": planted(
        "CertificateNotTrusted",
        ("certificate-authority-data", "insecure-skip-tls-verify"),
        kubeconfig(server(**{"certificate-authority-data": None})),
    ),
    # -- references
    "harvester-image-missing": planted(
        "NotFound",
        ("ubuntu-22.04-kube-v1.30.1", "did you mean"),
        template("bootDisk.image", "default/ubuntu-22.04-kube-v1.30.1"),
    ),
    "harvester-image-not-imported": planted(
        "ImageNotReady", ("default/half", "has no file yet"), template("bootDisk.image", "default/half")
    ),
    "harvester-network-missing": planted(
        "NotFound",
        ("default/workload", "default/workloads"),
        template(f"{_VM}.networks.0.multus.networkName", "default/workload"),
    ),
    "harvester-storage-class-missing": planted(
        "NotFound",
        ("longhorn", "harvester-longhorn"),
        template("dataDisks", [{"name": "data", "size": "10Gi", "storageClassName": "longhorn"}]),
    ),
    # -- capacity and machines
    "harvester-too-much-memory": planted(
        "InsufficientCapacity", ("memory",), template(f"{_VM}.domain.memory.guest", "16Ti")
    ),
    "harvester-namespace-quota": planted(
        "InsufficientCapacity",
        ("quota", "limits.memory"),
        faults=(
            {
                "match": {"verb": "create", "resource": "virtualmachines", "entity": "crowded-*"},
                "effect": {
                    "kind": "status",
                    "status": 403,
                    "message": "exceeded quota: default-quota, requested: limits.memory=8Gi, limited: limits.memory=4Gi",
                },
            },
        ),
        base=partial(cluster, name="crowded"),
        name="crowded",
    ),
    "harvester-vm-does-not-start": planted(
        "GuestHasNoAddress",
        ("qemu-guest-agent", "DHCP"),
        faults=({"match": {"entity": "mute-*"}, "effect": {"kind": "no-boot"}},),
        base=partial(cluster, name="mute"),
        name="mute",
        notice=True,
    ),
}
