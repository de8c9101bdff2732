"""The k0s kinds between v1beta1 and v1beta2, without loss."""

from __future__ import annotations

from typing import Any

from homeport.api.k0s import v1beta1, v1beta2
from homeport.api.meta import Object
from homeport.capi.conversion.codec import Context
from homeport.capi.conversion.registration import register_conversions
from homeport.capi.conversion.rule import ABSENT, Custom, Move, Rule, Within, find, put, ready_moved, take
from homeport.capi.k0s.status import status_down, status_up
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def _provisioner_up(spec: Json, _: Context) -> None:
    """v1beta1 chooses the format by what is set."""
    for name in ("ignition", "customUserDataRef"):
        value = take(spec, name)
        if value is not ABSENT and value is not None:
            put(spec, f"provisioner.{name}", value)
    if find(spec, "provisioner.ignition") is not ABSENT:
        put(spec, "provisioner.type", "ignition")


def _provisioner_down(spec: Json, _: Context) -> None:
    provisioner = spec.get("provisioner")
    if not isinstance(provisioner, dict):
        return
    for name in ("ignition", "customUserDataRef"):
        value = provisioner.pop(name, None)
        if value is not None:
            spec[name] = value
    if provisioner.get("type") == "ignition" and "ignition" in spec:
        del provisioner["type"]
    if not provisioner:
        del spec["provisioner"]


HOST: list[Rule] = [
    Custom(_provisioner_up, _provisioner_down),
    Move("preStartCommands", "preK0sCommands"),
    Move("postStartCommands", "postK0sCommands"),
]


_CONFIG: list[Rule] = [Within("spec", HOST), ready_moved("dataSecretCreated")]

KINDS: tuple[tuple[tuple[type[Object], type[Object]], list[Rule]], ...] = (
    ((v1beta1.K0sWorkerConfig, v1beta2.K0sWorkerConfig), _CONFIG),
    (
        (v1beta1.K0sWorkerConfigTemplate, v1beta2.K0sWorkerConfigTemplate),
        [Within("spec.template.spec", HOST)],
    ),
    ((v1beta1.K0sControllerConfig, v1beta2.K0sControllerConfig), _CONFIG),
    (
        (v1beta1.K0sControlPlane, v1beta2.K0sControlPlane),
        [Within("spec.k0sConfigSpec", HOST), Custom(status_up, status_down)],
    ),
    (
        (v1beta1.K0sControlPlaneTemplate, v1beta2.K0sControlPlaneTemplate),
        [Within("spec.template.spec.k0sConfigSpec", HOST)],
    ),
)


def register(hooks: Hooks, group: str) -> None:
    """Of the kinds of one group: each is another component's."""
    register_conversions(hooks, [each for each in KINDS if each[0][-1].__resource__.group == group])
