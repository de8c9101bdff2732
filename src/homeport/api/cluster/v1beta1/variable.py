"""Variables of a ClusterClass and their schemas."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.variable import SchemaFields, ValidationRule
from homeport.api.field import Raw
from homeport.api.meta import Model
from homeport.api.schema import ListType, Required, Size


class ClusterClassVariableMetadata(Model):
    """Labels and annotations of a variable."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class VariableSchemaMetadata(Model):
    """Labels and annotations of a part of a schema."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class JSONSchemaProps(SchemaFields):
    """A schema of a variable, in the manner of OpenAPI v3."""

    enum: Annotated[list[Raw], Size(None, 100)] = []
    exclusive_maximum: bool = False
    exclusive_minimum: bool = False
    required: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 1000)] = []
    unique_items: bool = False
    x_kubernetes_int_or_string: bool = msgspec.field(default=False, name="x-kubernetes-int-or-string")
    x_kubernetes_preserve_unknown_fields: bool = msgspec.field(
        default=False, name="x-kubernetes-preserve-unknown-fields"
    )
    x_kubernetes_validations: Annotated[list[ValidationRule], Size(None, 100), ListType("map", ("rule",))] = (
        msgspec.field(default_factory=list, name="x-kubernetes-validations")
    )
    x_metadata: VariableSchemaMetadata | None = msgspec.field(default=None, name="x-metadata")


class VariableSchema(Model):
    """The schema of a variable."""

    open_api_v3_schema: Required[JSONSchemaProps] = msgspec.field(default_factory=JSONSchemaProps)


class ClusterClassVariable(Model):
    """A variable that Clusters of this class may or must set."""

    metadata: ClusterClassVariableMetadata = msgspec.field(default_factory=ClusterClassVariableMetadata)
    name: Required[Annotated[str, Size(1, 256)]] = ""
    required: Required[bool] = False
    schema: Required[VariableSchema] = msgspec.field(default_factory=VariableSchema)


class ClusterClassStatusVariableDefinition(Model):
    """What one source says about a variable."""

    from_: Required[Annotated[str, Size(1, 256)]] = ""
    metadata: ClusterClassVariableMetadata = msgspec.field(default_factory=ClusterClassVariableMetadata)
    required: Required[bool] = False
    schema: Required[VariableSchema] = msgspec.field(default_factory=VariableSchema)


class ClusterClassStatusVariable(Model):
    """A variable, with each of its definitions."""

    definitions: Required[Annotated[list[ClusterClassStatusVariableDefinition], Size(None, 100)]] = []
    definitions_conflict: bool = False
    name: Required[Annotated[str, Size(1, 256)]] = ""
