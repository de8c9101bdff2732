"""All kinds of butler.butlerlabs.dev/v1alpha1."""

from __future__ import annotations

from homeport.api.butler.v1alpha1.addon import AddonDefinition, ManagementAddon, TenantAddon
from homeport.api.butler.v1alpha1.butlerconfig import ButlerConfig
from homeport.api.butler.v1alpha1.clusterbootstrap import ClusterBootstrap
from homeport.api.butler.v1alpha1.machine import ImageSync, LoadBalancerRequest, MachineRequest
from homeport.api.butler.v1alpha1.network import IPAllocation, NetworkPool
from homeport.api.butler.v1alpha1.part import GROUP, VERSION
from homeport.api.butler.v1alpha1.providerconfig import ProviderConfig
from homeport.api.butler.v1alpha1.team import ClusterCreationPolicy, Team, User
from homeport.api.butler.v1alpha1.tenantcluster import TenantCluster
from homeport.api.butler.v1alpha1.workspace import IdentityProvider, Workspace, WorkspaceTemplate

__all__ = [
    "GROUP",
    "VERSION",
    "AddonDefinition",
    "ButlerConfig",
    "ClusterBootstrap",
    "ClusterCreationPolicy",
    "IPAllocation",
    "IdentityProvider",
    "ImageSync",
    "LoadBalancerRequest",
    "MachineRequest",
    "ManagementAddon",
    "NetworkPool",
    "ProviderConfig",
    "Team",
    "TenantAddon",
    "TenantCluster",
    "User",
    "Workspace",
    "WorkspaceTemplate",
]
