"""Values of a Nutanix template that are read in their own way. Pure.

What users may write in several ways is one thing here. A role's own value wins over machineDefaults, and that over the
default of the role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from homeport.platforms.k0rdent.cluster.reading import Reading
from homeport.platforms.k0rdent.cluster.rule import check_host
from homeport.platforms.k0rdent.cluster.vendor import Access, Infrastructure
from homeport.platforms.k0rdent.nutanix.schema import STORAGE_CONTAINER

Json = dict[str, Any]

CATEGORY_KEY = "k0rdent"  # of categories that have a value alone
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SIZES: Mapping[str, Json] = {
    "worker": {"vcpuSockets": 2, "memorySize": "4Gi", "systemDiskSize": "40Gi"},
    "controlPlane": {"vcpuSockets": 4, "memorySize": "8Gi", "systemDiskSize": "80Gi"},
}
_MOST_SUBNETS = 32


def read_infrastructure(reading: Reading) -> Infrastructure:
    at = reading.at
    address = at("nutanix.prismCentral.address", "")
    if not address:
        reading.fault("nutanix.prismCentral.address", "is required: the address of Prism Central")
    check_host(reading, "nutanix.prismCentral.address")
    secret = at("nutanix.prismCentral.credentialSecretName", "")
    wanted = at("nutanix.prismCentral.usePerClusterCredential")
    if wanted and not secret:
        reading.fault("nutanix.prismCentral.credentialSecretName", "is required with usePerClusterCredential: true")
    settings = {
        "address": address,
        "port": int(at("nutanix.prismCentral.port", 9440)),
        "insecure": at("nutanix.prismCentral.insecure", False),
    }
    bundle = at("nutanix.prismCentral.additionalTrustBundleConfigMapName", "")
    return Infrastructure(settings, "" if wanted is False else secret, bundle)


def cluster_value(settings: Json, access: Access) -> Json:
    ref = {"kind": "Secret", "name": access.secret.name, "namespace": access.secret.namespace}
    central: Json = {**settings, "credentialRef": ref}
    if access.bundle:
        central["additionalTrustBundle"] = {"kind": "String", "data": access.bundle}
    return {"prismCentral": central}


def csi_parameters(reading: Reading) -> dict[str, str]:
    return {"storageContainer": str(reading.at("csi.storageContainer", STORAGE_CONTAINER))}


# -- machines ------------------------------------------------------------------------------------------------------


def read_machine(reading: Reading, role: str) -> Json:
    """The spec of a NutanixMachineTemplate."""

    def chosen(name: str, default: Any = None) -> tuple[str, Any]:
        return reading.chosen(role, name, default)

    sizes = _SIZES[role]
    made: Json = {
        "image": _required(reading, *chosen("image")),
        "cluster": _required(reading, *chosen("cluster")),
        "subnet": _subnets(reading, chosen),
        "bootType": chosen("bootType", "legacy")[1],
        "vcpusPerSocket": int(chosen("vcpusPerSocket", 1)[1]),
        "vcpuSockets": int(chosen("vcpuSockets", sizes["vcpuSockets"])[1]),
        "memorySize": reading.size(role, "memorySize", sizes["memorySize"]),
        "systemDiskSize": reading.size(role, "systemDiskSize", sizes["systemDiskSize"]),
    }
    path, project = chosen("project")
    if project is not None and (found := _identifier(reading, path, project)):
        made["project"] = found
    path, categories = chosen("additionalCategories", [])
    if listed := list(_categories(reading, path, categories)):
        made["additionalCategories"] = listed
    return made


def _required(reading: Reading, path: str, value: Any) -> Json:
    before = len(reading.faults)
    found = _identifier(reading, path, value) if value is not None else {}
    if not found and len(reading.faults) == before:
        reading.fault(path, "is required: {type: name, name: NAME} or {type: uuid, uuid: UUID}")
    return found


def _identifier(reading: Reading, path: str, value: Any) -> Json:
    """{} if nothing is named. The field that is not meant may be there, and empty."""
    if isinstance(value, str):
        value = {"uuid": value} if _UUID.fullmatch(value) else {"name": value}
    name, uuid = value.get("name") or "", value.get("uuid") or ""
    kind = value.get("type") or ("uuid" if uuid and not name else "name")
    if name and uuid:
        reading.fault(path, f"set either name or uuid, as type ({kind}) has it, not both")
    if kind == "uuid":
        if uuid and not _UUID.fullmatch(uuid):
            reading.fault(
                f"{path}.uuid", "is not a valid UUID: expected for example 550e8400-e29b-41d4-a716-446655440000"
            )
        if name and not uuid:
            reading.fault(path, "type is uuid, and name is set: set uuid, or type: name")
        return {"type": "uuid", "uuid": uuid.lower()} if uuid else {}
    if uuid and not name:
        reading.fault(path, "type is name, and uuid is set: set name, or type: uuid")
    return {"type": "name", "name": name} if name else {}


def _subnets(reading: Reading, chosen: Any) -> list[Json]:
    path, found = chosen("subnets")
    if not found:
        path, found = chosen("subnet")
    listed = found if isinstance(found, list) else [] if found is None else [found]
    made = [_identifier(reading, f"{path}[{number}]", each) for number, each in enumerate(listed)]
    named = [each for each in made if each]
    if not named:
        reading.fault("machineDefaults.subnets", "is required: at least one subnet")
    if len(named) != len({tuple(sorted(each.items())) for each in named}):
        reading.fault(path, "has a subnet twice")
    if len(named) > _MOST_SUBNETS:
        reading.fault(path, f"{len(named)} subnets: at most {_MOST_SUBNETS} are possible")
    return named


def _categories(reading: Reading, path: str, listed: list[Any]) -> Iterator[Json]:
    for number, each in enumerate(listed):
        if isinstance(each, str):
            key, mark, value = each.partition(":") if ":" in each else each.partition("=")
            found = (
                {"key": key.strip(), "value": value.strip()} if mark else {"key": CATEGORY_KEY, "value": each.strip()}
            )
        else:
            found = {"key": each.get("key") or "", "value": each.get("value") or ""}
        if not found["key"] or not found["value"]:
            reading.fault(f"{path}[{number}]", "expected KEY:VALUE, KEY=VALUE, or {key: KEY, value: VALUE}")
        yield found
