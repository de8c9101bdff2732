"""Namespace and Deployments under which `kubectl logs` finds the controllers of k0s and k0smotron."""

from __future__ import annotations

from homeport.capi.component import LogDeployment

SYSTEM = "k0smotron-system"
MANAGER = LogDeployment(SYSTEM, "k0smotron-controller-manager")
CONTROL_PLANE = LogDeployment(
    SYSTEM,
    "k0smotron-controller-manager-control-plane",
    controllers=("k0smotroncontrolplane", "k0smotron-*", "k0scontrolplane"),
    alias=True,
)
