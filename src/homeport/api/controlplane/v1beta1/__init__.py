"""Kinds of controlplane.cluster.x-k8s.io, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from homeport.api.controlplane.v1beta1.kubeadmcontrolplane import KubeadmControlPlane
from homeport.api.controlplane.v1beta1.kubeadmcontrolplanetemplate import KubeadmControlPlaneTemplate

__all__ = [
    "KubeadmControlPlane",
    "KubeadmControlPlaneTemplate",
]
