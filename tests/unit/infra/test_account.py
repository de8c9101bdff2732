"""Credentials that were refused are not shown again at once."""

from __future__ import annotations

import asyncio

import pytest

from homeport.infra.error import Denied, delay_of, seen_from
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


@virtual
async def test_a_refusal_tells_when_the_credentials_may_be_shown_again() -> None:
    account = Account(LoopClock())
    account.refuse(Denied("wrong"))
    assert account.refuse(Denied("wrong")).after == 20
    await asyncio.sleep(15)
    with pytest.raises(Denied) as refused:
        account.check()
    assert refused.value.after == 5
    assert 5 < delay_of(refused.value, failures=9) < 6, "an object with many failures does not sleep through it"


def test_users_of_a_shared_connection_read_the_name_of_their_own_secret() -> None:
    error = Denied("Prism Central rejects the credentials of Secret a/prism: correct it", code="401", after=20)
    error.origin = "Secret a/prism"
    own = seen_from("Secret b/prism", error)
    assert isinstance(own, Denied)
    assert own.message == str(own) == "Prism Central rejects the credentials of Secret b/prism: correct it"
    assert (own.code, own.after, own.origin) == ("401", 20, "Secret b/prism")
    assert error.message.endswith("Secret a/prism: correct it"), "other users wait for the same error"
    assert seen_from("", error) is error
