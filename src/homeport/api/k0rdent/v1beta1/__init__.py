"""All kinds of k0rdent.mirantis.com/v1beta1."""

from __future__ import annotations

from homeport.api.k0rdent.v1beta1.access import AccessManagement
from homeport.api.k0rdent.v1beta1.chain import ClusterTemplateChain, ServiceTemplateChain
from homeport.api.k0rdent.v1beta1.clusterdeployment import ClusterDeployment
from homeport.api.k0rdent.v1beta1.credential import Credential
from homeport.api.k0rdent.v1beta1.ipam import ClusterIPAM, ClusterIPAMClaim
from homeport.api.k0rdent.v1beta1.management import (
    Management,
    ManagementBackup,
    ProviderInterface,
    Region,
    Release,
    StateManagementProvider,
)
from homeport.api.k0rdent.v1beta1.multicluster import MultiClusterService, ServiceSet
from homeport.api.k0rdent.v1beta1.part import GROUP, VERSION
from homeport.api.k0rdent.v1beta1.settings import (
    ClusterAuditPolicy,
    ClusterAuthentication,
    ClusterDataSource,
    DataSource,
)
from homeport.api.k0rdent.v1beta1.template import ClusterTemplate, ProviderTemplate, ServiceTemplate

__all__ = [
    "GROUP",
    "VERSION",
    "AccessManagement",
    "ClusterAuditPolicy",
    "ClusterAuthentication",
    "ClusterDataSource",
    "ClusterDeployment",
    "ClusterIPAM",
    "ClusterIPAMClaim",
    "ClusterTemplate",
    "ClusterTemplateChain",
    "Credential",
    "DataSource",
    "Management",
    "ManagementBackup",
    "MultiClusterService",
    "ProviderInterface",
    "ProviderTemplate",
    "Region",
    "Release",
    "ServiceSet",
    "ServiceTemplate",
    "ServiceTemplateChain",
    "StateManagementProvider",
]
