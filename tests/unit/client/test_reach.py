"""A server that can't be reached is tried once for all who ask."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.meta import Resource
from homeport.client.config import Config
from homeport.client.errors import Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Query
from homeport.client.wire.reach import Reach
from homeport.client.wire.retry import Retry
from homeport.runtime.testing import virtual
from unit.client.scripted_peer import json, serving

NODES = Resource("", "v1", "Node", "nodes", namespaced=False)


def test_the_second_failure_in_a_row_ends_attempts_for_a_second_and_the_next_ones_for_longer() -> None:
    reach = Reach(2.0)
    reach.miss(0.0, "refused")
    assert reach.refusal(0.0) == ""
    reach.miss(0.0, "refused")
    assert reach.refusal(0.9) == "refused"
    assert reach.refusal(1.0) == ""
    assert reach.refusal(1.0) == "refused", "somebody else makes the attempt"
    for _ in range(100):
        reach.miss(1.0, "timeout")
    assert reach.refusal(2.9) == "timeout"
    assert reach.refusal(3.0) == ""


def test_an_answer_ends_the_waiting_and_says_whether_there_was_any() -> None:
    reach = Reach(2.0)
    assert not reach.hit()
    reach.miss(0.0, "refused")
    assert not reach.hit()
    reach.miss(0.0, "refused")
    reach.miss(0.0, "refused")
    assert reach.hit()
    assert reach.refusal(0.0) == ""


def test_without_a_limit_everybody_tries() -> None:
    reach = Reach(0.0)
    for _ in range(5):
        reach.miss(0.0, "refused")
    assert reach.refusal(0.0) == ""


@virtual
async def test_a_client_that_could_not_connect_fails_at_once_and_reports_when_the_server_is_back() -> None:
    async with serving() as peer:
        port = int(peer.url.rpartition(":")[2])
    back: list[float] = []
    loop = asyncio.get_running_loop()
    retry = Retry(attempts=2, apart_seconds=2.0)
    async with HttpClient(Config(peer.url), retry=retry) as client:
        client.on_return(lambda: back.append(loop.time()))
        with pytest.raises(Unavailable) as first:
            await client.list(NODES, Query())
        async with serving(port=port) as peer:
            with pytest.raises(Unavailable) as second:
                await client.list(NODES, Query())
            assert str(second.value) == str(first.value)
            assert not peer.asked
            await asyncio.sleep(1.0)
            peer.says(json({"items": []}))
            await client.list(NODES, Query())
            await asyncio.sleep(0)
    assert len(back) == 1
