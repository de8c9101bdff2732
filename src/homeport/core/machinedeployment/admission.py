"""What a MachineDeployment may say, and what is filled in when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.capi import name
from homeport.client.errors import Cause
from homeport.core.machinedeployment.revision import HISTORY_LIMIT
from homeport.core.machinedeployment.scope import DEFAULT_SURGE, DEFAULT_UNAVAILABLE
from homeport.core.machineset.admission import common_causes, common_defaults
from homeport.core.machineset.share import rolling_causes, share_causes
from homeport.machinery.schema.name import label_value
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def register(hooks: Hooks) -> None:
    hooks.add(MachineDeployment, default=default, validate=validate)


def default(deployment: Json, old: Json | None) -> None:
    owner = {name.DEPLOYMENT_NAME_LABEL: str(deployment["metadata"].get("name", ""))}
    common_defaults(deployment, old, owner, name.DEPLOYMENT_FINALIZER, select_cluster=True)
    rollout = deployment["spec"]["rollout"] = deployment["spec"].get("rollout") or {}
    strategy = rollout["strategy"] = rollout.get("strategy") or {}
    kind = strategy["type"] = strategy.get("type") or "RollingUpdate"
    if kind == "RollingUpdate":
        limits = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
        limits.setdefault("maxSurge", DEFAULT_SURGE)
        limits.setdefault("maxUnavailable", DEFAULT_UNAVAILABLE)


def validate(deployment: Json, old: Json | None) -> list[Cause]:
    spec = deployment.get("spec") or {}
    strategy = (spec.get("rollout") or {}).get("strategy") or {}
    return [
        *_name(str(deployment["metadata"].get("name", ""))),
        *common_causes(deployment, old),
        *rolling_causes(strategy.get("rollingUpdate") or {}, "spec.rollout.strategy.rollingUpdate"),
        *share_causes(spec.get("remediation") or {}, "spec.remediation", "maxInFlight"),
        *_history(deployment["metadata"].get("annotations") or {}),
    ]


def _name(text: str) -> Iterator[Cause]:
    for wrong in label_value(text):
        yield Cause.invalid("metadata.name", f'"{text}": the name is used as a label value of its Machines: {wrong}')


def _history(annotations: Json) -> Iterator[Cause]:
    text = annotations.get(HISTORY_LIMIT)
    if text is not None and not str(text).isdigit():
        yield Cause.invalid(
            f"metadata.annotations[{HISTORY_LIMIT}]",
            f'"{text}": must be the number of old MachineSets to keep for rollbacks, for example 3',
        )
