"""Types that the kinds of every infrastructure provider have in common."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.meta import Model
from homeport.api.schema import Loose, Preserve

# Conditions of either layout: with a severity, as older clients wrote them, or as metav1 has them.
AnyConditions = Annotated[list[dict[str, Any]], Loose()]


class Initialization(Model):
    provisioned: bool | None = None


class ContractStatus(Model):
    conditions: AnyConditions = []


class TemplateMeta(Model):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class TemplateResource(Model):
    """The object to make; subclasses have its `spec`."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)


class InfraStatus(Model):
    """Whether the infrastructure exists, as each version of the contract asks for it."""

    ready: bool = False
    initialization: Initialization = msgspec.field(default_factory=Initialization)


class MachineTemplateStatus(Model):
    capacity: Annotated[dict[str, Any], Preserve()] = {}
    conditions: AnyConditions = []
