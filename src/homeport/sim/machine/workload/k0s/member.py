"""EtcdMembers: every controller publishes its own, and one that is marked to leave is removed from etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeport.runtime.clock import rfc3339
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.k0s.agent import Agent
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE, ETCD_MEMBER
from homeport.sim.machine.workload.kind import Json

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.platform import Platform

_ALONE = (
    "The only active controller cannot leave the etcd cluster; either bring another controller online or clear "
    "spec.leave"
)


async def announce(platform: Platform, agent: Agent) -> None:
    """A controller publishes its ControlNode and its EtcdMember; with a storage other than etcd there is no member."""
    cluster = platform.cluster
    hostname = agent.host.guest.name.lower()
    addresses = [{"type": "InternalIP", "address": agent.address}, {"type": "Hostname", "address": hostname}]
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": hostname,
    }
    await platform.put(CONTROL_NODE, agent.name, {"addresses": addresses, "k0sVersion": agent.host.version()}, labels)
    member = cluster.etcd.members.get(agent.member)
    if member is not None:
        known = platform.read(ETCD_MEMBER, agent.member)
        status = _status(platform, agent.address, member.id, joined=True, message="Member joined")
        if known is None or (known.get("status") or {}).get("memberID") != status["memberID"]:
            await platform.put(ETCD_MEMBER, agent.member, status, spec={"leave": False})


def _status(platform: Platform, address: str, member: int, *, joined: bool, message: str) -> Json:
    at = rfc3339(platform.cluster.clock.now())
    condition = {"type": "Joined", "status": str(joined), "lastTransitionTime": at, "message": message}
    return {
        "peerAddress": address,
        "memberID": f"{member:x}",
        "reconcileStatus": "Success",
        "message": "" if joined else message,
        "conditions": [condition],
    }


async def settle_members(platform: Platform) -> None:
    for obj in platform.all(ETCD_MEMBER):
        await _settle(platform, obj)


async def _settle(platform: Platform, obj: Json) -> None:
    status: dict[str, Any] = obj.get("status") or {}
    if not status.get("memberID"):
        return
    name, etcd, member = obj["metadata"]["name"], platform.cluster.etcd, int(status["memberID"], 16)
    if not any(each.id == member for each in etcd.members.values()):
        if (status.get("conditions") or [{}])[0].get("status") != "False":
            gone = _status(platform, status["peerAddress"], member, joined=False, message="No such member ID")
            await platform.put(ETCD_MEMBER, name, gone)
        return
    if not (obj.get("spec") or {}).get("leave"):
        return
    if len(platform.cluster.serving()) < 2 and len(etcd.members) < 2:
        await _refuse(platform, name, status, "", _ALONE)
        return
    try:
        etcd.remove(member)
    except EtcdError as refused:
        await _refuse(platform, name, status, "Failed", f"Failed to delete member from cluster: {refused}")
        return
    platform.cluster.refresh()
    left = _status(platform, status["peerAddress"], member, joined=False, message="Member removed from cluster")
    await platform.put(ETCD_MEMBER, name, left)


async def _refuse(platform: Platform, name: str, status: Json, result: str, message: str) -> None:
    if (status.get("reconcileStatus"), status.get("message")) != (result, message):
        await platform.put(ETCD_MEMBER, name, {"reconcileStatus": result, "message": message})
