"""Butler's API as a component of the plane."""

from __future__ import annotations

from homeport.capi.component import Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.platforms.butler.addon import guard
from homeport.platforms.butler.admission import register
from homeport.platforms.butler.author import install as author
from homeport.platforms.butler.definition import definitions
from homeport.platforms.butler.infrastructure import CONTROLLERS as INFRASTRUCTURE
from homeport.platforms.butler.install import install
from homeport.platforms.butler.name import SYSTEM_NAMESPACE, TENANTS_NAMESPACE
from homeport.platforms.butler.rule import PROVIDER_RULES, RULES
from homeport.runtime.webhook.hook import Hooks


def _register(hooks: Hooks, environment: Environment) -> None:
    register(hooks, environment.client)
    if environment.server is not None:
        guard.join(environment.server)
        author.join(environment.server)


COMPONENT = Component(
    name="butler",
    requires=("core", "addons", "steward"),
    definitions=definitions,
    register=_register,
    install=install,
    namespaces=(TENANTS_NAMESPACE,),
    rules=RULES,
    places=(
        LogDeployment(SYSTEM_NAMESPACE, "butler-controller"),
        LogDeployment(SYSTEM_NAMESPACE, "butler-provider-nutanix", INFRASTRUCTURE, rules=PROVIDER_RULES),
        LogDeployment(SYSTEM_NAMESPACE, "butler-provider-harvester", INFRASTRUCTURE, rules=PROVIDER_RULES),
    ),
)
