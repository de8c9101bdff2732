"""Which version of a chart is installed, and over which steps."""

from __future__ import annotations

import pytest

from homeport.addons.catalogue.entry import Chart, Entry
from homeport.addons.chart.version import VersionError, chosen_version, is_listed


def entry(*versions: str, stepwise: bool = True) -> Entry:
    return Entry(
        name="net",
        title="Net",
        category="cni",
        description="A network.",
        homepage="https://example.com",
        chart=Chart(repository="https://example.com", name="net"),
        versions=versions,
        namespace="net",
        one_minor_at_a_time=stepwise,
    )


NET = entry("1.20.0", "1.19.6", "1.19.5", "1.18.12", "1.17.18")


@pytest.mark.parametrize(
    ("wanted", "installed", "version"),
    [
        ("", "", "1.20.0"),
        ("1.19", "", "1.19.6"),
        ("1.19.x", "", "1.19.6"),
        ("1.x", "", "1.20.0"),
        ("1.19.5", "", "1.19.5"),
        ("v1.19.5", "", "1.19.5"),
        ("1.19.99", "", "1.19.99"),  # not in the catalogue, and the user knows
        ("1.20.0", "1.17.18", "1.18.12"),
        ("1.20.0", "1.18.12", "1.19.6"),
        ("1.20.0", "1.19.1", "1.20.0"),
        ("1.18.12", "1.20.0", "1.18.12"),  # back: whoever wants that says so
        ("1.20.0", "garbage", "1.20.0"),
    ],
)
def test_a_version_is_chosen(wanted: str, installed: str, version: str) -> None:
    assert chosen_version(wanted, NET, installed) == version


def test_without_steps_an_upgrade_is_direct() -> None:
    assert chosen_version("1.20.0", entry("1.20.0", "1.17.0", stepwise=False), "1.17.0") == "1.20.0"


@pytest.mark.parametrize(
    ("wanted", "why"), [("1.21.x", "no version of add-on net matches"), ("latest", "expected for example")]
)
def test_what_can_not_be_is_refused(wanted: str, why: str) -> None:
    with pytest.raises(VersionError, match=why):
        chosen_version(wanted, NET, "")


def test_a_missing_step_is_named() -> None:
    with pytest.raises(VersionError, match=r"set a version of 1\.18 first"):
        chosen_version("1.20.0", entry("1.20.0", "1.19.0"), "1.17.0")


def test_a_chart_of_the_users_own_needs_a_version_and_may_name_a_range() -> None:
    with pytest.raises(VersionError, match="needs a version"):
        chosen_version("", None, "")
    assert chosen_version("1.2.x", None, "") == "1.2.x"


def test_versions_outside_of_the_list_are_known() -> None:
    assert is_listed("v1.19.6", NET)
    assert is_listed("1.19.x", NET)
    assert not is_listed("1.19.7", NET)
