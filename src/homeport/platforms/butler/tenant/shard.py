"""TenantClusters, and what belongs to one, go with their Cluster."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.capi.shard import cluster_shard
from homeport.client.protocol import Key
from homeport.platforms.butler.tenant.name import tenant_namespace


def tenant_shard(tenant: TenantCluster | None) -> str | None:
    """None: there is no such TenantCluster."""
    if tenant is None:
        return None
    meta = tenant.metadata
    return cluster_shard(Key(tenant.status.tenant_namespace or tenant_namespace(meta.name, meta.uid), meta.name))
