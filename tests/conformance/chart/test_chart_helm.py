"""Our objects equal those of real helm, version 3 and version 4: from its recorded answers, and from itself if it is there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from conformance.chart import judge
from conformance.chart.judge import Case
from homeport.machinery.chart import ReleaseInfo, render

EVERY = [(case, major) for case in judge.cases() for major in case.majors]
NAMES = [f"{case.chart}-{case.name}-helm{major}" for case, major in EVERY]


@pytest.mark.parametrize(("case", "major"), EVERY, ids=NAMES)
def test_a_chart_is_rendered_as_helm_did_when_it_was_recorded(case: Case, major: int) -> None:
    expected = judge.golden(case, major)
    assert expected is not None, f"no recorded answer: run tools/record_charts.py {case.chart}"
    found = judge.ours(case, major)
    if expected == "refused":
        assert isinstance(found, str), f"helm refuses {case.chart} ({case.name}), we do not"
        return
    assert not isinstance(found, str), found
    assert not isinstance(expected, str)
    assert judge.comparable(found, case) == judge.comparable(expected, case)


@pytest.mark.parametrize("chart", sorted({case.chart for case in judge.cases()}))
@pytest.mark.parametrize("major", [3, 4])
def test_a_chart_is_rendered_as_real_helm_does(chart: str, major: int) -> None:
    program = judge.helm(major)
    if isinstance(program, str):
        pytest.skip(program)
    for case in judge.cases():
        if case.chart == chart and major in case.majors:
            _same(case, major, program, judge.API_VERSIONS)


def test_every_answer_belongs_to_a_case() -> None:
    kept = {f"{case.chart}.json" for case in judge.cases()}
    assert {path.name for path in judge.GOLDEN.glob("*.json")} == kept


@pytest.mark.parametrize("major", [3, 4])
def test_charts_of_a_folder_are_rendered_as_real_helm_does(major: int) -> None:
    """HOMEPORT_CHARTS names a folder of charts: folders with a Chart.yaml, or archives."""
    folder = os.environ.get("HOMEPORT_CHARTS")
    program = judge.helm(major)
    if not folder:
        pytest.skip("HOMEPORT_CHARTS names no folder of charts")
    if isinstance(program, str):
        pytest.skip(program)
    charts = _charts(Path(folder))
    assert charts, f"HOMEPORT_CHARTS={folder} has no charts"
    versions = judge.default_api_versions(program)
    for chart in charts:
        _same(Case(chart.name, folder=chart.parent, objects_only=True), major, program, versions)


NOTES = "Thank you for installing notes as web.\n  Open http://example.com/\n  1. kubectl get pods --namespace shop\n"


def test_notes_are_those_that_helm_showed() -> None:
    """As `helm4 install --dry-run=client -o json` gave them."""
    release = ReleaseInfo("web", "shop")
    chart = judge.load(judge.CORPUS / "notes")
    assert render(chart, {}, release).notes == NOTES
    assert render(chart, {}, release, subchart_notes=True).notes == f"notes of under\n\n{NOTES}"


def test_notes_are_those_of_real_helm(tmp_path: Path) -> None:
    program = judge.helm(4)  # version 3 asks a cluster, also for a dry run
    if isinstance(program, str):
        pytest.skip(program)
    command = [
        str(program),
        "install",
        "web",
        str(judge.CORPUS / "notes"),
        "--namespace=shop",
        "--dry-run=client",
        "-ojson",
    ]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "KUBECONFIG": str(tmp_path / "none")}
    ran = subprocess.run(command, capture_output=True, env=environment, check=True, timeout=120)
    assert json.loads(ran.stdout)["info"]["notes"] == NOTES


def _charts(folder: Path) -> list[Path]:
    inside = [path.parent for path in folder.glob("*/Chart.yaml")]
    return sorted([*inside, *folder.glob("*.tgz"), *([folder] if (folder / "Chart.yaml").exists() else [])])


def _same(case: Case, major: int, program: Path, versions: tuple[str, ...]) -> None:
    expected = judge.theirs(case, major, program, versions)
    found = judge.ours(case, major, versions)
    if isinstance(expected, str):
        assert isinstance(found, str), f"{case.chart} ({case.name}): helm says {expected}"
        return
    assert not isinstance(found, str), f"{case.chart} ({case.name}): {found}"
    wanted, made = judge.comparable(expected, case), judge.comparable(found, case)
    if case.objects_only and wanted != made:
        again = _again(case, major, program, versions)
        wanted, made = (judge.without_chance(each, wanted, again) for each in (wanted, made))
    assert made == wanted, f"{case.chart} ({case.name})"


def _again(case: Case, major: int, program: Path, versions: tuple[str, ...]) -> list[judge.Document]:
    found = judge.theirs(case, major, program, versions)
    assert not isinstance(found, str)
    return judge.comparable(found, case)
