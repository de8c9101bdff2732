"""Dynamic configuration: the ClusterConfig `k0s` of kube-system is read by the controllers and applied."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING

from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key
from homeport.runtime.clock import rfc3339
from homeport.runtime.event import EVENT
from homeport.sim.machine.workload.k0s.check import problems_of
from homeport.sim.machine.workload.k0s.definition import CLUSTER_CONFIG
from homeport.sim.machine.workload.k0s.object import k0s_objects
from homeport.sim.machine.workload.kind import DAEMON_SET, Json

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.agent import Agent
    from homeport.sim.machine.workload.k0s.platform import Platform

NAME, NAMESPACE = "k0s", "kube-system"
# These belong to each controller, and stay in its file.
_OWN = ("api", "storage", "install")
_OWN_NETWORK = ("serviceCIDR", "clusterDomain", "controlPlaneLoadBalancing", "primaryAddressFamily")


async def publish(platform: Platform, agent: Agent) -> None:
    """The first controller with dynamic configuration makes the object of what is in its file."""
    if not agent.dynamic:
        return
    spec = copy.deepcopy((agent.config or {}).get("spec") or {})
    for name in _OWN:
        spec.pop(name, None)
    network = spec.get("network") or {}
    for name in _OWN_NETWORK:
        network.pop(name, None)
    body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
    with contextlib.suppress(AlreadyExists):
        await platform.cluster.client("k0s").create(body, kind=CLUSTER_CONFIG)


def effective(platform: Platform) -> Json:
    """The configuration that counts for the cluster: of the API if the leader reads it there, otherwise of its file."""
    leader = platform.leader()
    if leader is None:
        return {}
    if leader.dynamic:
        obj = platform.read(CLUSTER_CONFIG, NAME, NAMESPACE)
        if obj is not None:
            return obj.get("spec") or {}
    return (leader.config or {}).get("spec") or {}


async def settle_configuration(platform: Platform) -> None:
    leader = platform.leader()
    if leader is None or not leader.dynamic:
        return
    obj = platform.read(CLUSTER_CONFIG, NAME, NAMESPACE)
    if obj is None or platform.configured == obj["metadata"].get("generation"):
        return
    platform.configured = obj["metadata"].get("generation")
    spec = obj.get("spec") or {}
    provider = str((spec.get("network") or {}).get("provider") or "kuberouter")
    before = platform.cluster.facts.configuration.get("network") or "kuberouter"
    problems = problems_of(spec)
    if provider != before:
        problems.append(f"cannot change CNI provider from {before} to {provider}")
    if problems:
        text = f"failed to validate cluster configuration: {'; '.join(problems)}"
        leader.host.log("error", f"Failed to reconcile cluster configuration: {text}", "clusterConfig-reconciler")
        await _record(platform, leader, obj, "Warning", "FailedReconciling", text)
        return
    await _apply(platform, leader, spec)
    await _record(platform, leader, obj, "Normal", "SuccessfulReconcile", "Successfully reconciled cluster config")


async def _apply(platform: Platform, leader: Agent, spec: Json) -> None:
    cluster = platform.cluster
    facts = cluster.facts
    disabled = bool(((spec.get("network") or {}).get("kubeProxy") or {}).get("disabled"))
    facts.configuration["proxy"] = {"disabled": disabled}
    facts.configuration["workerProfiles"] = [str(each.get("name")) for each in spec.get("workerProfiles") or ()]
    await cluster.put(k0s_objects(facts, leader.disabled), "k0s")
    if disabled:
        with contextlib.suppress(NotFound):
            await cluster.client("k0s").delete(DAEMON_SET, Key(NAMESPACE, "kube-proxy"))


async def _record(platform: Platform, leader: Agent, obj: Json, level: str, reason: str, message: str) -> None:
    at, meta = rfc3339(platform.cluster.clock.now()), obj["metadata"]
    body = {
        "metadata": {"generateName": "k0s-", "namespace": NAMESPACE},
        "involvedObject": {
            **CLUSTER_CONFIG.type_meta,
            "namespace": NAMESPACE,
            "name": NAME,
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": level,
        "reason": reason,
        "message": message,
        "action": "ConfigReconciling",
        "reportingComponent": "k0s-controller",
        "reportingInstance": leader.host.guest.name,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    await platform.cluster.client("k0s").create(body, kind=EVENT)
