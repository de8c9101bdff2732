"""Patches of a ClusterClass: how variables change templates."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Raw
from homeport.api.meta import Model
from homeport.api.schema import Enum, Required, Size


class JSONPatchValue(Model):
    """A value that comes from a variable or a template."""

    template: Annotated[str, Size(1, 10240)] | None = None
    variable: Annotated[str, Size(1, 256)] | None = None


class JSONPatch(Model):
    """One operation of a JSON patch."""

    op: Required[Annotated[str, Enum(("add", "replace", "remove"))]] = ""
    path: Required[Annotated[str, Size(1, 512)]] = ""
    value: Raw = None
    value_from: JSONPatchValue | None = None


class PatchSelectorMatchMachineDeploymentClass(Model):
    """Classes of workers, by name."""

    names: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []


class PatchSelectorMatchMachinePoolClass(Model):
    """Classes of pools, by name."""

    names: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []


class PatchSelectorMatch(Model):
    """In which part of the class the template is used."""

    control_plane: bool = False
    infrastructure_cluster: bool = False
    machine_deployment_class: PatchSelectorMatchMachineDeploymentClass | None = None
    machine_pool_class: PatchSelectorMatchMachinePoolClass | None = None


class PatchSelector(Model):
    """Which templates are patched."""

    api_version: Required[Annotated[str, Size(1, 512)]] = ""
    kind: Required[Annotated[str, Size(1, 256)]] = ""
    match_resources: Required[PatchSelectorMatch] = msgspec.field(default_factory=PatchSelectorMatch)


class PatchDefinition(Model):
    """JSON patches for the templates that a selector matches."""

    json_patches: Required[Annotated[list[JSONPatch], Size(None, 100)]] = []
    selector: Required[PatchSelector] = msgspec.field(default_factory=PatchSelector)


class ExternalPatchDefinition(Model):
    """Extensions that make or check patches."""

    discover_variables_extension: Annotated[str, Size(1, 512)] | None = None
    generate_extension: Annotated[str, Size(1, 512)] | None = None
    settings: dict[str, str] = {}
    validate_extension: Annotated[str, Size(1, 512)] | None = None


class ClusterClassPatch(Model):
    """A change that is made to the templates of a class for each Cluster."""

    definitions: Annotated[list[PatchDefinition], Size(None, 100)] = []
    description: Annotated[str, Size(1, 1024)] = ""
    enabled_if: Annotated[str, Size(1, 256)] | None = None
    external: ExternalPatchDefinition | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""
