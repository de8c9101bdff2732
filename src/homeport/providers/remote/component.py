"""The remote machine provider as a component of the plane."""

from __future__ import annotations

from homeport.capi.component import Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.capi.rule import OWN, Rule
from homeport.infra import owner
from homeport.providers.remote import admission
from homeport.providers.remote.definition import LISTED, definitions
from homeport.providers.remote.install import install
from homeport.runtime.webhook.hook import Hooks

_SYSTEM = "k0smotron-system"


def _register(hooks: Hooks, environment: Environment) -> None:
    admission.register(hooks)
    owner.register(hooks, environment.client, admission.KINDS)


COMPONENT = Component(
    name="remote",
    requires=("core",),
    definitions=definitions,
    register=_register,
    install=lambda setup: install(setup.manager, setup.capi),
    inventory=(LISTED,),
    rules=(
        Rule("ipam.cluster.x-k8s.io", ("ipaddressclaims",), OWN),
        Rule("", ("secrets",), ("get", "patch")),
    ),
    places=(
        LogDeployment(_SYSTEM, "k0smotron-controller-manager"),
        LogDeployment(_SYSTEM, "k0smotron-controller-manager-infrastructure", alias=True),
    ),
)
