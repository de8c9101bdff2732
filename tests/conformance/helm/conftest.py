"""Real Helm 3 and 4, each with a home of its own, and a registry that both push to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from realhelm import Helm, Registry, find_programs


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    found = find_programs()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest, programs: dict[str, Path], tmp_path: Path) -> Helm:
    return Helm(programs[request.param], tmp_path / "home")


@pytest.fixture(scope="session")
def registry(programs: dict[str, Path]) -> Iterator[Registry]:
    with Registry(programs["registry"]) as started:
        yield started
