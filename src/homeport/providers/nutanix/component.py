"""The Nutanix provider as a component of the plane."""

from __future__ import annotations

from homeport.capi.component import ChartFolder, Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.capi.rule import OWN, Rule
from homeport.infra import owner
from homeport.providers.nutanix import admission
from homeport.providers.nutanix.cloud.support import CLOUD
from homeport.providers.nutanix.definition import LISTED, definitions
from homeport.providers.nutanix.install import install
from homeport.providers.nutanix.platform import PLATFORM
from homeport.runtime.webhook.hook import Hooks


def _register(hooks: Hooks, environment: Environment) -> None:
    admission.register(hooks)
    owner.register(hooks, environment.client, admission.KINDS)


COMPONENT = Component(
    name="nutanix",
    requires=("core",),
    definitions=definitions,
    register=_register,
    install=lambda setup: install(setup.manager, setup.environment.dial, setup.capi),
    inventory=(LISTED,),
    rules=(
        Rule("ipam.cluster.x-k8s.io", ("ipaddressclaims",), OWN),
        Rule("", ("secrets",), ("get", "create", "patch")),
    ),
    places=(LogDeployment("capx-system", "capx-controller-manager"),),
    cloud=CLOUD,
    platform=PLATFORM,
    charts=(
        ChartFolder(
            "https://nutanix.github.io/helm/",
            "nutanix-cloud-controller-manager",
            "0.3.0",
            "homeport.providers.nutanix.chart",
        ),
    ),
)
