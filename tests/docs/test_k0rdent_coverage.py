"""The page that says what is proven of k0rdent's guide has every block and trouble, and names tests that use them."""

from __future__ import annotations

import re
from pathlib import Path

from docs.test_coverage import names_in
from scenario.k0rdent.test_causes import CAUSES
from seeds import k0rdent_block
from seeds.test_k0rdent_config import TROUBLES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "k0rdent-coverage.md").read_text()
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (K\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_TROUBLE = re.compile(r"^\| [^|]+ \| `([a-z-]+)` \| works(?:; [^|]+)? \|$", re.MULTILINE)
BLOCKS = [name.split("_")[0] for name in vars(k0rdent_block) if re.match(r"K\d\d_", name)]


def test_every_block_has_its_row_once() -> None:
    assert [row[0] for row in _ROW.findall(PAGE)] == BLOCKS


def test_every_test_that_is_named_exists() -> None:
    assert not [f"{path}::{name}" for path, name in _NAMED.findall(PAGE) if name not in names_in(path)]


def test_every_block_has_a_state_and_is_used_by_the_tests_of_its_row() -> None:
    for number, _, state, tests in _ROW.findall(PAGE):
        assert re.match(r"works(;|$)|instead: |not yet: ", state), number
        named = _NAMED.findall(tests)
        assert named, number
        assert all(_uses(path, number) for path, _ in named), number


def _uses(path: str, number: str) -> bool:
    """More than the import."""
    return len(re.findall(rf"\b{number}_\w+", (ROOT / path).read_text())) > 1


def test_every_trouble_has_its_row() -> None:
    assert sorted(_TROUBLE.findall(PAGE)) == sorted([*TROUBLES, *CAUSES])
