"""Fields that many kinds share, by name: their limits and patterns, and shapes that are read as plain dicts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from homeport.api.meta import Model
from homeport.api.schema import (
    Atomic,
    Enum,
    Format,
    ListType,
    Mark,
    Pattern,
    Preserve,
    Range,
    Required,
    Rule,
    Shape,
    Size,
)

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"^{_LABEL}(\.{_LABEL})*$"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

Time = Annotated[str, Format("date-time")]
Bytes = Annotated[str, Format("byte")]
Long = Annotated[int, Format("int64")]
Count = Annotated[int, Range(0)]
Port = Annotated[int, Range(1, 65535)]
IntOrString = int | str
Quantity = Annotated[
    IntOrString,
    Pattern(
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
]
Raw = Annotated[Any, Preserve()]

Name = Annotated[str, Size(1, 253), Pattern(_SUBDOMAIN)]
Namespace = Annotated[str, Size(1, 63), Pattern(f"^{_LABEL}$")]
Kind = Annotated[str, Size(1, 63), Pattern("^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
ConditionType = Annotated[str, Size(1, 316), Pattern(rf"^({_LABEL}(\.{_LABEL})*/)?({_WORD})$")]
# A machine's own health conditions can't be what its health is judged by.
MachineConditionType = Annotated[
    ConditionType,
    Rule(
        "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
        "Ready, Available, HealthCheckSucceeded, OwnerRemediated and ExternallyRemediated are computed from health "
        "checks: choose another condition",
    ),
]
Truth = Annotated[str, Enum(("True", "False", "Unknown"))]

Requirement = Annotated[
    dict[str, Any],
    Shape(
        "Requirement",
        (
            ("key", Required[str]),
            ("operator", Required[str]),
            ("values", Annotated[list[str], ListType("atomic")]),
        ),
    ),
]
LabelSelector = Annotated[
    dict[str, Any],
    Shape(
        "LabelSelector",
        (
            ("matchExpressions", Annotated[list[Requirement], ListType("atomic")]),
            ("matchLabels", dict[str, str]),
        ),
    ),
    Atomic(),
]
Condition = Annotated[
    dict[str, Any],
    Shape(
        "Condition",
        (
            ("lastTransitionTime", Required[Time]),
            ("message", Required[Annotated[str, Size(None, 32768)]]),
            ("observedGeneration", Annotated[Long, Range(0)]),
            ("reason", Required[Annotated[str, Size(1, 1024), Pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]]),
            ("status", Required[Truth]),
            (
                "type",
                Required[Annotated[str, Size(None, 316), Pattern(rf"^({_LABEL}(\.{_LABEL})*/)?({_WORD})$")]],
            ),
        ),
    ),
]
Conditions = Annotated[list[Condition], ListType("map", ("type",)), Size(None, 32)]
# Conditions as v1beta1 wrote them: with a severity, without a generation.
OldCondition = Annotated[
    dict[str, Any],
    Shape(
        "Condition",
        (
            ("lastTransitionTime", Required[Time]),
            ("message", Annotated[str, Size(1, 10240)]),
            ("reason", Annotated[str, Size(1, 256)]),
            ("severity", Annotated[str, Size(None, 32)]),
            ("status", Required[str]),
            ("type", Required[Annotated[str, Size(1, 256)]]),
        ),
    ),
]


class NonEmpty(Model):
    """A part of an object that is left out if it has no field: `{}` is rejected."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)


class ConditionsV1Beta1(Model):
    """What v1beta1 reported; nobody reads it any more."""

    conditions: list[OldCondition] = []


class DeprecatedConditions(Model):
    """Status of older versions of the API, of kinds that had nothing but conditions there."""

    v1beta1: ConditionsV1Beta1 = msgspec.field(default_factory=ConditionsV1Beta1)
