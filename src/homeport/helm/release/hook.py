"""Hooks of a release: run one after the other, remembered in the record, never repeated once they succeeded.

A hook runs in these writes: an object of an earlier run is deleted, the record says Running, the object is created, the
record gets its uid, and when the object is done the record says Succeeded or Failed. After a crash between any two of
them the record and the object tell where to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from homeport.api.meta import Unstructured
from homeport.helm.health import Health, health
from homeport.helm.release.content import parse_manifest
from homeport.helm.release.record import Release, format_time, parse_time
from homeport.helm.release.storage import Storage
from homeport.helm.release.target import Target
from homeport.machinery.chart.manifest import HOOK
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
BEFORE_CREATION: Final = "before-hook-creation"
ON_SUCCESS: Final = "hook-succeeded"
ON_FAILURE: Final = "hook-failed"
POLL_SECONDS: Final = 3.0
SKEW_SECONDS: Final = 60.0  # between the cluster's clock and ours


class HookFailed(Exception):
    """A hook did not succeed: the operation has failed."""


def hooks_of(release: Release, event: str) -> list[Json]:
    """In the order in which they run: by weight, then by name."""
    found = [hook for hook in release.hooks if event in (hook.get("events") or ())]
    return sorted(found, key=lambda hook: (int(hook.get("weight") or 0), str(hook.get("name", ""))))


class Hooks:
    """The hooks of one release during one operation, whose events are `events`, in their order."""

    def __init__(
        self, release: Release, events: Sequence[str], target: Target, storage: Storage, clock: Clock, timeout: float
    ) -> None:
        self._release = release
        self._events = list(events)
        self._target = target
        self._storage = storage
        self._clock = clock
        self._timeout = timeout

    def has_run(self, event: str) -> bool:
        """Whether a hook of this event, or of a later one of the operation, was started."""
        later = self._events[self._events.index(event) :]
        return any(self._event(hook) in later for hook in self._release.hooks)

    async def run(self, event: str) -> Wait | None:
        """Go on with the hooks of an event. None: all have succeeded. Raises HookFailed."""
        hooks = hooks_of(self._release, event)
        after = self._events[self._events.index(event) + 1 :]
        if not hooks or any(self._event(hook) in after for hook in self._release.hooks):
            return None  # Hooks of a later event have begun: these are done, and may have run again since.
        for hook in hooks:
            wait = await self._advance(hook, event, hooks)
            if wait is not None:
                return wait
        for hook in reversed(hooks):
            await self._delete(hook, ON_SUCCESS)
        return None

    async def clear(self) -> None:
        """Delete what hooks of an operation that is given up left behind: their Jobs would go on for nobody."""
        for hook in self._release.hooks:
            phase = hook["last_run"].get("phase") if self._event(hook) in self._events else ""
            if phase == SUCCEEDED:
                await self._delete(hook, ON_SUCCESS)
            elif phase == RUNNING and hook.get("kind") != "CustomResourceDefinition":
                for obj in self._objects(hook):
                    live = await self._target.get(obj)
                    if live is not None and _is_hook(live) and not self._is_leftover(hook, live, began=False):
                        await self._target.delete(obj, live)

    async def _advance(self, hook: Json, event: str, hooks: list[Json]) -> Wait | None:
        phase = hook["last_run"].get("phase") if self._event(hook) == event else ""
        if phase == SUCCEEDED:
            return None
        if phase == FAILED:
            raise await self._failed(hook, event, hooks, "it failed before")
        began = phase != RUNNING
        if began:
            wait = await self._delete(hook, BEFORE_CREATION)
            if wait is not None:
                return wait
            now = format_time(self._clock.now())
            hook["last_run"] = {"started_at": now, "completed_at": "", "phase": RUNNING, "event": event}
            await self._storage.update(self._release)
        judged = await self._observed(hook, began)
        if judged.ready:
            await self._record(hook, SUCCEEDED)
            return None
        if judged.failed:
            await self._record(hook, FAILED)
            raise await self._failed(hook, event, hooks, judged.message)
        return await self._overdue(hook, event, hooks, judged)

    async def _overdue(self, hook: Json, event: str, hooks: list[Json], judged: Health) -> Wait:
        if self._clock.now() - parse_time(hook["last_run"]["started_at"]) > self._timeout:
            await self._record(hook, FAILED)
            message = f"not done after {self._timeout:g} s: {judged.message}"
            raise await self._failed(hook, event, hooks, message)
        return Wait("WaitingForHook", f"{self._release.label}: {event} hook: {judged.message}", after=POLL_SECONDS)

    async def _observed(self, hook: Json, began: bool) -> Health:
        """The object of the hook, created if it was not yet. Jobs and Pods take time; anything else is done at once."""
        run = hook["last_run"]
        uids: dict[str, str] = run.setdefault("uids", {})
        judged = Health(True)
        for obj in self._objects(hook):
            name = f"{obj['kind']}/{obj['metadata']['name']}"
            live = await self._target.get(obj)
            if name not in uids:
                if live is not None and self._is_leftover(hook, live, began):
                    message = f"{name} exists already: delete it, or give the hook the policy {BEFORE_CREATION}"
                    if not _is_hook(live):
                        message = f"{name} exists already and is not from a hook: delete it, or rename the hook"
                    return Health(False, "AlreadyExists", message, failed=True)
                live = live or await self._target.create(obj)
                uids[name] = live.uid
                await self._storage.update(self._release)
            # One that was created and is gone, for example by ttlSecondsAfterFinished, is not run again.
            if live is not None and obj["kind"] in ("Job", "Pod") and judged.ready:
                judged = _done(live)
        return judged

    def _is_leftover(self, hook: Json, live: Unstructured, began: bool) -> bool:
        """Whether the object is from before this run. After a crash its age decides, since nothing else can."""
        if hook.get("kind") == "CustomResourceDefinition":
            return False  # never deleted, so it may always be there
        created = parse_time(live.metadata.get("creationTimestamp"))
        return began or created < parse_time(hook["last_run"]["started_at"]) - SKEW_SECONDS

    async def _record(self, hook: Json, phase: str) -> None:
        hook["last_run"]["phase"] = phase
        hook["last_run"]["completed_at"] = format_time(self._clock.now())
        await self._storage.update(self._release)

    async def _failed(self, hook: Json, event: str, hooks: list[Json], why: str) -> HookFailed:
        await self._delete(hook, ON_FAILURE)
        for other in hooks[: hooks.index(hook)]:
            await self._delete(other, ON_SUCCESS)
        return HookFailed(f"{event} hook {hook.get('kind')} {hook.get('name')} ({hook.get('path')}): {why}")

    async def _delete(self, hook: Json, policy: str) -> Wait | None:
        """Delete what the hook left, if its policy says so; before its creation is the default."""
        policies = hook.get("delete_policies") or [BEFORE_CREATION]
        if policy not in policies or hook.get("kind") == "CustomResourceDefinition":
            return None
        for obj in self._objects(hook):
            live = await self._target.get(obj)
            if live is not None and _is_hook(live) and not await self._target.delete(obj, live):
                message = (
                    f"{self._release.label}: {hook.get('kind')} {hook.get('name')} of an earlier hook is being deleted"
                )
                return Wait("WaitingForHookDeletion", message, after=POLL_SECONDS)
        return None

    def _event(self, hook: Json) -> str:
        """The event of this operation for which the hook ran last. A record of Helm tells the time alone."""
        run = hook.get("last_run") or {}
        if "event" in run:
            # An upgrade begins with hooks that have not run: their events are of this operation.
            return str(run["event"])
        if not run.get("phase") or parse_time(run.get("started_at")) < self._release.began():
            return ""
        events = [event for event in self._events if event in (hook.get("events") or ())]
        return events[0] if len(events) == 1 else ""

    def _objects(self, hook: Json) -> list[Json]:
        return parse_manifest(str(hook.get("manifest", "")), f"{self._release.label} hook {hook.get('path')}")


def _is_hook(live: Unstructured) -> bool:
    """An object without the mark was not made for a hook, of whichever release: it is never deleted for one."""
    return HOOK in (live.metadata.get("annotations") or {})


def _done(live: Json) -> Health:
    """A hook's Pod is done when it ends; that it is ready means that it still runs."""
    if live["kind"] == "Pod" and (live.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        return Health(False, "PodRunning", f"Pod {live['metadata']['name']} has not ended")
    return health(live)
