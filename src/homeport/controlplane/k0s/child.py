"""What k0s reports inside the cluster about its controllers, read live: decisions need to know how it is now."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.workload import Remote
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.k0s.autopilot import NAME, PLAN
from homeport.controlplane.k0s.observed import MemberState
from homeport.runtime.clock import parse_time

ETCD_MEMBER = Resource("etcd.k0sproject.io", "v1beta1", "EtcdMember", "etcdmembers", namespaced=False)
CONTROL_NODE = Resource("autopilot.k0sproject.io", "v1beta2", "ControlNode", "controlnodes", namespaced=False)
CLUSTER_CONFIG = Resource("k0s.k0sproject.io", "v1beta1", "ClusterConfig", "clusterconfigs")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
CONFIG_KEY = Key("kube-system", "k0s")
_LEASE_NAMESPACE = "kube-node-lease"
_MISSED = 3  # renewals, and a controller counts as silent

Json = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """`down`: why the cluster could not be asked; '' if it was."""

    down: str = ""
    nodes: dict[str, Unstructured] = field(default_factory=dict)
    members: tuple[MemberState, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)  # of members
    silent: frozenset[str] = frozenset()  # controllers whose lease ran out
    plan: Unstructured | None = None
    config: Unstructured | None = None


async def look(remote: Remote, names: list[str], now: float) -> Seen:
    """`names`: of the controllers whose leases are looked at."""
    client = remote.client
    try:
        nodes = {each.name: each for each in await _listed(client, CONTROL_NODE)}
        members = await _listed(client, ETCD_MEMBER)
        silent = frozenset([each for each in names if await _is_silent(client, each, now)])
        plan = await _found(client, PLAN, Key("", NAME))
        config = await _found(client, CLUSTER_CONFIG, CONFIG_KEY)
    except (ApiError, TimeoutError) as error:
        return Seen(down=f"the workload cluster can't be asked about its controllers: {error}")
    states = tuple(_member(each) for each in members)
    addresses = {each.name: str((each.get("status") or {}).get("peerAddress") or "") for each in members}
    return Seen("", nodes, states, addresses, silent, plan, config)


async def _listed(client: Client, kind: Resource) -> list[Unstructured]:
    """k0s defines these kinds when it starts: before that there are none."""
    with contextlib.suppress(NotFound):
        return list((await client.list(kind)).items)
    return []


async def _found(client: Client, kind: Resource, key: Key) -> Unstructured | None:
    with contextlib.suppress(NotFound):
        return await client.get(kind, key)
    return None


async def _is_silent(client: Client, name: str, now: float) -> bool:
    """Each controller renews a lease of its own. Releases that make none tell us nothing by that."""
    lease = await _found(client, LEASE, Key(_LEASE_NAMESPACE, f"k0s-ctrl-{name}"))
    spec = {} if lease is None else lease.get("spec") or {}
    if not spec.get("renewTime"):
        return False
    return now - parse_time(str(spec["renewTime"])) > _MISSED * float(spec.get("leaseDurationSeconds") or 60)


def _member(found: Unstructured) -> MemberState:
    status = found.get("status") or {}
    joined: Json = next((each for each in status.get("conditions") or () if each.get("type") == "Joined"), {})
    return MemberState(
        name=found.name,
        joined=joined.get("status") != "False" and bool(status.get("memberID")),
        leave=bool((found.get("spec") or {}).get("leave")),
        message=str(status.get("message") or joined.get("message") or ""),
    )


# -- changes -------------------------------------------------------------------------------------------------------


async def ask_to_leave(client: Client, member: str, write: Write) -> None:
    await client.patch(ETCD_MEMBER, Key("", member), MergePatch({"spec": {"leave": True}}), write)


async def forget_controller(client: Client, name: str) -> None:
    """Of a controller that is gone: k0s leaves these objects behind."""
    for kind in (CONTROL_NODE, ETCD_MEMBER):
        await drop_object(client, kind, Key("", name))


async def put_plan(client: Client, body: Json, write: Write) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(body, write, kind=PLAN)


async def drop_plan(client: Client) -> None:
    await drop_object(client, PLAN, Key("", NAME))
