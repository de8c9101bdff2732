"""Where a chart comes from: its own address, a mirror for all, or a folder for sites without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.addons.chart.shelf import locate
from homeport.api.addon.v1alpha1 import ChartSource
from homeport.app.settings import SettingsError, read_charts
from homeport.capi.chartsettings import ChartSettings
from homeport.helm.source.reference import ChartLocation

REPOSITORY = ChartSource(repository="https://charts.example.com", name="web")
REGISTRY = ChartSource(repository="oci://registry.example.com/charts/web")
PARENT = ChartSource(repository="oci://registry.example.com/charts", name="web")


@pytest.mark.parametrize(
    ("source", "settings", "location"),
    [
        (REPOSITORY, {}, {"repository": "https://charts.example.com", "chart": "web"}),
        (REGISTRY, {}, {"oci": "oci://registry.example.com/charts/web"}),
        (PARENT, {}, {"oci": "oci://registry.example.com/charts/web"}),
        (REPOSITORY, {"mirror": "oci://mirror.local/all"}, {"oci": "oci://mirror.local/all/web"}),
        (REGISTRY, {"mirror": "oci://mirror.local/all"}, {"oci": "oci://mirror.local/all/web"}),
        (REGISTRY, {"mirror": "https://mirror.local"}, {"repository": "https://mirror.local", "chart": "web"}),
        (REPOSITORY, {"folder": Path("/srv/charts")}, {"path": "/srv/charts", "chart": "web"}),
        (REGISTRY, {"folder": Path("/srv/charts")}, {"path": "/srv/charts", "chart": "web"}),
    ],
)
def test_a_chart_is_looked_for_in_one_place(
    source: ChartSource, settings: dict[str, str], location: dict[str, str]
) -> None:
    found = locate(source, "1.2.3", ChartSettings(**settings))  # type: ignore[arg-type]
    assert found == ChartLocation(**location, version="1.2.3")


def test_settings_that_can_not_work_are_refused_at_the_start(tmp_path: Path) -> None:
    assert read_charts(tmp_path, "").folder == tmp_path
    assert read_charts(None, "oci://mirror.local/charts/").mirror == "oci://mirror.local/charts"
    with pytest.raises(SettingsError, match="the folder does not exist"):
        read_charts(tmp_path / "missing", "")
    with pytest.raises(SettingsError, match="expected for example oci://"):
        read_charts(None, "mirror.local/charts")
    with pytest.raises(SettingsError, match="exclude each other"):
        read_charts(tmp_path, "oci://mirror.local")
