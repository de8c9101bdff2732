"""Providers as platforms use them: probes, and machines that belong to no Cluster."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from conformance.provider.provider_plane import ProviderPlane, provider_plane
from conformance.provider.vendor import Open
from homeport.capi.platform import MachineOrder, MachineOutcome, Origin, PlatformAccess, PlatformSupport, Shape
from homeport.infra.error import Denied, Taken, Unreachable
from homeport.runtime.testing import virtual

UID = "7d5bb5ba-3c52-4ba8-a03e-6d1d6dbd2c11"


class Platform:
    """A platform with one object: what the status of that object keeps between calls."""

    def __init__(self, g: ProviderPlane) -> None:
        support = g.vendor.component.platform
        part = g.vendor.platform_part()
        assert support is not None
        self.support: PlatformSupport = support
        self.part = part
        self.secret = dict(g.vendor.credentials()["stringData"])
        self.access: PlatformAccess = support.open(g.plane.manager, g.vendor.dial)
        self.annotations: dict[str, str] = {}
        self.kept: Any = {}
        self.provider_id = ""
        self.has_run = False

    def site(self, **more: Any) -> Any:
        origin = Origin(f"spec.{self.support.type}", "Secret butler-system/credentials")
        return self.support.site(self.part | more, self.secret, origin)

    def order(
        self, name: str = "one", *, deleting: bool = False, user_data: bytes = b"#cloud-config\n"
    ) -> MachineOrder:
        async def record(annotations: Any) -> None:
            self.annotations.update(annotations)

        return MachineOrder(
            uid=UID,
            namespace="butler-system",
            object_name=name,
            name=name,
            shape=Shape(cpu=2, memory="4Gi", disk="40Gi"),
            user_data=user_data,
            deleting=deleting,
            provider_id=self.provider_id,
            has_run=self.has_run,
            annotations=self.annotations,
            kept=self.kept,
            record=record,
        )

    async def step(self, order: MachineOrder) -> MachineOutcome:
        verb = self.access.machines.release if order.deleting else self.access.machines.converge
        try:
            outcome = await verb(self.site(), order)
        finally:
            self.kept = order.kept
        if outcome.machine is not None:
            self.provider_id = outcome.machine.provider_id
        return outcome

    async def until_done(self, g: ProviderPlane, **more: Any) -> MachineOutcome:
        for _ in range(400):
            outcome = await self.step(self.order(**more))
            if outcome.wait is None:
                return outcome
            await g.pass_time(2.0)
        raise AssertionError(f"not finished: {outcome.wait}")


@virtual
async def test_a_probe_resolves_names_and_finds_images_and_room(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        report = await platform.access.probe(platform.site())
        assert not [each for each in report.problems if not each.advisory]
        assert report.resolved
        assert all(each.id and each.name for each in report.resolved)
        assert report.version
        assert report.room is not None
        assert 0 < report.room.memory_bytes <= report.room.total_memory_bytes
        systems = {each.system for each in report.images if each.usable}
        assert {"talos", "rocky"} <= systems
        await platform.access.close()


@virtual
async def test_an_image_that_is_missing_is_a_problem_of_its_field(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        undo = await g.vendor.remove_image()
        report = await platform.access.probe(platform.site())
        (problem,) = [each for each in report.problems if not each.advisory]
        assert problem.reason == "NotFound"
        assert problem.message.startswith(f"spec.{platform.support.type}.image")
        await undo()
        report = await platform.access.probe(platform.site())
        assert not [each for each in report.problems if not each.advisory]
        await platform.access.close()


@virtual
async def test_wrong_credentials_are_denied_and_name_the_secret(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        platform.secret = dict(g.vendor.credentials("wrong-password")["stringData"])
        with pytest.raises(Denied, match="Secret butler-system/credentials") as error:
            await platform.access.probe(platform.site())
        assert "wrong-password" not in error.value.message
        await platform.access.close()


@virtual
async def test_a_machine_without_a_cluster_runs_and_goes(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        outcome = await platform.until_done(g)
        assert outcome.machine is not None
        assert outcome.machine.addresses
        assert [each.name for each in g.vendor.machines()] == ["one"]
        platform.has_run = True
        assert (await platform.step(platform.order())).wait is None
        await platform.until_done(g, deleting=True)
        assert g.vendor.machines() == []
        await platform.access.close()


@virtual
async def test_a_machine_may_boot_without_user_data(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        await platform.until_done(g, user_data=b"")
        assert g.vendor.created == ["one"]
        await platform.until_done(g, deleting=True)
        assert g.vendor.machines() == []
        assert g.vendor.cluster_objects("one") == []
        await platform.access.close()


@virtual
async def test_a_machine_of_others_is_neither_adopted_nor_deleted(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        foreign = await g.vendor.create_foreign("one")
        with contextlib.suppress(Taken):  # where names are unique
            await platform.step(platform.order())
        await platform.until_done(g, deleting=True)
        assert [each.id for each in g.vendor.machines()] == [foreign]
        await platform.access.close()


@virtual
async def test_a_create_whose_answer_was_lost_is_not_repeated(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        g.vendor.lose_reply("create", "after", times=1)
        try:
            await platform.step(platform.order())
        except Unreachable:
            platform.kept = {}  # the process was killed before it could write anything
        await g.pass_time(5.0)
        await platform.until_done(g)
        assert g.vendor.created == ["one"]
        await platform.access.close()


@virtual
async def test_a_machine_that_vanished_is_reported_and_not_made_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        platform = Platform(g)
        await platform.until_done(g)
        platform.has_run = True
        await g.vendor.delete_machine("one")
        outcome = await platform.step(platform.order())
        while outcome.wait is None:
            await g.pass_time(30.0)
            outcome = await platform.step(platform.order())
        await g.pass_time(120.0)
        outcome = await platform.step(platform.order())
        assert outcome.wait is not None
        assert (outcome.wait.reason, outcome.machine) == ("InstanceNotFound", None)
        assert g.vendor.created == ["one"]
        await platform.access.close()
