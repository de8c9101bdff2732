"""The reference page of the API server lists what is served and what is not, and nothing is on both lists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from homeport.apiserver.kinds import builtin_kinds

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/apiserver.md").read_text()
FACTS: dict[str, Any] = json.loads((ROOT / "src/homeport/apiserver/kinds/builtin.json").read_text())


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)^## ", PAGE, re.M | re.S)
    assert found is not None, f"no section {title!r}"
    return found[1]


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]+", text))


@pytest.mark.parametrize("kind", sorted({served.kind for served in builtin_kinds()}))
def test_a_kind_that_is_served_is_on_the_page(kind: str) -> None:
    served = section("Served")
    kinds = served[served.index("- **Kinds**") : served.index("- **Custom resources**")]
    assert kind in words(kinds)


@pytest.mark.parametrize("kind", FACTS["absent"])
def test_a_kind_of_kubernetes_that_is_not_served_is_on_the_page(kind: str) -> None:
    version, _, name = kind.rpartition("/")
    group = version.rpartition("/")[0]
    assert name in words(section("Not served"))
    served = {(each.group, each.kind) for each in builtin_kinds()}
    assert (group, name) not in served
