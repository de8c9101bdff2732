"""The page that says what is proven of the Nutanix provider names tests that exist, and leaves out no case."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "nutanix-coverage.md").read_text()
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a module; none if there is no such module."""
    file = ROOT / path
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE) if file.exists() else ())


def test_every_test_that_is_named_exists() -> None:
    named = _NAMED.findall(PAGE)
    assert named
    assert not [
        f"{path}::{name}" for path, name in named if not names_in(path) or (name and name not in names_in(path))
    ]


def test_every_case_and_every_trouble_has_its_row_once() -> None:
    cases = re.findall(r"^\| (C\d\d) \|", PAGE, re.MULTILINE)
    assert cases == [f"C{number:02}" for number in range(1, 32)]
    troubles = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    assert troubles == [str(number) for number in range(1, 16)]


def test_every_row_names_a_test_or_says_why_not() -> None:
    rows = re.findall(r"^\| (C?\d+) \|[^|]*\| ?([^|]*)\|$", PAGE, re.MULTILINE)
    assert not [case for case, shown in rows if not shown.strip()]
