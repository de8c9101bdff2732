"""The page that says what is proven of Butler's guides has every block, field and trouble, and names tests that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.test_coverage import names_in
from seeds import block
from seeds.test_harvester_trouble import TROUBLES as HARVESTER
from seeds.test_nutanix_trouble import TROUBLES as NUTANIX

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "butler-coverage.md").read_text()
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| ([NHP]\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_FIELD = re.compile(r"^\| ([\w, ]+) \| `(spec\.[\w.]+)` \| [^|]+ \|$", re.MULTILINE)
_TROUBLE = re.compile(r"^\| (Nutanix|Harvester) \| ([^|]+) \| `(\w+)` \|$", re.MULTILINE)
BLOCKS = {name.split("_")[0]: text for name, text in vars(block).items() if re.match(r"[NHP]\d\d_", name)}
# Blocks that are a part of an object, and which.
PARTS = {
    "N06": ("ClusterBootstrap",),
    "N07": ("ButlerConfig", "TenantCluster"),
    "N08": ("TenantCluster",),
    "N15": ("ProviderConfig",),
    "H09": ("TenantCluster",),
    "H10": ("TenantCluster",),
}


def test_every_block_has_its_row_once() -> None:
    assert [row[0] for row in _ROW.findall(PAGE)] == list(BLOCKS)


def test_every_test_that_is_named_exists() -> None:
    assert not [f"{path}::{name}" for path, name in _NAMED.findall(PAGE) if name not in names_in(path)]


def test_blocks_that_work_are_used_by_the_tests_of_their_row() -> None:
    for number, _, state, tests in _ROW.findall(PAGE):
        named = _NAMED.findall(tests)
        assert named, number
        if state.startswith("instead: "):
            continue
        assert state.split(";")[0] in ("works", "context"), number
        assert all(_uses(path, number) for path, _ in named if path.startswith("tests/seeds/")), number


def _uses(path: str, number: str) -> bool:
    """More than the import."""
    return len(re.findall(rf"\b{number}_\w+", (ROOT / path).read_text())) > 1


def test_every_field_of_the_blocks_has_its_row_once() -> None:
    listed = [(kind, field) for kinds, field in _FIELD.findall(PAGE) for kind in kinds.split(", ")]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(_fields())


def _fields() -> Iterator[tuple[str, str]]:
    for number, text in BLOCKS.items():
        found = yaml.safe_load(text) if "kubectl" not in text and "curl" not in text else None
        if not isinstance(found, dict) or "spec" not in found:
            continue
        for kind in PARTS.get(number) or (found["kind"],):
            yield from ((kind, path) for path in _leaves(found["spec"], "spec"))


def _leaves(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield path
        return
    for name, each in value.items():
        yield from _leaves(each, f"{path}.{name}")


def test_every_trouble_has_its_row_and_its_reason() -> None:
    listed = {(guide, name): reason for guide, name, reason in _TROUBLE.findall(PAGE)}
    made = {("Nutanix", name): each.reason for name, each in NUTANIX.items()}
    made |= {("Harvester", name): each.reason for name, each in HARVESTER.items()}
    assert listed == made
