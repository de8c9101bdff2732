"""Control plane providers: KubeadmControlPlane."""

from __future__ import annotations

from homeport.controlplane.install import install
from homeport.controlplane.kubeadm.admission import register

__all__ = ["install", "register"]
