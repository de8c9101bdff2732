"""The checks of a manifest by its real provider, before anything is created: authentication, references, capacity.

The controllers that check InfraClusters run on a copy of the objects; they ask the vendor, and create nothing there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.app.discovery.source import supports
from homeport.app.object.absent import with_near
from homeport.app.rehearsal.copy import PlaneCopy
from homeport.app.rehearsal.stage import Stage, stage
from homeport.app.rehearsal.vendor import PASSED, checked
from homeport.app.tree.read import source_of
from homeport.capi.name import Condition, Reason
from homeport.capi.object.summary import conditions_of
from homeport.client.dial import DialOptions
from homeport.client.protocol import Key
from homeport.machinery.condition import find
from homeport.runtime.clock import SystemClock

_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_SETTLED_SECONDS = 5.0  # nothing new for so long: what is missing does not come
_CONTROLLERS = (
    "cluster",
    "clusterclass",
    "topology",
    "nutanixcluster",
    "harvestercluster",
    "butler-providerconfig",
    "butler-tenantcluster",
    "butler-ipallocation",
    "butler-networkpool",
    "k0rdent-clusterdeployment",
)
_PLATFORM = ("TenantCluster", "ClusterDeployment")
# Of platforms' objects, what has to be right before there is a Cluster.
_GATES = ("ProviderReady", "ImageReady", "QuotaSatisfied", "ProviderAccessGranted", "TemplateReady", "CredentialReady")
# Other controllers are about to create what the checks need.
_TOO_EARLY = ("WaitingForOwner", "WaitingForTemplates")
_ABSENT = Reason.OBJECT_DOES_NOT_EXIST
# Not about the manifest.
_OTHER = frozenset({"Ready", "Paused", "Deleting", "NoOrphanedMachines", "InfrastructureReachable"})


class CheckResult(msgspec.Struct, frozen=True, rename="camel"):
    """One check of one object. The message of a failed one says what to do."""

    kind: str
    name: str
    check: str
    ok: bool
    reason: str = ""
    message: str = ""


class Refused(Exception):
    """The plane does not accept an object of the file."""


async def preflight(
    copy: PlaneCopy, objects: Sequence[Mapping[str, Any]], namespace: str, dial: DialOptions, cluster: Key | None = None
) -> list[CheckResult]:
    """The checks of the clusters in the file, or of `cluster`. Raises Refused."""
    kinds = [each.cluster_kind for each in supports().values()]
    names = {each.kind for each in kinds}
    for obj in copy.objects:
        if obj.get("kind") in names and isinstance(obj.get("status"), dict):
            obj["status"].pop("conditions", None)  # what was found before does not count
    async with stage(SystemClock()) as on:
        await on.load(copy)
        for each in objects:
            result, error = await on.apply(each, namespace)
            if result == "refused":
                raise Refused(f"{each.get('kind')} {(each.get('metadata') or {}).get('name')}: {error}")
        async with on.running(checked, dial, _CONTROLLERS):
            return await _results(on, kinds, _named(objects, namespace, cluster))


def _named(objects: Sequence[Mapping[str, Any]], namespace: str, cluster: Key | None) -> set[tuple[str, Key]]:
    """Kind and key of what the checks are about."""
    if cluster is not None:
        return {(kind, cluster) for kind in ("Cluster", *_PLATFORM)}
    found: set[tuple[str, Key]] = set()
    for each in objects:
        meta, spec = each.get("metadata") or {}, each.get("spec") or {}
        space = str(meta.get("namespace") or namespace)
        if each.get("kind") in ("Cluster", *_PLATFORM):
            found.add((str(each["kind"]), Key(space, str(meta.get("name")))))
        elif spec.get("clusterName"):
            found.add(("Cluster", Key(space, str(spec["clusterName"]))))
    return found


async def _results(on: Stage, kinds: Sequence[Resource], named: Collection[tuple[str, Key]]) -> list[CheckResult]:
    loop = asyncio.get_running_loop()
    before, since = list[CheckResult](), loop.time()
    try:
        async with asyncio.timeout(_SECONDS):
            while True:
                found, complete = await _look(on, kinds, named)
                if found != before:
                    before, since = found, loop.time()
                # What a check waits for may never come, such as a template with a mistyped name: it says so.
                waits = any(not each.ok and each.reason in (*_TOO_EARLY, _ABSENT) for each in found)
                if complete or (waits and loop.time() - since > _SETTLED_SECONDS):
                    return found
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        found, _ = await _look(on, kinds, named)
        late = CheckResult("Preflight", "", "Finished", False, "Timeout", f"not all checks ended within {_SECONDS:g} s")
        return [*found, late]


async def _look(
    on: Stage, kinds: Sequence[Resource], named: Collection[tuple[str, Key]]
) -> tuple[list[CheckResult], bool]:
    """What is known, and whether all of it is."""
    results: list[CheckResult] = []
    complete, seen = True, False
    infra = {(str(each["kind"]), each.namespace, each.name): each for each in await on.objects(kinds)}
    for cluster in await on.objects([Cluster.__resource__]):
        if not _concerned(cluster, named):
            continue
        ref = (cluster.get("spec") or {}).get("infrastructureRef") or {}
        obj = infra.get((str(ref.get("kind")), cluster.namespace, str(ref.get("name"))))
        if obj is None:
            known = ref.get("kind") in {each.kind for each in kinds}
            complete = complete and bool(ref) and not known
            results += [_no_infrastructure(cluster, ref, infra)] if known else []
            continue
        seen = True
        complete = complete and _ended(obj)
        results += _checks(obj)
    for root in await _roots(on, named):
        failed = [each for each in _gates(root) if not each.ok]
        results += failed
        seen = seen or bool(failed)
    return results, complete and (seen or not named)


def _no_infrastructure(
    cluster: Unstructured, ref: Mapping[str, Any], infra: Mapping[tuple[str, str, str], Unstructured]
) -> CheckResult:
    text = f"spec.infrastructureRef: {ref.get('kind')} {ref.get('name')} does not exist"
    text = with_near(text, cluster.namespace, infra.values())
    return CheckResult("Cluster", cluster.name, Condition.INFRASTRUCTURE_READY, False, _ABSENT, text)


def _ended(obj: Unstructured) -> bool:
    """A provider that can't be reached makes no check, and a cluster that was ready before reports no other state."""
    reachable, ready = (find(conditions_of(obj), kind) for kind in (Condition.INFRASTRUCTURE_REACHABLE, "Ready"))
    if reachable is not None and reachable.get("status") == "False":
        return True
    return ready is not None and ready.get("reason") not in _TOO_EARLY


async def _roots(on: Stage, named: Iterable[tuple[str, Key]]) -> list[Unstructured]:
    found: list[Unstructured] = []
    for kind, key in sorted(named):
        served = next((each for each in on.server.catalog if each.kind == kind and kind in _PLATFORM), None)
        if served is not None:
            listed = await on.objects([served.versions[served.storage].resource])
            found += [each for each in listed if Key(each.namespace, each.name) == key]
    return found


def _concerned(cluster: Unstructured, named: Collection[tuple[str, Key]]) -> bool:
    owners = {(str(ref.get("kind")), Key(cluster.namespace, str(ref.get("name")))) for ref in _owners(cluster)}
    places = {("Cluster", Key(cluster.namespace, cluster.name)), source_of(cluster), *owners}
    return any(each in named for each in places if each is not None)


def _owners(obj: Unstructured) -> Sequence[Mapping[str, Any]]:
    return obj.metadata.get("ownerReferences") or ()


def _checks(obj: Unstructured) -> list[CheckResult]:
    """Its conditions. Ready repeats what another one says, unless the checks could not be made."""
    conditions = [each for each in conditions_of(obj) if each["type"] not in _OTHER]
    made = [_result(obj, each) for each in conditions]
    ready = find(conditions_of(obj), "Ready") or {}
    if ready.get("status") == "False" and ready.get("reason") != PASSED and all(each.ok for each in made):
        made.append(_result(obj, ready))
    return made


def _gates(obj: Unstructured) -> list[CheckResult]:
    return [_result(obj, each) for each in conditions_of(obj) if each["type"] in _GATES and each.get("message")]


def _result(obj: Unstructured, found: Mapping[str, Any]) -> CheckResult:
    ok = found.get("status") == "True"
    message = "" if ok else " ".join(str(found.get("message") or "").split())
    return CheckResult(
        str(obj["kind"]), obj.name, str(found["type"]), ok, "" if ok else str(found.get("reason") or ""), message
    )
