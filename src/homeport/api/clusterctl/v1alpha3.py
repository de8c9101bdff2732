"""Provider: what clusterctl believes to be installed on a management cluster."""

from __future__ import annotations

from homeport.api.meta import Object, resource


@resource("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider", "providers")
class Provider(Object):
    """A provider that this management cluster runs, and its version: clusterctl's inventory."""

    provider_name: str = ""
    type: str = ""
    version: str = ""
    watched_namespace: str = ""
