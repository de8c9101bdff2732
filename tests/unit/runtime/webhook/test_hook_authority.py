from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.protocol import Key
from homeport.runtime.webhook.authority import (
    SECRET,
    Authority,
    AuthorityError,
    GivenAuthorityError,
    Lifetime,
    SharedAuthority,
    make_authority,
    parse_authority,
)
from unit.runtime.webhook.given_authority import given_data

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


@pytest.mark.parametrize("key", list(trustme.KeyType))
def test_a_given_ca_signs_and_its_root_is_trusted(key: trustme.KeyType) -> None:
    root = trustme.CA(key_type=key)
    child = root.create_child_ca(key_type=key)
    given = parse_authority(given_data(root, child))
    leaf = x509.load_pem_x509_certificate(
        given.issuer.server(["localhost"], datetime.datetime.now(datetime.UTC)).certificate
    )
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(child.cert_pem.bytes()))
    assert given.chain == child.cert_pem.bytes()
    assert given.bundle == child.cert_pem.bytes() + root.cert_pem.bytes()


def test_a_given_ca_is_never_renewed_here() -> None:
    root = trustme.CA()
    given = parse_authority(given_data(root, root.create_child_ca()))
    late = datetime.datetime.now(datetime.UTC) + 100_000 * DAY
    assert given.renewed(late, Lifetime()) is given


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tls.crt": b"x"}, r"data\[tls.crt\] is damaged"),
        ({"tls.key": b"x"}, r"data\[tls.key\] is damaged"),
        (
            {"tls.key": trustme.CA().private_key_pem.bytes()},
            r"data\[tls.key\] belongs to no certificate of data\[tls.crt\]",
        ),
    ],
)
async def test_a_given_ca_that_can_not_be_used_is_left_as_it_is(
    server: EmbeddedServer, change: dict[str, bytes], why: str
) -> None:
    root = trustme.CA()
    data = given_data(root, root.create_child_ca(), **change)
    await _put(server, data)
    with pytest.raises(GivenAuthorityError, match=f"Secret default/webhook-ca: {why}.*delete the Secret"):
        await SharedAuthority(server.client(), KEY).ensure()
    assert (await server.client().get(SECRET, KEY))["data"] == data


async def test_a_certificate_that_is_not_a_ca_names_the_field_to_set(server: EmbeddedServer) -> None:
    root = trustme.CA()
    leaf = root.issue_cert("localhost")
    change = {"tls.crt": leaf.cert_chain_pems[0].bytes(), "tls.key": leaf.private_key_pem.bytes()}
    await _put(server, given_data(root, root, **change))
    with pytest.raises(GivenAuthorityError, match="not a CA: set isCA: true in the Certificate"):
        await SharedAuthority(server.client(), KEY).ensure()


async def test_a_given_ca_that_is_not_valid_now_says_when_it_is(server: EmbeddedServer) -> None:
    root = trustme.CA()
    await _put(server, given_data(root, root.create_child_ca()))
    clock = Hand()
    clock.pass_days(-20_000)
    with pytest.raises(GivenAuthorityError, match=r"the CA in data\[tls.crt\] is valid from \d{4}-.* only"):
        await SharedAuthority(server.client(), KEY, clock=clock).ensure()


async def test_a_ca_of_ours_gives_way_to_a_given_one_and_comes_back_without_it(server: EmbeddedServer) -> None:
    client, shared = server.client(), SharedAuthority(server.client(), KEY)
    ours = await shared.ensure()
    root = trustme.CA(key_type=trustme.KeyType.RSA)
    secret = await client.get(SECRET, KEY)
    secret["data"] = {**secret["data"], **given_data(root, root.create_child_ca())}  # as cert-manager writes into it
    await client.replace(secret, kind=SECRET)
    given = await shared.ensure()
    assert given.given
    assert given.bundle != ours.bundle
    await client.delete(SECRET, KEY)
    again = await shared.ensure()
    assert not again.given
    assert parse_authority((await client.get(SECRET, KEY))["data"]).bundle == again.bundle


async def _put(server: EmbeddedServer, data: dict[str, str]) -> None:
    meta = {"name": KEY.name, "namespace": KEY.namespace}
    await server.client().create({"metadata": meta, "type": "kubernetes.io/tls", "data": data}, kind=SECRET)
