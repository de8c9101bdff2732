"""What templates know of a Cluster: its objects as they are, and the few facts that most values need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.addons.problem import Problem
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured, wire
from homeport.capi.capi import Capi
from homeport.capi.resolution import NotInstalled, Reference
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.machinery.gotemplate import TemplateError, compiled

Json = dict[str, Any]

_PROVIDERS = {"NutanixCluster": "nutanix", "KubevirtCluster": "harvester", "ProxmoxCluster": "proxmox"}
_NOTHING = "<no value>"  # what Go templates write for a key that is missing
_LIMIT = 1 << 20  # bytes of one rendered text


def provider_of(cluster: Cluster) -> str:
    ref = cluster.spec.infrastructure_ref
    return "" if ref is None else _PROVIDERS.get(ref.kind, ref.kind.removesuffix("Cluster").lower())


def facts_of(cluster: Cluster, control_plane: Mapping[str, Any]) -> Json:
    """Pure. A fact that is not known yet is an empty text, or 0."""
    network, endpoint = cluster.spec.cluster_network, cluster.spec.control_plane_endpoint
    status, spec = control_plane.get("status") or {}, control_plane.get("spec") or {}
    return {
        "name": cluster.metadata.name,
        "namespace": cluster.metadata.namespace,
        "host": endpoint.host,
        "port": endpoint.port,
        "podCIDR": ",".join(network.pods.cidr_blocks),
        "serviceCIDR": ",".join(network.services.cidr_blocks),
        "serviceDomain": network.service_domain or "cluster.local",
        "version": str(status.get("version") or spec.get("version") or cluster.spec.topology.version or ""),
        "provider": provider_of(cluster),
        "kubeProxy": _has_kube_proxy(spec),
    }


def _has_kube_proxy(spec: Mapping[str, Any]) -> bool:
    """Whether kubeadm installs kube-proxy."""
    init = (spec.get("kubeadmConfigSpec") or {}).get("initConfiguration") or {}
    return "addon/kube-proxy" not in (init.get("skipPhases") or ())


async def read_facts(capi: Capi, cluster: Cluster) -> Json:
    """The data of templates."""
    control_plane = await _read(capi, cluster, cluster.spec.control_plane_ref)
    infrastructure = await _read(capi, cluster, cluster.spec.infrastructure_ref)
    return {
        "Cluster": wire(cluster),
        "ControlPlane": dict(control_plane),
        "InfrastructureCluster": dict(infrastructure),
        "Facts": facts_of(cluster, control_plane),
    }


async def _read(capi: Capi, cluster: Cluster, ref: Any) -> Unstructured:
    if ref is None:
        return Unstructured()
    reference: Reference = ref
    namespace = cluster.metadata.namespace
    found = capi.externals.cached(reference, namespace)
    if found is not None:
        return found
    try:
        return await capi.manager.client.get(capi.externals.served(reference).resource, Key(namespace, ref.name))
    except (NotFound, NotInstalled):
        return Unstructured()


def render_text(text: str, data: Mapping[str, Any], field: str) -> str:
    """Raises Problem, which names the field."""
    try:
        made = compiled(text).render(data, limit=_LIMIT)
    except TemplateError as error:
        raise Problem("InvalidTemplate", f"{field}: {error}", warning=True) from None
    for number, line in enumerate(made.splitlines(), start=1):
        if _NOTHING in line:
            message = f"{field}: line {number} of the result uses a value that does not exist; correct its name"
            raise Problem("InvalidTemplate", message, warning=True)
    return made
