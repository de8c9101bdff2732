"""Hosted control planes as components of the plane: Steward's kinds, and Kamaji's."""

from __future__ import annotations

from functools import partial

from homeport.capi.component import Component, LogDeployment
from homeport.capi.environment import Environment
from homeport.capi.name import INFRASTRUCTURE_GROUP
from homeport.capi.rule import APPLY, CLUSTER_STATUS, DEFINED, DEFINED_STATUS, OWN, Rule
from homeport.hosted.admission import register
from homeport.hosted.definition import LISTED, definitions
from homeport.hosted.flavour import KAMAJI as KAMAJI_FLAVOUR
from homeport.hosted.flavour import STEWARD as STEWARD_FLAVOUR
from homeport.hosted.flavour import Flavour
from homeport.hosted.install import install
from homeport.hosted.tenant.route import ROUTES
from homeport.runtime.webhook.hook import Hooks


def _register(flavour: Flavour, hooks: Hooks, environment: Environment) -> None:
    del environment
    register(hooks, flavour)


def _tenant_rules(flavour: Flavour) -> tuple[Rule, ...]:
    """Of the controllers that run tenants."""
    group = flavour.tenant.__resource__.group
    return (
        Rule(group, DEFINED, ("patch",)),
        Rule(group, DEFINED_STATUS, ("patch",)),
        Rule(group, (flavour.datastore.__resource__.plural,), ("create",)),  # the one that is made on first need
        Rule("", ("configmaps", "services"), ("get", *APPLY)),
        Rule("", ("secrets",), OWN),
        Rule("", ("pods",), ("get", "list")),
        Rule("", ("namespaces",), ("list", "create")),
        Rule("", ("nodes",), ("list",)),  # whose addresses lead to a Service of type NodePort
        Rule("apps", ("deployments",), OWN),
        Rule("apps", ("statefulsets",), ("get", *APPLY)),
        *(Rule(each.group, (each.plural,), OWN) for each in ROUTES),
    )


def _control_plane_rules(flavour: Flavour) -> tuple[Rule, ...]:
    """Of the controllers that make tenants the control planes of Clusters."""
    own, tenant = flavour.control_plane.__resource__, flavour.tenant.__resource__
    return (
        Rule(own.group, (own.plural, f"{own.plural}/status"), ("patch",)),
        Rule(tenant.group, (tenant.plural,), (*APPLY, "delete")),
        Rule("", ("secrets",), ("get", *APPLY)),
        Rule("cluster.x-k8s.io", ("clusters",), ("patch",)),
        # Where the control plane is reached; and InfraClusters without a controller of their own are made ready.
        Rule(INFRASTRUCTURE_GROUP, DEFINED, ("patch",)),
        Rule(INFRASTRUCTURE_GROUP, CLUSTER_STATUS, ("patch",)),
    )


def _component(flavour: Flavour, *places: LogDeployment) -> Component:
    return Component(
        name=flavour.name,
        requires=("core",),
        definitions=partial(definitions, flavour),
        register=partial(_register, flavour),
        install=lambda setup: install(setup, flavour),
        inventory=(LISTED[flavour.name],),
        rules=(*_tenant_rules(flavour), *_control_plane_rules(flavour)),
        places=places,
    )


_TENANTS = (
    f"{STEWARD_FLAVOUR.name}-tenant*",
    f"{STEWARD_FLAVOUR.name}-datastore",
    f"{STEWARD_FLAVOUR.name}-kubeconfig*",
)
STEWARD = _component(
    STEWARD_FLAVOUR,
    LogDeployment("steward-system", "steward-controller-manager", _TENANTS, rules=_tenant_rules(STEWARD_FLAVOUR)),
    LogDeployment(
        "capi-steward-system",
        "capi-steward-controller-manager",
        ("steward-controlplane",),
        rules=_control_plane_rules(STEWARD_FLAVOUR),
    ),
)
KAMAJI = _component(
    KAMAJI_FLAVOUR,
    LogDeployment("kamaji-system", "kamaji"),
)
