"""`homeport sim prism` as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

START = "from homeport.cli.sim import command; command()"


def run(*arguments: str, tmp_path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "HOMEPORT_DATA": str(tmp_path / "data"), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", START, "prism", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip


def test_it_says_what_to_do_next_and_that_works(tmp_path: Path) -> None:
    process = run("--listen", "127.0.0.1:0", "--save", "saved.yaml", tmp_path=tmp_path)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        assert re.match(r"Simulated Prism Central is ready at https://127\.0\.0\.1:\d+$", lines[0])
        command = lines[3].removeprefix("next: ").strip()
        done = subprocess.run(["bash", "-c", f"{command} -s --noproxy '*'"], capture_output=True, text=True, timeout=30)
        assert "nutanix-cluster-1" in done.stdout, done.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert "nutanix-cluster-1" in (tmp_path / "saved.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world", "w.yaml"], "w.yaml:1: clusters: expected `array`, got `int`"),
        (["--faults", "f.yaml"], "f.yaml:1: faults[0].effect.kind: invalid value 'x'"),
        (["--speed", "soon"], "'soon' is not a valid speed"),
        (["--listen", "127.0.0.1:x"], "the port must be a number"),
    ],
)
def test_bad_input_is_refused_with_its_place(arguments: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("clusters: 1\n")
    (tmp_path / "f.yaml").write_text("faults: [{effect: {kind: x}}]\n")
    _, err = run(*arguments, tmp_path=tmp_path).communicate(timeout=30)
    assert told in err


def test_the_built_in_world_can_be_printed_and_loaded(tmp_path: Path) -> None:
    from homeport.sim.prism.world import default_world, parse_world

    out, _ = run("--print-world", tmp_path=tmp_path).communicate(timeout=30)
    assert parse_world(out) == default_world()
