"""Causes that no object shows: machines that run and do not join, images that machines can not pull.

The first can only be guessed from outside, so that the text lists what to check. The second is read in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.capi.object.joined import has_joined
from homeport.capi.remote.workload import Remote
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Query
from homeport.machinery import condition
from homeport.platforms.k0rdent.deployment.state import Finding
from homeport.runtime.clock import parse_time

POD = Resource("", "v1", "Pod", "pods")
JOIN_SECONDS = 600.0  # which a machine may take from its start to its Node
_LOOK_SECONDS = 60.0
_PULLS = ("ErrImagePull", "ImagePullBackOff")
_SYSTEM = "kube-system"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Late:
    """Machines that run and have not joined in time, and the seconds until the next one counts among them."""

    names: tuple[str, ...] = ()
    next: float | None = None


def late_machines(machines: Iterable[Machine], now: float) -> Late:
    late: list[str] = []
    waits: list[float] = []
    for each in machines:
        since = _running_since(each)
        joined = has_joined(each.status.node_ref, each.status.conditions)
        if since is None or joined or each.metadata.deletion_timestamp:
            continue
        left = since + JOIN_SECONDS - now
        if left > 0:
            waits.append(left)
        else:
            late.append(each.metadata.name)
    return Late(tuple(sorted(late)), min(waits, default=None))


def _running_since(machine: Machine) -> float | None:
    found = condition.find(machine.status.conditions, "InfrastructureReady") or {}
    at = found.get("lastTransitionTime")
    return parse_time(str(at)) if found.get("status") == "True" and at else None


def join_advice(names: tuple[str, ...], cluster: Cluster, *, k0s: bool) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    ran = "Machine" if len(names) == 1 else "Machines"
    endpoint = cluster.spec.control_plane_endpoint
    download = "it resolves names and can download https://get.k0s.sh; " if k0s else ""
    port = f"ports {endpoint.port} and 8132" if k0s else f"port {endpoint.port}"
    reach = f"it reaches {endpoint.host} on {port}" if endpoint.host else "it reaches the control plane address"
    return (
        f"{ran} {', '.join(names[:_SHOWN])}{more}: running for more than {JOIN_SECONDS / 60:.0f} minutes without "
        f"joining the cluster. Look at the console of the VM, which shows the log of cloud-init, and check: its image "
        f"has cloud-init and curl; {download}{reach}"
    )


def pull_trouble(pods: Iterable[Mapping[str, Any]]) -> str:
    """The first image that can't be pulled; '' if there is none."""
    for pod in pods:
        for status in _containers(pod):
            waiting = (status.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _PULLS:
                name, node = pod["metadata"]["name"], (pod.get("spec") or {}).get("nodeName") or "?"
                why = str(waiting.get("message") or waiting["reason"]).splitlines()[0]
                return (
                    f"Pod {_SYSTEM}/{name} on Node {node} can't pull {status.get('image')}: {why}. "
                    "Let the machines reach the registry, or name a mirror in spec.config.k0s.config.spec.images"
                )
    return ""


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status") or {}
    for key in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(key) or ()


async def advise(
    summary: Finding, cluster: Cluster, machines: Iterable[Machine], remote: Remote | None, now: float, *, k0s: bool
) -> tuple[Finding, float | None]:
    """The summary with what to check, and the seconds until it may have more to say."""
    late = late_machines(machines, now)
    said = [join_advice(late.names, cluster, k0s=k0s)] if late.names else []
    unready = remote is not None and any(not _is_ready(each) for each in remote.nodes)
    if remote is not None and unready:
        said += await _pulls(remote.client)
    waits = [each for each in (late.next, _LOOK_SECONDS if unready else None) if each is not None]
    made = replace(summary, message="; ".join([*said, summary.message])) if said else summary
    return made, min(waits, default=None)


async def _pulls(client: Client) -> list[str]:
    try:
        found = pull_trouble((await client.list(POD, Query(namespace=_SYSTEM))).items)
    except ApiError:  # the Cluster reports that it does not answer
        return []
    return [found] if found else []


def _is_ready(node: Mapping[str, Any]) -> bool:
    return condition.is_true((node.get("status") or {}).get("conditions") or (), "Ready")
