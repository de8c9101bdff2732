"""An add-on is installed, kept as written and upgraded: one pass over its objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.addons.chart.release import Charts
from homeport.addons.chart.version import chosen_version
from homeport.addons.desired import Desired, build
from homeport.addons.facts import read_facts
from homeport.addons.problem import Problem
from homeport.addons.scope import AddonScope
from homeport.addons.target.inventory import ForeignInventory, Inventory, Ref, read_inventory, write_inventory
from homeport.addons.target.object import Failure, Placed, Target, failure, removal_waves
from homeport.addons.target.watch import APPLIED, RELEASED
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.client.errors import ApiError
from homeport.helm.health import health
from homeport.helm.release.record import Release
from homeport.machinery.manifest import described
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait

_SHOWN = 5  # lines of a message
_UNFINISHED = ("Installing", "Upgrading", "Failed")
_LOOK_AGAIN_SECONDS = 60.0  # a watch brings us back before
_WEIGHTS = {"ObjectNotOwned": 2, "ApplyFailed": 1}  # of several reasons, the one to report
_PARTS = {"h": 3600, "m": 60, "s": 1}


@dataclass(slots=True)
class Applied:
    """Objects of the add-on as they are in the cluster now."""

    refs: list[Ref] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # what is not ready
    failed: bool = False  # and does not become so by waiting


class Convergence:
    def __init__(self, capi: Capi, charts: Charts) -> None:
        self._capi = capi
        self._charts = charts

    async def run(self, scope: AddonScope, target: Target, now: float) -> Wait | None:
        """Raises Problem."""
        assert scope.cluster is not None
        before = await _remote(_known(target), target) or Inventory()
        data = await read_facts(self._capi, scope.cluster)
        desired = await build(self._capi.manager.client, scope.object, data, before.version)
        target.namespace = desired.namespace
        self._begin(scope, before, desired, now)
        if self._rests(scope, before, desired):
            applied = Applied(list(before.refs))
        else:
            applied = await self._bring(scope, target, before, desired, now)
        return await self._await_health(scope, target, desired, applied, now)

    def _begin(self, scope: AddonScope, before: Inventory, desired: Desired, now: float) -> None:
        """Reports what is done now. The time counts from the first attempt at this very content."""
        status = scope.object.status
        status.target_version = _wanted_version(scope, desired)
        unfinished = status.phase in _UNFINISHED and status.digest == desired.digest
        if status.digest != desired.digest:
            status.digest, status.attempted_at = desired.digest, rfc3339(now)
        if not before.digest:
            scope.phase = "Installing"
        elif before.digest != desired.digest:
            scope.phase = "Upgrading"
        else:
            scope.phase = status.phase if unfinished else "Degraded"  # it has been Ready, or not yet
        if before.digest != desired.digest:
            scope.report_installed("False", scope.phase, "", rfc3339(now))

    def _rests(self, scope: AddonScope, before: Inventory, desired: Desired) -> bool:
        """Whether everything was applied and others may change it."""
        return scope.object.spec.sync_policy == "OnChange" and before.digest == desired.digest

    async def _bring(
        self, scope: AddonScope, target: Target, before: Inventory, desired: Desired, now: float
    ) -> Applied:
        applied = Applied()
        listed = await self._withdraw(scope, target, before, desired)
        placed, missing = await _place(target, [*desired.before, *([] if desired.chart else desired.objects)])
        listed = await self._list(target, listed, placed)
        await _apply(scope, target, placed, missing)
        if desired.chart is not None:
            listed = await self._install(scope, target, listed, desired)
            after, missing = await _place(target, desired.objects)
            listed = await self._list(target, listed, after)
            await _apply(scope, target, after, missing)
            placed = [*placed, *after]
        applied.refs = [each.ref for each in placed if each.ref.kind != "Namespace"]
        await self._prune(scope, target, listed, applied.refs)
        version = (self._charts.version(scope.key) if desired.chart is not None else "") or desired.version
        ours = desired.chart is None or bool(listed.release)
        complete = Inventory(
            tuple(applied.refs), desired.digest, version if ours else "", listed.release if desired.chart else ""
        )
        await self._finish(scope, target, listed, complete, now)
        scope.object.status.version = version
        scope.object.status.object_count = len(applied.refs) + len(self._charts.objects(scope.key))
        return applied

    async def _withdraw(self, scope: AddonScope, target: Target, inventory: Inventory, desired: Desired) -> Inventory:
        """A release under another name, or in another namespace, goes before the new one comes."""
        if not inventory.release or inventory.release == release_of(desired):
            return inventory
        namespace, _, name = inventory.release.partition("/")
        wait = await _remote(self._charts.uninstall(target, scope.key, namespace, name), target)
        if wait is not None:
            raise Problem(wait.reason, wait.message, after=wait.after)
        fresh = replace(inventory, release="", digest="")
        await _remote(write_inventory(target.client, target.addon, fresh), target)
        return fresh

    async def _install(self, scope: AddonScope, target: Target, inventory: Inventory, desired: Desired) -> Inventory:
        """Before a release is created, the inventory has it."""
        successor = await _remote(self._charts.check_owner(scope, target, desired), target)
        if successor is not None:
            return await self._leave(scope, target, inventory, desired, successor)
        if inventory.release != release_of(desired):
            inventory = replace(inventory, release=release_of(desired))
            target.fence()
            await _remote(write_inventory(target.client, target.addon, inventory), target)
        installed = inventory.digest == desired.digest
        await _remote(self._charts.converge(scope, target, desired, installed=installed), target)
        return inventory

    async def _leave(
        self, scope: AddonScope, target: Target, inventory: Inventory, desired: Desired, successor: Release
    ) -> Inventory:
        """The inventory first: it must not claim what belongs to somebody else."""
        if inventory.release:
            inventory = replace(inventory, release="", version="")
            target.fence()
            await _remote(write_inventory(target.client, target.addon, inventory), target)
        await _remote(self._charts.leave(scope, target, desired, successor), target)
        name = f"{successor.namespace}/{successor.name}"
        scope.message = f"release {name} was installed with Helm: the add-on leaves it alone until it is uninstalled"
        return inventory

    async def _list(self, target: Target, inventory: Inventory, placed: Iterable[Placed]) -> Inventory:
        """Before an object is created, the inventory has it."""
        more = inventory.with_refs(each.ref for each in placed if each.ref.kind != "Namespace")
        if more is not inventory:
            target.fence()
            await _remote(write_inventory(target.client, target.addon, more), target)
        return more

    async def _prune(self, scope: AddonScope, target: Target, listed: Inventory, refs: Sequence[Ref]) -> None:
        """Deletes what was applied before and is no longer written."""
        for wave in removal_waves(listed.without(refs)):
            held = [why for ref in wave if (why := await _remote(target.delete(ref), target))]
            if held:
                raise Problem("Pruning", _lines(held), after=5.0)

    async def _finish(
        self, scope: AddonScope, target: Target, listed: Inventory, complete: Inventory, now: float
    ) -> None:
        """From now on the cluster has all of it."""
        if listed != complete:
            target.fence()
            await _remote(write_inventory(target.client, target.addon, complete), target)
        scope.report_installed("True", "Applied", "", rfc3339(now))

    # -- health ------------------------------------------------------------------------------------------------

    async def _await_health(
        self, scope: AddonScope, target: Target, desired: Desired, applied: Applied, now: float
    ) -> Wait | None:
        status, spec = scope.object.status, scope.object.spec
        if status.target_version != desired.version and desired.chart is not None:
            return await self._step(scope, target, desired, applied)
        if not spec.wait:
            return None
        await self._look(scope, target, desired, applied)
        if not applied.waiting:
            return None
        since = parse_time(status.attempted_at) if status.attempted_at else now
        left = since + seconds(spec.timeout or "10m") - now
        if applied.failed or left <= 0:
            scope.phase = "Degraded" if scope.phase == "Degraded" else "Failed"
            reason = "ObjectsFailed" if applied.failed else "Timeout"
            return Wait(reason, _lines(applied.waiting), after=_LOOK_AGAIN_SECONDS, warning=True)
        return Wait("WaitingForObjects", _lines(applied.waiting), after=min(_LOOK_AGAIN_SECONDS, left))

    async def _step(self, scope: AddonScope, target: Target, desired: Desired, applied: Applied) -> Wait:
        """A version in between is installed: the next one follows when it is healthy."""
        await self._look(scope, target, desired, applied)
        scope.phase = "Upgrading"
        goal = f"version {desired.version} on the way to {scope.object.status.target_version}"
        if applied.waiting:
            return Wait("WaitingForObjects", f"{goal}: {_lines(applied.waiting)}", after=_LOOK_AGAIN_SECONDS)
        return Wait("Upgrading", goal, after=0.1)

    async def _look(self, scope: AddonScope, target: Target, desired: Desired, applied: Applied) -> None:
        for ref in applied.refs:
            kind = await _remote(target.served.find(ref.api_version, ref.kind), target)
            self._judge(ref, await _remote(target.look(kind, ref, APPLIED), target), applied)
        for kind, ref in self._charts.objects(scope.key) if desired.chart is not None else ():
            self._judge(ref, await _remote(target.look(kind, ref, RELEASED), target), applied)

    def _judge(self, ref: Ref, found: Unstructured | None, applied: Applied) -> None:
        if found is None:
            applied.waiting.append(f"{ref} does not exist")
            return
        judged = health({**found, "kind": ref.kind, "apiVersion": ref.api_version})
        if not judged.ready:
            applied.waiting.append(judged.message or f"{ref}: {judged.reason}")
            applied.failed = applied.failed or judged.failed


async def _known(target: Target) -> Inventory | None:
    try:
        return await read_inventory(target.client, target.addon)
    except ForeignInventory as error:
        if target.adopt:
            return None
        raise Problem("ObjectNotOwned", str(error), after=_LOOK_AGAIN_SECONDS, warning=True) from None


def release_of(desired: Desired) -> str:
    return "" if desired.chart is None else f"{desired.namespace}/{desired.chart.release}"


def _wanted_version(scope: AddonScope, desired: Desired) -> str:
    if desired.chart is None or desired.chart.entry is None:
        return desired.version
    return chosen_version(scope.object.spec.version, desired.chart.entry, "")


async def _place(target: Target, objects: Iterable[dict[str, Any]]) -> tuple[list[Placed], list[Failure]]:
    """Where the cluster serves each object; what it does not serve (yet) is a failure."""
    placed, missing = [], []
    for each in objects:
        try:
            placed.append(await target.place(each))
        except ApiError as error:
            found = failure(described(each), error)
            if found.lost:
                raise _unreachable(target, error) from None
            missing.append(found)
    return placed, missing


async def _apply(scope: AddonScope, target: Target, placed: Sequence[Placed], missing: Sequence[Failure]) -> None:
    failures = [*missing]
    for each in placed:
        found = await target.apply(each)
        if found is not None:
            failures.append(found)
            if found.lost:
                break
    if failures:
        worst = max(failures, key=lambda each: (each.lost, _WEIGHTS.get(each.reason, 0)))
        if scope.phase == "Installing" and worst.reason == "ObjectNotOwned":
            scope.phase = "Failed"
        raise Problem(worst.reason, _lines([str(each) for each in failures]), after=1.0, warning=not worst.lost)


async def _remote(work: Any, target: Target) -> Any:
    """A request to the workload cluster. Raises Problem."""
    try:
        return await work
    except ApiError as error:
        raise _unreachable(target, error) from None


def _unreachable(target: Target, error: ApiError) -> Problem:
    found = failure(f"Cluster {target.remote.key.name}", error)
    return Problem(found.reason, str(found), after=1.0, warning=not found.lost)


def _lines(texts: Sequence[str]) -> str:
    more = len(texts) - _SHOWN
    return "\n".join([*texts[:_SHOWN], *([f"... ({more} more)"] if more > 0 else [])])


def seconds(duration: str) -> float:
    """`1h30m`: as the schema admits it."""
    return float(sum(int(number) * _PARTS[unit] for number, unit in re.findall(r"(\d+)([hms])", duration)))
