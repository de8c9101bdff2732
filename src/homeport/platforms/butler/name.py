"""Names that Butler's objects have: namespaces, labels, annotations and finalizers."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import GROUP

SYSTEM_NAMESPACE = "butler-system"
TENANTS_NAMESPACE = "butler-tenants"
CONFIG_NAME = "butler"  # of the only ButlerConfig that is read
PLATFORM_POOL = "platform"  # the NetworkPool that is made of spec.platform.metalLBPool of the ButlerConfig
FIELD_MANAGER = "butler"

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "butler"
TEAM_LABEL = f"{GROUP}/team"
USER_LABEL = f"{GROUP}/user"
TENANT_LABEL = f"{GROUP}/tenant"
ENVIRONMENT_LABEL = f"{GROUP}/environment"
SOURCE_NAMESPACE_LABEL = f"{GROUP}/source-namespace"
SOURCE_NAME_LABEL = f"{GROUP}/source-name"
NETWORK_POOL_LABEL = f"{GROUP}/network-pool"
PROVIDER_CONFIG_LABEL = f"{GROUP}/provider-config"
ALLOCATION_TYPE_LABEL = f"{GROUP}/allocation-type"

CREATED_BY_ANNOTATION = f"{GROUP}/created-by"
OWNER_ANNOTATION = f"{GROUP}/owner"
# Of the finalizers of MachineRequests, of which each provider has its own.
PROVIDER_FINALIZER_PREFIX = f"machinerequest.{GROUP}/"
# On MachineRequests of workers of a ClusterBootstrap: they stay until the Node of their VM is deleted, too.
NODE_FINALIZER = f"{GROUP}/node"
# On a MachineRequest that is being deleted: its provider was asked, and has no VM of it any more.
VM_GONE_ANNOTATION = f"{GROUP}/vm-gone"


def finalizer(kind: str) -> str:
    """`butler.butlerlabs.dev/tenantcluster`."""
    return f"{GROUP}/{kind.lower()}"
