"""What k0s tells about its controllers inside the cluster: an EtcdMember, by which one can be told to leave, and a
ControlNode each."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import rfc3339
from homeport.runtime.definition import definition, establish
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.kind import Json
from homeport.store import Change, StoreUnavailable

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

log = structlog.get_logger(__name__)

ETCD_MEMBER: Final = Resource("etcd.k0sproject.io", "v1beta1", "EtcdMember", "etcdmembers", namespaced=False)
CONTROL_NODE: Final = Resource("autopilot.k0sproject.io", "v1beta2", "ControlNode", "controlnodes", namespaced=False)
_TEXT = {"type": "string"}


def _definitions() -> list[Json]:
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": {**_TEXT, "enum": ["Joined"]},
            "status": {**_TEXT, "enum": ["True", "False", "Unknown"]},
            "lastTransitionTime": {**_TEXT, "format": "date-time"},
            "message": _TEXT,
        },
    }
    member = {
        "spec": {"type": "object", "properties": {"leave": {"type": "boolean"}}},
        "status": {
            "type": "object",
            "required": ["peerAddress", "memberID"],
            "properties": {
                "peerAddress": _TEXT,
                "memberID": {**_TEXT, "pattern": "^[a-fA-F0-9]+$"},
                "reconcileStatus": _TEXT,
                "message": _TEXT,
                "conditions": {
                    "type": "array",
                    "items": condition,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                },
            },
        },
    }
    address = {"type": "object", "required": ["address", "type"], "properties": {"address": _TEXT, "type": _TEXT}}
    status = {"k0sVersion": _TEXT, "addresses": {"type": "array", "items": address}}
    node = {"status": {"type": "object", "properties": status}}
    return [
        definition(ETCD_MEMBER, schema={"type": "object", "properties": member}),
        definition(CONTROL_NODE, schema={"type": "object", "properties": node}),
    ]


class K0sMembers:
    """Follows the EtcdMembers of one cluster: a member that is marked to leave is removed from etcd."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self._dirty = False
        self._task: asyncio.Task[None] | None = None
        cluster.server.store.subscribe(ETCD_MEMBER.qualified, self._take)

    async def announce(self, name: str, address: str, version: str) -> None:
        """A controller publishes its own EtcdMember; with a storage other than etcd there is none."""
        for body in _definitions():
            with contextlib.suppress(AlreadyExists):
                await establish(self._cluster.client("k0s"), body)
        addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
        await self._put(CONTROL_NODE, name, {"addresses": addresses, "k0sVersion": version})
        member = self._cluster.etcd.members.get(name)
        if member is not None:
            await self._put(ETCD_MEMBER, name, self._joined(address, member.id))

    def _joined(self, address: str, member: int, *, joined: bool = True, message: str = "") -> Json:
        at = rfc3339(self._cluster.clock.now())
        condition = {"type": "Joined", "status": str(joined), "lastTransitionTime": at, "message": message}
        return {
            "peerAddress": address,
            "memberID": f"{member:x}",
            "reconcileStatus": "Success",
            "message": message,
            "conditions": [condition],
        }

    async def _put(self, kind: Resource, name: str, status: Json) -> None:
        client = self._cluster.client("k0s")
        with contextlib.suppress(AlreadyExists):
            await client.create({"metadata": {"name": name}}, kind=kind)
        await client.patch(kind, Key("", name), MergePatch({"status": status}), subresource="status")

    # -- leaving -----------------------------------------------------------------------------------------------

    def _take(self, changes: list[Change]) -> None:
        self._dirty = True
        if self._task is None and not self._cluster.closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="etcd members of k0s")

    async def _run(self) -> None:
        try:
            while self._dirty:
                self._dirty = False
                for record in self._cluster.server.store.range(ETCD_MEMBER.qualified):
                    await self._settle(orjson.loads(record.value))
        except (StoreUnavailable, NotFound):
            return  # closed or deleted in the meantime
        except ApiError as error:
            log.warning("k0s could not write about its members", why=str(error))
        finally:
            self._task = None

    async def _settle(self, obj: Json) -> None:
        status: dict[str, Any] = obj.get("status") or {}
        if not (obj.get("spec") or {}).get("leave") or not status.get("memberID"):
            return
        name, etcd = obj["metadata"]["name"], self._cluster.etcd
        if not any(f"{member.id:x}" == status["memberID"] for member in etcd.members.values()):
            left = self._joined(status["peerAddress"], int(status["memberID"], 16), joined=False, message="left etcd")
            if status["conditions"][0]["status"] != "False":
                await self._put(ETCD_MEMBER, name, left)
            return
        try:
            etcd.remove(int(status["memberID"], 16))
        except EtcdError as refused:
            if status.get("message") != str(refused):
                await self._put(ETCD_MEMBER, name, {"reconcileStatus": "Failed", "message": str(refused)})
            return
        self._cluster.refresh()
        self._dirty = True

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
