"""Where a machine was found last."""

from __future__ import annotations

import pytest

from homeport.api.kubevirt.v1alpha1 import KubevirtMachine
from homeport.infra.machine.location import LOCATION, Location, await_location, is_recorded

HERE = "https://harvester:6443, namespace default"


def machine(recorded: str) -> KubevirtMachine:
    made = KubevirtMachine()
    if recorded:
        made.metadata.annotations = {LOCATION: recorded}
    return made


@pytest.mark.parametrize(
    ("recorded", "location", "recognised", "held"),
    [
        ("", Location(), True, False),
        ("", Location(HERE, "a"), False, False),
        (HERE, Location(HERE), True, False),
        (HERE, Location(HERE, "a"), False, False),  # a record of an older release: completed when the machine is found
        (f"{HERE}, identity a", Location(HERE, "a"), True, False),
        (f"{HERE}, identity a", Location(HERE), True, False),  # the account may not read it any more
        (f"{HERE}, identity a", Location(HERE, "b"), False, True),
        (HERE, Location("https://other:6443, namespace default"), False, True),
        (f"{HERE}, identity a", Location("https://other:6443, namespace default", "a"), False, True),
    ],
)
def test_a_machine_is_missed_only_where_it_was_found(
    recorded: str, location: Location, recognised: bool, held: bool
) -> None:
    infra = machine(recorded)
    assert is_recorded(infra, location) is recognised
    assert (await_location(infra, location) is not None) is held
