"""The live view on terminals of two sizes, as a person sees it."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path

import msgspec
import pyte
import pytest
from rich.console import Console

from homeport.app.report.description import Description
from homeport.cli.plane.render import Screen
from unit.cli.test_view import FOUND, HARBOUR, SCALING, SECRET, SICK, cluster

CROWD = msgspec.structs.replace(
    FOUND,
    clusters=[SICK, HARBOUR, *(cluster(f"berth-{number:02}") for number in range(40))],
    stuck=[SECRET] * 12,
    under_way=[SCALING] * 12,
)


async def draw(found: Description, columns: int, rows: int) -> pyte.Screen:
    """What the terminal shows after two pictures."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=columns, height=rows, color_system="standard")
    screen = Screen("https://127.0.0.1:6443", "/home/you/.homeport/kubeconfig", Path("/none"), 0.0, console)
    drawn = 0

    def describe() -> Description:
        nonlocal drawn
        drawn += 1
        if drawn == 3:
            raise asyncio.CancelledError
        screen._pressed.set()  # the next picture at once
        return found

    view = asyncio.ensure_future(screen.follow(describe))
    with contextlib.suppress(asyncio.CancelledError):
        await view
    shown = pyte.Screen(columns, rows)
    # Up to the moment at which the terminal is given back.
    pyte.Stream(shown).feed(out.getvalue().rpartition("\x1b[?1049l")[0].replace("\n", "\r\n"))
    return shown


def rows_of(screen: pyte.Screen) -> list[str]:
    return [row.rstrip() for row in screen.display]


async def test_80_by_24_shows_header_clusters_cause_progress_and_keys() -> None:
    rows = rows_of(await draw(FOUND, 80, 24))
    assert rows[0].startswith("Homeport ")
    assert "https://127.0.0.1:6443" in rows[0]
    assert rows[1] == "kubeconfig  /home/you/.homeport/kubeconfig"
    assert rows[3:15] == [
        "NAME                        HEALTH         VERSION  CONTROL PLANE  WORKERS",
        "Cluster pier                Not available  v1.30.0  0 of 3         0 of 2",
        "TenantCluster shop/harbour  Ready          v1.30.0  2 of 3         2 of 2",
        "",
        "Stuck:",
        "  NutanixCluster pier: Secret default/pier-prism, key credentials: is not valid",
        "    JSON",
        "    waiting for it: Cluster pier, KubeadmControlPlane pier and 2 more",
        "",
        "Under way:",
        "  TenantCluster shop/harbour  [################----]  4 of 5 machines ready",
        "  KubeadmControlPlane harbour: from 2 to 3 replicas",
    ]
    assert rows[-1] == "c: controllers   l: log   Ctrl-C: stop"


async def test_160_by_50_has_room_for_whole_sentences() -> None:
    rows = rows_of(await draw(FOUND, 160, 50))
    assert rows[8] == "  NutanixCluster pier: Secret default/pier-prism, key credentials: is not valid JSON"
    assert rows[-1] == "c: controllers   l: log   Ctrl-C: stop"
    assert len(rows) == 50


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
async def test_a_crowd_keeps_the_header_and_counts_what_does_not_fit(columns: int, rows: int) -> None:
    shown = rows_of(await draw(CROWD, columns, rows))
    assert shown[0].startswith("Homeport ")
    assert shown[-1].startswith("c: controllers")
    text = "\n".join(shown)
    assert "more clusters" in text
    assert "Stuck:" in text
    assert "Under way" in text
    assert "  and " in text
