"""Hosted control planes as components of the plane: Steward's kinds, and Kamaji's."""

from __future__ import annotations

from functools import partial

from homeport.capi.component import Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.capi.name import INFRASTRUCTURE_GROUP
from homeport.capi.rule import DEFINED, OWN, Rule
from homeport.hosted.admission import register
from homeport.hosted.definition import LISTED, definitions
from homeport.hosted.flavour import KAMAJI as KAMAJI_FLAVOUR
from homeport.hosted.flavour import STEWARD as STEWARD_FLAVOUR
from homeport.hosted.flavour import Flavour
from homeport.hosted.install import install
from homeport.runtime.webhook.hook import Hooks


def _register(flavour: Flavour, hooks: Hooks, environment: Environment) -> None:
    del environment
    register(hooks, flavour)


def _component(flavour: Flavour, *places: LogDeployment) -> Component:
    return Component(
        name=flavour.name,
        requires=("core",),
        definitions=partial(definitions, flavour),
        register=partial(_register, flavour),
        install=lambda setup: install(setup, flavour),
        inventory=(LISTED[flavour.name],),
        rules=(
            Rule(flavour.tenant.__resource__.group, DEFINED, OWN),
            Rule("", ("configmaps", "secrets", "services"), OWN),
            Rule("", ("pods", "persistentvolumeclaims"), ("get", "list", "delete")),
            Rule("", ("namespaces",), ("create",)),
            Rule("apps", ("deployments", "statefulsets"), OWN),
            Rule("cluster.x-k8s.io", ("clusters",), ("patch",)),
            Rule(INFRASTRUCTURE_GROUP, DEFINED, ("patch",)),
        ),
        places=places,
    )


_TENANTS = (
    f"{STEWARD_FLAVOUR.name}-tenant*",
    f"{STEWARD_FLAVOUR.name}-datastore",
    f"{STEWARD_FLAVOUR.name}-kubeconfig*",
)
STEWARD = _component(
    STEWARD_FLAVOUR,
    LogDeployment("steward-system", "steward-controller-manager", _TENANTS),
    LogDeployment("capi-steward-system", "capi-steward-controller-manager", ("steward-controlplane",)),
)
KAMAJI = _component(
    KAMAJI_FLAVOUR,
    LogDeployment("kamaji-system", "kamaji"),
)
