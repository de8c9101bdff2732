"""The systemd unit: systemd accepts it, and its command starts a plane that stops as the unit expects."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "config/systemd/homeport.service"
PROGRAM = "/opt/homeport/bin/homeport"


def command_line() -> list[str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    parser.read(UNIT)
    return shlex.split(parser["Service"]["ExecStart"])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on PATH")
    # systemd-analyze also checks that the program exists.
    text = UNIT.read_text()
    assert PROGRAM in text
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace(PROGRAM, sys.executable))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    about = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about) == (0, []), done.stderr


def test_systemd_rejects_a_setting_that_does_not_exist(tmp_path: Path) -> None:
    """Or else the test above could not fail."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on PATH")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(PROGRAM, sys.executable).replace("KillMode=mixed", "KillMode=gently"))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    assert "gently" in done.stderr


def test_the_command_of_the_unit_starts_a_plane_that_stops_cleanly_on_sigterm(tmp_path: Path) -> None:
    program, *arguments = command_line()
    assert program == PROGRAM
    assert arguments[-1] == "$OPTIONS"
    changes = {"/var/lib/homeport": str(tmp_path / "data"), "127.0.0.1:6443": "127.0.0.1:0"}
    assert set(changes) <= set(arguments)
    command = [sys.executable, "-m", "homeport", *(changes.get(each, each) for each in arguments[:-1])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert re.match(r"Homeport is ready at https://127\.0\.0\.1:\d+", first)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    # Restart=on-failure starts it again after any other code.
    assert process.returncode == 0, errors


def test_the_guide_installs_what_the_unit_runs() -> None:
    guide = (ROOT / "docs/howto/service.md").read_text()
    unit = UNIT.read_text()
    user = re.search(r"^User=(\w+)$", unit, re.M)
    assert user is not None
    assert re.search(rf"useradd .*\b{user[1]}$", guide, re.M)
    assert f"python3 -m venv {Path(PROGRAM).parents[1]}\n" in guide
    assert "StateDirectory=homeport\n" in unit
    assert "/var/lib/homeport" in guide
