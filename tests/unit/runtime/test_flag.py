from __future__ import annotations

import asyncio

import pytest

from homeport.runtime.clock import run_virtual
from homeport.runtime.flag import Flag


def test_everybody_who_waits_is_woken_and_later_ones_need_not_wait() -> None:
    async def scenario() -> None:
        flag = Flag()
        waiting = [asyncio.create_task(flag.wait()) for _ in range(3)]
        await asyncio.sleep(1.0)
        assert not flag.is_set()
        assert not any(task.done() for task in waiting)
        flag.set()
        await asyncio.gather(*waiting)
        await flag.wait()

    run_virtual(scenario())


def test_a_flag_that_is_cleared_at_once_wakes_those_that_waited_and_nobody_else() -> None:
    async def scenario() -> None:
        flag = Flag()
        waiting = asyncio.create_task(flag.wait())
        await asyncio.sleep(0)
        flag.set()
        flag.clear()
        await waiting
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60.0):
                await flag.wait()

    run_virtual(scenario())


def test_one_that_no_longer_waits_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        flag = Flag()
        first, second = (asyncio.create_task(flag.wait()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        flag.set()
        await second
        with pytest.raises(asyncio.CancelledError):
            await first

    run_virtual(scenario())
