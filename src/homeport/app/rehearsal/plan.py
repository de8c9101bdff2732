"""What a change will do, Machine by Machine: rehearsed, then compared."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.addons.v1beta2 import ClusterResourceSet
from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.api.meta import Unstructured
from homeport.app.object.absent import with_near
from homeport.app.object.networkplugin import network_advice, without_network_plugin
from homeport.app.rehearsal.compare import Row, compare
from homeport.app.rehearsal.copy import PlaneCopy
from homeport.app.rehearsal.preflight import CheckResult
from homeport.app.rehearsal.stage import Stage, stage
from homeport.app.tree.grow import grow
from homeport.app.tree.read import NoCluster, Reader
from homeport.capi.name import Condition
from homeport.capi.object.summary import conditions_of
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.machinery.condition import find
from homeport.runtime.clock import LoopClock, run_virtual

_ROUND_SECONDS = 60.0
_QUIET_ROUNDS = 10  # so long nothing changes any more, and the rehearsal is over
_BASELINE_ROUNDS = 3
_MOST_ROUNDS = 600  # ten hours
_WATCHED = tuple(
    kind.__resource__ for kind in (Cluster, Machine, MachineDeployment, KubeadmControlPlane, K0sControlPlane)
)
_PLATFORMS = {kind.__resource__.kind: kind.__resource__ for kind in (TenantCluster, ClusterDeployment)}

NOT_SIMULATED = (
    "VMs: each is assumed to be created and to boot",
    "workload clusters: Nodes, etcd, static Pods and k0s are assumed to be healthy, and every drain to succeed",
    "hosted control planes: their Pods are assumed to become ready",
    "probes of new ProviderConfigs and Credentials: apply these first, then plan clusters that use them",
    "add-ons, health checks, load balancers and the cloud controller manager",
)


class Applied(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the file, and what applying it does."""

    kind: str
    name: str
    namespace: str
    result: str  # created, configured, unchanged, deleted, not found, refused
    message: str = ""


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    applied: list[Applied] = []
    machines: list[Row] = []
    preflight: list[CheckResult] = []  # of the real provider
    under_way: list[str] = []  # Machines that change by themselves, without this change
    unfinished: list[str] = []  # clusters that do not get ready in the rehearsal, and why
    notes: list[str] = []  # what is not wrong, but should be known before
    minutes: int = 0  # of virtual time, until nothing changed any more
    not_simulated: tuple[str, ...] = NOT_SIMULATED

    @property
    def refused(self) -> bool:
        return any(each.result == "refused" for each in self.applied)


def make_plan(
    copy: PlaneCopy, objects: Sequence[Mapping[str, Any]], namespace: str, start: float, *, delete: bool = False
) -> Plan:
    """Runs the rehearsal in virtual time. `start`: the time now. Writes nothing outside this process."""
    return run_virtual(_rehearse(copy, objects, namespace, start, delete))


async def _rehearse(
    copy: PlaneCopy, objects: Sequence[Mapping[str, Any]], namespace: str, start: float, delete: bool
) -> Plan:
    async with stage(LoopClock(start)) as on:
        await on.load(copy)
        async with on.running():
            original = await _machines(on)
            await _settle(on, _BASELINE_ROUNDS)
            before = await _machines(on)
            applied = [await _apply(on, each, namespace, delete) for each in objects]
            minutes = await _settle(on, _QUIET_ROUNDS) if not any(a.result == "refused" for a in applied) else 0
            named = {f"{each.namespace}/{each.name}" for each in applied if each.kind == "Cluster"}
            rows = compare(before, await _machines(on), on.outdated, named)
            here = {row.cluster for row in rows} | named
            drift = [row for row in compare(original, before) if row.action != "leave" and row.cluster in here]
            return Plan(
                applied=applied,
                machines=rows,
                under_way=[row.text() for row in drift],
                unfinished=[*await _unfinished(on, here, start), *await _platforms(on, applied, here)],
                notes=await _notes(on, applied),
                minutes=minutes,
            )


async def _apply(on: Stage, obj: Mapping[str, Any], namespace: str, delete: bool) -> Applied:
    result, error = await (on.delete if delete else on.apply)(obj, namespace)
    meta = obj.get("metadata") or {}
    served = on.served(obj)
    space = "" if served is not None and not served.namespaced else str(meta.get("namespace") or namespace)
    return Applied(str(obj.get("kind")), str(meta.get("name")), space, result, str(error) if error else "")


async def _machines(on: Stage) -> list[Unstructured]:
    return list(await on.objects([Machine.__resource__]))


async def _settle(on: Stage, quiet: int) -> int:
    """Until nothing has changed for `quiet` rounds. Minutes until the last change."""
    last: object = None
    changed = 0
    for number in range(_MOST_ROUNDS):
        found = sorted(_essence(each) for each in await on.objects(_WATCHED))
        if found != last:
            last, changed = found, number
        elif number - changed >= quiet:
            break
        await asyncio.sleep(_ROUND_SECONDS)
    return int(changed * _ROUND_SECONDS // 60)


def _essence(obj: Unstructured) -> tuple[str, ...]:
    status = obj.get("status") or {}
    counts = [f"{name}={status.get(name)}" for name in ("phase", "replicas", "readyReplicas", "upToDateReplicas")]
    return (str(obj.get("kind")), obj.namespace, obj.name, str(obj.metadata.get("generation")), *counts)


async def _platforms(on: Stage, applied: Sequence[Applied], clusters: Collection[str]) -> list[str]:
    """TenantClusters and ClusterDeployments of the file that did not get as far as a Cluster, and why."""
    found = []
    for each in applied:
        if each.kind not in _PLATFORMS or each.result in ("refused", "deleted", "not found"):
            continue
        try:
            obj = await on.client.get(_PLATFORMS[each.kind], Key(each.namespace, each.name))
        except ApiError:
            continue
        home = str((obj.get("status") or {}).get("tenantNamespace") or each.namespace)
        ready = find(conditions_of(obj), "Ready") or {}
        if f"{home}/{each.name}" not in clusters and ready.get("status") != "True":
            found.append(f"{each.kind} {each.name}: {ready.get('message') or 'it reports nothing'}")
    return found


async def _notes(on: Stage, applied: Sequence[Applied]) -> list[str]:
    new = {Key(each.namespace, each.name) for each in applied if (each.kind, each.result) == ("Cluster", "created")}
    clusters = [each for each in await on.objects([Cluster.__resource__]) if Key(each.namespace, each.name) in new]
    around = await on.objects(
        [KubeadmControlPlane.__resource__, ClusterAddon.__resource__, ClusterResourceSet.__resource__]
    )
    return [f"Cluster {each.name}: {network_advice(each)}" for each in without_network_plugin(clusters, around)]


async def _unfinished(on: Stage, clusters: Collection[str], now: float) -> list[str]:
    """Of those of the clusters that are not as they should be in the end, the cause."""
    found = []
    reader = Reader(on.client)
    for each in await on.objects([Cluster.__resource__]):
        if f"{each.namespace}/{each.name}" not in clusters:
            continue
        try:
            around = await reader.read(Key(each.namespace, each.name))
            around.roots = [each]  # what a platform's object reports besides, such as add-ons, is not rehearsed
            [tree] = grow(around, now)
        except (NoCluster, ApiError):
            continue
        held = find(conditions_of(each), Condition.ROLLING_OUT) or {}
        rolling = " ".join(str(held.get("message") or "").split()) if held.get("status") == "True" else ""
        if rolling or (tree.cause and tree.root.healthy is not True):
            cause = with_near(tree.cause or rolling, each.namespace, around.objects)
            found.append(f"{tree.root.kind} {tree.root.name}: {cause}")
    return list(dict.fromkeys(found))
