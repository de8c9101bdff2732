"""Kubelets: nodes register, send heartbeats while they reach their API server, and are missed when they don't.

A kubelet is a small record; one task sends the heartbeats of thousands of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from homeport.apiserver.verb.write import encoder
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import Clock, rfc3339, rfc3339_micro
from homeport.runtime.task import cancel
from homeport.sim.machine.workload.guest import Guest
from homeport.sim.machine.workload.kind import LEASE, NODE, POD, Json
from homeport.sim.machine.workload.network.cni import bringer
from homeport.sim.machine.workload.node import (
    NO_NETWORK,
    NOT_READY,
    UNREACHABLE,
    Registration,
    build_node,
    conditions,
    lost_conditions,
    node_addresses,
    not_ready_taints,
)
from homeport.sim.machine.workload.pod.staticpod import mirror
from homeport.store import StoreUnavailable

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

BEAT_SECONDS = 10.0
GRACE_SECONDS = 40.0  # how long the node controller waits for a heartbeat
STATUS_SECONDS = 300.0
LEASE_NAMESPACE = "kube-node-lease"
K0S_NETWORK = "quay.io/k0sproject/kube-router"


@dataclass(slots=True, eq=False, repr=False)
class Kubelet:
    guest: Guest
    node: str
    cluster: WorkloadCluster
    manifests: list[Json] = field(default_factory=list)
    seen: float = 0.0  # the last heartbeat that arrived
    reported: float = 0.0  # the last whole status
    missed: bool = False  # the node controller has given it up
    retired: bool = False  # its Node was deleted
    networked: bool = True  # Pods have a network
    moves: bool = True  # tells the addresses that the machine has; with --node-ip it tells that one alone

    async def register(self, found: Registration) -> Json:
        """Creates the Node, its Lease and its mirror Pods. Raises KubeletProblem or ApiError.

        A Node of this name that exists already becomes this kubelet's own; its labels and taints stay.
        """
        now = self.cluster.clock.now()
        self.moves = "node-ip" not in found.arguments
        body = build_node(found, now)
        self.networked = self._has_network()
        if not self.networked:
            body["status"]["conditions"] = conditions(False, now, NO_NETWORK)
            body["spec"]["taints"] = [*(body["spec"].get("taints") or ()), *not_ready_taints(now)]
        client = self.cluster.client("kubelet")
        with contextlib.suppress(AlreadyExists):
            await client.create(body, kind=NODE)
        status = MergePatch({"status": body["status"]})
        node = await client.patch(NODE, Key("", self.node), status, subresource="status")
        self.seen = self.reported = now
        self.cluster.kubelets[self.node] = self
        await self._create_lease(node)
        await self.show_static_pods(node)
        return node

    def _has_network(self) -> bool:
        """k0s brings one, unless it was told not to or its image can't be pulled."""
        facts = self.cluster.facts
        if facts.flavour != "k0s":
            return self.guest.cni
        return facts.configuration.get("network") != "custom" and not self.guest.pull_problem(K0S_NETWORK)

    async def _create_lease(self, node: Json) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": node["metadata"]["uid"]}
        spec = {
            "holderIdentity": self.node,
            "leaseDurationSeconds": int(GRACE_SECONDS),
            "renewTime": rfc3339_micro(self.seen),
        }
        meta = {"name": self.node, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        with contextlib.suppress(AlreadyExists):
            await self.cluster.client("kubelet").create({"metadata": meta, "spec": spec}, kind=LEASE)

    async def show_static_pods(self, node: Json) -> None:
        client = self.cluster.client("kubelet")
        for manifest in self.manifests:
            with contextlib.suppress(AlreadyExists):
                await client.create(mirror(manifest, node, self.seen), kind=POD)

    # -- heartbeats --------------------------------------------------------------------------------------------

    async def beat(self) -> None:
        """One round: a heartbeat if the API can be reached; if not, the node controller may lose patience."""
        cluster = self.cluster
        if cluster.closed:
            self.retired = True
        if cluster.closed or not cluster.serving():
            return
        now = cluster.clock.now()
        try:
            if cluster.server.store.head("nodes", self.node) is None:
                await self._retire()
            elif self.guest.running and cluster.reachable(self.guest):
                await self._renew(now)
            elif not self.missed and now - self.seen > GRACE_SECONDS:
                await self._give_up(now)
        except (NotFound, StoreUnavailable):
            return  # gone since we looked

    async def _retire(self) -> None:
        """Nothing is cleaned up here: the machine is deleted by its owner, and the Lease with its Node."""
        self.retired = True
        if self.cluster.kubelets.get(self.node) is self:
            del self.cluster.kubelets[self.node]
            with contextlib.suppress(NotFound):
                await self.cluster.client("kube-controller-manager").delete(LEASE, Key(LEASE_NAMESPACE, self.node))

    async def _renew(self, now: float) -> None:
        """Written straight into the store: a heartbeat changes one field, and there are thousands of them."""
        store = self.cluster.server.store
        name = f"{LEASE_NAMESPACE}/{self.node}"
        record = store.head("leases.coordination.k8s.io", name)
        self.seen = now
        if record is None:
            node = await self.cluster.client("kubelet").get(NODE, Key("", self.node))
            await self._create_lease(node)
        else:
            lease = orjson.loads(record.value)
            lease["spec"]["renewTime"] = rfc3339_micro(now)
            await store.put("leases.coordination.k8s.io", name, encoder(lease), expect=None)
        if not self.networked and (found := self._network_bringer()):
            self.guest.console.say(f"containerd: the network for Pods is ready, Pod {found} has brought it")
            self.networked = True
            self.report_soon()
        if self.missed or now - self.reported >= STATUS_SECONDS:
            await self._report(now)

    def _network_bringer(self) -> str:
        return bringer((orjson.loads(record.value) for record in self.cluster.server.store.range("pods")), self.node)

    def report_soon(self) -> None:
        """Something about the machine has changed: the next heartbeat tells all."""
        self.reported = 0.0

    async def _report(self, now: float) -> None:
        client = self.cluster.client("kubelet")
        node = await client.get(NODE, Key("", self.node))
        fresh = conditions(self.networked, now, "" if self.networked else NO_NETWORK)
        before = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or ()}
        for each in fresh:
            known = before.get(each["type"])
            if known is not None and known["status"] == each["status"]:
                each["lastTransitionTime"] = known["lastTransitionTime"]
        others = [each for kind, each in before.items() if kind not in {one["type"] for one in fresh}]
        status: Json = {"conditions": [*others, *fresh]}
        own = [each for each in self.guest.host.addresses if each not in self.cluster.virtual_addresses()]
        if own and self.moves:
            status["addresses"] = node_addresses(own, self.node)
        patch = MergePatch({"status": status})
        node = await client.patch(NODE, Key("", self.node), patch, subresource="status")
        if self.missed:
            await self._set_unreachable(node, unreachable=False, now=now)
        if self.networked:
            await self._untaint(NOT_READY)
        self.missed, self.reported = False, now

    async def _give_up(self, now: float) -> None:
        client = self.cluster.client("kube-controller-manager")
        patch = MergePatch({"status": {"conditions": lost_conditions(now)}})
        node = await client.patch(NODE, Key("", self.node), patch, subresource="status")
        await self._set_unreachable(node, unreachable=True, now=now)
        self.missed = True

    async def _untaint(self, key: str) -> None:
        client = self.cluster.client("kube-controller-manager")
        node = await client.get(NODE, Key("", self.node))
        taints = (node.get("spec") or {}).get("taints") or []
        left = [each for each in taints if each["key"] != key]
        if len(left) != len(taints):
            await client.patch(NODE, Key("", self.node), MergePatch({"spec": {"taints": left or None}}))

    async def _set_unreachable(self, node: Json, *, unreachable: bool, now: float) -> None:
        taints = [each for each in (node.get("spec") or {}).get("taints") or () if each["key"] != UNREACHABLE]
        if unreachable:
            taints.append({"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": rfc3339(now)})
            taints.append({"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": rfc3339(now)})
        client = self.cluster.client("kube-controller-manager")
        await client.patch(NODE, Key("", self.node), MergePatch({"spec": {"taints": taints or None}}))


class Heartbeats:
    """Sends the heartbeats of all kubelets of a fleet, a few at a time, so that no other task waits long."""

    def __init__(self, clock: Clock, beat_seconds: float = BEAT_SECONDS, slices: int = 40) -> None:
        self._clock = clock
        self._pause = beat_seconds / slices
        self._slots: list[dict[Kubelet, None]] = [{} for _ in range(slices)]
        self._task: asyncio.Task[None] | None = None
        self._next = 0

    def add(self, kubelet: Kubelet) -> None:
        min(self._slots, key=len)[kubelet] = None
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="heartbeats of simulated nodes")

    def __len__(self) -> int:
        return sum(map(len, self._slots))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            slot = self._slots[self._next % len(self._slots)]
            self._next += 1
            for kubelet in list(slot):
                with contextlib.suppress(ApiError):
                    await kubelet.beat()
                if kubelet.retired:
                    slot.pop(kubelet, None)

    async def close(self) -> None:
        await cancel(self._task)
        self._task = None
