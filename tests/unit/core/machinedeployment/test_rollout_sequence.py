"""Whole rollouts: the same end, whatever the order, and the limits kept after every event."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.core.machinedeployment.rollout_sequence import SEQUENCES, Sequence
from unit.core.machinedeployment.rollout_world import World

_TURNS = 6000


def run(sequence: Sequence, seed: int, lag: int = 0) -> World:
    """The rollout from the first template to the last; fails when a limit is broken or it does not end."""
    world = World(sequence.replicas, sequence.strategy, sequence.surge, sequence.unavailable, seed, lag)  # type: ignore[arg-type]
    world.have("a", sequence.replicas)
    world.template = "b"
    world.remember()
    changed = not (sequence.scale_to or sequence.change_spec)
    for turn in range(_TURNS):
        if not changed and turn >= 2 and _half_way(world, sequence):
            changed = True
            _change(world, sequence)
        if sequence.strategy == "OnDelete":
            _delete_some(world, sequence)
        if changed and world.settled():
            break
        if sequence.random or lag:
            world.some_turn()
        else:
            world.every_turn()
    assert changed
    assert world.settled(), f"it does not end: {world.sets}"
    return world


def _half_way(world: World, sequence: Sequence) -> bool:
    new = world.current()
    return new is not None and bool(new.machines) and world.random.random() < 0.5


def _change(world: World, sequence: Sequence) -> None:
    if sequence.change_spec:
        world.template = "c"
    else:
        world.replicas = sequence.scale_to
        world.relax()
        world.limits.least = min(world.limits.least, world.available)  # a scale-up takes its time


def _delete_some(world: World, sequence: Sequence) -> None:
    """The user deletes old Machines, a few at a time, while all is well."""
    old = [m for each in world.sets.values() if each.template != world.template for m in each.machines.values()]
    missing = world.replicas - world.available
    for machine in [m for m in old if not m.deleting][: max(sequence.deletes - missing, 0)]:
        if world.current() is not None:
            machine.deleting = True


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: s.name)
def test_a_rollout_ends_with_the_wanted_template_and_keeps_its_limits(sequence: Sequence) -> None:
    for seed in range(10):
        world = run(sequence, seed)
        new = world.current()
        assert new is not None
        assert len(new.machines) == world.replicas == (sequence.scale_to or sequence.replicas)
        assert all(not each.machines and not each.replicas for each in world.sets.values() if each is not new)


@pytest.mark.parametrize("sequence", [s for s in SEQUENCES if s.random and not s.in_place], ids=lambda s: s.name)
def test_a_rollout_keeps_its_surge_though_the_planner_sees_machines_late(sequence: Sequence) -> None:
    for seed in range(5):
        run(sequence, seed, lag=12)


@settings(max_examples=150, deadline=None)
@given(
    replicas=st.integers(0, 9),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    scale=st.one_of(st.none(), st.integers(0, 12)),
    again=st.booleans(),
    lag=st.sampled_from([0, 0, 3, 15]),
    seed=st.integers(0, 2**32),
)
def test_surge_and_unavailability_hold_in_any_order(
    replicas: int, surge: int, unavailable: int, scale: int | None, again: bool, lag: int, seed: int
) -> None:
    if not surge and not unavailable:
        unavailable = 1  # as the reconciler resolves it
    sequence = Sequence(replicas, surge, unavailable, random=True, scale_to=scale or 0, change_spec=again)
    world = World(replicas, "RollingUpdate", surge, unavailable, seed, lag)
    world.have("a", replicas)
    world.template = "b"
    world.remember()
    for turn in range(_TURNS):
        if turn == 25 and scale is not None:
            _change(world, Sequence(replicas, scale_to=scale))
        if turn == 40 and again:
            _change(world, sequence)
        if turn > 40 and world.settled():
            break
        world.some_turn()
    assert world.settled()


@settings(max_examples=80, deadline=None)
@given(replicas=st.integers(1, 7), broken=st.integers(1, 7), surge=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_old_machines_of_no_use_do_not_hold_up_a_rollout(replicas: int, broken: int, surge: int, seed: int) -> None:
    unavailable = 0 if surge else 1
    world = World(replicas, "RollingUpdate", surge, unavailable, seed, lag=0)
    world.have("a", replicas, available=max(replicas - broken, 0))
    # What does not work now will not by itself: only new Machines become available.
    stuck = {m.name for m in world.machines if not m.available}
    world.template, world.limits.least = "b", 0
    for _ in range(_TURNS):
        if world.settled():
            break
        world.some_turn()
        for machine in world.machines:
            if machine.name in stuck:
                machine.available = False
    assert world.settled()


def test_a_rollout_stops_when_new_machines_do_not_become_available() -> None:
    world = World(6, "RollingUpdate", 2, 1, seed=1, lag=0)
    world.have("a", 6)
    world.template = "b"
    good = {m.name for m in world.machines}
    for _ in range(500):
        world.some_turn()
        for machine in world.machines:
            machine.available = machine.available and machine.name in good
    new = world.current()
    assert new is not None
    assert sum(m.available for m in world.machines) == 5
    assert len(new.machines) == 3


# -- the logs of another implementation ----------------------------------------------------------------------------

_REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
_COUNTS = re.compile(r"^    md: (?:md: )?(\d+)/(\d+) replicas, (\d+) available, (\d+) upToDate", re.MULTILINE)


@pytest.mark.skipif(not _REFERENCE, reason="HOMEPORT_REFERENCE names no folder with rollout logs")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: s.name)
def test_our_rollout_stays_within_what_the_reference_shows(sequence: Sequence) -> None:
    folder = Path(_REFERENCE) / "rollouts" / ("ondelete" if sequence.strategy == "OnDelete" else "rollingupdate")
    log = (folder / f"{sequence.name}.test.log.golden").read_text()
    counts = [tuple(map(int, found)) for found in _COUNTS.findall(log)]
    assert counts, "the log has no counts"
    replicas, wanted, available, up_to_date = counts[-1]
    world = run(sequence, seed=0)
    assert (world.total, world.replicas, world.available) == (replicas, wanted, available)
    new = world.current()
    assert new is not None
    assert len(new.machines) == up_to_date or sequence.strategy == "OnDelete"
    largest = max(sequence.replicas, *(count[1] for count in counts))
    most = max(max(count[0] for count in counts), largest + sequence.surge)
    assert world.peak <= most
    if sequence.strategy == "RollingUpdate":
        smallest = min(sequence.replicas, *(count[1] for count in counts))
        assert world.low >= min(min(count[2] for count in counts), max(smallest - sequence.unavailable, 0))


@pytest.mark.skipif(not _REFERENCE, reason="HOMEPORT_REFERENCE names no folder with rollout logs")
def test_every_rollout_of_the_reference_is_among_ours() -> None:
    logs = {path.name.removesuffix(".test.log.golden") for path in Path(_REFERENCE, "rollouts").glob("*/*.golden")}
    assert logs == {sequence.name for sequence in SEQUENCES}
