"""What is refused in the configs of k0s machines and their templates beyond what the schema says. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sWorkerConfig, K0sWorkerConfigTemplate
from homeport.capi.k0s import conversion
from homeport.capi.k0s.validation import validate_host
from homeport.capi.name import BOOTSTRAP_GROUP
from homeport.client.errors import Cause
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def register(hooks: Hooks) -> None:
    conversion.register(hooks, BOOTSTRAP_GROUP)
    hooks.add(K0sWorkerConfig, validate=_validate)
    hooks.add(K0sControllerConfig, validate=_validate)
    hooks.add(K0sWorkerConfigTemplate, validate=_validate_template)


def _validate(obj: Json, old: Json | None) -> Iterator[Cause]:
    return validate_host(obj.get("spec") or {}, "spec")


def _validate_template(obj: Json, old: Json | None) -> Iterator[Cause]:
    template = (obj.get("spec") or {}).get("template") or {}
    return validate_host(template.get("spec") or {}, "spec.template.spec")
