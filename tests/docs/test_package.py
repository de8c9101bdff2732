"""The package that pip, pipx and uv install: its licence, its command, and everything that it needs outside of a clone."""

from __future__ import annotations

import email.parser
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(folder),
        str(ROOT),
    ]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("homeport-*.whl")
    return found


def test_the_package_names_its_licence_and_contains_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        about = email.parser.Parser().parsestr(archive.read(name).decode())
        inside = archive.read(name.replace("METADATA", "licenses/LICENSE"))
    assert about["License-Expression"] == "Apache-2.0"
    assert about["License-File"] == "LICENSE"
    assert inside == (ROOT / "LICENSE").read_bytes()
    assert b"Apache License\n" in inside
    assert b"Version 2.0, January 2004" in inside


def test_the_package_starts_a_plane_without_the_clone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert str(tmp_path) in _run(tmp_path, "-c", "import homeport; print(homeport.__file__)")
    try:
        started = _run(tmp_path, "-m", "homeport", "up", "--sim", "--detach", "--listen", "127.0.0.1:0")
        assert "Homeport is ready at https://127.0.0.1:" in started
        assert "Simulated Prism Central is ready" in started
    finally:
        _run(tmp_path, "-m", "homeport", "down")


def _run(folder: Path, *arguments: str) -> str:
    """In a process that finds the package in the wheel first, and only its dependencies in this environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder / "site")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
