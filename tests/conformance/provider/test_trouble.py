"""Vendors that refuse, fail, forget and dawdle: nothing is final, nothing is doubled, and the message names the cause."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.provider.provider_plane import NAME, SECRET, condition, key, provider_plane
from conformance.provider.vendor import Open, Verb
from homeport.client.protocol import MergePatch
from homeport.runtime.testing import virtual


@virtual
async def test_a_task_that_fails_is_reported_in_the_vendors_words_and_tried_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.fail_operation("create", "the moon is in the wrong quarter", times=2)
        await g.machine("a")
        await g.machine_says("a", "the moon is in the wrong quarter")
        await g.ready("a")
        assert g.vendor.created == ["a"]
        assert any("moon" in note for note in await g.events("Rejected"))


@virtual
async def test_a_power_on_that_fails_is_reported_and_tried_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.fail_operation("power-on", "no luck", times=2)
        await g.machine("a")
        await g.machine_says("a", "powered on", "no luck")
        await g.ready("a")
        assert g.vendor.created == ["a"]


@virtual
async def test_a_delete_that_fails_is_reported_and_tried_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        g.vendor.fail_operation("delete", "locked by a backup", times=3)
        await g.delete("a")
        await g.machine_says("a", "locked by a backup")
        await g.deleted("a")
        assert g.vendor.machines() == []


@virtual
async def test_being_throttled_delays_and_nothing_more(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.throttle(7, times=6)
        for number in range(5):
            await g.machine(f"m{number}")
        await g.ready(*(f"m{number}" for number in range(5)))
        assert len(g.vendor.created) == 5


@pytest.mark.parametrize("status", [500, 503, 401, 403, 409, 412])
def test_a_storm_of_errors_passes(vendor: Open, status: int) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(vendor) as g:
            await g.cluster()
            g.vendor.refuse(status)
            await g.machine("a")
            await g.machine("b")
            await g.pass_time(120)
            assert not (await g.infra_machine("a")).status.ready
            text = condition(await g.infra_machine("a"), "Ready")["message"]
            assert text
            before = g.vendor.requests()
            await g.pass_time(600)
            assert g.vendor.requests() - before < 250, "a vendor in trouble is not flooded"
            g.vendor.clear_faults()
            await g.ready("a", "b")
            assert sorted(g.vendor.created) == ["a", "b"]

    run()


@virtual
async def test_an_endpoint_that_is_gone_for_hours_is_found_again_within_minutes(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        g.vendor.refuse(503)
        await g.machine("b")
        await g.pass_time(6 * 3600)
        text = condition(await g.infra_machine("b"), "Ready")
        assert text["reason"] == "Unreachable"
        assert (await g.infra_machine("a")).status.ready, "a machine that runs is not lost with its vendor's API"
        g.vendor.clear_faults()
        await g.ready("b", timeout=300)


@virtual
async def test_an_endpoint_that_restarts_is_used_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        g.vendor.slow_operations(5.0)
        await g.machine("b")
        await g.being_created("b")
        await g.vendor.restart()
        await g.ready("b", timeout=300)
        assert condition(await g.infra_machine("a"), "Ready")["status"] == "True"
        assert sorted(g.vendor.created) == ["a", "b"]


@virtual
async def test_a_request_that_is_never_answered_is_given_up(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.delay_reply("create", 3600)
        await g.machine("a")
        await g.machine_says("a", "did not answer")
        await g.ready("a", timeout=300)
        await g.pass_time(4000)
        assert g.vendor.created == ["a"]


@pytest.mark.parametrize("verb", ["create", "power-on"])
def test_a_task_that_hangs_does_not_hang_us(vendor: Open, verb: Verb) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(vendor) as g:
            await g.cluster()
            g.vendor.hang_operation(verb, 1800)
            await g.machine("slow")
            await g.machine_says("slow", "being")  # it has the operation that hangs
            await g.machine("quick")
            await g.ready("quick", timeout=300)
            await g.machine_says("slow", "being")
            await g.ready("slow", timeout=2400)
            assert sorted(g.vendor.created) == ["quick", "slow"]

    run()


@virtual
async def test_a_slow_boot_and_a_late_address_are_waited_for(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.delay_address(900)
        await g.machine("a")
        await g.machine_says("a", "WaitingForAddress", "has no address yet")
        before = g.vendor.requests()
        await g.pass_time(600)
        assert g.vendor.requests() - before < 60, "who waits for an address asks less and less often"
        await g.ready("a", timeout=600)
        assert (await g.infra_machine("a")).status.addresses


@virtual
async def test_a_machine_that_is_switched_off_before_it_ever_ran_is_powered_on(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.delay_address(300)
        await g.machine("a")
        await g.machine_says("a", "WaitingForAddress")
        await g.vendor.power_off("a")
        assert not g.found("a").on
        await g.pass_time(60)
        assert g.found("a").on
        g.vendor.clear_faults()
        await g.ready("a", timeout=900)
        assert g.vendor.created == ["a"]


@virtual
async def test_an_address_that_changes_is_reported(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        (before,) = await g.ready("a")
        await g.vendor.change_address("a")
        old = before.status.addresses[0].address
        after = await g.plane.until(
            g.vendor.machine_kind, key("a"), lambda m: m.status.addresses[0].address != old, 300
        )
        assert after.status.addresses[0].address in g.found("a").addresses
        assert await g.events("AddressChanged")


@virtual
async def test_an_address_that_is_not_reported_for_a_while_is_kept(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        (before,) = await g.ready("a")
        await g.vendor.change_address("a", lost=True)
        await g.pass_time(300)
        after = await g.infra_machine("a")
        assert after.status.addresses == before.status.addresses
        assert after.status.ready
        assert condition(after, "Ready")["status"] == "True"


@virtual
async def test_no_room_is_reported_and_used_as_soon_as_there_is_some(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        free = await g.vendor.fill_hosts()
        await g.machine("a")
        await g.machine_says("a", "InsufficientCapacity")
        await g.pass_time(3600)
        assert len(g.vendor.machines()) <= 1
        await free()
        await g.ready("a", timeout=900)
        assert g.vendor.created == ["a"]


@virtual
async def test_an_image_that_is_missing_is_named_and_taken_up_when_it_is_there(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        bring_back = await g.vendor.remove_image()
        await g.cluster()
        await g.machine("a")
        text = await g.machine_says("a", "image", "not found")
        assert "did you mean" in text or "there are" in text
        await bring_back()
        await g.ready("a", timeout=600)


@virtual
async def test_a_password_that_is_rotated_takes_effect_without_a_restart(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.vendor.change_password("first-s3cret")
        await g.plane.have(g.vendor.credentials("first-s3cret"))
        await g.cluster(secret=False)
        await g.machine("a")
        await g.ready("a")
        g.vendor.slow_operations(5.0)
        await g.machine("b")
        await g.being_created("b")
        await g.vendor.change_password("another")
        await g.machine("c")
        text = await g.machine_says("c", "AccessDenied")
        assert "Secret" in text
        assert "first-s3cret" not in text
        secret = g.vendor.credentials("another")
        await g.client.patch(SECRET, key(secret["metadata"]["name"]), MergePatch({"stringData": secret["stringData"]}))
        await g.ready("b", "c", timeout=120)
        assert sorted(g.vendor.created) == ["a", "b", "c"]


def _is_reachable(machine: Any) -> bool:
    return bool(condition(machine, "InfrastructureReachable")["status"] == "True")


@virtual
async def test_refused_credentials_are_not_shown_again_and_again(vendor: Open) -> None:
    """Accounts are locked after a few wrong passwords."""
    async with provider_plane(vendor) as g:
        await g.vendor.change_password("first-s3cret")
        await g.plane.have(g.vendor.credentials("first-s3cret"))
        await g.cluster(secret=False)
        names = [f"m{number}" for number in range(20)]
        for name in names:
            await g.machine(name)
        await g.ready(*names)
        await g.vendor.change_password("another")
        await g.machine_says("m0", "AccessDenied", type_="InfrastructureReachable")
        before = g.vendor.requests()
        await g.pass_time(600)
        assert g.vendor.requests() - before < 20
        await g.vendor.change_password("first-s3cret")
        await g.plane.until(g.vendor.machine_kind, key("m0"), _is_reachable, 900)


@virtual
async def test_wrong_credentials_are_reported_on_the_cluster_and_corrected_ones_taken_up(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.plane.have(g.vendor.credentials("wr0ng-s3cret"))
        await g.cluster(provisioned=False, secret=False)
        text = await g.cluster_says("AccessDenied", "Secret", type_=g.vendor.conditions.connection)
        assert "wr0ng-s3cret" not in text
        right = g.vendor.credentials()
        await g.client.patch(SECRET, key(right["metadata"]["name"]), MergePatch({"stringData": right["stringData"]}))
        infra = await g.provisioned(timeout=60)
        assert condition(infra, g.vendor.conditions.connection)["status"] == "True"


@virtual
async def test_credentials_that_come_after_the_cluster_are_taken_up(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster(provisioned=False, secret=False)
        await g.cluster_says("Secret", "does not exist", "create it", type_=g.vendor.conditions.connection)
        await g.plane.have(g.vendor.credentials())
        await g.provisioned(NAME, timeout=10)


@virtual
async def test_a_vendor_out_of_reach_while_deleting_is_reported_and_finished_later(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        g.vendor.refuse(503)
        await g.delete("a")
        await g.delete_cluster()
        await g.machine_says("a", "Unreachable")
        await g.pass_time(1800)
        assert g.vendor.machines()
        g.vendor.clear_faults()
        await g.deleted("a", timeout=300)
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 300)
        assert g.vendor.machines() == []
