"""Deployments: one ReplicaSet per template, old ones replaced step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.meta import Unstructured
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.runtime.clock import Clock, parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import (
    BY_OWNER,
    DEPLOYMENT,
    REPLICA_SET,
    Owned,
    controller_ref,
    deleting,
    phase,
    spec_of,
    status_of,
)
from homeport.runtime.workload.reconciler import WorkloadReconciler
from homeport.runtime.workload.replicaset import write_status
from homeport.runtime.workload.rollout import Replicas, plan_recreate, plan_rolling
from homeport.runtime.workload.template import HASH_LABEL, same_template, share_of, short_hash

_WRITE = Write(field_manager="deployment-controller")
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_NOT_INHERITED = (REVISION_ANNOTATION, "kubectl.kubernetes.io/last-applied-configuration")


class DeploymentReconciler(WorkloadReconciler):
    kind = DEPLOYMENT

    def __init__(self, client: Any, sets: Owned, pods: Owned, clock: Clock) -> None:
        super().__init__(client, pods, clock)
        self._sets = sets

    async def converge(self, owner: Unstructured) -> Wait | None:
        deployment = owner
        sets = list(self._sets.by(BY_OWNER, deployment.uid))
        template = spec_of(deployment)["template"]
        new = next((s for s in sets if same_template(spec_of(s).get("template") or {}, template)), None)
        revision = 0
        if not deleting(deployment):
            if not spec_of(deployment).get("paused"):
                new = await self._hold_new(deployment, new, sets)
                revision = _revision(new)
            await self._scale(deployment, new, [s for s in sets if new is None or s.uid != new.uid])
            await self._forget_old(deployment, new, sets)
        return await self._report(deployment, new, sets, revision)

    async def _hold_new(
        self, deployment: Unstructured, new: Unstructured | None, sets: Sequence[Unstructured]
    ) -> Unstructured:
        latest = max((_revision(s) for s in sets), default=0)
        if new is None:
            # The first one needs not wait for others to shrink.
            new = await self._create(deployment, latest + 1, 0 if sets else int(spec_of(deployment).get("replicas", 1)))
        elif _revision(new) < latest:  # rolled back to: the old version becomes the newest
            new = await self._annotate(REPLICA_SET, new, str(latest + 1))
        return new

    async def _create(self, deployment: Unstructured, revision: int, replicas: int) -> Unstructured:
        for salt in range(100):
            body = _new_set(deployment, revision, replicas, salt)
            try:
                made: Unstructured = await self._client.create(body, _WRITE, kind=REPLICA_SET)
                return made
            except AlreadyExists:
                key = Key(deployment.namespace, body["metadata"]["name"])
                found: Unstructured = await self._client.get(REPLICA_SET, key)
                ours = body["metadata"]["ownerReferences"][0]["uid"] in _owner_uids(found)
                if ours and same_template(spec_of(found)["template"], spec_of(deployment)["template"]):
                    return found
        raise AlreadyExists(f"every name for a new ReplicaSet of {deployment.name} is taken")

    async def _annotate(self, kind: Any, obj: Unstructured, revision: str) -> Unstructured:
        patch = MergePatch({"metadata": {"uid": obj.uid, "annotations": {REVISION_ANNOTATION: revision}}})
        done: Unstructured = await self._client.patch(kind, Key(obj.namespace, obj.name), patch, _WRITE)
        return done

    async def _scale(self, deployment: Unstructured, new: Unstructured | None, old: list[Unstructured]) -> None:
        spec = spec_of(deployment)
        wanted = int(spec.get("replicas", 1))
        if new is None:
            return
        counts = _replicas(new), [_replicas(s) for s in sorted(old, key=_revision)]
        strategy = spec.get("strategy") or {}
        if spec.get("paused"):
            plan = {new.name: wanted} if not any(r.spec for r in counts[1]) else {}
        elif strategy.get("type") == "Recreate":
            plan = plan_recreate(wanted, *counts, left=any(self._runs(s) for s in old))
        else:
            plan = plan_rolling(wanted, *_limits(strategy.get("rollingUpdate") or {}, wanted), *counts)
        for each in (new, *old):
            if plan.get(each.name, _replicas(each).spec) != _replicas(each).spec:
                patch = MergePatch({"metadata": {"uid": each.uid}, "spec": {"replicas": plan[each.name]}})
                await self._client.patch(REPLICA_SET, Key(each.namespace, each.name), patch, _WRITE)

    def _runs(self, old: Unstructured) -> bool:
        """Pods that are on their way out still run."""
        return any(phase(pod) not in ("Succeeded", "Failed") for pod in self._pods.by(BY_OWNER, old.uid))

    async def _forget_old(
        self, deployment: Unstructured, new: Unstructured | None, sets: Sequence[Unstructured]
    ) -> None:
        limit = spec_of(deployment).get("revisionHistoryLimit", 10)
        spent = [s for s in sets if (new is None or s.uid != new.uid) and _idle(s)]
        for each in sorted(spent, key=_revision)[: max(len(spent) - int(limit), 0)]:
            await self._client.delete(REPLICA_SET, Key(each.namespace, each.name), uid=each.uid)

    async def _report(
        self, deployment: Unstructured, new: Unstructured | None, sets: Sequence[Unstructured], revision: int
    ) -> Wait | None:
        """`revision` goes along with the status: elsewhere a changed annotation would count as a new generation. 0: it
        stays as it is."""
        now = self._clock.now()
        status = _counts(deployment, new, sets)
        conditions, left = _conditions(deployment, status, new, rfc3339(now), now)
        status["conditions"] = conditions
        if (collisions := status_of(deployment).get("collisionCount")) is not None:
            status["collisionCount"] = collisions
        due = {REVISION_ANNOTATION: str(revision)} if revision and revision != _revision(deployment) else {}
        await write_status(self._client, DEPLOYMENT, deployment, status, _WRITE, annotations=due)
        return Wait("ReplicaSetUpdated", after=left, quiet=True) if left is not None else None


def _new_set(deployment: Unstructured, revision: int, replicas: int, salt: int) -> dict[str, Any]:
    spec = spec_of(deployment)
    digest = short_hash(spec["template"], salt)
    template = dict(spec["template"])
    meta = dict(template.get("metadata") or {})
    labels = {**(meta.get("labels") or {}), HASH_LABEL: digest}
    template["metadata"] = {**meta, "labels": labels}
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    annotations = {k: v for k, v in (deployment.metadata.get("annotations") or {}).items() if k not in _NOT_INHERITED}
    return {
        "metadata": {
            "name": f"{deployment.name}-{digest}",
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": {**annotations, REVISION_ANNOTATION: str(revision)},
            "ownerReferences": [controller_ref(deployment, DEPLOYMENT)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": template,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
        },
    }


def _owner_uids(obj: Unstructured) -> list[str]:
    return [ref["uid"] for ref in obj.metadata.get("ownerReferences") or ()]


def _revision(obj: Unstructured) -> int:
    return int((obj.metadata.get("annotations") or {}).get(REVISION_ANNOTATION) or 0)


def _replicas(obj: Unstructured) -> Replicas:
    status = status_of(obj)
    return Replicas(
        obj.name,
        int(spec_of(obj).get("replicas", 1)),
        int(status.get("replicas") or 0),
        int(status.get("availableReplicas") or 0),
    )


def _idle(obj: Unstructured) -> bool:
    counted = status_of(obj).get("observedGeneration", 0) >= obj.metadata.get("generation", 0)
    replicas = _replicas(obj)
    return counted and not replicas.spec and not replicas.actual and not deleting(obj)


def _limits(rolling: dict[str, Any], wanted: int) -> tuple[int, int]:
    surge = share_of(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share_of(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, unavailable if surge or unavailable else 1  # neither: nothing would ever move


def _counts(deployment: Unstructured, new: Unstructured | None, sets: Sequence[Unstructured]) -> dict[str, Any]:
    def total(field: str) -> int:
        return sum(int(status_of(s).get(field) or 0) for s in sets if new is None or s.uid != new.uid) + mine(field)

    def mine(field: str) -> int:
        return int(status_of(new).get(field) or 0) if new is not None else 0

    wanted = int(spec_of(deployment).get("replicas", 1))
    available = total("availableReplicas")
    status = {
        "observedGeneration": deployment.metadata.get("generation", 0),
        "replicas": total("replicas"),
        "updatedReplicas": mine("replicas"),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(max(wanted, total("replicas")) - available, 0),
    }
    return {k: v for k, v in status.items() if v}


def _conditions(
    deployment: Unstructured, status: dict[str, Any], new: Unstructured | None, stamp: str, now: float
) -> tuple[list[dict[str, Any]], float | None]:
    """Available and Progressing, and in how many seconds the progress deadline passes."""
    spec, before = spec_of(deployment), status_of(deployment)
    wanted = int(spec.get("replicas", 1))
    _, unavailable = _limits((spec.get("strategy") or {}).get("rollingUpdate") or {}, wanted)
    conditions = list(before.get("conditions") or ())
    if status.get("availableReplicas", 0) >= wanted - unavailable:
        state = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        state = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    conditions = _put(conditions, "Available", *state, stamp, moved=False)
    if new is None:
        return conditions, None
    complete = (
        status.get("updatedReplicas", 0) == wanted == status.get("replicas", 0) == status.get("availableReplicas", 0)
    )
    if complete:
        text = f'ReplicaSet "{new.name}" has successfully progressed.'
        return _put(conditions, "Progressing", "True", "NewReplicaSetAvailable", text, stamp, moved=False), None
    moved = any(before.get(f, 0) != status.get(f, 0) for f in ("updatedReplicas", "availableReplicas", "replicas"))
    known = condition.find(conditions, "Progressing") or {}
    if (
        known.get("reason") == "NewReplicaSetAvailable"
        and before.get("observedGeneration") == status["observedGeneration"]
    ):
        return conditions, None  # it was complete; that Pods come and go is not a rollout
    moved = moved or known.get("reason") in (None, "NewReplicaSetAvailable")
    since = parse_time(known["lastUpdateTime"]) if known.get("lastUpdateTime") and not moved else now
    left = since + float(spec.get("progressDeadlineSeconds") or 600) - now
    if left <= 0 or (known.get("reason") == "ProgressDeadlineExceeded" and not moved):
        text = f'ReplicaSet "{new.name}" has timed out progressing.'
        return _put(conditions, "Progressing", "False", "ProgressDeadlineExceeded", text, stamp, moved=False), None
    text = f'ReplicaSet "{new.name}" is progressing.'
    return _put(conditions, "Progressing", "True", "ReplicaSetUpdated", text, stamp, moved=moved), left


def _put(
    conditions: list[dict[str, Any]], kind: str, status: str, reason: str, message: str, now: str, *, moved: bool
) -> list[dict[str, Any]]:
    """As `condition.put`, with the time of the last update, which Deployments have besides."""
    old = condition.find(conditions, kind) or {}
    result = condition.put(conditions, kind, status, reason, message, now=now)  # type: ignore[arg-type]
    same = old.get("status") == status and old.get("reason") == reason and not moved
    for each in result:
        if each["type"] == kind:
            each["lastUpdateTime"] = old.get("lastUpdateTime", now) if same else now
    return result
