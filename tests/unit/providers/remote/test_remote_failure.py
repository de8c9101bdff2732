"""A job that failed on a remote machine is repeated after a pause, or when its object is changed."""

from __future__ import annotations

import msgspec
import pytest

from homeport.api.remote.v1beta2 import RemoteMachine
from homeport.providers.remote.failure import Failures
from homeport.runtime.outcome import Wait


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


WAIT = Wait("BootstrapFailed", "step 2 failed; the step is repeated in 15 s", after=15.0, warning=True)


def machine(annotations: dict[str, str] | None = None, generation: int = 1) -> RemoteMachine:
    meta = {"name": "one", "uid": "u", "generation": generation, "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta}, RemoteMachine)


def test_whatever_wakes_the_controller_the_pause_goes_on_with_one_message() -> None:
    clock = Hand()
    failures = Failures(clock)
    assert failures.rest(machine(), "provision", 1, WAIT) == WAIT
    clock.at += 5
    rest = failures.rest(machine({"remote.homeport.dev/owner": "u"}), "provision", 1, WAIT)
    assert rest == Wait("BootstrapFailed", WAIT.message, after=10.0, warning=True)
    clock.at += 10
    assert failures.rest(machine(), "provision", 1, WAIT) is None
    assert failures.rest(machine(), "provision", 2, WAIT) == WAIT


@pytest.mark.parametrize("changed", [machine(generation=2), machine({"example.com/look": "again"})])
def test_a_change_of_the_object_ends_the_pause(changed: RemoteMachine) -> None:
    failures = Failures(Hand())
    assert failures.rest(machine(), "provision", 1, WAIT) == WAIT
    assert failures.rest(changed, "provision", 1, WAIT) is None


def test_another_job_and_a_machine_that_was_forgotten_have_a_pause_of_their_own() -> None:
    failures = Failures(Hand())
    failures.rest(machine(), "provision", 1, WAIT)
    assert failures.rest(machine(), "cleanup", 1, WAIT) == WAIT
    failures.forget("u")
    assert failures.rest(machine(), "cleanup", 1, WAIT) == WAIT
