"""What values of the Nutanix templates have of their own, as JSON schemas. Pure."""

from __future__ import annotations

from typing import Any

from homeport.platforms.k0rdent.cluster.part import TEXT, flag, group, number, text

Json = dict[str, Any]

STORAGE_CONTAINER = "SelfServiceContainer"  # every Prism Element cluster has one of this name


def section() -> dict[str, Json]:
    central = group(
        "Prism Central.",
        address=text("Host name or IP address of Prism Central, without scheme.", minLength=1),
        port=number("Port of Prism Central.", 9440, high=65535),
        insecure=flag("True accepts any certificate. Only for tests.", False),
        usePerClusterCredential=flag("True uses the Secret that credentialSecretName names.", False),
        credentialSecretName=text("Secret with the credentials, in the namespace of the ClusterDeployment."),
        additionalTrustBundleConfigMapName=text(
            "ConfigMap with CA certificates, in the namespace of the ClusterDeployment: key ca.crt, or one *.crt."
        ),
    )
    return {"prismCentral": central}


def csi_fields() -> dict[str, Json]:
    return {"storageContainer": text("Storage container of new volumes.", STORAGE_CONTAINER)}


def _identifier(description: str) -> Json:
    entity = group(
        type=text("How the entity is named: name or uuid.", enum=["name", "uuid"]),
        name=text("Name of the entity. It must be unique in Prism Central."),
        uuid=text("UUID of the entity."),
    )
    return {"description": description, "anyOf": [entity, TEXT]}


def _category() -> Json:
    entry = group(key=text("Key of the category."), value=text("Value of the category."))
    return {"anyOf": [TEXT, entry]}


def size_fields(sockets: int, memory: str, disk: str) -> dict[str, Json]:
    return {
        "vcpusPerSocket": number("CPUs of each socket. Default: the one of machineDefaults, or 1."),
        "vcpuSockets": number(f"Sockets. Default: the number of machineDefaults, or {sockets}."),
        "memorySize": text(f"Memory, at least 2Gi. Default: the one of machineDefaults, or {memory}."),
        "systemDiskSize": text(f"System disk, at least 20Gi. Default: the one of machineDefaults, or {disk}."),
    }


def machine_fields() -> dict[str, Json]:
    subnet = _identifier("Subnet of a network card.")
    return {
        "image": _identifier("Image of the system disk."),
        "cluster": _identifier("Prism Element cluster that the VMs run on."),
        "subnets": {"type": "array", "items": subnet, "description": "Subnets, in the order of the network cards."},
        "subnet": {"anyOf": [subnet, {"type": "array", "items": subnet}], "description": "The same as subnets."},
        "bootType": text("Firmware of the VMs: legacy or uefi. Default: legacy.", enum=["legacy", "uefi"]),
        "project": _identifier("Project that the VMs belong to."),
        "additionalCategories": {
            "type": "array",
            "items": _category(),
            "description": "Categories of the VMs: KEY:VALUE, KEY=VALUE, or a value of the key k0rdent.",
        },
    }
