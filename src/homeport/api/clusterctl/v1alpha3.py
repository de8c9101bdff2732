"""Provider: what clusterctl believes to be installed on a management cluster."""

from __future__ import annotations

from homeport.api.meta import Object, resource


@resource("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider", "providers")
class Provider(Object):
    """A Provider is an entry of clusterctl's inventory: a provider of this management cluster, and its version."""

    provider_name: str = ""
    type: str = ""
    version: str = ""
    watched_namespace: str = ""
