"""The driver of all vendors, with a vendor that has no tasks, no request ids and no watch: what it shows is all there is."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.capi.cloud import Address
from homeport.infra.error import Missing, Rejected, Taken, Unreachable
from homeport.infra.machine.driver import ATTEMPT, InstanceDriver, own_addresses
from homeport.infra.protocol import Instance, Instances, MachineScope
from homeport.runtime.clock import LoopClock
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import virtual


@dataclass
class Plain:
    """A vendor that does at once what it is asked, or what `fail` says: its state is the whole truth."""

    machines: dict[str, Instance] = field(default_factory=dict)
    request_ids: list[str] = field(default_factory=list)
    fail: list[Exception] = field(default_factory=list)  # of the next creations
    lose_replies: bool = False  # creations take effect, and their replies are lost

    async def close(self) -> None: ...


Scope = MachineScope[NutanixCluster, NutanixMachine, Plain]


class PlainInstances(Instances[NutanixCluster, NutanixMachine, Plain, str]):
    vendor = "Plain"

    async def get(self, scope: Scope, id: str, *, fresh: bool = False) -> Instance | None:
        return scope.session.machines.get(id)

    async def find(self, scope: Scope) -> Sequence[Instance]:
        return [each for each in scope.session.machines.values() if each.uid == scope.uid]

    async def prepare(self, scope: Scope) -> str:
        return scope.name

    async def create(self, scope: Scope, prepared: str, request_id: str) -> str:
        scope.session.request_ids.append(request_id)
        if scope.session.fail:
            raise scope.session.fail.pop(0)
        add(scope, prepared)
        if scope.session.lose_replies:
            raise Unreachable("the reply was lost")
        return ""

    async def power_on(self, scope: Scope, instance: Instance) -> str:
        addresses = own_addresses(scope, ["10.0.0.5"], instance.name)
        scope.session.machines[instance.id] = replace(instance, power="on", addresses=addresses)
        return ""

    async def delete(self, scope: Scope, instance: Instance) -> str:
        if scope.session.machines.pop(instance.id, None) is None:
            raise Missing("it is gone")
        return ""


def add(scope: Scope, name: str, **more: object) -> Instance:
    id_ = f"id-{len(scope.session.machines)}"
    made = Instance(id=id_, provider_id=f"plain://{id_}", name=name, power="off", uid=scope.uid)
    made = replace(made, **more)  # type: ignore[arg-type]
    scope.session.machines[id_] = made
    return made


def scope_of(plain: Plain) -> Scope:
    machine = NutanixMachine()
    machine.metadata.name, machine.metadata.uid = "a", str(uuid.uuid4())

    async def record(annotations: object) -> None:
        machine.metadata.annotations.update(annotations)  # type: ignore[call-overload]

    return MachineScope(machine, plain, user_data=b"#cloud-config", record=record)


def driver() -> InstanceDriver[NutanixCluster, NutanixMachine, Plain]:
    return InstanceDriver(PlainInstances(), LoopClock())


async def step(made: InstanceDriver[NutanixCluster, NutanixMachine, Plain], scope: Scope) -> Wait | None:
    return await made.converge(scope, await made.observe(scope))


@virtual
async def test_a_machine_is_created_powered_on_and_deleted_by_what_the_vendor_shows() -> None:
    plain, made = Plain(), driver()
    scope = scope_of(plain)
    reasons = [wait.reason for wait in (await step(made, scope), await step(made, scope)) if wait is not None]
    assert reasons == ["CreatingVM", "PoweringOn"]
    assert await step(made, scope) is None
    instance = await made.observe(scope)
    assert instance is not None
    assert instance.addresses == (Address("InternalIP", "10.0.0.5"), Address("Hostname", "a"))
    assert (await made.release(scope, instance)) == Wait("Deleting", "VM a is being deleted", after=1.0)
    assert await made.release(scope, await made.observe(scope)) is None


@virtual
async def test_a_machine_whose_creation_was_not_answered_is_found_before_another_is_created() -> None:
    plain, made = Plain(lose_replies=True), driver()
    scope = scope_of(plain)
    with pytest.raises(Unreachable):
        await step(made, scope)
    plain.lose_replies = False
    for _ in range(2):
        await step(made, scope)
    assert await step(driver(), scope) is None, "another process finds it, too"
    assert len(plain.machines) == len(plain.request_ids) == 1


@virtual
async def test_a_refused_creation_is_a_new_request_and_one_without_an_answer_the_same() -> None:
    plain, made = Plain(fail=[Unreachable("no answer"), Rejected("no"), Rejected("no")]), driver()
    scope = scope_of(plain)
    for error in (Unreachable, Rejected, Rejected):
        with pytest.raises(error):
            await step(made, scope)
    await step(made, scope)
    first, second, third, fourth = plain.request_ids
    assert first == second
    assert len({second, third, fourth}) == 3
    assert scope.infra.metadata.annotations[ATTEMPT] == "2"


@virtual
async def test_waiting_without_tasks_looks_less_and_less_often() -> None:
    plain, made = Plain(), driver()
    scope = scope_of(plain)
    add(scope, "a", complete=False)
    waits = [wait.after or 0.0 for wait in [await step(made, scope) for _ in range(12)] if wait is not None]
    assert len(waits) == 12
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1.0, 15.0)


@virtual
async def test_of_two_machines_for_one_object_the_one_that_never_ran_is_removed() -> None:
    plain, made = Plain(), driver()
    scope = scope_of(plain)
    add(scope, "a")
    running = add(scope, "a", power="on")
    found = await made.observe(scope)
    assert found == running
    assert list(plain.machines.values()) == [running]


@virtual
async def test_two_running_machines_for_one_object_are_left_to_the_user() -> None:
    plain, made = Plain(), driver()
    scope = scope_of(plain)
    add(scope, "a", power="on")
    add(scope, "a", power="on")
    with pytest.raises(Taken, match=r"NutanixMachine a: several running VMs have its mark: a .*In Plain, find out"):
        await made.observe(scope)
    assert len(plain.machines) == 2


@virtual
async def test_a_machine_that_the_vendor_is_deleting_is_waited_for() -> None:
    plain, made = Plain(), driver()
    scope = scope_of(plain)
    instance = add(scope, "a", deleting=True)
    wait = await made.release(scope, instance)
    assert wait is not None
    assert wait.reason == "Deleting"
    assert plain.machines, "no second request is sent"
