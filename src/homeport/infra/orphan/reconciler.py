"""Machines of one cluster without objects: looked for now and then and on request, reported, removed with proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from homeport.api.meta import Object
from homeport.capi.family import canonical
from homeport.capi.object.ownership import owners
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.infra.machine.departure import Departures
from homeport.infra.orphan.record import (
    ANSWER,
    DELETED,
    REQUEST,
    Answer,
    Deletion,
    Found,
    Request,
    machine_id,
    parse_deletions,
    render_deletions,
)
from homeport.infra.orphan.sweep import COPIED, SILENT, Evidence, Orphan, Sweep, judge, orphans_of
from homeport.infra.orphan.witness import Witness
from homeport.infra.protocol import ClusterScope, Owned, Provider, Session
from homeport.runtime.cache import Cache
from homeport.runtime.clock import Clock
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

_SHOWN = 5
_AGAIN_SECONDS = 30.0  # a cluster that goes waits for its user to decide about orphans


_REMOVED_SECONDS = 15.0  # until the next look after a removal


class Orphans(Generic[C, M, S]):
    def __init__(
        self,
        provider: Provider[C, M, S],
        client: Client,
        recorder: Recorder,
        clock: Clock,
        machines: Cache[M],
        witness: Witness,
        departures: Departures,
        fence: Callable[[], object],
        unreadable: Callable[[str], str],
    ) -> None:
        """`unreadable` names objects of machines in a namespace that exist and can't be read."""
        self._provider = provider
        self._client = client
        self._write = Write(field_manager=f"homeport-{provider.name}")
        self._recorder = recorder
        self._clock = clock
        self._machines = machines
        self._witness = witness
        self._departures = departures
        self._fence = fence
        self._unreadable = unreadable
        self._sweeps: dict[Key, Sweep] = {}

    def forget(self, key: Key) -> None:
        self._sweeps.pop(key, None)
        self._departures.recorded(key)

    # -- what was deleted --------------------------------------------------------------------------------------

    async def record(self, scope: Scope[C]) -> None:
        """Writes down which objects went without their machines. Before anything is asked of the vendor."""
        pending = self._departures.pending(scope.key)
        if not pending:
            return
        known = parse_deletions(scope.object.metadata.annotations)
        await self._annotate(scope, {DELETED: render_deletions({**known, **pending})})
        self._departures.recorded(scope.key)

    async def _annotate(self, scope: Scope[C], annotations: dict[str, str | None]) -> None:
        body = {"metadata": {"annotations": annotations, "uid": scope.object.metadata.uid}}
        scope.update_metadata(
            await self._client.patch(self._provider.cluster_kind, scope.key, MergePatch(body), self._write)
        )

    # -- now and then ------------------------------------------------------------------------------------------

    async def look_now_and_then(
        self, scope: Scope[C], driver_scope: ClusterScope[C, S], report: Callable[[bool, str, str], None]
    ) -> float:
        """Gives the seconds until the next look. A cluster that was provisioned just now has no orphans."""
        now = self._clock.monotonic()
        sweep = self._sweeps.setdefault(scope.key, Sweep(last=now if not driver_scope.provisioned else float("-inf")))
        due = sweep.last + self._provider.sweep_seconds - now
        if not driver_scope.provisioned:
            report(True, "Succeeded", "")
        if due <= 0 or _asked(scope.object):
            removed = not await self._is_clean(scope, driver_scope, sweep, report) and await self._look(
                scope, driver_scope, sweep, report
            )
            # A user who removed one should not read for ten minutes that it is still there.
            due = min(_REMOVED_SECONDS, self._provider.sweep_seconds) if removed else self._provider.sweep_seconds
            sweep.last = now + due - self._provider.sweep_seconds
        return due

    async def _is_clean(
        self, scope: Scope[C], driver_scope: ClusterScope[C, S], sweep: Sweep, report: Callable[[bool, str, str], None]
    ) -> bool:
        """A list that clusters share is enough to see that nothing is left over, as is usual. One that is seconds old
        may lack a machine: the next look finds it. Nothing is removed because of it, and no record is dropped."""
        if _asked(scope.object) or parse_deletions(scope.object.metadata.annotations):
            return False
        owned = await self._provider.cluster_driver.list_recent(driver_scope)
        if self._unknown(scope, owned):
            return False
        sweep.ripe((), self._clock.monotonic())
        report(True, "Succeeded", "")
        return True

    def _unknown(self, scope: Scope[C], owned: Sequence[Owned]) -> list[Owned]:
        """Machines of the cluster that no InfraMachine accounts for."""
        known = frozenset(each.metadata.uid for each in self._machines)
        # An adoption that was interrupted leaves an InfraMachine without its Machine: the next one must see it.
        ids = frozenset(filter(None, (machine_id(each) for each in self._machines if owners(each))))
        return orphans_of(owned, scope.object.metadata.uid, known, ids)

    async def _look(
        self, scope: Scope[C], driver_scope: ClusterScope[C, S], sweep: Sweep, report: Callable[[bool, str, str], None]
    ) -> bool:
        """True: something is being removed."""
        owned = await self._provider.cluster_driver.list_owned(driver_scope)
        await self._prune(scope, owned)
        orphans = await self._judged(scope, driver_scope, owned)
        text = _message(orphans, driver_scope.name, scope.key.namespace) if orphans else ""
        report(not orphans, "OrphanedMachines" if orphans else "Succeeded", text)
        for each in sweep.news(orphans):
            self._recorder.record(
                scope.object, "OrphanedMachine", f"belongs to no object: machine {each}", warning=True
            )
        ripe = sweep.ripe(orphans, self._clock.monotonic())
        removed = [*ripe, *await self._requested(scope, driver_scope, orphans)]
        for each in {each.owned.id: each for each in removed}.values():
            await self._remove(scope, driver_scope, each.owned)
        await self._answer(scope, owned, orphans, {each.owned.id for each in removed})
        return bool(removed)

    async def _prune(self, scope: Scope[C], owned: Sequence[Owned]) -> None:
        """A record is needed as long as there is a machine that it is about."""
        deletions = parse_deletions(scope.object.metadata.annotations)
        left = {each.uid for each in owned}
        kept = {uid: each for uid, each in deletions.items() if uid in left}
        if kept != deletions:
            await self._annotate(scope, {DELETED: render_deletions(kept)})

    async def _judged(self, scope: Scope[C], driver_scope: ClusterScope[C, S], owned: Sequence[Owned]) -> list[Orphan]:
        orphans = self._unknown(scope, owned)
        if not orphans:
            return []
        cluster = Key(scope.key.namespace, driver_scope.name)
        deletions = parse_deletions(scope.object.metadata.annotations)
        found = judge(
            orphans,
            Evidence(
                deletions,
                await self._witness.ask(cluster, orphans),
                self._witness.etcd_members(cluster, _last(deletions, orphans)),
                tuple(self._missing(cluster, {each.id for each in owned})),
            ),
        )
        doubt = self._unreadable(scope.key.namespace)
        return [replace(each, kept=doubt) for each in found] if doubt else found

    def _missing(self, cluster: Key, listed: set[str]) -> list[str]:
        """Machines that ran, by their objects, and that the vendor does not list."""
        mine = self._machines.by("cluster", f"{cluster.namespace}/{cluster.name}")
        return sorted(
            each.metadata.name
            for each in mine
            if not each.metadata.deletion_timestamp and (id_ := machine_id(each)) and id_ not in listed
        )

    # -- on request --------------------------------------------------------------------------------------------

    async def _requested(
        self, scope: Scope[C], driver_scope: ClusterScope[C, S], orphans: Sequence[Orphan]
    ) -> list[Orphan]:
        """Orphans that a user wants removed. One that the workload cluster uses, or may use, goes only by force."""
        if not _asked(scope.object):
            return []
        request = Request.parse(scope.object.metadata.annotations)
        wanted = [each for each in orphans if each.owned.id in request.remove]
        return [each for each in wanted if request.force or not each.may_be_used]

    async def _answer(
        self, scope: Scope[C], owned: Sequence[Owned], orphans: Sequence[Orphan], removed: set[str]
    ) -> None:
        if not _asked(scope.object):
            return
        request = Request.parse(scope.object.metadata.annotations)
        found = tuple(Found(each.owned, each.role, each.kept, each.owned.id in removed) for each in orphans)
        there = {text for each in owned for text in (each.id, each.name, *map(canonical, each.addresses))}
        present = tuple(each for each in request.seek if canonical(each) in there)
        await self._annotate(scope, {ANSWER: Answer(request.id, found, present=present).render()})

    async def refuse(self, scope: Scope[C], why: str) -> None:
        """The infrastructure can't be reached: answers pending requests with that error."""
        if _asked(scope.object):
            request = Request.parse(scope.object.metadata.annotations)
            await self._annotate(scope, {ANSWER: Answer(request.id, error=why).render()})

    async def _remove(self, scope: Scope[C], driver_scope: ClusterScope[C, S], owned: Owned) -> None:
        self._fence()
        await self._provider.cluster_driver.remove(driver_scope, owned)
        message = f"machine {owned.name} ({owned.id}) belongs to no object and is removed"
        self._recorder.record(scope.object, "OrphanRemoved", message)

    # -- when the cluster goes ---------------------------------------------------------------------------------

    async def release(self, scope: Scope[C], driver_scope: ClusterScope[C, S]) -> Wait | None:
        """No InfraMachine is left. Machines whose objects were deleted here go along; the user decides about others:
        they may belong to a copy of this plane, or be newer than the backup that it was restored from."""
        owned = await self._provider.cluster_driver.list_owned(driver_scope)
        mine = [each for each in owned if each.cluster_uid == scope.object.metadata.uid]
        if not mine:
            return None
        deletions = parse_deletions(scope.object.metadata.annotations)
        statement = await self._witness.ask(Key(scope.key.namespace, driver_scope.name), mine)
        doubt = "this plane has no record that its object was deleted"
        if statement.silent:
            doubt = f"{SILENT}: {statement.silent}"
        orphans = [Orphan(each, _doubted(each, deletions.get(each.uid), doubt)) for each in mine]
        orphans = [replace(each, role=statement.roles.get(each.owned.id)) for each in orphans]
        going = [each for each in orphans if not each.kept]
        going += [each for each in await self._requested(scope, driver_scope, orphans) if each not in going]
        for each in going:
            await self._remove(scope, driver_scope, each.owned)
        await self._answer(scope, mine, orphans, {each.owned.id for each in going})
        if len(going) == len(orphans):
            return Wait("RemovingOrphans", f"removing machines without objects: {_shown(orphans)}", 5.0)
        text = _message([each for each in orphans if each not in going], driver_scope.name, scope.key.namespace)
        return Wait("OrphanedMachines", text, _AGAIN_SECONDS if not going else 5.0, warning=True)


def _doubted(machine: Owned, deletion: Deletion | None, doubt: str) -> str:
    if deletion is None:
        return doubt
    return "" if deletion.concerns(machine) else COPIED


def _asked(infra: Object) -> bool:
    annotations = infra.metadata.annotations
    if REQUEST not in annotations:
        return False
    wanted = Request.parse(annotations).id
    return bool(wanted) and wanted != Answer.parse(annotations).request


def _last(deletions: dict[str, Deletion], orphans: Sequence[Owned]) -> float:
    return max((deletions[each.uid].time for each in orphans if each.uid in deletions), default=0.0)


def _message(orphans: Sequence[Orphan], cluster: str, namespace: str) -> str:
    several = len(orphans) > 1
    return (
        f"{'machines have' if several else 'a machine has'} the mark of this cluster and "
        f"{'belong' if several else 'belongs'} to no object: {_shown(orphans)}. "
        + (
            f"Run 'homeport orphans list {cluster} -n {namespace}', then adopt or remove {'them' if several else 'it'}"
            if any(each.kept for each in orphans)
            else f"{'They are' if several else 'It is'} removed after 10 minutes"
        )
    )


def _shown(orphans: Sequence[Orphan]) -> str:
    more = f" and {len(orphans) - _SHOWN} more" if len(orphans) > _SHOWN else ""
    return "; ".join(str(each) for each in orphans[:_SHOWN]) + more
