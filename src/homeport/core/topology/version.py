"""Whether a Cluster may be taken to another version now. Looked up live: caches may not know yet what began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachinePool
from homeport.api.meta import Unstructured
from homeport.capi import name
from homeport.capi.contract import Contract, control_plane
from homeport.capi.resolution import CRD, pick, plural
from homeport.capi.version import Version, parse, same
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query

Json = Mapping[str, Any]

_WORKERS: tuple[tuple[Any, str], ...] = (
    (MachineDeployment, name.DEPLOYMENT_NAME_LABEL),
    (MachinePool, name.POOL_NAME_LABEL),
)


def step_trouble(old: str, new: str, *, listed: bool) -> str:
    """Why one can't go from one version to another; '' when one can. `listed`: the class says which to go through."""
    before, after = parse(old), parse(new)
    if _release(after) < _release(before):
        return f"a Cluster can't be downgraded from {before}"
    if not listed and (after.major != before.major or after.minor > before.minor + 1):
        return (
            f"the newest possible version after {before} is the next minor version, "
            f"v{before.major}.{before.minor + 1}: upgrade one minor version at a time, or list the versions in "
            "spec.kubernetesVersions of the class"
        )
    return ""


def _release(version: Version) -> tuple[int, int, int]:
    return version.major, version.minor, version.patch


async def unfinished(client: Client, cluster: Json, version: str) -> str:
    """What is not at `version` yet, of what the Cluster has; '' when all of it is."""
    return await _control_plane(client, cluster, version) or await _workers(client, cluster, version)


async def _control_plane(client: Client, cluster: Json, version: str) -> str:
    ref = (cluster.get("spec") or {}).get("controlPlaneRef")
    if not ref:
        return ""  # nothing was made yet
    found = await _referred(client, ref, str(cluster["metadata"].get("namespace") or ""))
    if found is None:
        return ""
    obj, contract = found
    which = f"{ref.get('kind')} {ref.get('name')}"
    wanted = control_plane.version(obj)
    if wanted and parse(wanted) < parse(version):
        return f"{which} does not have version {version} yet: it has {wanted}"
    if control_plane.is_provisioning(obj, contract):
        return f"{which} is being created"
    if control_plane.is_upgrading(obj, contract):
        return f"{which} is being upgraded to {wanted}"
    return ""


async def _referred(client: Client, ref: Json, namespace: str) -> tuple[Unstructured, Contract] | None:
    group, kind = str(ref.get("apiGroup") or ""), str(ref.get("kind") or "")
    try:
        definition = await client.get(CRD, Key("", f"{plural(kind)}.{group}"))
        served = pick(definition.metadata.get("labels") or {}, group, kind)
        if served is None:
            return None
        return await client.get(served.resource, Key(namespace, str(ref.get("name")))), served.contract
    except NotFound:
        return None


async def _workers(client: Client, cluster: Json, version: str) -> str:
    meta = cluster["metadata"]
    namespace, own = str(meta.get("namespace") or ""), f"{name.CLUSTER_NAME_LABEL}={meta.get('name')}"
    waiting: list[str] = []
    for kind, label in _WORKERS:
        query = Query(namespace=namespace, labels=f"{own},{name.TOPOLOGY_OWNED_LABEL}")
        for each in (await client.list(kind, query)).items:
            wanted = each.spec.template.spec.version
            behind = bool(wanted) and parse(wanted) < parse(version)
            if behind or await _has_old_machines(client, namespace, f"{own},{label}={each.metadata.name}", version):
                waiting.append(f"{kind.__resource__.kind} {each.metadata.name}")
    return f"{', '.join(waiting)} {'is' if len(waiting) == 1 else 'are'} not at {version} yet" if waiting else ""


async def _has_old_machines(client: Client, namespace: str, labels: str, version: str) -> bool:
    found = (await client.list(Machine, Query(namespace=namespace, labels=labels))).items
    return any(each.spec.version and not same(each.spec.version, version) for each in found)
