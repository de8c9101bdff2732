"""StatefulSets: Pods with names, one after the other, each with claims of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Unstructured
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import (
    BY_OWNER,
    CLAIM,
    POD,
    REVISION,
    STATEFUL_SET,
    Owned,
    controller_ref,
    deleting,
    phase,
    ready_since,
    spec_of,
    status_of,
)
from homeport.runtime.workload.reconciler import WorkloadReconciler
from homeport.runtime.workload.replicaset import delete_pod, seconds_to_available, write_status
from homeport.runtime.workload.template import REVISION_LABEL, pod_of, short_hash

_WRITE = Write(field_manager="statefulset-controller")


@dataclass(slots=True)
class _Scope:
    owner: Unstructured
    pods: dict[int, Unstructured]  # by ordinal
    revisions: list[Unstructured]  # oldest first
    now: float

    @property
    def spec(self) -> dict[str, Any]:
        return spec_of(self.owner)

    @property
    def ordinals(self) -> range:
        start = int((self.spec.get("ordinals") or {}).get("start") or 0)
        return range(start, start + int(self.spec.get("replicas", 1)))

    @property
    def parallel(self) -> bool:
        return self.spec.get("podManagementPolicy") == "Parallel"

    @property
    def update(self) -> Unstructured:
        """The revision of the template as it is now."""
        return self.revisions[-1]

    @property
    def current(self) -> Unstructured:
        """The revision that Pods below the partition have."""
        name = status_of(self.owner).get("currentRevision")
        return next((r for r in self.revisions if r.name == name), self.update)

    def available(self, pod: Unstructured) -> bool:
        return (
            not deleting(pod) and ready_since(pod) is not None and not seconds_to_available(self.owner, pod, self.now)
        )


class StatefulSetReconciler(WorkloadReconciler):
    kind = STATEFUL_SET

    def __init__(self, client: Any, pods: Owned, revisions: Owned, clock: Clock) -> None:
        super().__init__(client, pods, clock)
        self._revisions = revisions

    async def converge(self, owner: Unstructured) -> Wait | None:
        pods = {
            number: pod
            for pod in self._pods.by(BY_OWNER, owner.uid)
            if (number := ordinal(owner.name, pod.name)) is not None
        }
        scope = _Scope(owner, pods, await self._hold_revisions(owner), self._clock.now())
        if not deleting(owner):
            await self._act(scope)
        await write_status(self._client, STATEFUL_SET, owner, _status(scope), _WRITE)
        waits = [seconds_to_available(owner, p, scope.now) for p in pods.values() if ready_since(p) is not None]
        left = min((w for w in waits if w > 0), default=None)
        return Wait("NotAvailableYet", after=left, quiet=True) if left is not None else None

    async def _hold_revisions(self, owner: Unstructured) -> list[Unstructured]:
        found = sorted(self._revisions.by(BY_OWNER, owner.uid), key=lambda r: int(r["revision"]))
        data = {"spec": {"template": {**spec_of(owner)["template"], "$patch": "replace"}}}
        newest = int(found[-1]["revision"]) if found else 0
        same = next((r for r in found if r.get("data") == data), None)
        if same is not None and same is not found[-1]:  # rolled back to: the old version becomes the newest
            key, patch = Key(same.namespace, same.name), MergePatch({"revision": newest + 1})
            found = [r for r in found if r is not same] + [await self._client.patch(REVISION, key, patch, _WRITE)]
        elif same is None:
            found.append(await self._make_revision(owner, data, newest + 1))
        return await self._forget(owner, found)

    async def _make_revision(self, owner: Unstructured, data: dict[str, Any], number: int) -> Unstructured:
        digest = short_hash(data)
        labels = {**((spec_of(owner).get("selector") or {}).get("matchLabels") or {}), REVISION_LABEL: digest}
        meta = {
            "name": f"{owner.name}-{digest}",
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": [controller_ref(owner, STATEFUL_SET)],
        }
        try:
            made = await self._client.create(
                {"metadata": meta, "data": data, "revision": number}, _WRITE, kind=REVISION
            )
        except AlreadyExists:
            made = await self._client.get(REVISION, Key(owner.namespace, str(meta["name"])))
        return Unstructured(made)

    async def _forget(self, owner: Unstructured, revisions: list[Unstructured]) -> list[Unstructured]:
        used = {pod.metadata.get("labels", {}).get(REVISION_LABEL) for pod in self._pods.by(BY_OWNER, owner.uid)}
        used |= {status_of(owner).get("currentRevision"), revisions[-1].name}
        spent = [r for r in revisions if r.name not in used]
        for revision in spent[: max(len(spent) - int(spec_of(owner).get("revisionHistoryLimit", 10)), 0)]:
            await self._client.delete(REVISION, Key(revision.namespace, revision.name), uid=revision.uid)
            revisions.remove(revision)
        return revisions

    # -- acting -------------------------------------------------------------------------------------------------

    async def _act(self, scope: _Scope) -> None:
        """One thing after the other, unless told that the order does not matter."""
        for number in scope.ordinals:
            pod = scope.pods.get(number)
            if pod is not None and phase(pod) in ("Failed", "Succeeded") and not deleting(pod):
                await delete_pod(self._client, pod)
            elif pod is None:
                await self._create(scope, number)
            elif scope.available(pod):
                continue
            if not scope.parallel:
                return
        extra = sorted((n for n in scope.pods if n not in scope.ordinals), reverse=True)
        for number in extra:
            if not deleting(scope.pods[number]):
                await delete_pod(self._client, scope.pods[number])
            if not scope.parallel:
                return
        if not extra:
            await self._roll(scope)

    async def _roll(self, scope: _Scope) -> None:
        """From the last to the partition; the next one when this one is available again."""
        strategy = scope.spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        for number in reversed(scope.ordinals):
            pod = scope.pods.get(number)
            if number - scope.ordinals.start < partition or pod is None:
                return
            if revision_of(pod) != scope.update.name and not deleting(pod):
                await delete_pod(self._client, pod)
                return
            if not scope.available(pod):
                return

    async def _create(self, scope: _Scope, number: int) -> None:
        owner = scope.owner
        rolling = (scope.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        old = number - scope.ordinals.start < int(rolling.get("partition") or 0)
        revision = scope.current if old else scope.update
        for claim in scope.spec.get("volumeClaimTemplates") or ():
            await self._hold_claim(owner, claim, number)
        body = stateful_pod(owner, _template(revision), number, revision.name)
        try:
            await self._client.create(body, _WRITE, kind=POD)
        except AlreadyExists:
            return  # the one before is still going, or somebody else has the name

    async def _hold_claim(self, owner: Unstructured, template: Mapping[str, Any], number: int) -> None:
        given = template.get("metadata") or {}
        labels = {**(given.get("labels") or {}), **((spec_of(owner).get("selector") or {}).get("matchLabels") or {})}
        meta = {
            "name": claim_name(owner.name, template, number),
            "namespace": owner.namespace,
            "labels": labels,
            "annotations": dict(given.get("annotations") or {}),
        }
        try:
            await self._client.create({"metadata": meta, "spec": template.get("spec") or {}}, _WRITE, kind=CLAIM)
        except AlreadyExists:
            return


def ordinal(owner: str, pod: str) -> int | None:
    head, _, tail = pod.rpartition("-")
    return int(tail) if head == owner and tail.isdigit() else None


def claim_name(owner: str, template: Mapping[str, Any], number: int) -> str:
    return f"{(template.get('metadata') or {}).get('name', '')}-{owner}-{number}"


def revision_of(pod: Unstructured) -> str:
    return str((pod.metadata.get("labels") or {}).get(REVISION_LABEL, ""))


def _template(revision: Unstructured) -> dict[str, Any]:
    template = copy.deepcopy(dict(revision["data"]["spec"]["template"]))
    template.pop("$patch", None)
    return template


def stateful_pod(owner: Unstructured, template: Mapping[str, Any], number: int, revision: str) -> dict[str, Any]:
    """The Pod of one ordinal: its name is its host's, and it uses the claims of that name."""
    name = f"{owner.name}-{number}"
    pod = pod_of(owner, STATEFUL_SET, template, name)
    pod["metadata"].setdefault("labels", {}).update(
        {
            REVISION_LABEL: revision,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
    )
    spec = pod["spec"]
    spec["hostname"] = name
    if service := spec_of(owner).get("serviceName"):
        spec["subdomain"] = service
    claims = spec_of(owner).get("volumeClaimTemplates") or ()
    names = {(claim.get("metadata") or {}).get("name") for claim in claims}
    volumes = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
    for claim in claims:
        source = {"claimName": claim_name(owner.name, claim, number)}
        volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": source})
    if volumes:
        spec["volumes"] = volumes
    return pod


def _status(scope: _Scope) -> dict[str, Any]:
    living: Sequence[Unstructured] = [p for p in scope.pods.values() if not deleting(p)]
    updated = [p for p in living if revision_of(p) == scope.update.name]
    current = scope.current
    ready = [p for p in living if ready_since(p) is not None]
    wanted = int(scope.spec.get("replicas", 1))
    if len(updated) == len(living) == len(ready) == wanted and len(scope.pods) == wanted:
        current = scope.update  # the rollout is complete
    status = {
        "observedGeneration": scope.owner.metadata.get("generation", 0),
        "replicas": len(scope.pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(scope.available(p) for p in ready),
        "currentReplicas": sum(revision_of(p) == current.name for p in living),
        "updatedReplicas": len(updated),
        "currentRevision": current.name,
        "updateRevision": scope.update.name,
        "collisionCount": status_of(scope.owner).get("collisionCount", 0),
    }
    always = ("replicas", "availableReplicas", "collisionCount")
    return {k: v for k, v in status.items() if v or k in always}
