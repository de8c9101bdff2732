"""Variables of a ClusterClass and their schemas."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Long, NonEmpty, Raw
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, ListType, Required, Size


class ClusterClassVariableMetadata(NonEmpty):
    """Labels and annotations of a variable."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class ValidationRule(Model):
    """A CEL rule for a variable."""

    field_path: Annotated[str, Size(1, 512)] = ""
    message: Annotated[str, Size(1, 512)] = ""
    message_expression: Annotated[str, Size(1, 1024)] = ""
    reason: Annotated[
        str,
        Enum(("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")),
        Default("FieldValueInvalid"),
    ] = ""
    rule: Required[Annotated[str, Size(1, 4096)]] = ""


class VariableSchemaMetadata(NonEmpty):
    """Labels and annotations of a part of a schema."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class SchemaFields(Model):
    """The fields of a schema that are the same in all versions."""

    additional_properties: Raw = None
    all_of: Raw = None
    any_of: Raw = None
    default: Raw = None
    description: Annotated[str, Size(1, 4096)] = ""
    example: Raw = None
    format: Annotated[str, Size(1, 32)] = ""
    items: Raw = None
    max_items: Long | None = None
    max_length: Long | None = None
    max_properties: Long | None = None
    maximum: Long | None = None
    min_items: Long | None = None
    min_length: Long | None = None
    min_properties: Long | None = None
    minimum: Long | None = None
    not_: Raw = None
    one_of: Raw = None
    pattern: Annotated[str, Size(1, 512)] = ""
    properties: Raw = None
    type: Annotated[str, Enum(("object", "array", "string", "integer", "number", "boolean"))] = ""


class JSONSchemaProps(SchemaFields, NonEmpty):
    """A schema of a variable, in the manner of OpenAPI v3."""

    enum: Annotated[list[Raw], Size(None, 100), ListType("atomic")] = []
    exclusive_maximum: bool | None = None
    exclusive_minimum: bool | None = None
    required: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 1000), ListType("atomic")] = []
    unique_items: bool | None = None
    x_kubernetes_int_or_string: bool | None = msgspec.field(default=None, name="x-kubernetes-int-or-string")
    x_kubernetes_preserve_unknown_fields: bool | None = msgspec.field(
        default=None, name="x-kubernetes-preserve-unknown-fields"
    )
    x_kubernetes_validations: Annotated[list[ValidationRule], Size(1, 100), ListType("map", ("rule",))] = msgspec.field(
        default_factory=list, name="x-kubernetes-validations"
    )
    x_metadata: VariableSchemaMetadata = msgspec.field(default_factory=VariableSchemaMetadata, name="x-metadata")


class VariableSchema(Model):
    """The schema of a variable."""

    open_api_v3_schema: Required[JSONSchemaProps] = msgspec.field(default_factory=JSONSchemaProps)


class ClusterClassVariable(Model):
    """A variable that Clusters of this class may or must set."""

    deprecated_v1_beta1_metadata: ClusterClassVariableMetadata = msgspec.field(
        default_factory=ClusterClassVariableMetadata
    )
    name: Required[Annotated[str, Size(1, 256)]] = ""
    required: Required[bool | None] = None
    schema: Required[VariableSchema] = msgspec.field(default_factory=VariableSchema)


class ClusterClassStatusVariableDefinition(Model):
    """What one source says about a variable."""

    deprecated_v1_beta1_metadata: ClusterClassVariableMetadata = msgspec.field(
        default_factory=ClusterClassVariableMetadata
    )
    from_: Required[Annotated[str, Size(1, 256)]] = ""
    required: Required[bool | None] = None
    schema: Required[VariableSchema] = msgspec.field(default_factory=VariableSchema)


class ClusterClassStatusVariable(Model):
    """A variable, with each of its definitions."""

    definitions: Required[Annotated[list[ClusterClassStatusVariableDefinition], Size(1, 100), ListType("atomic")]] = []
    definitions_conflict: bool | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""
