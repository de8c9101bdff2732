"""Directories, disks and ports that can't be used: one sentence with the cure, exit code 1, no traceback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from smalldisk import run_on_small_disk

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

HOMEPORT = [sys.executable, "-m", "homeport"]
UP = ["up", "--listen", "127.0.0.1:0"]
SIM = ["sim", "prism", "--listen", "127.0.0.1:0"]


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOMEPORT, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("verb", [UP, [*UP, "--detach"], [*UP, "--sim"], SIM], ids=" ".join)
def test_a_file_in_the_place_of_a_directory(verb: Sequence[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    refused(homeport(*verb, "--data", str(file / "data")), str(file / "data"), "--data DIR")
    assert file.read_text() == "precious"


@pytest.mark.parametrize("verb", [UP, [*UP, "--detach"], SIM], ids=" ".join)
def test_a_read_only_file_system(verb: Sequence[str], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    done = run_on_small_disk(disk, "1m,ro", [*HOMEPORT, *verb, "--data", str(disk / "data")])
    refused(done, f"{disk / 'data'}: Read-only file system", "--data DIR")


@pytest.mark.parametrize("verb", [UP, [*UP, "--detach"], SIM], ids=" ".join)
def test_a_full_disk_says_what_to_do(verb: Sequence[str], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    fill = 'head -c 10m /dev/zero > "$0/others" 2> /dev/null; exec "$@"'
    command = ["sh", "-c", fill, str(disk), *HOMEPORT, *verb, "--data", str(disk / "data")]
    refused(run_on_small_disk(disk, "64k", command), str(disk), "ree some space")


def test_a_backup_that_can_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    subprocess.run([*HOMEPORT, *UP, "--detach", "--data", str(data)], check=True, capture_output=True, timeout=60)
    homeport("down", "--data", str(data))
    disk = tmp_path / "disk"
    written = [*HOMEPORT, "backup", str(disk / "plane.backup"), "--data", str(data)]
    listed = ["sh", "-c", '"$@"; code=$?; ls "$0"; exit $code', str(disk), *written]
    done = run_on_small_disk(disk, "64k", listed)
    refused(done, "No space left on device", "free some space")
    assert done.stdout == ""
    assert not list(data.glob("backup-*"))
    refused(run_on_small_disk(disk, "1m,ro", written), "Read-only file system")
    archive = tmp_path / "plane.backup"
    assert homeport("backup", str(archive), "--data", str(data)).returncode == 0
    target = disk / "data"
    restore = [*HOMEPORT, "restore", str(archive), "--data", str(target)]
    refused(run_on_small_disk(disk, "1m,ro", restore), "Read-only file system", "--data DIR")
    refused(run_on_small_disk(disk, "64k", restore), "ree some space")


def test_status_and_down_on_an_impossible_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    status = homeport("status", "--data", str(file / "data"))
    assert (status.returncode, status.stderr) == (3, "")
    down = homeport("down", "--data", str(file / "data"))
    assert (down.returncode, down.stderr) == (0, "")


def test_a_port_in_use_is_named_with_the_cure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        in_use = "the address is already in use; choose another"
        for name in ("prism", "harvester"):
            alone = homeport("sim", name, "--listen", where, "--data", str(tmp_path / name))
            refused(alone, f"--listen {where}: {in_use} with --listen")
        up = homeport(*UP, "--sim=prism", "--sim-listen", where, "--data", str(tmp_path / "b"))
        refused(up, f"--sim-listen {where}: {in_use} address")
        up = homeport(*UP, "--sim=harvester", "--sim-listen", where, "--data", str(tmp_path / "c"))
        refused(up, f"--sim-listen harvester={where}: {in_use} address")
