"""The k0s bootstrap provider on a manager, and its hooks."""

from __future__ import annotations

from homeport.bootstrap.k0s import admission, wiring
from homeport.capi.component import Component, LogDeployment
from homeport.capi.k0s import place
from homeport.capi.k0s.definition import BOOTSTRAP, definitions
from homeport.capi.name import BOOTSTRAP_GROUP
from homeport.capi.rule import Rule

COMPONENT = Component(
    name="k0s-bootstrap",
    requires=("core",),
    definitions=lambda: definitions(BOOTSTRAP_GROUP),
    register=lambda hooks, _: admission.register(hooks),
    install=lambda setup: wiring.install(setup.manager, setup.capi),
    inventory=(BOOTSTRAP,),
    rules=(
        Rule("", ("secrets",), ("get", "create", "patch")),
        Rule("", ("configmaps",), ("get", "create", "delete")),  # only one machine of a cluster begins
    ),
    places=(
        place.MANAGER,
        LogDeployment(place.SYSTEM, "k0smotron-controller-manager-bootstrap", alias=True),
    ),
)
