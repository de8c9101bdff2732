"""Patches of a ClusterClass: how variables change templates."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Kind, NonEmpty, Raw
from homeport.api.meta import Model
from homeport.api.schema import Enum, ListType, Pattern, Required, Size


class JSONPatchValue(Model):
    """A value that comes from a variable or a template."""

    template: Annotated[str, Size(1, 10240)] = ""
    variable: Annotated[str, Size(1, 256)] = ""


class JSONPatch(Model):
    """One operation of a JSON patch."""

    op: Required[Annotated[str, Enum(("add", "replace", "remove"))]] = ""
    path: Required[Annotated[str, Size(1, 512)]] = ""
    value: Raw = None
    value_from: JSONPatchValue | None = None


class PatchSelectorMatchMachineDeploymentClass(Model):
    """Classes of workers, by name."""

    names: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100), ListType("atomic")] = []


class PatchSelectorMatchMachinePoolClass(Model):
    """Classes of pools, by name."""

    names: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100), ListType("atomic")] = []


class PatchSelectorMatch(NonEmpty):
    """In which part of the class the template is used."""

    control_plane: bool | None = None
    infrastructure_cluster: bool | None = None
    machine_deployment_class: PatchSelectorMatchMachineDeploymentClass | None = None
    machine_pool_class: PatchSelectorMatchMachinePoolClass | None = None


class PatchSelector(Model):
    """Which templates are patched."""

    api_version: Required[
        Annotated[
            str,
            Size(1, 317),
            Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"),
        ]
    ] = ""
    kind: Required[Kind] = ""
    match_resources: Required[PatchSelectorMatch] = msgspec.field(default_factory=PatchSelectorMatch)


class PatchDefinition(Model):
    """JSON patches for the templates that a selector matches."""

    json_patches: Required[Annotated[list[JSONPatch], Size(1, 100), ListType("atomic")]] = []
    selector: Required[PatchSelector] = msgspec.field(default_factory=PatchSelector)


class ExternalPatchDefinition(Model):
    """Extensions that make or check patches."""

    discover_variables_extension: Annotated[str, Size(1, 512)] = ""
    generate_patches_extension: Annotated[str, Size(1, 512)] = ""
    settings: dict[str, str] = {}
    validate_topology_extension: Annotated[str, Size(1, 512)] = ""


class ClusterClassPatch(Model):
    """A change that is made to the templates of a class for each Cluster."""

    definitions: Annotated[list[PatchDefinition], Size(None, 100), ListType("atomic")] = []
    description: Annotated[str, Size(1, 1024)] = ""
    enabled_if: Annotated[str, Size(1, 256)] = ""
    external: ExternalPatchDefinition | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""
