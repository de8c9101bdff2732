"""What a ClusterClass may say, and what may be changed of it while Clusters use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.capi.name import TEMPLATE_SUFFIX
from homeport.capi.object import naming
from homeport.capi.version import Version, is_valid, parse
from homeport.client.errors import Cause
from homeport.client.protocol import Client, Query
from homeport.core.clusterclass.definition import definition_causes
from homeport.core.clusterclass.template import templates
from homeport.core.clusterclass.usage import deletion_causes, usage_causes, uses
from homeport.core.topology.compatibility import incompatible
from homeport.core.topology.part import WORKERS, has_check, part_causes
from homeport.core.topology.patch.patch import check_patches
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_NAMES = {"machineDeployments": "machineDeployment.topologyName", "machinePools": "machinePool.topologyName"}


def register(hooks: Hooks, client: Client) -> None:
    """`client` looks up the Clusters that use a class."""
    users = _Users(client)
    hooks.add(ClusterClass, validate=validate, validate_delete=users.validate_delete)
    hooks.add(ClusterClass, validate=users.validate)


class _Users:
    """What depends on the Clusters there are."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        if old is None or old.get("spec") == obj.get("spec"):
            return []
        return [*incompatible(old, obj), *usage_causes(old, obj, await self._clusters(old))]

    async def validate_delete(self, obj: Json) -> list[Cause]:
        return list(deletion_causes(await self._clusters(obj)))

    async def _clusters(self, cluster_class: Json) -> list[Any]:
        meta = cluster_class["metadata"]
        found = await self._client.list(Cluster.__resource__, Query())
        return [each for each in found.items if uses(each, str(meta.get("namespace") or ""), str(meta.get("name")))]


def validate(obj: Json, old: Json | None) -> list[Cause]:
    if old is not None and old.get("spec") == obj.get("spec"):
        return []  # an owner or a label of a class that is there must always be possible
    spec = obj.get("spec") or {}
    return [
        *_templates(obj),
        *_names(spec),
        *_parts(spec),
        *_naming(spec),
        *definition_causes(list(spec.get("variables") or ())),
        *_patches(obj),
        *_versions(list(spec.get("kubernetesVersions") or ())),
        *_extensions(spec),
    ]


def _templates(obj: Json) -> Iterator[Cause]:
    for ref in templates(obj):
        if not ref.name:
            yield Cause.required(f"{ref.path}.name", "set the name of the template")
        if not ref.kind.removesuffix(TEMPLATE_SUFFIX) or not ref.kind.endswith(TEMPLATE_SUFFIX):
            why = f"must be the kind of a template: its name ends with {TEMPLATE_SUFFIX}"
            yield _invalid(f"{ref.path}.kind", ref.kind, why)
        if not ref.api_group or not ref.version:
            yield _invalid(
                f"{ref.path}.apiVersion", ref.api_version, "must be a group and a version, for example a.b/v1"
            )


def _names(spec: Json) -> Iterator[Cause]:
    for part in WORKERS:
        seen: set[str] = set()
        for i, each in enumerate((spec.get("workers") or {}).get(part) or ()):
            if each.get("class") in seen:
                where = f"spec.workers.{part}[{i}].class"
                yield Cause("FieldValueDuplicate", f'Duplicate value: "{each["class"]}"', where)
            seen.add(each.get("class", ""))


def _parts(spec: Json) -> Iterator[Cause]:
    plane = spec.get("controlPlane") or {}
    yield from part_causes(plane, "spec.controlPlane", worker=False)
    if has_check(plane) and not plane.get("machineInfrastructure"):
        why = "Forbidden: without machineInfrastructure the control plane has no Machines that could be checked"
        yield Cause("FieldValueForbidden", why, "spec.controlPlane.healthCheck")
    for part in WORKERS:
        for i, each in enumerate((spec.get("workers") or {}).get(part) or ()):
            yield from part_causes(each, f"spec.workers.{part}[{i}]", worker=True)


def _naming(spec: Json) -> Iterator[Cause]:
    holders: list[tuple[Json, str, tuple[str, ...]]] = [
        (spec.get(part) or {}, f"spec.{part}", ("cluster.name",)) for part in ("infrastructure", "controlPlane")
    ]
    for part, field in _NAMES.items():
        listed = enumerate((spec.get("workers") or {}).get(part) or ())
        holders += [(each, f"spec.workers.{part}[{i}]", ("cluster.name", field)) for i, each in listed]
    for holder, path, fields in holders:
        template = (holder.get("naming") or {}).get("template")
        wrong = naming.check(template, fields, random_needed=False) if template else ""
        if wrong:
            yield Cause.invalid(f"{path}.naming.template", wrong)


def _patches(obj: Json) -> Iterator[Cause]:
    try:
        typed = msgspec.convert(obj, ClusterClass)
    except msgspec.ValidationError:
        return  # the schema says it better
    for path, why in check_patches(typed):
        yield Cause.invalid(path, why)


def _versions(listed: list[str]) -> Iterator[Cause]:
    before: Version | None = None
    for i, text in enumerate(listed):
        path = f"spec.kubernetesVersions[{i}]"
        if not is_valid(str(text)):
            yield _invalid(path, text, "must be a semantic version, for example v1.30.2")
            continue
        version = parse(str(text))
        if before is not None and version.build_key <= before.build_key:
            yield _invalid(path, text, f"must be newer than the entry before it, {before}")
        elif before is not None and not _follows(before, version):
            why = f"skips minor versions after {before}: an upgrade needs each of them"
            yield _invalid(path, text, why)
        before = version


def _follows(before: Version, version: Version) -> bool:
    return before.major == version.major and version.minor - before.minor in (0, 1)


def _extensions(spec: Json) -> Iterator[Cause]:
    if ((spec.get("upgrade") or {}).get("external") or {}).get("generateUpgradePlanExtension"):
        yield Cause.forbidden(
            "spec.upgrade.external.generateUpgradePlanExtension",
            "runtime extensions are not supported: list the versions of the upgrade path in spec.kubernetesVersions",
        )


def _invalid(path: str, value: str, why: str) -> Cause:
    return Cause.invalid(path, f'"{value}": {why}')
