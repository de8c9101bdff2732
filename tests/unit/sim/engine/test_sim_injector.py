"""Which faults strike, and how often."""

from __future__ import annotations

import pytest

from homeport.sim.engine.fault import Crash, Drop, Fault, Match, NoBoot, Outage, Status
from homeport.sim.engine.injector import Injector, Subject


class HandClock:
    time = 100.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def struck(injector: Injector, subject: Subject, times: int) -> list[int]:
    return [number for number in range(1, times + 1) if injector.on_request(subject)]


GET = Subject(method="GET", path="/api/vmm/v4.3/ahv/config/vms", route="/api/vmm/{v}/ahv/config/vms")


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (Match(), [1, 2, 3, 4, 5, 6]),
        (Match(nth=2), [2]),
        (Match(nth=(1, 4)), [1, 4]),
        (Match(every=3), [3, 6]),
        (Match(method="POST"), []),
        (Match(method="get", route="/api/vmm/*/vms"), [1, 2, 3, 4, 5, 6]),
        (Match(route="/api/vmm/{v}/ahv/config/vms"), [1, 2, 3, 4, 5, 6]),
        (Match(share=0.0), []),
    ],
)
def test_a_fault_strikes_what_its_match_says(match: Match, expected: list[int]) -> None:
    injector = Injector(HandClock(), [Fault(effect=Status(status=500), match=match)])
    assert struck(injector, GET, 6) == expected


def test_a_share_strikes_about_that_often_and_the_same_way_for_a_seed() -> None:
    faults = [Fault(effect=Drop(), match=Match(share=0.3))]
    first = struck(Injector(HandClock(), faults, seed=7), GET, 1000)
    assert 230 < len(first) < 370
    assert struck(Injector(HandClock(), faults, seed=7), GET, 1000) == first
    assert struck(Injector(HandClock(), faults, seed=8), GET, 1000) != first


def test_a_fault_strikes_no_more_than_its_times() -> None:
    injector = Injector(HandClock(), [Fault(effect=Drop(), times=2)])
    assert struck(injector, GET, 5) == [1, 2]
    assert (injector.counts[0].met, injector.counts[0].struck) == (2, 2)


def test_a_fault_lives_in_its_window() -> None:
    clock = HandClock()
    injector = Injector(clock, [Fault(effect=Outage(), match=Match(cluster="pe-*", after=10, until=20))])
    subject = Subject(kind="cluster", clusters=("PE-1",))
    seen = {}
    for moment in (0, 10, 19.9, 20):
        clock.time = 100 + moment
        seen[moment] = injector.holds(subject, Outage) is not None
    assert seen == {0: False, 10: True, 19.9: True, 20: False}


def test_entities_are_met_by_name_id_cluster_and_state() -> None:
    vm = Subject(kind="vm", name="web-1", ext_id="id-1", clusters=("c1", "cid"), state={"powerState": "ON"})
    for match in (
        Match(kind="vm", entity="web-*"),
        Match(entity="id-1"),
        Match(cluster="cid"),
        Match(state={"powerState": "ON"}),
    ):
        assert Injector(HandClock(), [Fault(effect=NoBoot(), match=match)]).strike(vm, NoBoot)
    for match in (Match(kind="image"), Match(entity="db-*"), Match(cluster="c2"), Match(state={"powerState": "OFF"})):
        assert not Injector(HandClock(), [Fault(effect=NoBoot(), match=match)]).strike(vm, NoBoot)


def test_only_faults_of_the_asked_kind_are_counted() -> None:
    injector = Injector(HandClock(), [Fault(effect=Crash(), name="crash"), Fault(effect=Drop(), name="drop")])
    assert [name for name, _ in injector.on_request(GET)] == ["drop"]
    assert {count.fault.name: count.met for count in injector.counts} == {"crash": 0, "drop": 1}


def test_faults_have_names_and_are_removed_by_them() -> None:
    injector = Injector(HandClock(), [Fault(effect=Drop()), Fault(effect=Drop(), name="mine")])
    assert [count.fault.name for count in injector.counts] == ["fault-1", "mine"]
    with pytest.raises(ValueError, match="mine"):
        injector.add(Fault(effect=Drop(), name="mine"))
    assert injector.remove("mine")
    assert not injector.remove("mine")
