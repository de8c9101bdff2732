"""The log of a plane that runs for months has a bound."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.app.plane.housekeeping import LogFile


@pytest.fixture
def out(tmp_path: Path) -> Iterator[int]:
    """A descriptor as a detached plane has it."""
    descriptor = os.open(tmp_path / "homeport.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    yield descriptor
    os.close(descriptor)


def test_a_full_log_goes_on_in_a_new_file_and_the_oldest_is_removed(tmp_path: Path, out: int) -> None:
    file = LogFile(tmp_path / "homeport.log", max_bytes=100, keep=2)
    rotated = 0
    for number in range(10):
        os.write(out, b"%d" % number * 60)
        rotated += file.rotate((out,))
    os.write(out, b"last")
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert rotated == 5
    assert found == {
        "homeport.log": b"last",
        "homeport.log.1": b"8" * 60 + b"9" * 60,
        "homeport.log.2": b"6" * 60 + b"7" * 60,
    }
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_both_descriptors_of_a_plane_move_together(tmp_path: Path, out: int) -> None:
    second = os.dup(out)
    os.write(out, b"x" * 100)
    assert LogFile(tmp_path / "homeport.log", max_bytes=100).rotate((out, second))
    os.write(out, b"a")
    os.write(second, b"b")
    os.close(second)
    assert (tmp_path / "homeport.log").read_bytes() == b"ab"


def test_what_goes_elsewhere_is_left_alone(tmp_path: Path, out: int) -> None:
    os.write(out, b"x" * 200)
    read, write = os.pipe()
    try:
        assert not LogFile(tmp_path / "homeport.log", max_bytes=100).rotate((write,))
        assert not LogFile(tmp_path / "other.log", max_bytes=100).rotate((out,))
    finally:
        os.close(read)
        os.close(write)
    assert [path.name for path in tmp_path.iterdir()] == ["homeport.log"]
