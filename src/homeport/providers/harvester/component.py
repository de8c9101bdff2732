"""The KubeVirt and Harvester provider as a component of the plane."""

from __future__ import annotations

from homeport.capi.component import Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.capi.rule import OWN, Rule
from homeport.infra import owner
from homeport.providers.harvester import admission
from homeport.providers.harvester.cloud.support import CLOUD
from homeport.providers.harvester.definition import LISTED, definitions
from homeport.providers.harvester.install import install
from homeport.providers.harvester.platform import PLATFORM
from homeport.runtime.webhook.hook import Hooks


def _register(hooks: Hooks, environment: Environment) -> None:
    admission.register(hooks, environment.client)
    owner.register(hooks, environment.client, admission.KINDS)


COMPONENT = Component(
    name="kubevirt",
    requires=("core",),
    definitions=definitions,
    register=_register,
    install=lambda setup: install(setup.manager, setup.environment.dial, setup.capi),
    inventory=(LISTED,),
    rules=(
        Rule("ipam.cluster.x-k8s.io", ("ipaddressclaims",), OWN),
        Rule("", ("secrets",), ("get", "create", "patch")),
    ),
    places=(LogDeployment("capk-system", "capk-controller-manager"),),
    cloud=CLOUD,
    platform=PLATFORM,
)
