"""Values of a Harvester template that are read in their own way, and their schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.platforms.k0rdent.cluster.part import LIST, number, text
from homeport.platforms.k0rdent.cluster.reading import Reading
from homeport.platforms.k0rdent.cluster.vendor import Access, Infrastructure

Json = dict[str, Any]

_SIZES: Mapping[str, tuple[int, str, str]] = {"worker": (2, "4Gi", "40Gi"), "controlPlane": (4, "8Gi", "80Gi")}


def section() -> dict[str, Json]:
    return {
        "credentialSecretName": text(
            "Secret with the kubeconfig of Harvester at `kubeconfig`, in the namespace of the ClusterDeployment. "
            "spec.credential wins."
        )
    }


def machine_fields() -> dict[str, Json]:
    return {
        "image": text("Image of the system disk: NAMESPACE/NAME, or a name in the namespace of the VMs."),
        "networks": {**LIST, "description": "VM networks, NAMESPACE/NAME each, in the order of the network cards."},
        "namespace": text("Namespace of the VMs on Harvester. Default: the namespace of the kubeconfig."),
        "keyPairs": {**LIST, "description": "SSH keys of Harvester, NAMESPACE/NAME each, that may log in."},
    }


def size_fields(cpus: int, memory: str, disk: str) -> dict[str, Json]:
    return {
        "cpuCores": number(f"CPUs. Default: the number of machineDefaults, or {cpus}."),
        "memorySize": text(f"Memory, at least 2Gi. Default: the one of machineDefaults, or {memory}."),
        "systemDiskSize": text(f"System disk, at least 20Gi. Default: the one of machineDefaults, or {disk}."),
    }


def csi_fields() -> dict[str, Json]:
    return {"hostStorageClass": text("StorageClass of Harvester for new volumes. Default: the default one there.")}


def read_infrastructure(reading: Reading) -> Infrastructure:
    return Infrastructure({}, str(reading.at("harvester.credentialSecretName", "")))


def cluster_value(settings: Json, access: Access) -> Json:
    del settings
    return {"infraClusterSecretRef": {"name": access.secret.name, "namespace": access.secret.namespace}}


def csi_parameters(reading: Reading) -> dict[str, str]:
    found = str(reading.at("csi.hostStorageClass", ""))
    return {"hostStorageClass": found} if found else {}


def read_machine(reading: Reading, role: str) -> Json:
    """The spec of a KubevirtMachineTemplate."""
    cores, memory, disk = _SIZES[role]
    path, image = reading.chosen(role, "image", "")
    if not image:
        reading.fault(path, "is required: an image of Harvester, NAMESPACE/NAME")
    domain = {
        "cpu": {"cores": int(reading.chosen(role, "cpuCores", cores)[1])},
        "memory": {"guest": reading.size(role, "memorySize", memory)},
    }
    inner = {"domain": domain, "networks": _networks(reading, role)}
    machine: Json = {"spec": {"runStrategy": "Always", "template": {"spec": inner}}}
    if namespace := reading.chosen(role, "namespace", "")[1]:
        machine["metadata"] = {"namespace": namespace}
    made: Json = {
        "bootDisk": {"image": image, "size": reading.size(role, "systemDiskSize", disk)},
        "virtualMachineTemplate": machine,
    }
    if keys := reading.chosen(role, "keyPairs", [])[1]:
        made["keyPairs"] = list(keys)
    return made


def _networks(reading: Reading, role: str) -> list[Json]:
    path, names = reading.chosen(role, "networks", [])
    if not names:
        reading.fault(path, "is required: at least one VM network, NAMESPACE/NAME")
    if len(set(names)) != len(names):
        reading.fault(path, "has a network twice")
    return [{"name": f"nic-{number}", "multus": {"networkName": each}} for number, each in enumerate(names)]
