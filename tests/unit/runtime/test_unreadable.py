"""Objects that don't fit their type: named and left out, while everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from homeport.client.protocol import Key, MergePatch, Query, Unreadable
from homeport.client.wire.codec import codec
from homeport.runtime.event import EVENT
from homeport.runtime.informer import Informer
from homeport.runtime.telemetry.metric import METRICS
from homeport.runtime.testing import Plane, establish, plane, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Widget, widget

A, B = Key("default", "a"), Key("default", "b")
BROKEN = {"spec": {"size": "large"}}  # what another version of the kind may have
MENDED = {"spec": {"size": 3}}


@asynccontextmanager
async def informed(*objects: dict[str, Any]) -> AsyncIterator[tuple[Plane, Informer[Widget], list[str]]]:
    async with plane() as p:
        await establish(p.client, WIDGETS)
        await p.have(*objects)
        informer = Informer(p.client, Widget)
        told: list[str] = []

        def note(old: Any, new: Any, initial: bool) -> None:
            shown = new if new is not None else old
            told.append(("+" if old is None else "-" if new is None else "~") + shown.metadata.name)

        informer.on_change(note)
        running = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.synced.wait(), 5)
        try:
            yield p, informer, told
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def settle() -> None:
    await asyncio.sleep(1)


@virtual
async def test_an_object_that_was_broken_before_is_left_out_and_named_until_it_is_mended() -> None:
    async with informed({**widget("a"), **BROKEN}, widget("b")) as (p, informer, told):
        assert told == ["+b"]
        assert list(informer.unreadable) == [A]
        assert "spec.size" in informer.unreadable[A]
        assert METRICS.informers[WIDGET.qualified].unreadable == 1
        await p.client.patch(WIDGET, B, MergePatch({"spec": {"size": 2}}))
        await p.client.patch(WIDGET, A, MergePatch(MENDED))
        await settle()
        assert told == ["+b", "~b", "+a"]
        assert informer.unreadable == {}
        assert METRICS.informers[WIDGET.qualified].unreadable == 0


@virtual
async def test_an_object_that_becomes_unreadable_is_kept_and_not_reported_as_deleted() -> None:
    async with informed(widget("a", size=1), widget("b")) as (p, informer, told):
        await p.client.patch(WIDGET, A, MergePatch(BROKEN))
        await p.client.patch(WIDGET, B, MergePatch({"spec": {"size": 2}}))
        await settle()
        kept = informer.cache.get(A)
        assert kept is not None
        assert kept.spec.size == 1
        assert list(informer.unreadable) == [A]
        assert told == ["+a", "+b", "~b"]
        await p.client.patch(WIDGET, A, MergePatch(MENDED))
        await settle()
        assert told == ["+a", "+b", "~b", "~a"]
        assert informer.unreadable == {}


@virtual
async def test_a_broken_object_that_is_deleted_is_forgotten() -> None:
    async with informed(widget("a"), {**widget("b"), **BROKEN}) as (p, informer, told):
        await p.client.patch(WIDGET, A, MergePatch(BROKEN))
        await settle()
        await p.client.delete(WIDGET, A)
        await p.client.delete(WIDGET, B)
        await settle()
        assert told == ["+a", "-a"]
        assert informer.unreadable == {}
        assert len(informer.cache) == 0


@virtual
async def test_listing_again_keeps_what_was_known_of_a_broken_object() -> None:
    async with informed(widget("a", size=1), widget("b")) as (p, informer, told):
        await p.client.patch(WIDGET, A, MergePatch(BROKEN))
        await settle()
        informer.reset()
        again = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.synced.wait(), 5)
        again.cancel()
        assert told == ["+a", "+b"]
        assert list(informer.unreadable) == [A]


def test_a_page_over_the_wire_is_read_item_by_item_where_one_does_not_fit() -> None:
    body = b"""{"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [
        {"metadata": {"name": "a", "namespace": "default"}, "spec": {"size": "large"}},
        {"metadata": {"name": "b", "namespace": "default"}, "spec": {"size": 2}}]}"""
    page = codec(Widget).page(body, lenient=True)
    broken, whole = page.items
    assert isinstance(broken, Unreadable)
    assert (broken.name, "size" in broken.error) == ("a", True)
    assert (whole.metadata.name, whole.spec.size, whole.kind) == ("b", 2, "Widget")
    assert (page.resource_version, page.continue_) == ("7", "x")
    with pytest.raises(Exception, match="can't be read"):
        codec(Widget).page(body)


def test_an_event_over_the_wire_that_does_not_fit_has_its_revision() -> None:
    line = b'{"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "9"}, "spec": {"size": ""}}}'
    event = codec(Widget).event(line, lenient=True)
    assert isinstance(event.object, Unreadable)
    assert (event.type, event.resource_version) == ("MODIFIED", "9")


def test_a_query_is_strict_unless_somebody_can_deal_with_the_rest() -> None:
    assert not Query().lenient


@virtual
async def test_an_object_that_can_not_be_read_is_named_in_an_event() -> None:
    async with plane() as p:
        await establish(p.client, WIDGETS)
        await p.have({**widget("a"), **BROKEN}, widget("b"))
        p.manager.informers.get(Widget)
        await p.start()
        await settle()
        assert list(p.manager.unreadable()) == [f"{WIDGET.qualified} {A}"]
        assert p.manager.health() == {}
        (event,) = [each for each in (await p.client.list(EVENT)).items if each["reason"] == "Unreadable"]
        assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "a")
        assert "spec.size" in event["message"]
        await p.client.delete(WIDGET, A)
        await settle()
        assert p.manager.unreadable() == {}
        await p.stop()
