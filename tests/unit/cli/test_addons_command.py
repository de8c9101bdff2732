"""`homeport addons`: the catalogue on the command line."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from homeport.addons.catalogue import catalogue
from homeport.cli.charts.addons import command


def test_the_list_has_every_add_on_with_its_newest_version() -> None:
    done = CliRunner().invoke(command, ["list"])
    assert done.exit_code == 0
    rows = {line.split()[0]: line for line in done.output.splitlines()}
    assert all(entry.newest in rows[name] for name, entry in catalogue().items())


def test_an_add_on_is_shown_with_its_chart_and_parameters() -> None:
    done = CliRunner().invoke(command, ["show", "metallb"])
    assert done.exit_code == 0
    assert "metallb of https://metallb.github.io/metallb" in done.output
    assert "addresses (strings, required)" in done.output
    assert "autoAssign (boolean, default: true)" in done.output


def test_a_name_that_is_mistyped_is_corrected() -> None:
    for words in (["show", "metalb"], ["pull", "metalb"]):
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 2
        assert "did you mean metallb?" in done.output


def test_a_version_that_can_not_be_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["pull", "cilium=9.9.x", "--destination", str(tmp_path)])
    assert done.exit_code == 1
    assert "no version of add-on cilium matches 9.9.x" in done.output
