"""Charts of add-ons: Helm releases in workload clusters, kept as written."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from homeport.addons.chart.handover import collect_records, find_successor
from homeport.addons.chart.object import Followed, is_changed, repair
from homeport.addons.chart.owner import foreign_release, release_owner
from homeport.addons.chart.remnant import remove_remnants
from homeport.addons.chart.shelf import Shelf
from homeport.addons.desired import Desired, DesiredChart
from homeport.addons.name import ADDON_LABEL, label_value
from homeport.addons.problem import Problem
from homeport.addons.scope import AddonScope
from homeport.addons.target.inventory import Ref
from homeport.addons.target.object import Target
from homeport.addons.target.watch import RECORDED, RELEASED
from homeport.api.addon.v1alpha1 import ReleaseStatus
from homeport.api.meta import Resource
from homeport.capi.chartsettings import ChartSettings
from homeport.client.protocol import Client, Key
from homeport.helm.errors import HelmError, NotOwned
from homeport.helm.release.desired import Desired as DesiredRelease
from homeport.helm.release.record import DEPLOYED, HELM, RESERVED, Release
from homeport.helm.release.releases import Releases
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

T = TypeVar("T")

SECRET = Resource("", "v1", "Secret", "secrets")
_SHOWN = 5  # lines of a message
_RETRY_SECONDS = 60.0  # until a release that failed is tried again


@dataclass(frozen=True, slots=True)
class Known:
    """A release as we left it: no need to read its records again while nothing changes."""

    digest: str
    status: ReleaseStatus
    version: str  # of the chart
    objects: Sequence[Followed]


class Charts:
    def __init__(self, client: Client, clock: Clock, settings: ChartSettings) -> None:
        self._shelf = Shelf(client, settings)
        self._clock = clock
        self._known: dict[Key, Known] = {}

    def forget(self, addon: Key) -> None:
        self._known.pop(addon, None)

    async def check_owner(self, scope: AddonScope, target: Target, desired: Desired) -> Release | None:
        """Raises Problem if somebody else has a release of this name. One whose records are gone is recorded again.

        Gives the release of somebody else to which the add-on yields."""
        wanted = desired.chart
        assert wanted is not None
        where = desired.namespace, wanted.release
        if (successor := await self._helm(find_successor(target, self._clock, *where))) is not None:
            return successor
        history = await self._history(target, desired.namespace, wanted.release)
        if why := foreign_release(history, target):
            raise Problem("ObjectNotOwned", why, after=_RETRY_SECONDS, warning=True)
        if not history:
            self._known.pop(scope.key, None)
        if not history or target.yields:
            await self._helm(collect_records(target, self._clock, *where))
        return None

    async def leave(self, scope: AddonScope, target: Target, desired: Desired, successor: Release) -> None:
        """The release belongs to somebody else from now on, with all its objects. Its removal wakes the add-on."""
        target.fence()
        await self._releases(target).forget(successor.namespace, successor.name)
        target.watches.remember_release((target.remote.key, successor.namespace, successor.name), scope.key)
        self._remember(scope, target, desired, successor, ())

    def _releases(self, target: Target) -> Releases:
        return Releases(target.client, self._clock, RESERVED if target.yields else HELM)

    async def _history(self, target: Target, namespace: str, name: str) -> list[Release]:
        return await self._helm(self._releases(target).history(namespace, name))

    async def _helm(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except HelmError as error:
            raise Problem("ReleaseFailed", str(error), after=_RETRY_SECONDS, warning=True) from None

    async def converge(self, scope: AddonScope, target: Target, desired: Desired, *, installed: bool = False) -> None:
        """The release is as desired, and complete. Raises Problem while it is not, and ApiError.

        `installed`: the cluster got this very content before. Then its chart is not needed to keep it."""
        wanted = desired.chart
        assert wanted is not None
        known = self._known.get(scope.key)
        if known is not None and known.digest == desired.digest and not is_changed(target, known.objects):
            scope.object.status.release = known.status
            return
        self._known.pop(scope.key, None)  # until everything is done: a repair that fails is tried again
        target.watches.remember_release((target.remote.key, desired.namespace, wanted.release), scope.key)
        try:
            release = await self._ensured(scope, target, desired, wanted, installed=installed)
            objects = await repair(target, release, scope.object.spec.drift_ignore, self._clock)
        except NotOwned as error:
            raise Problem("ObjectNotOwned", str(error), after=_RETRY_SECONDS, warning=True) from None
        except HelmError as error:
            raise Problem("ReleaseFailed", str(error), after=_RETRY_SECONDS, warning=True) from None
        self._remember(scope, target, desired, release, objects)

    async def _ensured(
        self, scope: AddonScope, target: Target, desired: Desired, wanted: DesiredChart, *, installed: bool
    ) -> Release:
        releases = self._releases(target)
        try:
            files = await self._shelf.fetch(wanted, scope.key.namespace)
        except Problem as problem:
            kept_release = await self._deployed(target, desired.namespace, wanted.release) if installed else None
            if kept_release is None:
                raise
            log.warning("the chart of a release can't be fetched; the release stays as it is", why=problem.message)
            return kept_release
        release = DesiredRelease(
            wanted.release,
            desired.namespace,
            files,
            wanted.values,
            labels={ADDON_LABEL: label_value(scope.key.name)},
            take_ownership=target.adopt,
            crds=not scope.object.spec.skip_crds,
            hooks=not scope.object.spec.disable_hooks,
            objection=lambda history: foreign_release(history, target),
        )
        target.fence()
        outcome = await releases.ensure(release)
        if outcome.failed and outcome.release is not None:
            if self._clock.now() - outcome.release.began() < _RETRY_SECONDS:
                after = outcome.release.began() + _RETRY_SECONDS - self._clock.now()
                raise Problem("ReleaseFailed", outcome.release.description, after=max(after, 1.0), warning=True)
            outcome = await releases.upgrade(release)
        if outcome.wait is not None:
            raise Problem(outcome.wait.reason, outcome.wait.message, after=outcome.wait.after or 3.0)
        if outcome.release is None or outcome.failed:
            said = "" if outcome.release is None else outcome.release.description
            raise Problem("ReleaseFailed", said, after=_RETRY_SECONDS, warning=True)
        return outcome.release

    async def _deployed(self, target: Target, namespace: str, name: str) -> Release | None:
        """The release as its last record has it, if that is complete and ours."""
        history = await self._history(target, namespace, name)
        last = max(history, key=lambda each: each.version, default=None)
        return last if last is not None and last.status == DEPLOYED and not foreign_release(history, target) else None

    def _remember(
        self, scope: AddonScope, target: Target, desired: Desired, release: Release, objects: Sequence[Followed]
    ) -> None:
        status = ReleaseStatus(
            name=release.name, namespace=release.namespace, revision=release.version, status=release.status
        )
        for kind in {each.kind for each in objects}:
            target.watches.follow(target.remote, kind, RELEASED, scope.key)
        target.watches.follow(target.remote, SECRET, RECORDED, scope.key)
        self._known[scope.key] = Known(desired.digest, status, release.chart_version, objects)
        scope.object.status.release = status

    def version(self, addon: Key) -> str:
        """Of the installed chart, which a range such as 1.2.x does not tell."""
        known = self._known.get(addon)
        return "" if known is None else known.version

    def objects(self, addon: Key) -> list[tuple[Resource, Ref]]:
        known = self._known.get(addon)
        return [] if known is None else [(each.kind, each.ref) for each in known.objects]

    async def uninstall(
        self, target: Target, addon: Key, namespace: str, name: str, *, listed: bool = True
    ) -> Wait | None:
        """None: nothing of the release is left, or it is somebody else's. `listed`: the inventory has it. Raises
        Problem."""
        self._known.pop(addon, None)
        releases = self._releases(target)
        if await self._helm(find_successor(target, self._clock, namespace, name)) is not None:
            await releases.forget(namespace, name)
            return None
        await self._helm(collect_records(target, self._clock, namespace, name))
        history = await self._history(target, namespace, name)
        if not history and listed:
            left = await remove_remnants(target, namespace, name)
            return Wait("Removing", "\n".join(left[:_SHOWN]), after=2.0) if left else None
        if release_owner(history) != label_value(addon.name):
            return None
        target.fence()
        try:
            outcome = await releases.uninstall(namespace, name)
        except HelmError as error:
            raise Problem("ReleaseFailed", str(error), after=_RETRY_SECONDS, warning=True) from None
        if outcome.wait is not None:
            return Wait("Removing", outcome.wait.message, after=outcome.wait.after or 3.0)
        if outcome.failed and outcome.release is not None:
            raise Problem("ReleaseFailed", outcome.release.description, after=_RETRY_SECONDS, warning=True)
        return None
