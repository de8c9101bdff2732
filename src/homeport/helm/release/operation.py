"""Install, upgrade, rollback and uninstall, one step after the other. The record is the only memory.

Every call goes on where the record says, does what can be done at once, and returns: `Outcome.wait` tells what it waits
for. A refusal of the cluster that waiting does not cure marks the release as failed; when the cluster does not answer,
the error is raised and the release stays pending, to be taken up again by the next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.client.errors import (
    ApiError,
    Conflict,
    Internal,
    NotFound,
    Timeout,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from homeport.helm.errors import HelmError
from homeport.helm.release import record
from homeport.helm.release.content import Identity, identify, is_kept, parse_manifest, uninstall_waves
from homeport.helm.release.hook import HookFailed, Hooks
from homeport.helm.release.ownership import foreign, marked
from homeport.helm.release.record import Release
from homeport.helm.release.storage import Storage
from homeport.helm.release.target import Target
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

POLL_SECONDS: Final = 3.0
HOOK_TIMEOUT_SECONDS: Final = 300.0  # Helm's default
EVENTS: Final = {
    record.PENDING_INSTALL: ("pre-install", "post-install"),
    record.PENDING_UPGRADE: ("pre-upgrade", "post-upgrade"),
    record.PENDING_ROLLBACK: ("pre-rollback", "post-rollback"),
    record.UNINSTALLING: ("pre-delete", "post-delete"),
}
_VERBS: Final = {
    record.PENDING_INSTALL: "Install",
    record.PENDING_UPGRADE: "Upgrade",
    record.PENDING_ROLLBACK: "Rollback",
}
# Waiting cures these: the release stays pending.
TRANSIENT: Final = (Unavailable, Timeout, TooManyRequests, Internal, Unauthorized, Conflict)
_LONGEST: Final = 1000  # characters of a description; some API servers repeat the whole object


@dataclass(frozen=True, slots=True)
class Outcome:
    """`release`: the newest revision, None if none is left. `wait`: the operation is not finished; call again."""

    release: Release | None
    wait: Wait | None = None
    kept: tuple[str, ...] = ()  # objects that an uninstall left, and why

    @property
    def failed(self) -> bool:
        return self.wait is None and self.release is not None and self.release.status == record.FAILED


class Operation:
    """The operation that the status of a release describes."""

    def __init__(
        self, release: Release, history: list[Release], target: Target, storage: Storage, clock: Clock
    ) -> None:
        self.release = release
        self._history = history  # with this release as the last one
        self._target = target
        self._storage = storage
        self._clock = clock
        timeout = float(release.memory.get("hookTimeoutSeconds") or HOOK_TIMEOUT_SECONDS)
        self._hooks = Hooks(release, EVENTS[release.status], target, storage, clock, timeout)
        self._with_hooks = release.memory.get("hooks", True)

    async def advance(self) -> Outcome:
        """Go on with a pending install, upgrade or rollback."""
        before, after = EVENTS[self.release.status]
        verb = _VERBS[self.release.status]
        try:
            wait = await self._run_hooks(before)
            if wait is None and not self._hooks.has_run(after):
                wait = await self._apply()
            if wait is None:
                wait = await self._run_hooks(after)
        except HookFailed as error:
            return await self._fail(verb, str(error))
        except TRANSIENT:
            raise
        except (ApiError, HelmError) as error:
            return await self._fail(verb, str(error))
        if wait is not None:
            return Outcome(self.release, wait)
        return await self._deployed(verb)

    async def give_up(self, why: str) -> None:
        """The operation has failed because something else is wanted."""
        await self._hooks.clear()
        self.release.set_status(record.FAILED, f"{self.release.status} was given up: {why}")
        await self._storage.update(self.release)

    async def uninstall(self, keep_history: bool) -> Outcome:
        """Go on with an uninstall. A hook that fails stops it: what it protects may still be needed."""
        before, after = EVENTS[record.UNINSTALLING]
        try:
            wait = await self._run_hooks(before)
            if wait is None and not self._hooks.has_run(after):
                wait, kept = await self._delete_all()
                # Recorded with the next hook: the call that ends the uninstall may be another one.
                self.release.raw[record.MEMORY] = {**self.release.memory, "kept": list(kept)}
            if wait is None:
                wait = await self._run_hooks(after)
        except HookFailed as error:
            return await self._fail("Uninstall", str(error))
        if wait is not None:
            return Outcome(self.release, wait)
        return await self._uninstalled(keep_history, tuple(self.release.memory.get("kept") or ()))

    async def _run_hooks(self, event: str) -> Wait | None:
        return await self._hooks.run(event) if self._with_hooks else None

    async def _apply(self) -> Wait | None:
        objects = parse_manifest(self.release.manifest, self.release.label)
        for obj in objects:
            try:
                await self._target.apply(marked(obj, self.release.name, self.release.namespace))
            except NotFound as error:
                if _defines(objects, obj):
                    message = f"{self.release.label}: the definition of {obj['kind']} is not established yet"
                    return Wait("WaitingForCustomResourceDefinition", message, after=POLL_SECONDS)
                raise HelmError(f"{_named(obj, self.release)}: {error}") from error
            except TRANSIENT:
                raise
            except ApiError as error:
                raise HelmError(f"{_named(obj, self.release)}: {error}") from error
        await self._delete_removed(objects)
        return None

    async def _delete_removed(self, objects: Iterable[Json]) -> None:
        """Delete what earlier revisions brought and this one does not have any more."""
        kept = {identify(obj, self.release.namespace) for obj in objects}
        removed: dict[Identity, Json] = {}
        for release in self._baseline():
            for obj in parse_manifest(release.manifest, release.label):
                identity = identify(obj, self.release.namespace)
                if identity not in kept:
                    removed[identity] = obj
        for obj in reversed(removed.values()):
            live = await self._target.get(obj)
            if live is None or is_kept(live) or foreign(live, self.release.name, self.release.namespace):
                continue
            await self._target.delete(obj, live)

    def _baseline(self) -> list[Release]:
        """The last revision that was complete, and those after it that were not: each may have brought objects."""
        older = [each for each in self._history if each.version < self.release.version]
        complete = [each.version for each in older if each.status in (record.DEPLOYED, record.SUPERSEDED)]
        first = max(complete, default=0)
        return [each for each in older if each.version >= first and each.status != record.UNINSTALLED]

    async def _deployed(self, verb: str) -> Outcome:
        for release in self._history:
            if release.version != self.release.version and release.status == record.DEPLOYED:
                release.info["status"] = record.SUPERSEDED
                await self._storage.update(release)
        if verb == "Rollback":
            description = self.release.description  # tells the revision that it went back to
        else:
            description = str(self.release.memory.get("description") or f"{verb} complete")
        self.release.set_status(record.DEPLOYED, description)
        await self._storage.update(self.release)
        return Outcome(self.release)

    async def _fail(self, verb: str, why: str) -> Outcome:
        text = f'{verb} "{self.release.name}" failed: {why}'
        self.release.set_status(record.FAILED, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")
        await self._storage.update(self.release)
        return Outcome(self.release)

    async def _delete_all(self) -> tuple[Wait | None, tuple[str, ...]]:
        objects: dict[Identity, Json] = {}
        for release in [*self._baseline(), self.release]:
            for obj in parse_manifest(release.manifest, release.label):
                objects[identify(obj, self.release.namespace)] = obj
        kept = [f"{_named(obj, self.release)}: its resource policy is keep" for obj in objects.values() if is_kept(obj)]
        for wave in uninstall_waves([obj for obj in objects.values() if not is_kept(obj)]):
            left = []
            for obj in wave:
                live = await self._target.get(obj)
                if live is None:
                    continue
                if is_kept(live):
                    kept.append(f"{_named(obj, self.release)}: its resource policy is keep")
                elif why := foreign(live, self.release.name, self.release.namespace):
                    kept.append(f"{_named(obj, self.release)}: it does not belong to the release: {why}")
                elif not await self._target.delete(obj, live):
                    left.append(_named(obj, self.release))
            if left:
                return _waiting_for_deletion(self.release, left), ()
        return None, tuple(kept)

    async def _uninstalled(self, keep_history: bool, kept: tuple[str, ...]) -> Outcome:
        if keep_history:
            for release in self._history:
                if release.version != self.release.version and release.status == record.DEPLOYED:
                    release.info["status"] = record.SUPERSEDED
                    await self._storage.update(release)
            self.release.set_status(record.UNINSTALLED, "Uninstallation complete")
            await self._storage.update(self.release)
            return Outcome(self.release, kept=kept)
        # The newest one goes last: as long as it is there, the uninstall can be taken up again.
        for release in self._history:
            await self._storage.delete(release)
        return Outcome(None, kept=kept)


def _waiting_for_deletion(release: Release, left: list[str]) -> Wait:
    shown = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
    return Wait("WaitingForDeletion", f"{release.label}: waiting for the deletion of {shown}", after=POLL_SECONDS)


def _named(obj: Mapping[str, Any], release: Release) -> str:
    return str(identify(obj, release.namespace))


def _defines(objects: Iterable[Json], obj: Json) -> bool:
    """Whether the release brings the definition of the object's kind itself."""
    group, kind = str(obj["apiVersion"]).rpartition("/")[0], obj["kind"]
    for each in objects:
        spec = each.get("spec") or {}
        if each["kind"] == "CustomResourceDefinition" and spec.get("group") == group:
            if (spec.get("names") or {}).get("kind") == kind:
                return True
    return False
