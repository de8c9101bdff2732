"""Nodes: initialised once, kept up to date, tainted while their machine is off, removed when it is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.capi.cloud import Cloud, CloudInstance
from homeport.capi.family import Family, family_of, in_order
from homeport.ccm.failure import Failures
from homeport.ccm.label import label_value
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.error import ProviderError
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
_SERVICE = Resource("", "v1", "Service", "services")
_KUBERNETES = Key("default", "kubernetes")
_WRITE = Write(field_manager="homeport-ccm")
_INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between looks: at a Node that is well, and at one whose machine may be gone, first and after a while."""

    steady: float = 300.0
    doubtful: float = 5.0
    patient: float = 60.0


class NodeReconciler:
    def __init__(self, manager: Manager, cloud: Cloud, pace: Pace | None = None) -> None:
        self._client = manager.client
        self._recorder = manager.recorder
        self._clock = manager.clock
        self._nodes = manager.informers.get(NODE).cache
        self._cloud = cloud
        self._pace = pace or Pace()
        self._failures = Failures(manager.recorder)
        self._doubts: dict[Key, int] = {}  # looks in a row at a Node that was not well
        self._services: Family = 0

    async def reconcile(self, key: Key) -> Wait | None:
        node = self._nodes.get(key)
        if node is None or node.metadata.get("deletionTimestamp"):
            self._failures.forget(key)
            self._doubts.pop(key, None)
            return None
        try:
            instance = await self._cloud.instance(node)
        except ProviderError as error:
            return self._failures.wait(key, node, error)
        self._failures.forget(key)
        if instance is None:
            return await self._absent(key, node)
        if not reachable(node, instance):
            message = f"Node {key.name} has no internal IP address yet, and the machine reports none"
            return Wait("NoAddress", message, after=self._soon(key))
        await self._converge(key, node, instance)
        if ready(node):
            self._doubts.pop(key, None)
            return Wait("Watching", "machines are checked periodically", after=self._pace.steady, quiet=True)
        return Wait("NotReady", "checking whether its machine still exists", after=self._soon(key), quiet=True)

    def _soon(self, key: Key) -> float:
        """No machine tells when it is gone; its Node does, when it stops answering. Then we look often, at first."""
        count = self._doubts[key] = self._doubts.get(key, 0) + 1
        return min(self._pace.doubtful * 1.5 ** min(count - 1, 20), self._pace.patient)

    async def _absent(self, key: Key, node: Unstructured) -> Wait | None:
        """A Node that answers is not removed, whatever the infrastructure says: it would come back at once."""
        if initialised(node) and not ready(node):
            log.info("deleting the Node: its machine no longer exists", node=key.name)
            self._recorder.record(node, "DeletingNode", "its machine no longer exists")
            try:
                await self._client.delete(NODE, key, uid=node.uid)
            except NotFound:
                return None
            return None
        return Wait("InstanceNotFound", f"no machine was found for Node {key.name}", after=self._soon(key))

    async def _converge(self, key: Key, node: Unstructured, instance: CloudInstance) -> None:
        patch = plan_patch(node, instance, rfc3339(self._clock.now()))
        if patch:
            first = not initialised(node)
            node = await self._client.patch(NODE, key, MergePatch(patch), _WRITE)
            if first:
                self._recorder.record(node, "Synced", f"initialised as {instance.provider_id}")
        addresses = plan_addresses(node, instance, await self._primary(node, instance))
        if addresses is not None:
            body = {"status": {"addresses": addresses}}
            await self._client.patch(NODE, key, MergePatch(body), _WRITE, subresource="status")

    async def _primary(self, node: Unstructured, instance: CloudInstance) -> Family:
        """The family that comes first: who has both is known by the first address of the Node."""
        families = {family_of(each.address) for each in instance.addresses if each.type == "InternalIP"}
        if len(families) < 2:
            return 0
        return family_hint(node) or await self._service_family()

    async def _service_family(self) -> Family:
        """Of the one Service that every cluster has: it stays what it was made as."""
        if not self._services:
            try:
                found = await self._client.get(_SERVICE, _KUBERNETES)
            except (NotFound, Forbidden):
                return 0
            self._services = family_of(str((found.get("spec") or {}).get("clusterIP") or ""))
        return self._services


def family_hint(node: Unstructured) -> Family:
    """The IP family of the kubelet's --node-ip, else of the Node's Pod network."""
    told = str((node.metadata.get("annotations") or {}).get(PROVIDED_IP) or "").split(",")[0]
    spec = node.get("spec") or {}
    pods = next(iter(spec.get("podCIDRs") or ()), "") or str(spec.get("podCIDR") or "")
    return family_of(told) or family_of(pods)


def initialised(node: Unstructured) -> bool:
    return not any(taint.get("key") == UNINITIALIZED for taint in _taints(node))


def was_initialised(node: Unstructured) -> bool:
    """By a cloud controller manager: nothing else says what type of instance a Node is."""
    return _INSTANCE_TYPE[0] in (node.metadata.get("labels") or {})


def ready(node: Unstructured) -> bool:
    return condition.is_true((node.get("status") or {}).get("conditions"), "Ready")


def reachable(node: Unstructured, instance: CloudInstance) -> bool:
    """Pods come as soon as the taint goes: by then others must find the Node."""
    held = (node.get("status") or {}).get("addresses") or ()
    if initialised(node) or any(each.get("type") == "InternalIP" for each in held):
        return True
    return any(each.type == "InternalIP" for each in instance.addresses)


def plan_patch(node: Unstructured, instance: CloudInstance, now: str) -> dict[str, Any]:
    """Provider id, labels and taints, in one write and only what differs."""
    patch: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    if not (node.get("spec") or {}).get("providerID"):
        spec["providerID"] = instance.provider_id
    taints = plan_taints(_taints(node), instance, now)
    if taints != _taints(node):
        # The list is replaced whole: somebody else's taint of the last moment must not be lost.
        spec["taints"] = taints or None
        patch["metadata"] = {"resourceVersion": node.resource_version}
    if spec:
        patch["spec"] = spec
    held: Mapping[str, str] = node.metadata.get("labels") or {}
    labels = {name: value for name, value in wanted_labels(instance).items() if held.get(name) != value}
    if labels:
        patch.setdefault("metadata", {})["labels"] = labels
    return patch


def wanted_labels(instance: CloudInstance) -> dict[str, str]:
    wanted = dict(instance.labels)
    for names, value in (
        (_INSTANCE_TYPE, instance.instance_type),
        (_ZONE, instance.zone),
        (_REGION, instance.region),
    ):
        for name in names if value else ():
            wanted[name] = value
    return {name: label_value(value) for name, value in wanted.items()}


def plan_taints(taints: list[dict[str, Any]], instance: CloudInstance, now: str) -> list[dict[str, Any]]:
    kept = [each for each in taints if each.get("key") != UNINITIALIZED]
    down = any(each.get("key") == SHUTDOWN for each in kept)
    if instance.shutdown and not down:
        return [*kept, {"key": SHUTDOWN, "effect": "NoSchedule", "timeAdded": now}]
    if not instance.shutdown and down:
        return [each for each in kept if each.get("key") != SHUTDOWN]
    return kept


def plan_addresses(node: Unstructured, instance: CloudInstance, first: Family = 0) -> list[dict[str, str]] | None:
    """None: as they should be. What the kubelet says of its own name stays; `first` is the family that comes first."""
    if not instance.addresses:
        return None
    held = (node.get("status") or {}).get("addresses") or []
    inside = in_order((each.address for each in instance.addresses if each.type == "InternalIP"), first)
    wanted = [{"type": "InternalIP", "address": each} for each in inside]
    wanted += [{"type": each.type, "address": each.address} for each in instance.addresses if each.type != "InternalIP"]
    types = {each["type"] for each in wanted}
    wanted += [each for each in held if each.get("type") == "Hostname" and "Hostname" not in types]
    same = _as_set(wanted) == _as_set(held) and (not first or _first_family(wanted) == _first_family(held))
    return None if same else wanted


def _first_family(addresses: list[dict[str, str]]) -> Family:
    return next((family_of(str(each.get("address"))) for each in addresses if each.get("type") == "InternalIP"), 0)


def _as_set(addresses: list[dict[str, str]]) -> set[tuple[str, str]]:
    """Compares without order: the kubelet may list addresses in another order, and rewriting them would never end."""
    return {(str(each.get("type")), str(each.get("address"))) for each in addresses}


def _taints(node: Unstructured) -> list[dict[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or [])


def _changed(old: Any, new: Any) -> bool:
    """Heartbeats come every few seconds; only what is read here counts."""
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(node: Unstructured) -> tuple[Any, ...]:
    status = node.get("status") or {}
    return (
        node.get("spec"),
        node.metadata.get("labels"),
        status.get("addresses"),
        ready(node),
        (status.get("nodeInfo") or {}).get("systemUUID"),
    )


def install(manager: Manager, cloud: Cloud, pace: Pace | None = None) -> None:
    manager.add(Controller("node", NODE, NodeReconciler(manager, cloud, pace), predicate=_changed))
