"""k0rdent's API as a component of the plane."""

from __future__ import annotations

from homeport.capi.component import ChartFolder, Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.platforms.k0rdent.admission import register
from homeport.platforms.k0rdent.builtin import RELEASE_VERSION, initial_objects
from homeport.platforms.k0rdent.catalogue import CHART_VERSION
from homeport.platforms.k0rdent.definition import definitions
from homeport.platforms.k0rdent.flux import definitions as sources
from homeport.platforms.k0rdent.install import install
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.rule import RULES
from homeport.platforms.k0rdent.service.admission import register as register_services
from homeport.runtime.webhook.hook import Hooks

_CHARTS = "homeport.platforms.k0rdent.chart"


def _register(hooks: Hooks, environment: Environment) -> None:
    register(hooks, environment.client)
    register_services(hooks, environment.client)


COMPONENT = Component(
    name="k0rdent",
    requires=("core", "addons", "ipam", "k0smotron"),
    definitions=lambda: [*definitions(), *sources()],
    register=_register,
    install=install,
    objects=initial_objects,
    rules=RULES,
    places=(LogDeployment(SYSTEM_NAMESPACE, "kcm-controller-manager"),),
    charts=(
        ChartFolder("oci://ghcr.io/k0rdent/kcm/charts", "kcm", RELEASE_VERSION, _CHARTS),
        ChartFolder("oci://ghcr.io/k0rdent-oot/oot/charts", "nutanix-capx", CHART_VERSION, _CHARTS),
    ),
)
