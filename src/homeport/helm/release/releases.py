"""Releases of one cluster: install, upgrade, rollback, uninstall, drift. See operation.py for how a call goes on."""

from __future__ import annotations

import base64
import secrets
from typing import Any, Final

from homeport.client.protocol import Client
from homeport.helm.errors import NotOwned, ReleaseError
from homeport.helm.health import health
from homeport.helm.release import record
from homeport.helm.release.content import (
    identify,
    parse_manifest,
    removes_itself,
)
from homeport.helm.release.desired import HISTORY_LIMIT, Desired, Revision, matches, new_release, rolled_back
from homeport.helm.release.drift import Comparison, compare
from homeport.helm.release.hook import SUCCEEDED
from homeport.helm.release.operation import EVENTS, POLL_SECONDS, Operation, Outcome
from homeport.helm.release.ownership import marked
from homeport.helm.release.prepare import check_ownership, prepare
from homeport.helm.release.record import HELM, Ledger, Release, check_name, format_time
from homeport.helm.release.render import render_chart
from homeport.helm.release.storage import Storage
from homeport.helm.release.target import Target
from homeport.machinery.manifest import find_twice
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

# A pending release that Helm began may still be under way: Helm gives its hooks and waits five minutes by default.
FOREIGN_SECONDS: Final = 600.0


class Releases:
    """Releases of one cluster, on any Client. Every method may be called again after a crash: it goes on."""

    def __init__(self, client: Client, clock: Clock, ledger: Ledger = HELM) -> None:
        self._client = client
        self._clock = clock
        self._storage = Storage(client, clock, ledger)

    async def history(self, namespace: str, name: str) -> list[Release]:
        """All revisions, the oldest first."""
        return await self._storage.history(namespace, name)

    async def current(self, namespace: str, name: str) -> Release | None:
        """The newest revision."""
        history = await self._storage.history(namespace, name)
        return history[-1] if history else None

    async def newest(self, namespace: str = "") -> list[Release]:
        """The newest revision of every release of a namespace, or of all."""
        found = {(each.namespace, each.name): each for each in await self._storage.releases(namespace)}
        return [found[key] for key in sorted(found)]

    async def record(self, history: list[Release]) -> None:
        """Writes revisions that another ledger has."""
        for each in history:
            await self._storage.create(Release(each.raw, dict(each.labels)))

    async def forget(self, namespace: str, name: str) -> None:
        """Deletes the records alone: the objects stay, and belong to whoever has a record of them."""
        for release in await self._storage.history(namespace, name):
            await self._storage.delete(release)

    async def ensure(self, desired: Desired) -> Outcome:
        """Install, upgrade, or go on with what is pending; nothing if the release is as desired already.

        A release that failed is returned as it is until something about it changes: `upgrade` tries again.
        """
        history = await self._own(desired)
        latest = history[-1] if history else None
        if latest is not None and latest.status == record.UNINSTALLING:
            ended = await self.uninstall(desired.namespace, desired.name)
            if ended.wait is not None or ended.failed:
                return ended
            latest = ended.release
        if latest is None or latest.status == record.UNINSTALLED:
            return await self.install(desired)
        # An uninstall that failed has deleted something: the same chart is applied again.
        whole = latest.status in (record.DEPLOYED, record.FAILED) and not latest.info.get("deleted")
        if whole and matches(latest, desired):
            await self._label(latest, desired)
            return Outcome(latest)
        return await self.upgrade(desired)

    async def install(self, desired: Desired) -> Outcome:
        """A first revision, or the first one after an uninstall that kept the history."""
        check_name(desired.name)
        history = await self._own(desired)
        latest = history[-1] if history else None
        if latest is not None and latest.status == record.PENDING_INSTALL:
            return await self._taken_up(latest, history, desired)
        if latest is not None and latest.status != record.UNINSTALLED:
            raise ReleaseError(
                f"release {desired.namespace}/{desired.name} exists (status {latest.status}): "
                "upgrade it, or choose another name"
            )
        return await self._begin(desired, history, latest, record.PENDING_INSTALL)

    async def upgrade(self, desired: Desired) -> Outcome:
        """A new revision; what a pending one left is taken up first, or given up if something else is desired now."""
        check_name(desired.name)
        history = await self._own(desired)
        if not history or history[-1].status in (record.UNINSTALLED, record.UNINSTALLING):
            state = f"its status is {history[-1].status}" if history else "there is none"
            raise ReleaseError(f"release {desired.namespace}/{desired.name} can't be upgraded: {state}; install it")
        latest = history[-1]
        if latest.pending:
            return await self._taken_up(latest, history, desired)
        return await self._begin(desired, history, latest, record.PENDING_UPGRADE)

    async def rollback(
        self, namespace: str, name: str, version: int = 0, *, history_limit: int = HISTORY_LIMIT
    ) -> Outcome:
        """A new revision with the content of an older one. 0: the one before the newest."""
        history = await self._storage.history(namespace, name)
        latest = history[-1] if history else None
        if latest is None:
            raise ReleaseError(f"release {namespace}/{name} does not exist: there is nothing to roll back")
        if latest.status == record.PENDING_ROLLBACK and (version in (0, latest.memory.get("rollback"))):
            return await self._operation(latest, history).advance()
        if latest.pending:
            if wait := self._foreign_wait(latest):
                return Outcome(latest, wait)
            await self._operation(latest, history).give_up("a rollback was requested")
        wanted = version or latest.version - 1
        source = next((each for each in history if each.version == wanted), None)
        if source is None:
            available = ", ".join(str(each.version) for each in history)
            raise ReleaseError(f"release {namespace}/{name} has no revision {wanted}: available are {available}")
        target = rolled_back(source, latest, self._clock.now())
        await self._storage.prune(history, history_limit - 1 if history_limit else 0)
        await self._storage.create(target)
        return await self._operation(target, [*history, target]).advance()

    async def uninstall(self, namespace: str, name: str, *, keep_history: bool = False, hooks: bool = True) -> Outcome:
        """Delete the objects, run the hooks, then remove the records. Without a release there is nothing to do."""
        history = await self._storage.history(namespace, name)
        if not history:
            return Outcome(None)
        latest = history[-1]
        if latest.status == record.UNINSTALLED:
            if keep_history:
                return Outcome(latest)
            for release in history:
                await self._storage.delete(release)
            return Outcome(None)
        if latest.status != record.UNINSTALLING:
            if latest.pending:
                if wait := self._foreign_wait(latest):
                    return Outcome(latest, wait)
                await self._operation(latest, history).give_up("it was uninstalled")
            await self._begin_uninstall(latest, hooks)
        return await self._operation(latest, history).uninstall(keep_history)

    async def compare(self, release: Release) -> tuple[Comparison, ...]:
        """Each object of the release, with what the cluster has."""
        objects = parse_manifest(release.manifest, release.label)
        target = Target(self._client, release.namespace)
        return await compare(target, [marked(obj, release.name, release.namespace) for obj in objects])

    async def drift(self, release: Release) -> tuple[Comparison, ...]:
        """Objects that are not as the release says: missing, or with fields that were changed."""
        return tuple(each for each in await self.compare(release) if each.drifted)

    async def repair(self, release: Release) -> tuple[Comparison, ...]:
        """Apply what drifted again. Gives what that was."""
        found = await self.drift(release)
        target = Target(self._client, release.namespace)
        for each in found:
            await target.apply(each.object)
        return found

    async def wait(self, release: Release) -> Wait | None:
        """What the release is not ready for yet: its first object that is not. None: all are ready."""
        target = Target(self._client, release.namespace)
        for obj in parse_manifest(release.manifest, release.label):
            live = await target.get(obj)
            if live is None and removes_itself(obj):
                continue
            if live is None:
                return Wait("ObjectMissing", f"{identify(obj, release.namespace)} does not exist", after=POLL_SECONDS)
            judged = health(live)
            if not judged.ready:
                return Wait(judged.reason, judged.message, after=POLL_SECONDS, warning=judged.failed)
        return None

    async def _own(self, desired: Desired) -> list[Release]:
        """The history of the release. Raises NotOwned."""
        history = await self._storage.history(desired.namespace, desired.name)
        if desired.objection is not None and (why := desired.objection(history)):
            raise NotOwned(why)
        return history

    async def _label(self, release: Release, desired: Desired) -> None:
        """A release that is taken over as it is gets the labels of who takes it."""
        if any(release.labels.get(name) != value for name, value in desired.labels.items()):
            release.labels |= desired.labels
            await self._storage.update(release)

    # -- beginning -----------------------------------------------------------------------------------------------

    async def _begin(self, desired: Desired, history: list[Release], latest: Release | None, status: str) -> Outcome:
        if latest is None:
            await self._storage.check_chart(desired.files, f"release {desired.namespace}/{desired.name}")
        wait = await prepare(self._client, desired, first=latest is None)
        if wait is not None:
            return Outcome(latest, wait)
        version = latest.version + 1 if latest is not None else 1
        revision = Revision(version, status == record.PENDING_INSTALL, self._clock.now(), _seed(history))
        rendered = await render_chart(self._client, desired, revision)
        release = new_release(desired, rendered, revision, history)
        twice = find_twice(parse_manifest(release.manifest, release.label), release.namespace)
        if twice is not None:
            identity = identify(twice, release.namespace)
            raise ReleaseError(f"{release.label}: {identity} is there twice: the chart must render it once")
        if not desired.take_ownership:
            await check_ownership(Target(self._client, release.namespace), release, history)
        await self._storage.prune(history, desired.history_limit - 1 if desired.history_limit else 0)
        await self._storage.create(release)
        return await self._operation(release, [*history, release]).advance()

    async def _begin_uninstall(self, release: Release, hooks: bool) -> None:
        for hook in release.hooks:
            run = hook.get("last_run") or {}
            if run.get("event") in EVENTS[record.UNINSTALLING] and run.get("phase") != SUCCEEDED:
                hook["last_run"] = {"started_at": "", "completed_at": "", "phase": ""}
        release.info["deleted"] = format_time(self._clock.now())
        release.set_status(record.UNINSTALLING, "Deletion in progress (or silently failed)")
        release.raw[record.MEMORY] = {**release.memory, "hooks": hooks}
        await self._storage.update(release)

    # -- going on ------------------------------------------------------------------------------------------------

    def _operation(self, release: Release, history: list[Release]) -> Operation:
        target = Target(self._client, release.namespace)
        return Operation(release, history, target, self._storage, self._clock)

    async def _taken_up(self, latest: Release, history: list[Release], desired: Desired) -> Outcome:
        """A pending revision is finished if it is what is desired; otherwise it has failed, and a new one begins."""
        if wait := self._foreign_wait(latest):
            return Outcome(latest, wait)
        if latest.status != record.PENDING_ROLLBACK and matches(latest, desired):
            return await self._operation(latest, history).advance()
        await self._operation(latest, history).give_up("something else was requested before it was complete")
        return await self._begin(desired, history, latest, record.PENDING_UPGRADE)

    def _foreign_wait(self, release: Release) -> Wait | None:
        """What Helm began is left to it as long as it may still be at work."""
        left = release.began() + FOREIGN_SECONDS - self._clock.now()
        if release.memory or left <= 0:
            return None
        message = (
            f"{release.label} is {release.status} since {release.info.get('last_deployed')}: Helm may be at work on "
            f"it; Homeport takes it up in {left:.0f} s"
        )
        return Wait("ReleasePending", message, after=left)


def _seed(history: list[Release]) -> bytes:
    """That of the newest revision that has one: what is derived from it stays the same over upgrades."""
    for release in reversed(history):
        if seed := release.memory.get("seed"):
            return base64.b64decode(seed)
    return secrets.token_bytes(32)
