"""Connections to vendors: shared, and none is left open by a manager that stops."""

from __future__ import annotations

import asyncio

import pytest

from homeport.infra.error import Unreachable
from homeport.infra.vendor.session import Sessions
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual


class Line:
    """A connection. It counts as open from the moment that its maker begins."""

    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        await asyncio.sleep(1)
        self.closed = True


class Maker:
    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.made: list[Line] = []

    async def __call__(self) -> Line:
        line = Line()
        self.made.append(line)
        try:
            await asyncio.sleep(self.seconds)
        except BaseException:
            await line.close()
            raise
        return line


@virtual
async def test_callers_of_the_same_endpoint_share_one_connection() -> None:
    sessions, connect = Sessions[Line](LoopClock()), Maker(5)
    found = await asyncio.gather(*(sessions.get("a", connect) for _ in range(3)))
    assert len({id(each) for each in found}) == len(connect.made) == len(sessions) == 1
    await sessions.close()
    assert connect.made[0].closed


@virtual
async def test_closing_waits_until_a_connection_that_is_being_opened_is_closed() -> None:
    sessions, connect = Sessions[Line](LoopClock()), Maker(60)
    caller = asyncio.create_task(sessions.get("a", connect))
    await asyncio.sleep(1)
    caller.cancel()
    await sessions.close()
    assert [each.closed for each in connect.made] == [True]
    assert caller.cancelled()


@virtual
async def test_a_connection_that_opens_at_the_moment_of_closing_is_closed() -> None:
    sessions, opened = Sessions[Line](LoopClock()), asyncio.Event()
    line = Line()

    async def connect() -> Line:
        opened.set()
        return line

    caller = asyncio.create_task(sessions.get("a", connect))
    await opened.wait()
    await sessions.close()
    assert line.closed
    assert len(sessions) == 0
    assert await caller is line


@virtual
async def test_nothing_is_opened_after_closing() -> None:
    sessions, connect = Sessions[Line](LoopClock()), Maker()
    await sessions.close()
    with pytest.raises(Unreachable, match="stopped"):
        await sessions.get("a", connect)
    assert connect.made == []
