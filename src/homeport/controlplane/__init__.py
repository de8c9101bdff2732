"""Control plane providers: KubeadmControlPlane."""

from __future__ import annotations

from homeport.controlplane.install import COMPONENT, install
from homeport.controlplane.kubeadm.admission import register

__all__ = ["COMPONENT", "install", "register"]
