"""What a hosted control plane tells its Cluster and InfraCluster: where it is reached.

Nobody else knows: the infrastructure of a cluster whose control plane runs elsewhere has no address for it.
"""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.name import MANAGED_BY
from homeport.capi.resolution import NotInstalled, ResolvedResource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.hosted.endpoint import Endpoint
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait

_RETRY_SECONDS = 10.0


async def publish_endpoint(
    capi: Capi, client: Client, cluster: Cluster, endpoint: Endpoint, write: Write, *, managed_by: str = ""
) -> Wait | None:
    """`managed_by`: whose InfraClusters have no controller of their own, by their annotation; they are made ready."""
    value = {"host": endpoint.host, "port": endpoint.port}
    ref = cluster.spec.infrastructure_ref
    if ref is not None:
        key = Key(cluster.metadata.namespace, ref.name)
        try:
            served = capi.contracts.resolve(ref)
            infra = await client.get(served.resource, key)
        except NotInstalled as error:
            return Wait("WaitingForInfraCluster", str(error), after=_RETRY_SECONDS)
        except NotFound:
            text = f"{ref.kind} {key} does not exist: create it; reconciliation resumes automatically"
            return Wait("WaitingForInfraCluster", text, after=_RETRY_SECONDS)
        if _endpoint(infra) != value:
            body = {"metadata": {"uid": infra.uid}, "spec": {"controlPlaneEndpoint": value}}
            infra = await client.patch(served.resource, key, MergePatch(body), write)
        if managed_by and (infra.metadata.get("annotations") or {}).get(MANAGED_BY) == managed_by:
            await _make_ready(client, served, infra, write)
    held = cluster.spec.control_plane_endpoint
    if (held.host, held.port) != (endpoint.host, endpoint.port):
        body = {"metadata": {"uid": cluster.metadata.uid}, "spec": {"controlPlaneEndpoint": value}}
        await client.patch(Cluster, key_of(cluster), MergePatch(body), write)
    return None


def _endpoint(infra: Unstructured) -> dict[str, Any]:
    found = (infra.get("spec") or {}).get("controlPlaneEndpoint") or {}
    return {"host": found.get("host"), "port": found.get("port")}


async def _make_ready(client: Client, served: ResolvedResource, infra: Unstructured, write: Write) -> None:
    status = infra.get("status") or {}
    old = served.contract == "v1beta1"
    known = status.get("ready") if old else (status.get("initialization") or {}).get("provisioned")
    if known is True:
        return
    wanted: dict[str, Any] = {"ready": True} if old else {"initialization": {"provisioned": True}}
    key = Key(infra.namespace, infra.name)
    await client.patch(served.resource, key, MergePatch({"status": wanted}), write, subresource="status")
