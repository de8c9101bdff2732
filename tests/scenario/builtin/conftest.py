from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from scenario.builtin.plane import Plane, play


@pytest.fixture(scope="session")
def _pki_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builtin")


@pytest.fixture
def on_plane(_pki_folder: Path) -> Callable[..., Any]:
    """`on_plane(scenario)`: a fresh server in memory with its loops, in virtual time."""

    def run(scenario: Callable[[Plane], Coroutine[Any, Any, Any]], **options: Any) -> Any:
        return play(_pki_folder, scenario, **options)

    return run
