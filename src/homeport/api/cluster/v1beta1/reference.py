"""Parts that many kinds share: references, template metadata, gates and taints."""

from __future__ import annotations

from typing import Annotated

from homeport.api.field import Conditions
from homeport.api.meta import Model
from homeport.api.schema import Size


class TemplateMeta(Model):
    """Labels and annotations that objects get when they are made."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class MachineNamingStrategy(Model):
    """How Machines are named."""

    template: Annotated[str, Size(1, 256)] = ""


class ReplicaStatus(Model):
    """Replicas and conditions as v1beta2 counts and reports them."""

    available_replicas: int | None = None
    conditions: Conditions = []
    ready_replicas: int | None = None
    up_to_date_replicas: int | None = None
