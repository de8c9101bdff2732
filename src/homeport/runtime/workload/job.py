"""Jobs: Pods that are to end well, a number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from homeport.api.meta import Unstructured
from homeport.client.protocol import Key, Write
from homeport.machinery import condition
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import (
    BY_OWNER,
    JOB,
    POD,
    active,
    deleting,
    phase,
    ready_since,
    spec_of,
    status_of,
)
from homeport.runtime.workload.reconciler import WorkloadReconciler
from homeport.runtime.workload.replicaset import delete_pod, write_status
from homeport.runtime.workload.template import pod_of

_WRITE = Write(field_manager="job-controller")


class JobReconciler(WorkloadReconciler):
    """Not served: completion modes by index, pod failure policies, success policies, suspension by queues."""

    kind = JOB

    async def converge(self, owner: Unstructured) -> Wait | None:
        job = owner
        if deleting(job):
            return None
        pods = self._pods.by(BY_OWNER, job.uid)
        if finished(job):
            return await self._expire(job)
        now = self._clock.now()
        status = _count(job, pods, rfc3339(now))
        over = _verdict(job, status, now)
        running = [pod for pod in pods if active(pod)]
        if over is not None:
            for pod in running:
                await delete_pod(self._client, pod)
            status = _conclude(job, status, over, rfc3339(now))
        elif not spec_of(job).get("suspend"):
            await self._scale(job, running, status)
        await write_status(self._client, JOB, job, status, _WRITE)
        deadline = spec_of(job).get("activeDeadlineSeconds")
        if over is None and deadline is not None and status.get("startTime"):
            return Wait("Running", after=max(parse_time(status["startTime"]) + deadline - now, 0.1), quiet=True)
        return None

    async def _scale(self, job: Unstructured, running: Sequence[Unstructured], status: dict[str, Any]) -> None:
        spec = spec_of(job)
        left = int(spec["completions"]) - status.get("succeeded", 0) if spec.get("completions") is not None else 1
        if spec.get("completions") is None and status.get("succeeded"):
            left = len(running)  # a work queue: one that ended well says that there is nothing left
        elif spec.get("completions") is None:
            left = int(spec.get("parallelism", 1))
        wanted = min(int(spec.get("parallelism", 1)), left)
        body = pod_of(job, JOB, spec["template"])
        missing = max(wanted - len(running), 0)
        await asyncio.gather(*(self._client.create(body, _WRITE, kind=POD) for _ in range(missing)))
        for pod in running[wanted:] if len(running) > wanted else ():
            await delete_pod(self._client, pod)

    async def _expire(self, job: Unstructured) -> Wait | None:
        seconds = spec_of(job).get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        ended = max(parse_time(c["lastTransitionTime"]) for c in status_of(job)["conditions"] if c["status"] == "True")
        left = ended + float(seconds) - self._clock.now()
        if left > 0:
            return Wait("NotExpired", after=left, quiet=True)
        await self._client.delete(JOB, Key(job.namespace, job.name), uid=job.uid, propagation="Background")
        return None


def finished(job: Unstructured) -> bool:
    conditions = status_of(job).get("conditions")
    return condition.is_true(conditions, "Complete") or condition.is_true(conditions, "Failed")


def _count(job: Unstructured, pods: Sequence[Unstructured], now: str) -> dict[str, Any]:
    status = status_of(job)
    running = [pod for pod in pods if active(pod)]
    fresh = {
        "startTime": status.get("startTime") or now,
        "active": len(running),
        "ready": sum(ready_since(pod) is not None for pod in running),
        "succeeded": sum(phase(pod) == "Succeeded" for pod in pods),
        "failed": sum(phase(pod) == "Failed" for pod in pods),
        "conditions": status.get("conditions"),
        "terminating": sum(deleting(pod) for pod in pods),
        "uncountedTerminatedPods": status.get("uncountedTerminatedPods"),
    }
    always = ("ready", "terminating")
    return {k: v for k, v in fresh.items() if v or (k in always and v is not None)}


def _verdict(job: Unstructured, status: dict[str, Any], now: float) -> tuple[str, str, str] | None:
    """(condition, reason, message) when the Job is over."""
    spec = spec_of(job)
    if status.get("failed", 0) > int(spec.get("backoffLimit", 6)):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and now - parse_time(status["startTime"]) >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    wanted = spec.get("completions")
    succeeded = status.get("succeeded", 0)
    if (wanted is not None and succeeded >= wanted) or (wanted is None and succeeded and not status.get("active")):
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _conclude(job: Unstructured, status: dict[str, Any], over: tuple[str, str, str], now: str) -> dict[str, Any]:
    kind, reason, message = over
    first = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    conditions = status.get("conditions")
    for each in (first, kind):
        conditions = condition.put(conditions, each, "True", reason, message, now=now)
    done = {**status, "conditions": conditions, "ready": 0}
    done.pop("active", None)
    if kind == "Complete":
        done["completionTime"] = now
    return done
