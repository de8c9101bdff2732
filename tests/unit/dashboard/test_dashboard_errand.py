"""Errands: work of pages, with limits."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from homeport.client.config import Config
from homeport.client.credential import bearer
from homeport.client.dial import DIRECT
from homeport.dashboard.errand.catalog import Asked, do_errand
from homeport.dashboard.errand.order import Order, write_order
from homeport.dashboard.errand.run import ErrandError, Errands
from homeport.dashboard.person import Person

NOWHERE = Config("https://127.0.0.1:1", bearer("secret"), namespace="janes")


def somebody() -> Person:
    return cast(Person, object())  # errands only tell one from another


async def test_an_errand_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ErrandError, match=r"not finished after 0\.001 s: use 'homeport plan'"):
        await Errands(seconds=0.001).run("plan", {}, somebody(), NOWHERE)


async def test_a_newer_errand_of_the_same_user_takes_the_place_of_the_older_one() -> None:
    errands, jane = Errands(), somebody()
    older = asyncio.create_task(errands.run("plan", {}, jane, NOWHERE))
    await asyncio.sleep(0)
    newer = asyncio.create_task(errands.run("plan", {}, jane, NOWHERE))
    with pytest.raises(ErrandError, match="a newer request"):
        await older
    errands.forget(jane)
    with pytest.raises(ErrandError):
        await newer


async def test_what_an_errand_reports_as_a_problem_is_shown() -> None:
    with pytest.raises(ErrandError, match="the manifest has no object"):
        await Errands().run("plan", {"manifest": ""}, somebody(), NOWHERE)


async def test_choices_of_a_hypervisor_say_why_there_are_none() -> None:
    with pytest.raises(ErrandError, match=r"127\.0\.0\.1:1"):
        await Errands().run("choices", {"provider_config": "site"}, somebody(), NOWHERE)
    with pytest.raises(ErrandError, match="use 'homeport discover'"):
        await Errands(seconds=0.0).run("choices", {"provider_config": "site"}, somebody(), NOWHERE)


async def test_an_order_carries_who_the_user_is_and_does_not_show_it() -> None:
    order = await write_order("plan", {"manifest": "x"}, NOWHERE, DIRECT)
    assert isinstance(order, Order)
    assert await order.config.credential.header() == "Bearer secret"
    assert order.config.namespace == "janes"
    assert "secret" not in repr(order)


async def test_an_unknown_errand_names_those_that_there_are() -> None:
    with pytest.raises(ErrandError, match=r"unknown errand 'shell': expected one of .*plan"):
        await do_errand(Asked("shell"), somebody(), NOWHERE, Errands())
