"""The page with totals lists every block, command and field of the five guides, and its numbers are those of the pages."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from docs.guide import GUIDES, REFERENCE, Guide
from docs.test_coverage import names_in

PAGE = (REFERENCE / "coverage.md").read_text()
MODEL = (REFERENCE / "object-model-coverage.md").read_text()
STATES = {"works", "context", "instead", "not yet"}


def total_row(guide: Guide) -> str:
    states = Counter(guide.states.values())
    shown = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    numbers = f"{len(guide.blocks)} | {shown} | {len(list(guide.commands()))} | {len(guide.fields())}"
    return f"| [{guide.title}]({guide.page}) | {numbers} |"


def command_rows(guide: Guide) -> list[str]:
    return [f"| {name} | `{text}` | {guide.states[name]} |" for name, text in guide.commands()]


def field_rows(guide: Guide) -> list[str]:
    return [f"| {guide.letter} | {kind} | `{path}` | works |" for kind, path in guide.fields()]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.letter)
def test_every_block_has_a_state(guide: Guide) -> None:
    assert guide.states.keys() == guide.blocks.keys()
    assert set(guide.states.values()) <= STATES


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.letter)
def test_totals_commands_and_fields_are_on_the_page(guide: Guide) -> None:
    missing = [row for row in [total_row(guide), *command_rows(guide), *field_rows(guide)] if row not in PAGE]
    assert not missing, "\n".join(missing)


def test_nothing_is_on_the_page_that_no_guide_has() -> None:
    listed = re.findall(r"^\| (?:[NHPKO]\d\d|[NHPKO]) \| .*$", PAGE, re.M)
    known = {row for guide in GUIDES for row in [*command_rows(guide), *field_rows(guide)]}
    assert not [row for row in listed if row not in known]
    assert len(listed) == len(set(listed))


def test_tests_of_the_object_model_exist_and_use_their_blocks() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", MODEL)
    assert named
    assert not [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    used = (REFERENCE.parents[1] / "tests/seeds/test_object_model.py").read_text()
    (guide,) = [each for each in GUIDES if each.letter == "O"]
    assert not [name for name in guide.blocks if len(re.findall(rf"\b{name}_\w+", used)) < 2]
