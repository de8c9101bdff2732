"""What Nutanix kinds may say: found out when they are applied, not minutes later in a loop."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from homeport.api.nutanix.metro import NutanixMetro, NutanixMetroSite, NutanixVirtualHADomain
from homeport.api.nutanix.v1beta1 import (
    DataDisk,
    NutanixCluster,
    NutanixClusterTemplate,
    NutanixFailureDomain,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.capi.family import is_host, wrong_endpoint
from homeport.capi.object.template import immutable
from homeport.client.errors import Cause
from homeport.infra.cluster.admission import endpoint_causes
from homeport.infra.error import Misconfigured
from homeport.providers.nutanix import spelling
from homeport.providers.nutanix.address import FIELD, too_many
from homeport.providers.nutanix.plan import MIN_DATA_DISK, MIN_MEMORY, MIN_SYSTEM_DISK, disk_addresses, size_of
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
_TOP_SPEC = "spec"
_TEMPLATE_SPEC = "spec.template.spec"


KINDS = (
    NutanixMachine,
    NutanixMachineTemplate,
    NutanixCluster,
    NutanixClusterTemplate,
    NutanixFailureDomain,
    NutanixMetro,
    NutanixMetroSite,
    NutanixVirtualHADomain,
)


def register(hooks: Hooks) -> None:
    hooks.add(NutanixMachine, default=default_machine, validate=validate_machine)
    hooks.add(NutanixMachineTemplate, default=default_template, validate=validate_template)
    hooks.add(NutanixCluster, default=default_cluster, validate=validate_cluster)
    hooks.add(NutanixClusterTemplate, default=default_cluster_template, validate=validate_cluster_template)
    hooks.add(NutanixFailureDomain, default=default_domain, validate=validate_domain)
    hooks.add(NutanixMetro, validate=validate_metro)
    hooks.add(NutanixMetroSite, validate=validate_site)
    hooks.add(NutanixVirtualHADomain, default=default_recovery, validate=validate_recovery)


# -- machines ----------------------------------------------------------------------------------------------------


def default_machine(obj: Json, old: Json | None) -> None:
    del old
    spelling.normalise_machine(obj.setdefault("spec", {}))


def validate_machine(obj: Json, old: Json | None) -> list[Cause]:
    return (
        list(_machine_causes(obj.get("spec") or {}, _TOP_SPEC))
        if old is None or old.get("spec") != obj.get("spec")
        else []
    )


def default_template(obj: Json, old: Json | None) -> None:
    del old
    spec = (obj.setdefault("spec", {}).setdefault("template", {})).setdefault("spec", {})
    spelling.normalise_machine(spec)


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    causes = list(_machine_causes(spec, _TEMPLATE_SPEC))
    if old is not None and _template_spec(old) != spec and _DRY_RUN not in (obj["metadata"].get("annotations") or {}):
        causes.append(Cause.forbidden(_TEMPLATE_SPEC, immutable(obj)))
    return causes


def _template_spec(obj: Json) -> Json:
    return ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}


def _machine_causes(spec: Json, path: str) -> Iterator[Cause]:
    yield from _size_causes(spec, path)
    if bool(spec.get("image")) == bool(spec.get("imageLookup")):
        yield Cause.invalid(f"{path}.image", "set exactly one of image and imageLookup")
    for field in ("image", "cluster", "project"):
        if spec.get(field) is not None:
            yield from _identifier_causes(spec[field], f"{path}.{field}")
    yield from _list_causes(spec.get("subnet"), f"{path}.subnet")
    pools, subnets = len(spec.get("addressesFromPools") or ()), len(spec.get("subnet") or ())
    if subnets and pools > subnets:
        yield Cause.invalid(f"{path}.{FIELD}", too_many(pools, subnets))
    for number, category in enumerate(spec.get("additionalCategories") or ()):
        for field in ("key", "value"):
            if not category.get(field):
                yield Cause("FieldValueRequired", "Required value", f"{path}.additionalCategories[{number}].{field}")
    for number, gpu in enumerate(spec.get("gpus") or ()):
        field = "deviceID" if gpu.get("type") == "deviceID" else "name"
        if gpu.get(field) in (None, ""):
            yield Cause.required(f"{path}.gpus[{number}].{field}", f"type is {gpu.get('type')}")
    yield from _disk_causes(spec.get("dataDisks") or [], path)


def _size_causes(spec: Json, path: str) -> Iterator[Cause]:
    for field, least in (("memorySize", MIN_MEMORY), ("systemDiskSize", MIN_SYSTEM_DISK)):
        yield from _size_cause(spec.get(field, ""), f"{path}.{field}", least)


def _size_cause(value: Any, path: str, least: int) -> Iterator[Cause]:
    try:
        size_of(value, path, least)
    except Misconfigured as error:
        yield Cause.invalid(path, error.message.removeprefix(f"{path}: "))


def _disk_causes(disks: list[Json], path: str) -> Iterator[Cause]:
    for number, disk in enumerate(disks):
        where = f"{path}.dataDisks[{number}]"
        yield from _size_cause(disk.get("diskSize", ""), f"{where}.diskSize", MIN_DATA_DISK)
        if disk.get("dataSource") is not None:
            yield from _identifier_causes(disk["dataSource"], f"{where}.dataSource")
        container = (disk.get("storageConfig") or {}).get("storageContainer")
        if container is not None:
            yield from _identifier_causes(container, f"{where}.storageConfig.storageContainer")
        device = disk.get("deviceProperties") or {}
        adapter = device.get("adapterType")
        if device.get("deviceType") == "CDRom" and adapter not in (None, "", "IDE", "SATA"):
            yield Cause.invalid(
                f"{where}.deviceProperties.adapterType", f"a CD-ROM must use IDE or SATA, not {adapter}"
            )
    try:
        disk_addresses(msgspec.convert(disks, list[DataDisk], strict=False))
    except Misconfigured as error:
        field, _, text = error.message.partition(": ")
        yield Cause.invalid(field.replace("spec", path, 1), text)
    except msgspec.ValidationError:
        return  # the schema says it better


# -- clusters ----------------------------------------------------------------------------------------------------


def default_cluster(obj: Json, old: Json | None) -> None:
    del old
    spelling.normalise_cluster(obj.setdefault("spec", {}))


def validate_cluster(obj: Json, old: Json | None) -> list[Cause]:
    if old is not None and old.get("spec") == obj.get("spec"):
        return []  # what is stored must not keep the object from being labelled or deleted
    return [*_cluster_causes(obj.get("spec") or {}, _TOP_SPEC), *endpoint_causes(obj, old)]


def default_cluster_template(obj: Json, old: Json | None) -> None:
    del old
    spelling.normalise_cluster(obj.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {}))


def validate_cluster_template(obj: Json, old: Json | None) -> list[Cause]:
    del old
    return list(_cluster_causes(_template_spec(obj), _TEMPLATE_SPEC))


def _cluster_causes(spec: Json, path: str) -> Iterator[Cause]:
    if spec.get("failureDomains") and spec.get("controlPlaneFailureDomains"):
        yield Cause.invalid(
            f"{path}.controlPlaneFailureDomains", "set either failureDomains or controlPlaneFailureDomains, not both"
        )
    for number, domain in enumerate(spec.get("failureDomains") or ()):
        where = f"{path}.failureDomains[{number}]"
        yield from _identifier_causes(domain.get("cluster"), f"{where}.cluster")
        yield from _list_causes(domain.get("subnets"), f"{where}.subnets", needed=True)
    central = spec.get("prismCentral")
    if central is not None:
        yield from _central_causes(central, f"{path}.prismCentral")
    endpoint = spec.get("controlPlaneEndpoint") or {}
    host = str(endpoint.get("host") or "")
    text = wrong_endpoint(host) if host else ""
    if text:
        yield Cause.invalid(f"{path}.controlPlaneEndpoint.host", text)
    if endpoint.get("host") and not 0 <= int(endpoint.get("port") or 0) <= 65535:
        yield Cause.invalid(f"{path}.controlPlaneEndpoint.port", "must be between 1 and 65535")


def _central_causes(central: Json, path: str) -> Iterator[Cause]:
    address = str(central.get("address") or "")
    if not is_host(address):
        yield Cause.invalid(
            f"{path}.address", f"{address!r} is not a valid host name or IP address: remove scheme and port"
        )
    bundle = central.get("additionalTrustBundle") or {}
    if bundle.get("kind") == "String" and not bundle.get("data"):
        yield Cause.required(f"{path}.additionalTrustBundle.data", "kind is String")
    if bundle.get("kind") == "ConfigMap" and not bundle.get("name"):
        yield Cause.required(f"{path}.additionalTrustBundle.name", "kind is ConfigMap")


# -- failure domains ---------------------------------------------------------------------------------------------


def default_domain(obj: Json, old: Json | None) -> None:
    del old
    spelling.normalise_domain(obj.setdefault("spec", {}))


def validate_domain(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = list(_identifier_causes(spec.get("prismElementCluster"), "spec.prismElementCluster"))
    causes += _list_causes(spec.get("subnets"), "spec.subnets", needed=True)
    if old is not None and (old.get("spec") or {}) != spec:
        causes.append(Cause.forbidden("spec", "immutable: create another failure domain"))
    return causes


# -- metro availability --------------------------------------------------------------------------------------------


def validate_metro(obj: Json, old: Json | None) -> list[Cause]:
    named = [each.get("name") for each in (obj.get("spec") or {}).get("failureDomains") or ()]
    causes = list(_fixed_causes(obj, old, "failureDomains"))
    if len(named) != 2 or not all(named) or named[0] == named[1]:
        causes.append(Cause.invalid("spec.failureDomains", "name exactly two different NutanixFailureDomains"))
    return causes


def validate_site(obj: Json, old: Json | None) -> list[Cause]:
    return [
        *_reference_causes(obj, "metroRef", "preferredFailureDomain"),
        *_fixed_causes(obj, old, "metroRef", "preferredFailureDomain"),
    ]


def default_recovery(obj: Json, old: Json | None) -> None:
    del old
    spelling.normalise_recovery(obj.setdefault("spec", {}))


def validate_recovery(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = [*_reference_causes(obj, "metroRef"), *_fixed_causes(obj, old, "metroRef")]
    if spec.get("protectionPolicy") is not None:
        causes += _identifier_causes(spec["protectionPolicy"], "spec.protectionPolicy")
    for number, group in enumerate(spec.get("movementGroups") or ()):
        causes += _group_causes(group, f"spec.movementGroups[{number}].categoryRecoveryPlans")
    return causes


def _group_causes(group: Json, path: str) -> Iterator[Cause]:
    plans = group.get("categoryRecoveryPlans") or []
    domains = [(plan.get("failureDomainRef") or {}).get("name") for plan in plans]
    if len(plans) != 2 or not all(domains) or domains[0] == domains[1]:
        yield Cause.invalid(path, "set two, one for each failure domain of the metro")
    for number, plan in enumerate(plans):
        yield from _identifier_causes(plan.get("recoveryPlan"), f"{path}[{number}].recoveryPlan")
        for field in ("key", "value"):
            if not (plan.get("category") or {}).get(field):
                yield Cause("FieldValueRequired", "Required value", f"{path}[{number}].category.{field}")


def _reference_causes(obj: Json, *fields: str) -> Iterator[Cause]:
    for field in fields:
        if not ((obj.get("spec") or {}).get(field) or {}).get("name"):
            yield Cause("FieldValueRequired", "Required value", f"spec.{field}.name")


def _fixed_causes(obj: Json, old: Json | None, *fields: str) -> Iterator[Cause]:
    for field in fields if old is not None else ():
        if (obj.get("spec") or {}).get(field) != ((old or {}).get("spec") or {}).get(field):
            yield Cause.forbidden(f"spec.{field}", "immutable: create another object")


# -- identifiers -------------------------------------------------------------------------------------------------


def _identifier_causes(value: Any, path: str) -> Iterator[Cause]:
    if value is None:
        yield Cause.required(path, "set its name or its UUID")
    elif not isinstance(value, dict) or value.get("type") not in ("name", "uuid"):
        yield Cause.invalid(path, "expected a name, a UUID, {type: name, name: ...} or {type: uuid, uuid: ...}")
    elif not value.get(value["type"]):
        yield Cause.required(f"{path}.{value['type']}", f"type is {value['type']}")
    elif value["type"] == "uuid" and not _is_uuid(value["uuid"]):
        yield Cause.invalid(f"{path}.uuid", f"{value['uuid']!r} is not a valid UUID")


def _list_causes(values: Any, path: str, *, needed: bool = False) -> Iterator[Cause]:
    if values is None or values == []:
        if needed:
            yield Cause.required(path, "name at least one")
        return
    if not isinstance(values, list):
        yield Cause.invalid(path, "must be a list")
        return
    for number, each in enumerate(values):
        yield from _identifier_causes(each, f"{path}[{number}]")
        if each in values[:number]:
            yield Cause("FieldValueDuplicate", "Duplicate value", f"{path}[{number}]")


def _is_uuid(text: Any) -> bool:
    try:
        uuid.UUID(str(text))
    except ValueError:
        return False
    return "-" in str(text)
