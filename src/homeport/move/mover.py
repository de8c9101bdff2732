"""The steps of a move, each of which can be repeated."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from homeport.capi.name import PAUSED
from homeport.client.errors import NotFound
from homeport.client.protocol import MergePatch
from homeport.move.copier import Copier
from homeport.move.departure import remove
from homeport.move.discovery import discover, discover_kinds
from homeport.move.errors import MoveRefused
from homeport.move.graph import Selection
from homeport.move.kind import MovedKind
from homeport.move.pause import pause_source, resume_source
from homeport.move.preflight import (
    is_copy,
    kind_problems,
    provider_problems,
    read_existing,
    source_problems,
    target_problems,
    workload_problems,
)
from homeport.move.record import Held, Moved, Record, begin, moved, read
from homeport.move.replica import MARK, Mark, mark_of
from homeport.move.side import MANAGER, Side, identity, listed
from homeport.move.standby import step_forward
from homeport.runtime.clock import Clock, SystemClock, rfc3339

Progress = Callable[[str], None]

_ROUNDS = 5  # of copying, while something still writes to the source
_ROUND_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    namespace: str = ""  # '': everything
    target_name: str = "the target"


class Mover:
    """Moves from one side to the other. `run` continues a move that was interrupted."""

    def __init__(
        self, source: Side, target: Side, options: Options, progress: Progress, clock: Clock | None = None
    ) -> None:
        self._source = source
        self._target = target
        self._options = options
        self._say = progress
        self._clock = clock or SystemClock()
        self._kinds: list[MovedKind] = []  # read once: definitions are large

    async def plan(self) -> tuple[Selection, list[str]]:
        """What moves, and every problem. Changes nothing."""
        await self._target_identity()
        selection = await self._select()
        problems = [*kind_problems(selection), *source_problems(selection)]
        problems += await workload_problems(self._source, selection)
        problems += await provider_problems(self._source, self._target, selection)
        problems += await target_problems(self._target, selection)
        return selection, problems

    async def run(self) -> int:
        """How many objects were moved. Raises MoveRefused and ApiError; the same call continues after that."""
        held = await self._hold()
        if held is None:
            return 0
        if held.record.phase == "Copying":
            await self._copy(held)
        count = len(held.record.objects)
        self._say(f"deleting {count} objects from the source")
        await remove(self._source, held.record.objects)
        self._say(f"resuming {count} objects on {self._options.target_name}")
        await self._resume_target(held.record)
        await step_forward(self._target)
        await held.remove()
        return count

    async def abort(self) -> bool:
        """Gives up a move that has deleted nothing yet: removes the copies, and resumes the source."""
        held = await read(self._source)
        if held is None:
            return False
        self._check_same(held.record, await identity(self._target))
        if held.record.phase != "Copying":
            text = f"{self._options.target_name} has all objects, and those of the source are being deleted"
            raise MoveRefused([f"{text}: the move can no longer be aborted. Run it again without --abort"])
        await held.write(msgspec.structs.replace(held.record, holder=uuid.uuid4().hex))
        await self._remove_copies()
        await resume_source(self._source, held.record)
        await held.remove()
        return True

    # -- beginning -----------------------------------------------------------------------------------------------

    async def _select(self) -> Selection:
        if not self._kinds:
            self._kinds = await discover_kinds(self._source, self._target)
        return (await discover(self._source, self._kinds)).selection(self._options.namespace)

    async def _target_identity(self) -> str:
        there = await identity(self._target)
        if there == await identity(self._source):
            raise MoveRefused(["the source and the target are the same plane: name another one with --to"])
        return there

    async def _hold(self) -> Held | None:
        """The record, begun or continued. None: there is nothing to move."""
        there, holder = await self._target_identity(), uuid.uuid4().hex
        held = await read(self._source)
        if held is not None:
            self._check_same(held.record, there)
            self._say(f"continuing the move that started at {held.record.started}")
            await held.write(msgspec.structs.replace(held.record, holder=holder))
            return held
        selection, problems = await self.plan()
        if problems:
            raise MoveRefused(problems)
        if not selection.nodes:
            return None
        record = Record(
            move=uuid.uuid4().hex,
            target=there,
            target_name=self._options.target_name,
            namespace=self._options.namespace,
            started=rfc3339(self._clock.now()),
            holder=holder,
            paused=tuple(moved(node) for node in selection.roots() if not node.paused),
        )
        return await begin(self._source, record)

    def _check_same(self, record: Record, target: str) -> None:
        text = f"a move to {record.target_name} started at {record.started} and is not finished"
        if record.target != target:
            raise MoveRefused([f"{text}: finish it with --to {record.target_name}, or end it with --abort as well"])
        if record.namespace != self._options.namespace:
            scope = f"with --namespace {record.namespace}" if record.namespace else "without --namespace"
            raise MoveRefused([f"{text}: run it again {scope}"])

    # -- copying -------------------------------------------------------------------------------------------------

    async def _copy(self, held: Held) -> None:
        """Until the target has everything as the source has it. Then the record says so, and only then we delete."""
        self._say("pausing the source")
        selection = await pause_source(self._source, held, self._select, self._clock)
        for attempt in range(_ROUNDS):
            if attempt:
                await asyncio.sleep(_ROUND_SECONDS)
            self._say(f"copying {len(selection.nodes)} objects to {self._options.target_name}")
            copier = Copier(self._source, self._target, held, selection)
            await copier.run()
            before, selection = selection, await pause_source(self._source, held, self._select, self._clock)
            if selection.versions == before.versions:
                break
        else:
            changed = [str(node) for node in selection.nodes if before.versions.get(node.uid) != node.version]
            text = f"{', '.join(changed[:5])} changed while being copied, though paused"
            raise MoveRefused([f"{text}: stop what writes to it on the source, and run this command again"])
        await copier.verify()
        objects = [moved(node, kept=node.uid in selection.kept) for group in selection.groups() for node in group]
        await held.write(msgspec.structs.replace(held.record, phase="Deleting", objects=tuple(objects)))

    # -- ending --------------------------------------------------------------------------------------------------

    async def _resume_target(self, record: Record) -> None:
        """Clusters last: until then everything that belongs to them rests."""
        ours = {each.uid for each in record.paused}
        marks = await self._marks(record.objects)
        for each in _in_order(record.objects):
            mark = marks.get(each.uid)
            if mark is None:
                continue  # resumed by an earlier attempt, or shared
            annotations = {MARK: None, **({} if mark.paused else {PAUSED: None})}
            resumed = {"spec": {"paused": None}} if each.is_cluster and each.uid in ours else {}
            try:
                body = {"metadata": {"annotations": annotations}, **resumed}
                await self._target.patch(each.resource, each.key, MergePatch(body), MANAGER)
            except NotFound:
                continue

    async def _marks(self, objects: tuple[Moved, ...]) -> dict[str, Mark]:
        """Of the copies that are not resumed yet, by the UID that they had on the source."""
        found = {}
        for kind in {each.resource: None for each in objects}:
            for obj in await listed(self._target, kind):
                mark = mark_of(obj)
                if mark is not None:
                    found[mark.uid] = mark
        return found

    async def _remove_copies(self) -> None:
        """Copies are paused: no controller has worked with them."""
        selection = await self._select()
        existing = await read_existing(self._target, selection)
        copies = []
        for node in (node for group in selection.groups() for node in group):
            there = existing.get(node.place)
            if there is not None and is_copy(node, there):
                copies.append(msgspec.structs.replace(moved(node), uid=there.uid))
        await remove(self._target, copies)


def _in_order(objects: tuple[Moved, ...]) -> list[Moved]:
    """What is owned before its owner, and Clusters last of all."""
    backwards = list(reversed(objects))
    return [each for each in backwards if not each.is_cluster] + [each for each in backwards if each.is_cluster]
