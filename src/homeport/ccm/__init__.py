"""The cloud controller manager: what a workload cluster has to know of the infrastructure that its Nodes run on.

It runs in the workload cluster (`homeport ccm`) with a `Cloud` of some provider, or in the plane where the plane hosts
the control plane. There is no route loop: Pod networks
of the infrastructures that Homeport knows need no routes from outside.
"""

from __future__ import annotations

from homeport.capi.component import Component
from homeport.capi.rule import Rule
from homeport.ccm import deploy

__all__ = ["COMPONENT"]

COMPONENT = Component(
    name="ccm",
    requires=("core",),
    rules=(Rule("", ("secrets",), ("get",)),),
    install=lambda setup: deploy.install(
        setup.manager, setup.capi, setup.clouds, setup.environment.ccm_image, setup.environment.dial
    ),
)
