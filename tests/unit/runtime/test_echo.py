"""A controller that is not woken by its own writes misses nothing that others write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.meta import Unstructured
from homeport.client.errors import AlreadyExists, Expired, NotFound
from homeport.client.protocol import Client, Key, MergePatch
from homeport.runtime.clock import run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.own_write import Writes
from homeport.runtime.queue import Backoff
from homeport.runtime.testing import plane
from unit.runtime.runtime_sample import WIDGET, WIDGETS, SlowClient, widget

KEYS = (Key("default", "a"), Key("default", "b"))


class Cut(SlowClient):
    """Its watches are late, and expire now and then: then everything is listed again, and steps in between are lost."""

    async def _late(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in super()._late(events):
            yield event
            if self._chance.random() < 0.1:
                raise Expired("the watch is too old")


class Copying:
    """Copies spec.size to a label and to the status, in two writes, and takes its time."""

    def __init__(self, manager: Manager, chance: random.Random, *, locked: bool) -> None:
        self._client, self._chance, self._locked = manager.client, chance, locked
        self._widgets = manager.informers.get(WIDGET).cache

    async def reconcile(self, key: Key) -> Wait | None:
        found = self._widgets.get(key)
        if found is None:
            return None
        size, version = found["spec"]["size"], found.resource_version
        await self._pause()
        if (found.metadata.get("labels") or {}).get("size") != str(size):
            state = {"resourceVersion": version} if self._locked else {}
            patch = MergePatch({"metadata": {"labels": {"size": str(size)}, **state}})
            version = (await self._client.patch(WIDGET, key, patch)).resource_version
            await self._pause()
        if self._chance.random() < 0.1:
            raise RuntimeError("not to the end")
        if (found.get("status") or {}).get("size") != size:
            patch = MergePatch({"metadata": {"resourceVersion": version}, "status": {"size": size}})
            await self._client.patch(WIDGET, key, patch, subresource="status")
            await self._pause()
        return None

    async def _pause(self) -> None:
        if self._chance.random() < 0.6:
            await asyncio.sleep(self._chance.random() * 1.5)


async def disturb(client: Client, key: Key, chance: random.Random) -> None:
    """One change by somebody else."""
    which, size = chance.randrange(5), chance.randrange(5)
    try:
        if which == 0:
            await client.create(Unstructured(widget(key.name, size=size)), kind=WIDGET)
        elif which == 1 and chance.random() < 0.3:
            await client.delete(WIDGET, key)
        elif which == 2:
            await client.patch(WIDGET, key, MergePatch({"status": {"size": 99}}), subresource="status")
        elif which == 3:
            await client.patch(WIDGET, key, MergePatch({"metadata": {"labels": {"size": None}}}))
        else:
            await client.patch(WIDGET, key, MergePatch({"spec": {"size": size}}))
    except (AlreadyExists, NotFound):
        return


@given(st.integers(0, 2**32), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_others_write_is_never_missed_however_late_and_broken_the_watches_are(
    seed: int, locked: bool, rests: bool
) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            manager = Manager(Cut(p.server.client(), chance), clock=p.clock)
            copying = Copying(manager, chance, locked=locked)
            backoff = Backoff(limit=5.0)
            manager.add(
                Controller(
                    "copying", WIDGET, copying, clock=p.clock, backoff=backoff, own_writes_wake=False, rests=rests
                )
            )
            run = asyncio.create_task(manager.run())
            for _ in range(40):
                await disturb(p.client, chance.choice(KEYS), chance)
                await asyncio.sleep(chance.random() * chance.choice((0.1, 1.0, 3.0)))
            await asyncio.sleep(300)
            for found in (await p.client.list(WIDGET)).items:
                size = found["spec"]["size"]
                assert (found.metadata["labels"]["size"], found["status"]["size"]) == (str(size), size), p.logs.text()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)

    run_virtual(scenario(), seed=seed)


def test_a_write_to_a_known_state_that_followed_one_to_an_unknown_state_may_hide_a_change() -> None:
    def at(revision: int, name: str = "a") -> Unstructured:
        return Unstructured({"metadata": {"name": name, "namespace": "default", "resourceVersion": str(revision)}})

    writes = Writes()
    writes.note(WIDGET, at(3), locked=True)
    writes.note(WIDGET, at(5))
    writes.note(WIDGET, at(6), status=True, locked=True)
    writes.note(WIDGET, at(7, "b"), locked=True)
    assert writes.known() == {(WIDGET, 3), (WIDGET, 7)}
