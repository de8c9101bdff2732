"""When the controllers of an old plane count as stopped."""

from __future__ import annotations

import pytest

from homeport.app.kubernetes.handover import still_working
from homeport.app.report.description import Description, PartState


def plane(standby: str, **states: str) -> Description:
    parts = [PartState(name.replace("_", " "), state) for name, state in states.items()]
    return Description(1, {}, 0, parts, [], {}, standby=standby)


@pytest.mark.parametrize(
    ("found", "working"),
    [
        (plane("", controllers="running", loops="running"), ["controllers"]),
        # It has stepped back, and a reconcile is still being ended.
        (plane("moved", controllers="running", loops="running"), ["controllers"]),
        (plane("moved", controllers="following", loops="running"), []),
        # A replica that stands by for another reason may start at any moment.
        (plane("", controllers="following"), ["controllers"]),
        (plane("moved", worker_1="following", worker_2="running"), ["worker 2"]),
        (plane("moved", controllers="waiting"), ["controllers"]),
        (None, []),
    ],
)
def test_a_plane_has_stopped_when_it_says_why_and_no_controller_works(
    found: Description | None, working: list[str]
) -> None:
    assert still_working(found) == working
