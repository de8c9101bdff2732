"""Add-ons: manifests and charts that are brought into workload clusters, kept there, upgraded and removed."""

from __future__ import annotations

from homeport.addons.admission import register
from homeport.addons.definition import definitions
from homeport.addons.install import install
from homeport.capi.component import Component
from homeport.capi.rule import Rule

__all__ = ["COMPONENT", "install", "register"]

COMPONENT = Component(
    name="addons",
    requires=("core",),
    rules=(Rule("", ("secrets", "configmaps"), ("get",)),),
    definitions=definitions,
    register=lambda hooks, environment: register(hooks),
    install=lambda setup: install(setup.capi, setup.environment.charts),
)
