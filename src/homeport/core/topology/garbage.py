"""Copies of templates that nobody refers to any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from homeport.api.cluster.v1beta2 import Cluster, ContractRef, MachineDeployment, MachineSet
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import TEMPLATE_SUFFIX
from homeport.capi.object.ownership import is_owned_by
from homeport.machinery.gvk import parse_api_version


class UsedTemplate(NamedTuple):
    """A template that is in use, regardless of the API version of the reference."""

    group: str
    kind: str
    name: str


def used_by(workers: Iterable[MachineDeployment | MachineSet]) -> set[UsedTemplate]:
    """By MachineSets that still make Machines, or may again after a rollback. Those that go make none."""
    found: set[UsedTemplate] = set()
    for each in workers:
        if not each.metadata.deletion_timestamp:
            machine = each.spec.template.spec
            found |= {
                _ref(ref) for ref in (machine.bootstrap.config_ref, machine.infrastructure_ref) if ref is not None
            }
    return found


def used_as(*intents: Mapping[str, Any] | None) -> set[UsedTemplate]:
    return {
        UsedTemplate(parse_api_version(each["apiVersion"]).group, each["kind"], each["metadata"]["name"])
        for each in intents
        if each is not None
    }


def _ref(ref: ContractRef) -> UsedTemplate:
    return UsedTemplate(ref.api_group, ref.kind, ref.name)


def unused(
    cluster: Cluster, copies: Iterable[tuple[Resource, Unstructured]], used: set[UsedTemplate]
) -> list[tuple[Resource, Unstructured]]:
    """Each once, though it may be known in several versions."""
    found: dict[str, tuple[Resource, Unstructured]] = {}
    for resource, obj in copies:
        if (
            resource.kind.endswith(TEMPLATE_SUFFIX)
            and not obj.metadata.get("deletionTimestamp")
            and is_owned_by(obj, cluster)
            and UsedTemplate(resource.group, resource.kind, obj.name) not in used
        ):
            found[obj.uid] = (resource, obj)
    return list(found.values())
