"""Who gets which address."""

from __future__ import annotations

from ipaddress import ip_address

from homeport.capi.addresspool import Reservation
from homeport.client.protocol import Key
from homeport.ipam.plan import LARGEST, Ask, count_usage, plan_allocation
from homeport.machinery.address import AddressSet

POOL = AddressSet.parse(["10.0.0.1-10.0.0.4"])


def ask(name: str, created: str = "2026-01-01T00:00:00Z") -> Ask:
    return Ask(created, Key("default", name), f"uid-{name}")


def given(*asking: Ask, taken: tuple[str, ...] = (), reserved: dict[str, Ask] | None = None) -> dict[str, str]:
    held = {ip_address(text): Reservation(5, each.uid, each.key) for text, each in (reserved or {}).items()}
    plan = plan_allocation(POOL, {ip_address(each) for each in taken}, held, asking, 9)
    for key, address in plan.given.items():
        assert plan.reserved[address].key == key
        assert plan.reserved[address].chosen_at == 9
    assert set(held) <= set(plan.reserved)
    return {key.name: str(address) for key, address in plan.given.items()}


def test_the_oldest_gets_the_lowest() -> None:
    young, old = ask("a", "2026-01-02T00:00:00Z"), ask("b", "2026-01-01T00:00:00Z")
    assert given(young, old) == {"b": "10.0.0.1", "a": "10.0.0.2"}


def test_those_of_one_moment_come_by_name() -> None:
    assert given(ask("c"), ask("a"), ask("b")) == {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}


def test_used_addresses_are_skipped() -> None:
    assert given(ask("a"), ask("b"), taken=("10.0.0.1", "10.0.0.3")) == {"a": "10.0.0.2", "b": "10.0.0.4"}


def test_who_was_chosen_for_before_gets_that_address() -> None:
    first = ask("z")
    assert given(ask("a"), first, reserved={"10.0.0.3": first}) == {"a": "10.0.0.1", "z": "10.0.0.3"}


def test_what_was_chosen_for_somebody_who_does_not_ask_now_is_not_given() -> None:
    others = {f"10.0.0.{n}": ask(f"other-{n}") for n in (1, 2, 4)}
    assert given(ask("a"), ask("b"), reserved=others) == {"a": "10.0.0.3"}


def test_an_exhausted_pool_gives_nothing() -> None:
    assert given(ask("a"), taken=tuple(f"10.0.0.{n}" for n in range(1, 5))) == {}


def test_usage_counts_what_is_outside_by_itself() -> None:
    usage = count_usage(POOL, {ip_address("10.0.0.1"), ip_address("10.9.9.9")})
    assert (usage.total, usage.used, usage.free, usage.out_of_range) == (4, 2, 3, 1)


def test_numbers_that_no_client_can_read_are_the_largest_that_it_can() -> None:
    usage = count_usage(AddressSet.parse(["fd00::/8"]), set())
    assert (usage.total, usage.free) == (LARGEST, LARGEST)


def test_an_address_that_lost_its_claim_goes_to_the_claim_of_its_name() -> None:
    wishing = Ask("2026-01-02T00:00:00Z", Key("default", "z"), "uid-z", ip_address("10.0.0.1"))
    assert given(ask("a"), wishing) == {"a": "10.0.0.2", "z": "10.0.0.1"}
    assert given(ask("a"), wishing, taken=("10.0.0.1",)) == {"a": "10.0.0.2", "z": "10.0.0.3"}
    assert given(wishing, reserved={"10.0.0.1": ask("other")}) == {"z": "10.0.0.2"}
    assert given(wishing, reserved={"10.0.0.1": Ask("", Key("default", "z"), "uid-of-an-earlier-one")}) == {
        "z": "10.0.0.1"
    }
