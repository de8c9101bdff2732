"""Credentials that were refused are not shown again at once."""

from __future__ import annotations

import asyncio

import pytest

from homeport.infra.error import Denied
from homeport.infra.vendor.account import Account
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual


async def pause_of(account: Account, clock: LoopClock) -> float:
    begun = clock.monotonic()
    while True:
        try:
            account.check()
        except Denied:
            await asyncio.sleep(5)
        else:
            return clock.monotonic() - begun


@virtual
async def test_refused_credentials_are_tried_again_after_growing_pauses() -> None:
    account, pauses, clock = Account(LoopClock()), [], LoopClock()
    for _ in range(8):
        account.check()
        account.refuse(Denied("the token of Secret a is wrong"))
        with pytest.raises(Denied, match="the token of Secret a is wrong"):
            account.check()
        pauses.append(await pause_of(account, clock))
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


@virtual
async def test_accepted_credentials_start_again_with_the_shortest_pause() -> None:
    account = Account(LoopClock())
    for _ in range(4):
        account.refuse(Denied("wrong"))
    await asyncio.sleep(300)
    account.check()
    account.accept()
    account.refuse(Denied("wrong"))
    with pytest.raises(Denied):
        account.check()
    await asyncio.sleep(10)
    account.check()
