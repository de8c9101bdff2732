"""Charts on disk and the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.helm.errors import SourceError
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "buoy"
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text("apiVersion: v2\nname: buoy\nversion: 1.2.3\n")
    (made / "templates" / "one.yaml").write_text("a: 1\n")
    return made


async def test_a_folder_is_a_chart(folder: Path) -> None:
    fetched = await ChartSource().fetch(ChartLocation(path=str(folder)))
    assert (fetched.version, sorted(fetched.files), fetched.digest) == (
        "1.2.3",
        ["Chart.yaml", "templates/one.yaml"],
        "",
    )


async def test_a_chart_of_a_folder_of_charts_is_found_by_name(folder: Path) -> None:
    fetched = await ChartSource().fetch(ChartLocation(path=str(folder.parent), chart="buoy"))
    assert fetched.version == "1.2.3"


async def test_ignored_files_are_left_out(folder: Path) -> None:
    (folder / ".helmignore").write_text("*.bak\n")
    (folder / "old.bak").write_text("x")
    fetched = await ChartSource().fetch(ChartLocation(path=str(folder)))
    assert "old.bak" not in fetched.files


async def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    (folder / "templates" / "link.yaml").symlink_to(tmp_path / "outside")
    with pytest.raises(SourceError, match=r"templates/link.yaml leads out of the chart's folder"):
        await ChartSource().fetch(ChartLocation(path=str(folder)))


@pytest.mark.parametrize("to", ["..", "/etc"])
async def test_a_link_to_a_folder_is_refused_and_not_left_out_in_silence(folder: Path, to: str) -> None:
    (folder / "templates" / "more").symlink_to(to)
    with pytest.raises(SourceError, match=r"templates/more is a link to a folder: copy the folder there"):
        await ChartSource().fetch(ChartLocation(path=str(folder)))


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (ChartLocation(path="/nowhere/x"), "does not exist"),
        (ChartLocation(), "exactly one of oci, repository and path"),
        (ChartLocation(path="/a", oci="oci://h/b"), "exactly one of oci, repository and path"),
        (ChartLocation(repository="https://x.example.com"), "name the chart of the repository"),
    ],
)
async def test_a_location_that_makes_no_sense_is_refused(location: ChartLocation, text: str) -> None:
    with pytest.raises(SourceError, match=text):
        await ChartSource().fetch(location)


async def test_a_folder_has_no_digest_to_pin(folder: Path) -> None:
    with pytest.raises(SourceError, match="package it"):
        await ChartSource().fetch(ChartLocation(path=str(folder), digest="sha256:" + "0" * 64))


async def test_an_empty_folder_is_not_a_chart(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"Chart.yaml is missing"):
        await ChartSource().fetch(ChartLocation(path=str(tmp_path)))
    with pytest.raises(SourceError, match=r"expected buoy-VERSION.tgz"):
        await ChartSource().fetch(ChartLocation(path=str(tmp_path), chart="buoy"))


async def test_a_folder_with_another_version_is_refused(folder: Path) -> None:
    assert (await ChartSource().fetch(ChartLocation(path=str(folder), version="1.x"))).version == "1.2.3"
    with pytest.raises(SourceError, match=r"no version matches '2.x'; the newest on offer are 1.2.3"):
        await ChartSource().fetch(ChartLocation(path=str(folder.parent), chart="buoy", version="2.x"))
