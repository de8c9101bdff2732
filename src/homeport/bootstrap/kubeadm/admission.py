"""What is refused in KubeadmConfigs and their templates beyond what the schema says. Pure functions on dicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigTemplate
from homeport.capi.kubeadmconfig import validate
from homeport.client.errors import Cause
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def register(hooks: Hooks) -> None:
    hooks.add(KubeadmConfig, validate=lambda obj, old: validate(obj.get("spec") or {}, "spec"))
    hooks.add(KubeadmConfigTemplate, validate=_validate_template)


def _validate_template(obj: Json, old: Json | None) -> Iterator[Cause]:
    template = (obj.get("spec") or {}).get("template") or {}
    return validate(template.get("spec") or {}, "spec.template.spec")
