"""The status of a VirtualMachine, computed from the VM, its instance and its volumes. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

from homeport.runtime.clock import rfc3339
from homeport.sim.harvester.controller.run import FINAL, request_is_done, run_strategy, set_to_start
from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import condition, is_true, leaving, status_of, with_condition, without_condition

_LONGEST_BACKOFF = 300
_SHORTEST_BACKOFF = 10
_OWN_CONDITIONS = ("Ready", "Failure", "RestartRequired")
_PROVISIONED = ("Succeeded", "PendingPopulation", "WaitForFirstConsumer")


@dataclass(frozen=True, slots=True)
class Volumes:
    """Those of the VM that exist."""

    claims: list[Json]
    data_volumes: list[Json]


def render_status(vm: Json, vmi: Json | None, volumes: Volumes, now: float, rng: random.Random) -> Json:
    status = {**status_of(vm)}
    status["created"] = vmi is not None
    status["ready"] = vmi is not None and is_true(vmi, "Ready")
    if status.get("runStrategy") or vmi is not None:
        # From the first start on, so that it tells whether the VM was ever started.
        status["runStrategy"] = run_strategy(vm)
    if request_is_done(vm, vmi):
        status["stateChangeRequests"] = status["stateChangeRequests"][1:]
    if not status.get("stateChangeRequests"):
        status.pop("stateChangeRequests", None)
    _count_failures(status, vm, vmi, now, rng)
    status["conditions"] = _conditions(vm, vmi, rfc3339(now))
    status["volumeSnapshotStatuses"] = [
        {"name": each["name"], "enabled": False, "reason": "2 matching VolumeSnapshotClasses for longhorn-image"}
        if "persistentVolumeClaim" in each
        else {"name": each["name"], "enabled": False, "reason": "Snapshot is not supported for this volumeSource type"}
        for each in vm["spec"]["template"]["spec"].get("volumes") or ()
    ]
    status["printableStatus"] = printable(vm, vmi, volumes, status)
    return status


def _conditions(vm: Json, vmi: Json | None, now: str) -> list[Json]:
    found: list[Json] = list(status_of(vm).get("conditions") or ())
    if vmi is None:
        return with_condition(found, now, "Ready", "False", reason="VMINotExists", message="VMI does not exist")
    theirs = [each for each in status_of(vmi).get("conditions") or () if each["type"] not in _OWN_CONDITIONS]
    ready = condition(vmi, "Ready")
    found = [each for each in found if each["type"] in _OWN_CONDITIONS]
    if not ready:
        text = "VMI is missing the Ready condition"
        found = with_condition(found, now, "Ready", "False", reason="VMIConditionMissing", message=text)
    else:
        found = [ready, *without_condition(found, "Ready")]
    return [*found, *theirs]


def _count_failures(status: Json, vm: Json, vmi: Json | None, now: float, rng: random.Random) -> None:
    """An instance that ended before it ever ran is a failed start; the next one waits longer and longer."""
    ran = vmi is not None and any(
        each["phase"] == "Running" for each in status_of(vmi).get("phaseTransitionTimestamps") or ()
    )
    if ran or run_strategy(vm) not in ("Always", "RerunOnFailure", "Once"):
        status.pop("startFailure", None)
        return
    if vmi is None or status_of(vmi).get("phase") not in FINAL:
        return
    before = status.get("startFailure") or {}
    if before.get("lastFailedVMIUID") == vmi["metadata"]["uid"]:
        return
    count = before.get("consecutiveFailCount", 0) + 1
    delay = _SHORTEST_BACKOFF * count**2
    delay = min(_LONGEST_BACKOFF, delay + rng.randrange(delay // 2 + 1))
    status["startFailure"] = {
        "consecutiveFailCount": count,
        "lastFailedVMIUID": vmi["metadata"]["uid"],
        "retryAfterTimestamp": rfc3339(now + delay),
    }


def printable(vm: Json, vmi: Json | None, volumes: Volumes, status: Json) -> str:
    """The first that holds, in KubeVirt's order."""
    if leaving(vm):
        return "Terminating"
    if vmi is not None and (found := _of_instance(vmi)):
        return found
    if any(status_of(each).get("phase") == "Failed" for each in volumes.data_volumes):
        return "DataVolumeError"
    scheduled = condition(vmi, "PodScheduled") if vmi is not None else {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return "ErrorUnschedulable"
    if any(status_of(each).get("phase") not in _PROVISIONED for each in volumes.data_volumes):
        return "Provisioning"
    if set_to_start(vm, vmi) and any(status_of(each).get("phase") != "Bound" for each in volumes.claims):
        return "WaitingForVolumeBinding"
    phase = status_of(vmi).get("phase", "") if vmi is not None else None
    if phase in ("", "Pending", "Scheduling", "Scheduled"):
        return "Starting"
    if (status.get("startFailure") or {}).get("consecutiveFailCount") and phase in (None, *FINAL):
        return "CrashLoopBackOff"
    return "Stopped" if phase in (None, *FINAL) else "Unknown"


def _of_instance(vmi: Json) -> str:
    status = status_of(vmi)
    phase = status.get("phase", "")
    migration = status.get("migrationState") or {}
    synchronized = condition(vmi, "Synchronized")
    if phase not in FINAL and leaving(vmi):
        return "Stopping"
    if phase == "Running" and migration.get("startTimestamp") and not migration.get("completed"):
        return "Migrating"
    if phase == "Running":
        return "Paused" if is_true(vmi, "Paused") else "Running"
    if synchronized.get("status") == "False" and synchronized.get("reason") == "FailedPvcNotFound":
        return "ErrorPvcNotFound"
    return ""
