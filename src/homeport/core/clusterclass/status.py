"""What a class reports, from what was seen of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from homeport.api.cluster.v1beta2 import (
    ClusterClass,
    ClusterClassStatusVariable,
    ClusterClassStatusVariableDefinition,
)
from homeport.capi import name
from homeport.capi.object import summary
from homeport.core.clusterclass.template import TemplateRef
from homeport.machinery import condition

INLINE = "inline"  # where a variable is defined: in the class itself
EXTERNAL = (
    "patches that call runtime extensions are not supported ({}): replace them with definitions with "
    "jsonPatches, or remove them"
)


@dataclass(slots=True)
class Seen:
    """What one look at the templates of a class found."""

    troubles: list[str] = field(default_factory=list)  # templates that can't be used, and why
    outdated: list[tuple[TemplateRef, str]] = field(default_factory=list)  # and the version to use


def external_patches(cluster_class: ClusterClass) -> list[str]:
    """Names of patches that ask an extension."""
    return [each.name for each in cluster_class.spec.patches if each.external is not None]


def fill_in(held: ClusterClass, seen: Seen, now: str) -> None:
    """The whole status. The generation counts as observed once its variables are known, whatever else is wrong."""
    status, generation = held.status, held.metadata.generation
    failed = EXTERNAL.format(", ".join(external)) if (external := external_patches(held)) else ""
    if not failed:
        status.variables = variables(held)
    said = [_versions(seen), _variables(failed)]
    for kind, state, reason, message in said:
        status.conditions = condition.put(
            status.conditions, kind, state, reason, message, now=now, generation=generation
        )
    status.conditions = summary.ordered(status.conditions)
    if not failed:
        status.observed_generation = generation


def variables(held: ClusterClass) -> list[ClusterClassStatusVariable]:
    """In alphabetical order, so that the status stands still."""
    return [
        ClusterClassStatusVariable(
            name=each.name,
            definitions_conflict=False,
            definitions=[
                ClusterClassStatusVariableDefinition(
                    from_=INLINE,
                    required=each.required,
                    deprecated_v1_beta1_metadata=each.deprecated_v1_beta1_metadata,
                    schema=each.schema,
                )
            ],
        )
        for each in sorted(held.spec.variables, key=lambda each: each.name)
    ]


ConditionFields = tuple[str, condition.Status, str, str]


def _versions(seen: Seen) -> ConditionFields:
    kind, reasons = name.Condition.REF_VERSIONS_UP_TO_DATE, name.Reason
    if seen.troubles:
        return kind, "False", reasons.TEMPLATES_NOT_USABLE, _listed(seen.troubles)
    if seen.outdated:
        lines = [f"{ref.path}: {ref} uses version {ref.version}: use {newest}" for ref, newest in seen.outdated]
        return kind, "False", reasons.REF_VERSIONS_NOT_UP_TO_DATE, _listed(lines)
    return kind, "True", reasons.REF_VERSIONS_UP_TO_DATE, ""


def _variables(failed: str) -> ConditionFields:
    kind: Any = name.Condition.VARIABLES_READY
    if failed:
        return kind, "False", name.Reason.VARIABLE_DISCOVERY_FAILED, failed
    return kind, "True", name.Reason.VARIABLES_READY, ""


def _listed(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else "\n".join(f"* {line}" for line in lines)
