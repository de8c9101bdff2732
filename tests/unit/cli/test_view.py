"""What `homeport up` shows, as lines and as a picture."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest
from rich.console import Console

from homeport.app.report.description import (
    ClusterState,
    ControllerState,
    Description,
    Finding,
    Machines,
    PartState,
    Unfinished,
)
from homeport.app.report.part import Part
from homeport.app.tree.branch import Branch, Tree
from homeport.cli.cluster.drawing import draw
from homeport.cli.plane import status
from homeport.cli.plane.line import part_line, progress_line
from homeport.cli.plane.overview import Line, overview, summary
from homeport.cli.plane.render import drawn, picture

STUCK = Unfinished("Cup", "default/a", "WaitingForTea", "the kettle is on")
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


def test_a_line_of_progress_has_the_rates_since_the_last_one() -> None:
    assert progress_line(BEFORE, NOW, 10.0) == (
        "3 objects, 2.0 writes/s, 5.0 requests/s, 2.0 reconciles/s, 5 keys in queues, 7 objects unfinished"
    )


def test_parts_are_shown_when_they_start_or_crash() -> None:
    part = Part("loops", nothing)
    assert part_line(part) == ""
    part.state = "running"
    assert part_line(part) == "loops: running"
    part.state, part.error, part.crashes, part.retry_in = "waiting", "ValueError: x", 1, 0.5
    assert part_line(part) == "loops: crashed (ValueError: x), restarting in 0.5 s"
    part.state = "running"
    assert part_line(part) == "loops: running again after 1 crashes"


HEAD = [Line("Homeport 1.0  https://127.0.0.1:6443  up 0h00m01s"), Line("kubeconfig  /home/you/.homeport/kubeconfig")]


def cluster(name: str, **more: Any) -> ClusterState:
    fine = {"health": "Available", "version": "v1.30.0", "control_plane": Machines(3, 3), "workers": Machines(2, 2)}
    return ClusterState("default", name, **{**fine, **more})


SICK = cluster("pier", health="NotAvailable", control_plane=Machines(0, 3), workers=Machines(0, 2))
SECRET = Finding(
    "NutanixCluster",
    "default/pier",
    "Secret default/pier-prism, key credentials: is not valid JSON",
    ["Cluster pier", "KubeadmControlPlane pier", "MachineDeployment pier-workers", "MachineSet pier-workers-x"],
)
SCALING = Finding("KubeadmControlPlane", "default/harbour", "from 2 to 3 replicas")
HARBOUR = msgspec.structs.replace(
    cluster("harbour", health="Ready", control_plane=Machines(2, 3)),
    namespace="shop",
    kind="TenantCluster",
    cluster="harbour-1234/harbour",
)
FOUND = msgspec.structs.replace(NOW, clusters=[SICK, HARBOUR], stuck=[SECRET], under_way=[SCALING])


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def test_the_picture_shows_address_clusters_causes_and_what_is_under_way() -> None:
    assert texts(picture(FOUND, HEAD, 80, 24)) == [
        "Homeport 1.0  https://127.0.0.1:6443  up 0h00m01s",
        "kubeconfig  /home/you/.homeport/kubeconfig",
        "",
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
        *[""] * 8,
        "c: controllers   l: log   Ctrl-C: stop",
    ]


def test_controllers_are_shown_on_request_alone() -> None:
    assert not any("tea" in text for text in texts(picture(FOUND, HEAD, 80, 24)))
    shown = texts(picture(FOUND, HEAD, 80, 24, view="controllers"))
    assert shown[3:5] == [
        "CONTROLLER  QUEUED  DELAYED  UNFINISHED  RECONCILES  ERRORS",
        "tea              5        1           7          60       2",
    ]
    assert shown[-1] == "c: clusters   l: log   Ctrl-C: stop"


def test_the_log_is_shown_on_request_its_last_lines() -> None:
    shown = texts(picture(FOUND, HEAD, 80, 24, view="log", log=[f"line {number}" for number in range(100)]))
    assert shown[3:-1] == [f"line {number}" for number in range(80, 100)]
    assert shown[-1] == "c: controllers   l: clusters   Ctrl-C: stop"


def test_machines_of_an_old_version_count_as_not_done_yet() -> None:
    rolling = cluster("pier", control_plane=Machines(3, 3, 1), workers=Machines(2, 2, 0))
    lines = texts(overview(msgspec.structs.replace(NOW, clusters=[rolling])))
    assert lines[-1] == "  Cluster pier  [####----------------]  1 of 5 machines up to date"


def test_a_cluster_that_is_held_up_has_no_bar() -> None:
    found = msgspec.structs.replace(FOUND, clusters=[SICK], under_way=[])
    assert not any("[" in text for text in texts(overview(found)))


def test_the_next_command_is_about_the_cluster_that_is_not_well() -> None:
    lines = texts(overview(FOUND, command=lambda verb: f"homeport {verb} --data d"))
    assert "    next: homeport doctor cluster pier --data d" in lines
    sick = [SICK, msgspec.structs.replace(HARBOUR, health="NotReady")]
    lines = texts(
        overview(msgspec.structs.replace(FOUND, clusters=sick), command=lambda verb: f"homeport {verb} --data d")
    )
    assert "    next: homeport doctor --data d" in lines


def test_what_many_objects_report_is_one_line_with_the_time_and_their_number() -> None:
    same = [f"NutanixMachine m{number}" for number in range(5)]
    found = Finding("Cluster", "default/pier", "it can't be managed", since="2026-01-01T00:00:00Z", same=same)
    assert texts(overview(msgspec.structs.replace(FOUND, clusters=[], stuck=[found], under_way=[])))[-2:] == [
        "  Cluster pier (since 2026-01-01T00:00:00Z): it can't be managed",
        "    reported by 5 objects: NutanixMachine m0, NutanixMachine m1 and 3 more",
    ]


def test_what_stays_after_the_end_are_the_clusters_and_causes() -> None:
    lines = texts(summary(FOUND))
    assert lines[1].startswith("Cluster pier ")
    assert any("is not valid JSON" in line for line in lines)
    assert summary(NOW) == []


@pytest.mark.parametrize(("clusters", "stuck", "going"), [(0, 0, 0), (1, 0, 9), (40, 30, 30), (40, 0, 1), (2, 30, 0)])
def test_the_picture_fits_the_terminal_and_counts_what_it_leaves_out(clusters: int, stuck: int, going: int) -> None:
    long = msgspec.structs.replace(SECRET, message="a very long story " * 30, waiting=["Machine " + "x" * 90] * 4)
    found = msgspec.structs.replace(
        FOUND,
        clusters=[cluster(f"{'a-long-name-' * 9}{number}", version="v1.29.0 > v1.30.0") for number in range(clusters)],
        stuck=[long] * stuck,
        under_way=[SCALING] * going,
        controllers=[msgspec.structs.replace(NOW.controllers[0], name=f"c{number}") for number in range(40)],
    )
    for view in ("clusters", "controllers"):
        shown = picture(found, HEAD, 80, 24, view=view)
        assert len(shown) == 24, texts(shown)
        assert max(len(text) for text in texts(shown)) <= 80
    everything = "\n".join(texts(picture(found, HEAD, 80, 24)))
    if clusters == 40:
        assert "more clusters" in everything
    if stuck == 30:
        assert "Stuck:" in everything
        assert "more\n" in everything


def test_nothing_is_cut_off_where_there_is_no_terminal() -> None:
    long = msgspec.structs.replace(SECRET, message="a very long story " * 30)
    found = msgspec.structs.replace(FOUND, stuck=[long] * 30)
    assert sum("a very long story " * 30 in text for text in texts(overview(found))) == 30


def test_a_plane_without_clusters_says_how_to_make_one() -> None:
    lines = texts(overview(NOW, command=lambda verb: f"homeport {verb} --data d"))
    assert lines == ["No clusters yet", "next: homeport create cluster NAME --data d"]


def test_a_plane_that_has_stepped_back_says_so_instead() -> None:
    why = "this plane has stepped back: its clusters were moved to there"
    found = msgspec.structs.replace(BEFORE, standby=why)
    assert overview(found)[0] == Line(why, "yellow")
    assert [line.text for line in overview(found, width=40, height=20)][:2] == [
        "this plane has stepped back: its",
        "clusters were moved to there",
    ]


def test_markup_in_messages_is_shown_as_it_is() -> None:
    strange = msgspec.structs.replace(SECRET, message="[bold]not bold[/bold] [/nothing]")
    found = msgspec.structs.replace(FOUND, stuck=[strange])
    out = io.StringIO()
    Console(file=out, width=120).print(drawn(picture(found, HEAD, 120, 40)))
    assert "[bold]not bold[/bold] [/nothing]" in out.getvalue()


def test_a_tree_fits_a_narrow_terminal_with_its_header() -> None:
    machine = Branch(kind="Machine", namespace="default", name="harbour-workers-j79f7-brpqv", api_version="x/v1")
    root = Branch(kind="Cluster", namespace="default", name="harbour", api_version="x/v1", children=[machine])
    lines = [line.text for line in draw(Tree(root), width=30)]
    assert len(lines) == 3
    assert max(map(len, lines)) <= 30


def test_the_first_cause_is_shown_where_there_is_no_room_for_all_of_it() -> None:
    crowded = msgspec.structs.replace(FOUND, clusters=[SICK] * 9, stuck=[SECRET] * 9, under_way=[SCALING] * 9)
    lines = texts(overview(crowded, width=80, height=8))
    assert len(lines) <= 8
    assert lines[lines.index("Stuck: 9") + 1].startswith("  NutanixCluster pier: Secret default/pier-prism")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 24), (40, 12), (160, 50)])
def test_a_watched_status_never_leaves_the_terminal(columns: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Target:
        def head(self, found: Description) -> list[str]:
            return ["Homeport 0.1.0 runs at https://127.0.0.1:6443 (up 1m, process 1)", *["simulator " * 12] * 8]

        def command(self, words: str) -> str:
            return f"homeport {words} --data /a/directory/with/a/long/name"

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, rows)))
    crowded = msgspec.structs.replace(FOUND, clusters=[SICK, HARBOUR] * 20, stuck=[SECRET] * 9)
    found = texts(list(status._lines(cast(Any, Target()), crowded, controllers=False, watched=True)))
    assert len(found) < rows
    assert max(map(len, found)) <= columns
    assert found[0].startswith("Homeport 0.1.0 runs at https://127.0.0.1")
    assert any(line.startswith("  NutanixCluster pier: Secret") for line in found)
