from __future__ import annotations

import pytest

from homeport.client.protocol import Key
from homeport.runtime.pace import Pace, Pacer, status_changed

A = Key("default", "a")


def delays(pace: Pace, *steps: tuple[float, bool, bool]) -> list[float]:
    """Of loops at these times: (now, urgent, changed)."""
    pacer = Pacer(pace)
    return [pacer.delay(A, now, urgent=urgent, changed=changed) for now, urgent, changed in steps]


def test_without_a_pace_every_change_is_written_at_once() -> None:
    assert delays(Pace(), (0, False, True), (0, False, True)) == [0, 0]


def test_a_change_that_nobody_acts_on_waits_for_the_pace() -> None:
    assert delays(Pace(1.0), (10, False, True), (10.4, False, True), (11, False, True)) == [1.0, pytest.approx(0.6), 0]


@pytest.mark.parametrize("settle", [False, True])
def test_a_timer_that_fired_a_moment_early_is_in_time(settle: bool) -> None:
    assert delays(Pace(2.0, settle=settle), (10, False, True), (12 - 1e-9, False, True)) == [2.0, 0]


def test_an_urgent_change_is_written_at_once_and_starts_the_pace_again() -> None:
    assert delays(Pace(1.0), (10, True, True), (10.5, False, True)) == [0, 0.5]


def test_after_a_quiet_time_the_next_change_is_written_at_once() -> None:
    assert delays(Pace(1.0), (10, True, True), (20, False, True)) == [0, 0]


def test_a_settling_change_that_is_taken_back_is_never_written() -> None:
    steps = ((10, False, True), (11, False, False), (12.5, False, True), (14.5, False, True))
    assert delays(Pace(2.0, settle=True), *steps) == [2.0, 0, 2.0, 0]


def test_a_settling_change_waits_its_time_after_every_write() -> None:
    assert delays(Pace(2.0, settle=True), (10, True, True), (20, False, True)) == [0, 2.0]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([], [("Ready", "True")], True),
        ([], [("Ready", "False")], False),
        ([("Ready", "True")], [("Ready", "False")], True),
        ([("Ready", "False")], [("Ready", "False")], False),
        ([("Ready", "True")], [], False),
        ([], [("Other", "True")], False),
    ],
)
def test_a_condition_changed_when_its_status_did(
    before: list[tuple[str, str]], after: list[tuple[str, str]], changed: bool
) -> None:
    old, new = ([{"type": kind, "status": status} for kind, status in each] for each in (before, after))
    assert status_changed(old, new, ["Ready"]) is changed


def test_while_many_objects_have_such_a_change_each_is_written_less_often() -> None:
    pacer = Pacer(Pace(1.0))
    keys = [Key("default", f"o{number}") for number in range(300)]
    for key in keys:
        pacer.delay(key, 10, urgent=False, changed=True)
    assert pacer.delay(A, 10, urgent=False, changed=True) == 30.0
    assert pacer.delay(A, 10.5, urgent=True, changed=True) == 0, "what somebody acts on is never held back"
    for number in range(3000):
        pacer.delay(Key("other", f"o{number}"), 10, urgent=False, changed=True)
    assert pacer.delay(A, 11, urgent=False, changed=True) == 59.5, "what lasts for a minute is written"
    for number in range(3000):
        pacer.delay(Key("other", f"o{number}"), 11, urgent=False, changed=False)
    for key in keys:
        pacer.delay(key, 11, urgent=False, changed=False)
    assert pacer.delay(A, 11, urgent=False, changed=True) == 0.5


def test_while_writes_take_long_wording_is_written_less_often_and_what_somebody_acts_on_is_not() -> None:
    pacer = Pacer(Pace(1.0))
    for _ in range(50):
        pacer.took(0.5)
    assert pacer.delay(A, 10, urgent=False, changed=True) == pytest.approx(5.0, rel=0.01)
    assert pacer.delay(A, 10.5, urgent=True, changed=True) == 0
    for _ in range(50):
        pacer.took(60.0)
    assert pacer.delay(A, 10.5, urgent=False, changed=True) == 10.0, "nothing is held back for longer"
    for _ in range(50):
        pacer.took(0.01)
    assert pacer.delay(A, 10.5, urgent=False, changed=True) == pytest.approx(1.0)


def test_a_single_slow_write_changes_nothing() -> None:
    pacer = Pacer(Pace(1.0))
    pacer.took(0.4)
    assert pacer.delay(A, 10, urgent=False, changed=True) == 1.0
