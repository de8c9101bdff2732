"""Control plane providers: KubeadmControlPlane."""

from __future__ import annotations

from homeport.controlplane.install import install

__all__ = ["install"]
