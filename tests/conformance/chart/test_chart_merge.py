"""Values of charts and subcharts, merged at random, equal those that helm has given for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.chart import judge, mergecase
from homeport.machinery.chart import Capabilities, ChartError, ReleaseInfo, load_chart, render

ANSWERS: dict[str, Any] = json.loads(mergecase.RECORDED.read_text())


@pytest.mark.parametrize("major", [3, 4])
@pytest.mark.parametrize("number", range(mergecase.COUNT))
def test_values_are_merged_as_helm_merges_them(number: int, major: int) -> None:
    chart = load_chart(mergecase.chart_files(number))
    given = mergecase.case(number)["user"]
    before = json.dumps([chart.values, given])
    found: Any
    try:
        made = render(chart, given, ReleaseInfo("web"), Capabilities(helm_version=judge.VERSIONS[major]))
        found = {each.source: each.object["data"]["v"] for each in made.manifests}
    except ChartError:
        found = "refused"
    assert found == ANSWERS[f"{number}/helm{major}"]
    assert json.dumps([chart.values, given]) == before
