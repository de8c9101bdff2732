"""Addresses from pools that are kept as objects: IPAddressClaims get an IPAddress each, and no two the same."""

from __future__ import annotations

from homeport.capi.component import Component, LogDeployment
from homeport.capi.rule import OWN, Rule
from homeport.ipam.admission import register
from homeport.ipam.definition import LISTED, definitions
from homeport.ipam.install import install

__all__ = ["COMPONENT", "install", "register"]

COMPONENT = Component(
    name="ipam",
    requires=("core",),
    definitions=definitions,
    register=lambda hooks, environment: register(hooks, environment.client),
    install=lambda setup: install(setup.manager),
    inventory=(LISTED,),
    rules=(
        Rule("ipam.cluster.x-k8s.io", ("ipaddresses",), OWN),
        Rule("ipam.cluster.x-k8s.io", ("ipaddressclaims", "ipaddressclaims/status"), ("patch",)),
    ),
    places=(LogDeployment("caip-in-cluster-system", "caip-in-cluster-controller-manager"),),
)
