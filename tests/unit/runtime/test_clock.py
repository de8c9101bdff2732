from __future__ import annotations

import asyncio
import random
import time

from homeport.runtime.clock import VIRTUAL_START, LoopClock, parse_time, rfc3339, run_virtual


def test_an_hour_passes_in_no_time() -> None:
    async def scenario() -> float:
        clock = LoopClock()
        began = clock.now()
        await asyncio.sleep(3600)
        return clock.now() - began

    real = time.perf_counter()
    assert run_virtual(scenario()) == 3600
    assert time.perf_counter() - real < 5


def test_the_same_seed_gives_the_same_run() -> None:
    async def scenario() -> list[tuple[float, int]]:
        trace: list[tuple[float, int]] = []

        async def actor(number: int) -> None:
            for _ in range(20):
                await asyncio.sleep(random.random())
                trace.append((asyncio.get_running_loop().time(), number))

        await asyncio.gather(*(actor(n) for n in range(5)))
        return trace

    first, second, other = (run_virtual(scenario(), seed=s) for s in (7, 7, 8))
    assert first == second
    assert first != other


def test_timeouts_follow_virtual_time() -> None:
    async def scenario() -> str:
        try:
            async with asyncio.timeout(1000):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "never"

    assert run_virtual(scenario()) == "timed out"


def test_a_wall_clock_may_jump_but_monotonic_time_does_not() -> None:
    async def scenario() -> tuple[float, float]:
        clock = LoopClock()
        before = clock.monotonic()
        clock.jump(-86400)
        return clock.now(), clock.monotonic() - before

    now, passed = run_virtual(scenario())
    assert now == VIRTUAL_START - 86400
    assert passed == 0


def test_times_survive_being_written_and_read() -> None:
    assert parse_time(rfc3339(1_800_000_000.0)) == 1_800_000_000.0
