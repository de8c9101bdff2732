from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.protocol import Key
from homeport.runtime.webhook.authority import (
    SECRET,
    Authority,
    AuthorityError,
    Lifetime,
    SharedAuthority,
    make_authority,
    parse_authority,
)

KEY = Key("default", "webhook-ca")
DAY = datetime.timedelta(days=1)


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def pass_days(self, days: float) -> None:
        self.time += days * 86400


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    opened = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"))
    yield opened
    await opened.close()


def test_a_ca_is_replaced_in_steps_that_never_leave_anybody_without_trust() -> None:
    lifetime = Lifetime(ca_days=100, overlap_days=2)
    start = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    first = make_authority(start, lifetime)
    assert first.renewed(start + 79 * DAY, lifetime) is first
    waiting = first.renewed(start + 81 * DAY, lifetime)
    assert waiting.issuer == first.issuer
    assert waiting.successor is not None
    assert waiting.bundle.startswith(first.bundle)
    assert waiting.renewed(start + 82 * DAY, lifetime) is waiting
    changed = waiting.renewed(start + 84 * DAY, lifetime)
    assert changed.issuer == waiting.successor
    assert changed.successor is None
    assert first.issuer.certificate in changed.trusted
    settled = changed.renewed(start + 101 * DAY, lifetime)
    assert settled.trusted == ()
    assert settled.issuer == changed.issuer


def test_an_expired_ca_is_replaced_at_once() -> None:
    lifetime = Lifetime(ca_days=100)
    start = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    first = make_authority(start, lifetime)
    late = first.renewed(start + 200 * DAY, lifetime)
    assert late.issuer != first.issuer
    assert late.trusted == ()


def test_what_is_kept_is_what_was_made() -> None:
    lifetime = Lifetime(ca_days=100)
    start = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    waiting = make_authority(start, lifetime).renewed(start + 81 * DAY, lifetime)
    again = parse_authority(waiting.as_data())
    assert again.bundle == waiting.bundle
    assert again.as_data() == waiting.as_data()


def _data(**change: str) -> dict[str, str]:
    now = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    return {**make_authority(now, Lifetime()).as_data(), **change}


def test_damage_is_named() -> None:
    other = _data()
    for data, why in (
        ({}, r"data\[ca.crt\] is missing"),
        (_data(**{"ca.key": "?"}), r"data\[ca.key\] is damaged"),
        (_data(**{"ca.crt": base64.b64encode(b"x").decode()}), r"data\[ca.crt\] is damaged"),
        (_data(**{"ca.key": other["ca.key"]}), r"data\[ca.key\] belongs to no certificate"),
    ):
        with pytest.raises(AuthorityError, match=why):
            parse_authority(data)


async def test_replicas_that_start_together_agree_on_one_ca(server: EmbeddedServer) -> None:
    replicas = [SharedAuthority(server.client(), KEY) for _ in range(8)]
    made = await asyncio.gather(*(replica.ensure() for replica in replicas))
    assert len({each.bundle for each in made}) == 1


async def test_replicas_that_renew_together_agree_on_one_successor(server: EmbeddedServer) -> None:
    clock, lifetime = Hand(), Lifetime(ca_days=100, overlap_days=1)
    replicas = [SharedAuthority(server.client(), KEY, lifetime=lifetime, clock=clock) for _ in range(8)]
    first = await replicas[0].ensure()
    clock.pass_days(85)
    waiting = await asyncio.gather(*(replica.ensure() for replica in replicas))
    assert len({each.bundle for each in waiting}) == 1
    assert waiting[0].issuer.certificate == first.issuer.certificate
    clock.pass_days(2)
    changed = await asyncio.gather(*(replica.ensure() for replica in replicas))
    assert len({each.bundle for each in changed}) == 1
    assert _successor(waiting[0]) == changed[0].issuer.certificate
    assert "next.key" not in (await server.client().get(SECRET, KEY))["data"]


async def test_an_authority_that_is_not_valid_yet_is_replaced_at_once(server: EmbeddedServer) -> None:
    """The clock was wrong when it was made."""
    clock = Hand()
    shared = SharedAuthority(server.client(), KEY, lifetime=Lifetime(), clock=clock)
    first = await shared.ensure()
    clock.pass_days(-30)
    second = await shared.ensure()
    assert second.issuer.certificate != first.issuer.certificate
    assert second.issuer.certificate.not_valid_before_utc < first.issuer.certificate.not_valid_before_utc
    assert (await shared.ensure()).bundle == second.bundle


def _successor(authority: Authority) -> object:
    assert authority.successor is not None
    return authority.successor.certificate


async def test_looking_again_writes_nothing(server: EmbeddedServer) -> None:
    shared = SharedAuthority(server.client(), KEY)
    await shared.ensure()
    revision = server.store.revision
    await shared.ensure()
    assert server.store.revision == revision


async def test_a_damaged_secret_is_rewritten_and_keeps_other_data(server: EmbeddedServer) -> None:
    client = server.client()
    body = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "data": {"ca.crt": "eA==", "note": "eA=="}}
    await client.create(body, kind=SECRET)
    made = await SharedAuthority(client, KEY).ensure()
    data = (await client.get(SECRET, KEY))["data"]
    assert parse_authority(data).bundle == made.bundle
    assert data["note"] == "eA=="
