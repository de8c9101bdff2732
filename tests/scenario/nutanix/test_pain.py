"""What users of other controllers for Nutanix had to live with, each as the test that it is over.

The rest of that list is proven elsewhere: docs/reference/nutanix-coverage.md says where.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.provider.nutanix import IMAGE
from conformance.provider.provider_plane import NAME, condition, key
from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Fault, Match, Status
from homeport.sim.prism.entity import Category, Vm
from present import present
from scenario.nutanix import manifest
from scenario.nutanix.bench import Nutanix, nutanix
from scenario.nutanix.site import nutanix_site

MANY = 130


def unmark(n: Nutanix, name: str, /, **changes: Any) -> None:
    """The VM as another controller would have made it: in the cluster's category, and without our marks."""
    core = n.prism.core
    core.put(core.world.vms, n.vm(name), attributes=(), description="made by somebody", **changes)


@virtual
async def test_a_vm_that_was_there_before_gets_its_provider_id() -> None:
    async with nutanix() as n:
        await n.machine()
        (before,) = await n.g.ready("a")
        await n.g.stop()
        kind = n.vendor.machine_kind
        await n.g.client.patch(kind, key("a"), MergePatch({"status": None}), subresource="status")
        await n.g.client.patch(kind, key("a"), MergePatch({"spec": {"providerID": None}}))
        await n.g.start()
        (after,) = await n.g.ready("a")
        assert after.spec.provider_id == before.spec.provider_id
        assert n.vendor.created == ["a"]
        await n.g.delete("a")
        await n.g.deleted("a")
        assert n.vendor.machines() == []


@virtual
async def test_a_vm_of_the_same_name_and_category_without_our_mark_is_never_taken_up() -> None:
    async with nutanix() as n:
        await n.machine("a")
        await n.g.ready("a")
        held = n.vm("a").ext_id
        unmark(n, "a", name="b")
        await n.machine("b")
        (machine,) = await n.g.ready("b")
        assert not machine.spec.provider_id.endswith(held)
        await n.g.delete("b")
        await n.g.deleted("b")
        assert [vm.ext_id for vm in n.prism.world.vms] == [held]


@pytest.mark.parametrize("marks", [(), ("homeport-machine:m-of-another-plane", "homeport-cluster:c-of-another-plane")])
def test_a_category_that_others_carry_stays_and_does_not_hold_the_deletion(marks: tuple[str, ...]) -> None:
    """A VM of somebody, or of a cluster of the same name that another plane made."""

    @virtual
    async def run() -> None:
        async with nutanix() as n:
            (category,) = [each for each in n.prism.world.categories if each.value == NAME]
            more: dict[str, Any] = {"attributes": marks, "description": "\n".join(marks)}
            other = n.vendor._plant("other", categories=(category.ext_id,), **more)
            await n.g.delete_cluster()
            await n.g.plane.gone(n.vendor.cluster_kind, key(NAME), 120)
            assert n.vendor.cluster_objects(NAME) == [f"category KubernetesClusterName:{NAME}"]
            assert [vm.ext_id for vm in n.prism.world.vms] == [other.ext_id]

    run()


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_a_category_that_changes_while_it_is_deleted_goes_all_the_same(version: str) -> None:
    """Prism Central then refuses the outdated version: that says nothing about who carries it."""

    @virtual
    async def run() -> None:
        async with nutanix(version) as n:
            n.prism.faults.add(Fault(Status(412), Match(method="DELETE", route="*categor*"), times=3))
            await n.g.delete_cluster()
            await n.g.plane.gone(n.vendor.cluster_kind, key(NAME), 120)
            assert n.vendor.cluster_objects(NAME) == []

    run()


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_a_prism_central_with_hundreds_of_everything_is_read_to_its_end(version: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix(version) as n:
            crowd(n)
            await n.machine(
                image="zz-image",
                subnet=["zz-subnet"],
                project="zz-project",
                additionalCategories=[{"key": "Team", "value": "zz"}],
            )
            (machine,) = await n.g.ready("a")
            vm = present(n.prism.world.vms.get(machine.status.vm_uuid))
            assert vm.project == n.id_of("projects", "zz-project")
            assert vm.nics[0].subnet == n.id_of("subnets", "zz-subnet")
            assert present(n.prism.world.categories.get(vm.categories[-1])).value == "zz"
            await n.g.delete("a")
            await n.g.deleted("a")
            assert len(n.vendor.machines()) == MANY  # none of the others of its name

    run()


def crowd(n: Nutanix) -> None:
    """More of everything than fits into a page; what is wanted comes last."""
    core = n.prism.core
    world = core.world
    for table, name in (("images", IMAGE), ("subnets", "vm-network"), ("projects", "default")):
        records = getattr(world, table)
        (model,) = [each for each in records if each.name == name]
        kind = table.removesuffix("s")
        for number in range(MANY):
            core.put(records, msgspec.structs.replace(model, ext_id=core.new_id(), name=f"{kind}-{number:03}"))
        core.put(records, msgspec.structs.replace(model, ext_id=core.new_id(), name=f"zz-{kind}"))
    for value in (*(f"value-{number:03}" for number in range(MANY)), "zz"):
        core.put(world.categories, Category(ext_id=core.new_id(), key="Team", value=value))
    for _ in range(MANY):
        n.vendor._plant("a")


@virtual
async def test_a_vm_that_somebody_edits_all_the_time_is_started_and_removed_all_the_same() -> None:
    async with nutanix() as n:
        edits = edit_after_each_look(n, times=3)
        await n.machine()
        await n.g.ready("a")
        assert len(edits) == 3
        edits = edit_after_each_look(n, times=3)
        await n.g.delete("a")
        await n.g.deleted("a")
        assert len(edits) == 3
        assert n.vendor.created == ["a"]


def edit_after_each_look(n: Nutanix, times: int) -> list[str]:
    """Whoever looked at the VM knows an older one than there is. The list grows with each edit."""
    edits: list[str] = []
    told = n.vendor._note

    def edit(entry: Any) -> None:
        told()
        looked = entry.method == "GET" and entry.route.endswith("/ahv/config/vms/{extId}") and entry.status == 200
        if looked and len(edits) < times:
            vm: Vm = n.vm()
            edits.append(vm.ext_id)
            n.prism.core.put(n.prism.core.world.vms, vm, flags={**vm.flags, "isAgentVm": not vm.flags.get("isAgentVm")})

    n.prism.journal.on_entry = edit
    return edits


@virtual
async def test_the_oldest_prism_central_with_the_newer_api_is_new_enough() -> None:
    async with nutanix_site(newest_minor=0) as site:
        await site.have(*manifest.cluster_objects("one", 1, 0))
        await site.running("one", 1)
        versions = {entry.path.split("/")[3] for entry in site.prism.journal if "/v4." in entry.path}
        assert versions == {"v4.0"}
        await site.delete(Cluster, "one")
        await site.gone(Cluster, "one")
        await site.empty("one")


@virtual
async def test_trouble_of_a_moment_never_fails_a_machine_for_good() -> None:
    async with nutanix() as n:
        for status in (401, 403, 404, 409, 412, 422, 429, 500, 503):
            n.vendor.refuse(status, "create", times=1)
        await n.machine()
        reasons = set()

        def look(machine: Any) -> bool:
            reasons.add((machine.status.failure_reason, machine.status.failure_message))
            return bool(condition(machine, "VMProvisioned").get("status") == "True")

        await n.g.plane.until(n.vendor.machine_kind, key("a"), look, 3600)
        assert reasons == {(None, None)}
        assert n.vendor.created == ["a"]
