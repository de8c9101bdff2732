from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scenario.builtin.plane import OnPlane, play


@pytest.fixture(scope="session")
def _pki_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builtin")


@pytest.fixture
def on_plane(_pki_folder: Path) -> OnPlane:
    """`on_plane(scenario)`: a fresh server in memory with its loops, in virtual time."""
    return partial(play, _pki_folder)
