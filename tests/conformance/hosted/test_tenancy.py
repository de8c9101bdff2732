"""Tenants of a real etcd: what each may do, what is removed with proof, and what a migration carries over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from homeport.hosted.etcd.client import KeyValue, prefix_end
from homeport.hosted.etcd.dial import Access, DatastoreError, connect
from homeport.hosted.etcd.tenancy import Tenant, claim, copy, ensure, is_ready, owns, prepare_datastore, remove
from realetcd import RealEtcd, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there")

ONE = Tenant("default_one", "default_one", "token-one")
TWO = Tenant("default_one2", "default_one2", "token-two")


@pytest.fixture
def etcd() -> Iterator[RealEtcd]:
    with RealEtcd() as running:
        yield running


async def prepared(etcd: RealEtcd, *tenants: Tenant) -> None:
    async with connect(etcd.access) as root:
        await prepare_datastore(root, ours=True, name="default")
        for tenant in tenants:
            await ensure(root, tenant, "default")


async def refused(access: Access, key: bytes) -> str:
    with pytest.raises(DatastoreError) as error:
        async with connect(access) as client:
            await client.put(key, b"x")
    return error.value.reason


async def test_a_tenant_reads_and_writes_its_own_prefix_alone(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE, TWO)
    async with connect(etcd.access_as(ONE.user)) as client:
        await client.put(b"/default_one/a", b"1")
        assert (await client.get(b"/default_one/a")) == KeyValue(
            b"/default_one/a",
            b"1",
            *((await client.get(b"/default_one/a")).create_revision,) * 2,  # type: ignore[union-attr]
        )
    # `/default_one2` begins with the name of the other.
    assert await refused(etcd.access_as(ONE.user), b"/default_one2/a") == "DatastoreRefused"
    assert await refused(etcd.access_as(ONE.user), ONE.claim_key) == "DatastoreRefused"
    assert await refused(etcd.access_as("nobody"), b"/default_one/a") == "DatastoreRefused"


async def test_everything_may_be_repeated(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE)
    await prepared(etcd, ONE)
    async with connect(etcd.access) as root:
        assert await is_ready(root, ONE)
        assert await remove(root, ONE)
        assert await remove(root, ONE)
        assert not await is_ready(root, ONE)


async def test_authentication_is_not_switched_on_in_an_etcd_of_others(etcd: RealEtcd) -> None:
    async with connect(etcd.access) as root:
        with pytest.raises(DatastoreError, match="does not authenticate users") as error:
            await prepare_datastore(root, ours=False, name="mine")
        assert error.value.reason == "AuthenticationDisabled"
        assert not await root.auth_enabled()
        assert await root.users() == []


async def test_a_schema_of_somebody_else_is_neither_used_nor_removed(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE)
    thief = replace(ONE, claim="token-of-somebody-else")
    async with connect(etcd.access) as root:
        await root.put(b"/default_one/a", b"1")
        with pytest.raises(DatastoreError, match="another control plane uses the schema"):
            await claim(root, thief, "default")
        assert not await remove(root, thief)
        assert await root.count(ONE.prefix) == 1
        assert ONE.user in await root.users()


async def test_two_control_planes_never_share_a_user(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE)
    guest = Tenant("default_guest", ONE.user, "token-of-the-guest")
    async with connect(etcd.access) as root:
        with pytest.raises(DatastoreError, match="not this control plane's") as error:
            await ensure(root, guest, "default")
        assert error.value.reason == "UserTaken"
        assert [each.key for each in await root.role_permissions(ONE.user)] == [ONE.prefix]
        # What it has claimed already goes, and the user of the other one stays.
        assert await remove(root, guest)
        assert await root.get(guest.claim_key) is None
        assert ONE.user in await root.users()
        assert await is_ready(root, ONE)


@pytest.mark.parametrize("names", [("default_one", "root"), ("homeport.dev", "default_one"), ("registry", "registry")])
async def test_names_that_would_give_power_over_others_are_refused(etcd: RealEtcd, names: tuple[str, str]) -> None:
    async with connect(etcd.access) as root:
        await prepare_datastore(root, ours=True, name="default")
        with pytest.raises(DatastoreError, match="is reserved") as error:
            await ensure(root, Tenant(*names, "token"), "default")
        assert error.value.reason == "NameReserved"
        assert await root.users() == ["root"]
        assert await root.count(b"/") == 0


async def test_data_without_a_claim_is_adopted_only_on_request(etcd: RealEtcd) -> None:
    async with connect(etcd.access) as root:
        await prepare_datastore(root, ours=True, name="default")
        await root.put(b"/default_one/a", b"1")
        with pytest.raises(DatastoreError, match="did not write"):
            await ensure(root, ONE, "default")
        assert not await remove(root, ONE)
        await ensure(root, replace(ONE, adopt=True), "default")
        assert await owns(root, ONE)
        assert await root.count(ONE.prefix) == 1


async def test_removal_takes_data_user_role_and_claim_and_nothing_of_others(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE, TWO)
    async with connect(etcd.access) as root:
        await root.put(b"/default_one/a", b"1")
        await root.put(b"/default_one2/a", b"2")
        assert await remove(root, ONE)
        assert await root.users() == [TWO.user, "root"]
        assert await root.roles() == [TWO.user, "root"]
        assert await root.count(b"/default_one/") == 0
        assert await root.count(b"/default_one2/") == 1
        assert await root.get(ONE.claim_key) is None
        assert await root.get(TWO.claim_key) is not None


async def test_all_keys_are_never_deleted(etcd: RealEtcd) -> None:
    async with connect(etcd.access) as root:
        with pytest.raises(ValueError, match="refusing"):
            await root.delete_prefix(b"/")


async def test_a_frozen_tenant_reads_and_does_not_write(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE)
    async with connect(etcd.access) as root:
        await ensure(root, ONE, "default", frozen=True)
    async with connect(etcd.access_as(ONE.user)) as client:
        assert await client.count(ONE.prefix) == 0
    assert await refused(etcd.access_as(ONE.user), b"/default_one/a") == "DatastoreRefused"
    await prepared(etcd, ONE)
    async with connect(etcd.access_as(ONE.user)) as client:
        await client.put(b"/default_one/a", b"1")


async def test_a_migration_carries_every_key_over_also_large_ones(etcd: RealEtcd) -> None:
    await prepared(etcd, ONE)
    sizes = {f"/default_one/pods/{number:04}".encode(): 10 for number in range(300)}
    sizes[b"/default_one/secrets/large"] = 1_200_000
    with RealEtcd("other") as other:
        async with connect(etcd.access) as source, connect(other.access) as target:
            await prepare_datastore(target, ours=True, name="other")
            await ensure(target, ONE, "other")
            await target.put(b"/default_one/left-from-an-earlier-attempt", b"x")
            lease = await source.grant_lease(3600)
            for key, size in sizes.items():
                await source.put(key, b"v" * size)
            await source.put(b"/default_one/events/a", b"e", lease)
            await source.put(b"/default_one/masterleases/10.0.0.1", b"m")
            await source.put(b"/default_one2/other", b"o")
            assert await copy(source, target, ONE) == len(sizes) + 1
            assert await target.count(b"/default_one/") == len(sizes) + 1
            assert await target.count(b"/default_one2/") == 0
            large = await target.get(b"/default_one/secrets/large")
            assert large is not None
            assert len(large.value) == 1_200_000
            event = await target.get(b"/default_one/events/a")
            assert event is not None
            assert event.lease


async def test_an_etcd_that_does_not_answer_is_named(etcd: RealEtcd) -> None:
    access = replace(etcd.access, endpoints=("127.0.0.1:1",))
    with pytest.raises(DatastoreError, match=r"DataStore default: no endpoint answers \(127.0.0.1:1"):
        async with connect(access):
            pass


async def test_the_second_endpoint_serves_when_the_first_does_not(etcd: RealEtcd) -> None:
    access = replace(etcd.access, endpoints=("127.0.0.1:1", etcd.endpoint))
    async with connect(access) as root:
        assert (await root.version()).startswith("3.")


@pytest.mark.parametrize(("prefix", "end"), [(b"/a/", b"/a0"), (b"a\xff", b"b"), (b"\xff", b"\0")])
def test_the_end_of_a_prefix(prefix: bytes, end: bytes) -> None:
    assert prefix_end(prefix) == end
