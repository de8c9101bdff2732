"""Kinds of bootstrap.cluster.x-k8s.io, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from homeport.api.bootstrap.v1beta1.kubeadmconfig import KubeadmConfig
from homeport.api.bootstrap.v1beta1.kubeadmconfigtemplate import KubeadmConfigTemplate

__all__ = [
    "KubeadmConfig",
    "KubeadmConfigTemplate",
]
