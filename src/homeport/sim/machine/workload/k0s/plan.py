"""Autopilot: the Plan `autopilot` upgrades controllers one at a time, then workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeport.machinery.selector import parse_labels
from homeport.runtime.clock import rfc3339
from homeport.sim.machine.workload.k0s import signal
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE, PLAN
from homeport.sim.machine.workload.kind import NODE, Json
from homeport.sim.machine.workload.view import ready

if TYPE_CHECKING:
    from homeport.api.meta import Resource
    from homeport.sim.machine.workload.k0s.platform import Platform

NAME = "autopilot"
SCHEDULABLE, WAIT, COMPLETED = "Schedulable", "SchedulableWait", "Completed"
WARNING, INCOMPLETE, FAILED = "Warning", "IncompleteTargets", "ApplyFailed"
PENDING, SENT, DONE = "SignalPending", "SignalSent", "SignalCompleted"
MISSING_NODE, MISSING_PLATFORM, APPLY_FAILED = "SignalMissingNode", "SignalMissingPlatform", "SignalApplyFailed"
PLATFORM = "linux-amd64"
_OVER = (COMPLETED, WARNING, INCOMPLETE, FAILED)
_RETRY_SECONDS = 5.0
_KINDS: tuple[tuple[str, Resource], ...] = (("controllers", CONTROL_NODE), ("workers", NODE))


async def settle_plan(platform: Platform) -> None:
    """One step of the plan. A plan of another name is ignored, as k0s does."""
    plan = platform.read(PLAN, NAME)
    if plan is None or plan["metadata"].get("deletionTimestamp"):
        return
    status = plan.get("status") or {}
    if status.get("state") in _OVER:
        return
    commands: list[Json] = [dict(each) for each in status.get("commands") or ()]
    state = await _advance(platform, plan["spec"], commands)
    if state is None:
        platform.later(_RETRY_SECONDS)
    elif {"state": state, "commands": commands} != status:
        await platform.set_status(PLAN, NAME, {"state": state, "commands": commands})


async def _advance(platform: Platform, spec: Json, commands: list[Json]) -> str | None:
    """The plan's next state, after a step of its first unfinished command; None: wait."""
    for index, command in enumerate(spec["commands"]):
        if index >= len(commands):
            commands.append({"id": index, "state": ""})
        current = commands[index]
        if current["state"] == COMPLETED:
            continue
        found = await _step(platform, str(spec["id"]), command, current)
        if found is None:
            return None
        current["state"] = found
        return WAIT if found == COMPLETED else found
    return COMPLETED


async def _step(platform: Platform, plan_id: str, command: Json, current: Json) -> str | None:
    update = command.get("k0supdate")
    if update is None:
        current["description"] = "(simulated) airgapupdate is not simulated: write the bundle with the user data"
        return WARNING
    if not current["state"]:
        return _discover(platform, update, current)
    targets = current["k0supdate"]
    if current["state"] == SCHEDULABLE:
        return await _send(platform, plan_id, update, current)
    _read_signals(platform, plan_id, targets)
    return _decide(update, targets)


def _discover(platform: Platform, update: Json, current: Json) -> str:
    now, missing = rfc3339(platform.cluster.clock.now()), False
    found: Json = {}
    for name, kind in _KINDS:
        target = (update.get("targets") or {}).get(name) or {}
        found[name] = []
        for each in _names(platform, kind, target.get("discovery") or {}):
            state = _state_of(platform, kind, each, update)
            if state is None:
                continue  # the worker of a controller: it is upgraded with that
            missing = missing or state != PENDING
            found[name].append({"name": each, "state": state, "lastUpdatedTimestamp": now})
    current["k0supdate"] = found
    return INCOMPLETE if missing else WAIT


def _names(platform: Platform, kind: Resource, discovery: Json) -> list[str]:
    if discovery.get("static"):
        return [str(each) for each in discovery["static"].get("nodes") or ()]
    if discovery.get("selector") is None:
        return []
    labels = parse_labels(str(discovery["selector"].get("labels") or ""))
    objects = [each["metadata"] for each in platform.all(kind)]
    return [meta["name"] for meta in objects if labels.matches(meta.get("labels") or {})]


def _state_of(platform: Platform, kind: Resource, name: str, update: Json) -> str | None:
    if platform.read(kind, name) is None:
        return MISSING_NODE
    if PLATFORM not in (update.get("platforms") or {}):
        return MISSING_PLATFORM
    return None if kind is NODE and platform.read(CONTROL_NODE, name) is not None else PENDING


def _read_signals(platform: Platform, plan_id: str, targets: Json) -> None:
    now = rfc3339(platform.cluster.clock.now())
    for name, kind in _KINDS:
        for target in targets.get(name) or ():
            obj = platform.read(kind, target["name"])
            data = signal.read(obj) if obj is not None else None
            if target["state"] != SENT or data is None or data["planId"] != plan_id:
                continue
            reported = (data.get("status") or {}).get("status")
            if reported in (signal.FAILED, signal.FAILED_DOWNLOAD):
                target.update(state=APPLY_FAILED, lastUpdatedTimestamp=now)
            elif reported == signal.COMPLETED:
                target.update(state=DONE, lastUpdatedTimestamp=now)


def _decide(update: Json, targets: Json) -> str | None:
    controllers, workers = targets.get("controllers") or [], targets.get("workers") or []
    states = [each["state"] for each in (*controllers, *workers)]
    if APPLY_FAILED in states:
        return FAILED
    if all(state == DONE for state in states):
        return COMPLETED
    if any(each["state"] != DONE for each in controllers):
        return SCHEDULABLE if _may_send(controllers, 1) else None
    limits = ((update.get("targets") or {}).get("workers") or {}).get("limits") or {}
    return SCHEDULABLE if _may_send(workers, int(limits.get("concurrent") or 1)) else None


def _may_send(targets: list[Json], at_once: int) -> bool:
    states = [each["state"] for each in targets]
    return PENDING in states and states.count(SENT) < at_once


async def _send(platform: Platform, plan_id: str, update: Json, current: Json) -> str | None:
    """Signals the next target, if it is ready for it."""
    targets = current["k0supdate"]
    for name, kind in _KINDS:
        for target in targets.get(name) or ():
            if target["state"] != PENDING:
                continue
            obj = platform.read(kind, target["name"])
            if obj is None:
                return INCOMPLETE
            if kind is NODE and not ready(obj):
                return None
            source: dict[str, Any] = update["platforms"][PLATFORM]
            wanted = {"url": source["url"], "version": update["version"]}
            wanted |= {"sha256": source["sha256"]} if source.get("sha256") else {}
            wanted |= {"forceupdate": True} if update.get("forceupdate") else {}
            await signal.send(platform, kind, target["name"], plan_id, {"id": current["id"], "k0supdate": wanted})
            target.update(state=SENT, lastUpdatedTimestamp=rfc3339(platform.cluster.clock.now()))
            return WAIT
    return COMPLETED
