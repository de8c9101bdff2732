"""What `homeport up` shows, as lines and as a picture."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from homeport.app.description import ControllerState, Description, PartState, Unfinished
from homeport.app.part import Part
from homeport.cli.line import part_line, progress_line
from homeport.cli.render import picture

STUCK = Unfinished("default/a", "WaitingForTea", "the kettle is on")
BEFORE = Description(
    revision=100,
    objects={"machines": 3},
    requests=10,
    parts=[PartState("loops", "running"), PartState("controllers", "waiting", 2, "ValueError: x", 4.0)],
    controllers=[ControllerState("tea", 5, 1, 0, 40, 2, 7, [STUCK])],
    blind={"cups.example.com": "forbidden"},
)
NOW = msgspec.structs.replace(
    BEFORE,
    revision=120,
    requests=60,
    controllers=[msgspec.structs.replace(BEFORE.controllers[0], reconciles=60)],
)


async def nothing() -> None:
    return None


def test_a_line_of_progress_has_the_rates_since_the_last_one():
    assert progress_line(BEFORE, NOW, 10.0) == (
        "3 objects, 2.0 writes/s, 5.0 requests/s, 2.0 reconciles/s, 5 keys in queues, 7 objects unfinished"
    )


def test_parts_are_told_when_it_matters():
    part = Part("loops", nothing)
    assert part_line(part) == ""
    part.state = "running"
    assert part_line(part) == "loops: running"
    part.state, part.error, part.crashes, part.retry_in = "waiting", "ValueError: x", 1, 0.5
    assert part_line(part) == "loops: crashed (ValueError: x), starting again in 0.5 s"
    part.state = "running"
    assert part_line(part) == "loops: running again after 1 crashes"


def test_the_picture_shows_parts_rates_queues_and_what_is_stuck():
    out = io.StringIO()
    Console(file=out, width=120).print(picture(BEFORE, NOW, 10.0, "https://127.0.0.1:6443"))
    shown = " ".join(out.getvalue().split())
    assert "● loops ✗ controllers ValueError: x, again in 4 s" in shown
    assert "3 of 1 kinds at revision 120, 2.0 writes/s" in shown
    assert "requests 5.0/s" in shown
    assert "tea 5 1 2.0 2 7" in shown
    assert "can't follow cups.example.com: forbidden" in shown
    assert "default/a: WaitingForTea: the kettle is on (tea)" in shown
    assert "and 6 more: see 'homeport status'" in shown


def test_markup_in_messages_is_shown_as_it_is():
    strange = msgspec.structs.replace(STUCK, message="[bold]not bold[/bold] [/nothing]")
    now = msgspec.structs.replace(NOW, controllers=[msgspec.structs.replace(NOW.controllers[0], unfinished=[strange])])
    out = io.StringIO()
    Console(file=out, width=120).print(picture(BEFORE, now, 1.0, "x"))
    assert "[bold]not bold[/bold] [/nothing]" in out.getvalue()
