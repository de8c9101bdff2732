"""Add-ons of the cluster that the controllers run in: the same steps as in workload clusters, without a ClusterAddon.

What may write there decides who may ask for it: callers check that first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from homeport.addons.chart.release import Charts
from homeport.addons.convergence import Convergence
from homeport.addons.problem import Problem
from homeport.addons.scope import AddonScope
from homeport.addons.target.object import Stamps, Target
from homeport.addons.target.removal import Removal
from homeport.addons.target.repair import Repairs
from homeport.addons.target.watch import Watches
from homeport.api.addon.v1alpha1 import ClusterAddon, ClusterAddonStatus
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait

Json = dict[str, Any]
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 120.0  # until what the cluster refused is tried again


class OwnCluster:
    """`cluster` names it in messages. `wake` is called with the key of an add-on whose objects changed."""

    def __init__(self, capi: Capi, settings: ChartSettings, cluster: Key, wake: Callable[[Key], object]) -> None:
        self._manager = manager = capi.manager
        self._cluster = cluster
        self._charts = Charts(manager.client, manager.clock, settings)
        self._convergence = Convergence(capi, self._charts)
        self._removal = Removal(self._charts)
        self._watches = Watches(wake)
        self._remote = Remote(cluster, self._spawn)
        self._group: asyncio.TaskGroup | None = None
        self._statuses: dict[Key, ClusterAddonStatus] = {}
        self._stamps: dict[Key, Stamps] = {}
        self._repairs: dict[Key, Repairs] = {}
        self._failures: dict[Key, int] = {}

    async def run(self) -> None:
        """A job of the manager: follows what add-ons applied. The client stays open: it is the manager's."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._remote.use(self._manager.client)
            await asyncio.Event().wait()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(work, name=name)

    def forget(self, key: Key) -> None:
        for held in (self._statuses, self._stamps, self._repairs, self._failures):
            held.pop(key, None)
        self._watches.forget(key)
        self._charts.forget(key)

    async def converge(self, key: Key, generation: int, spec: Mapping[str, Any]) -> ClusterAddon:
        """The add-on as it is after one step: its status says how far it is."""
        scope = self._scope(key, generation, spec)
        return await self._step(scope, lambda: self._convergence.run(scope, self._target(scope), self._now()))

    async def remove(self, key: Key, release: tuple[str, str]) -> Wait | None:
        """None: nothing of it is left. `release`: namespace and name, as reported last."""
        scope = self._scope(key, 0, {})
        scope.phase = "Deleting"
        if release[1]:
            known = scope.object.status.release
            known.namespace, known.name = release
        return await self._tried(scope, lambda: self._removal.run(scope, self._target(scope)))

    def _scope(self, key: Key, generation: int, spec: Mapping[str, Any]) -> AddonScope:
        meta = {"name": key.name, "namespace": key.namespace, "generation": generation}
        body = {"metadata": meta, "spec": {"clusterName": self._cluster.name, **spec}}
        addon = msgspec.convert(body, ClusterAddon, strict=False)
        addon.status = self._statuses.setdefault(key, addon.status)
        place = {"metadata": {"name": self._cluster.name, "namespace": self._cluster.namespace}}
        return AddonScope(addon, msgspec.convert(place, Cluster, strict=False))

    async def _step(self, scope: AddonScope, work: Callable[[], Awaitable[Wait | None]]) -> ClusterAddon:
        wait = await self._tried(scope, work)
        now = rfc3339(self._now())
        if wait is None:
            scope.report("Ready", "True", "Ready", "", now)
        else:
            scope.report("Ready", "False", wait.reason, wait.message, now)
        return scope.object

    async def _tried(self, scope: AddonScope, work: Callable[[], Awaitable[Wait | None]]) -> Wait | None:
        if self._group is None:
            return Wait("Installing", "the controllers are starting", after=_FIRST_SECONDS)
        scope.remote = self._remote
        try:
            wait = await work()
        except Problem as problem:
            count = self._failures[scope.key] = self._failures.get(scope.key, 0) + 1
            after = min(_FIRST_SECONDS * 2.0 ** min(count - 1, 20), _LONGEST_SECONDS)
            return Wait(
                problem.reason, problem.message, after=max(after, problem.after or 0.0), warning=problem.warning
            )
        self._failures.pop(scope.key, None)
        return wait

    def _target(self, scope: AddonScope) -> Target:
        key = scope.key
        return Target(
            self._remote,
            key,
            self._watches,
            self._manager.fence,
            self._stamps.setdefault(key, {}),
            repairs=self._repairs.setdefault(key, Repairs(self._manager.clock)),
        )

    def _now(self) -> float:
        return self._manager.clock.now()
