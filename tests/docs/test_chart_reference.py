"""The page on charts names every function that templates of charts can call."""

from __future__ import annotations

import re
from pathlib import Path

from homeport.machinery.chart.engine import names

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_every_function_of_charts_is_in_the_reference() -> None:
    text = (REFERENCE / "charts.md").read_text() + (REFERENCE / "templates.md").read_text()
    known = set(re.findall(r"`([A-Za-z0-9_]+)`", text))
    assert not sorted((names(3) | names(4)) - known)


def test_the_page_names_no_function_that_is_missing() -> None:
    table = re.search(r"^\| templates \|.*?(?=^`env`)", (REFERENCE / "charts.md").read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    listed = set(re.findall(r"`([A-Za-z0-9_]+)`", table[0])) - {"helm"}
    assert not sorted(listed - names(4))
