"""`homeport up --sim` on a terminal, from the empty plane to a cluster and Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apply import apply
from homeport.machinery.yaml import load_all
from terminal import Terminal

pytestmark = [pytest.mark.timeout(240)]

CLUSTER = Path(__file__).parents[2] / "examples" / "02-cluster" / "cluster.yaml"
KEYS = "c: controllers   l: log   Ctrl-C: stop"
HOMEPORT = [sys.executable, "-m", "homeport"]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_the_view_follows_a_cluster_and_leaves_a_summary(tmp_path: Path, columns: int, rows: int) -> None:
    arguments = [*HOMEPORT, "up", "--data", str(tmp_path), "--listen", "127.0.0.1:0", "--sim", "--speed", "x10"]
    with Terminal(arguments, columns=columns, rows=rows) as terminal:
        terminal.wait_until(lambda seen: "No clusters yet" in seen.text and KEYS in seen.lines, seconds=90)
        assert terminal.lines[0].startswith("Homeport ")
        assert f"kubeconfig  {tmp_path / 'kubeconfig'}" in "".join(terminal.lines[1:3])
        assert len(terminal.lines) == rows
        apply(tmp_path / "kubeconfig", load_all(CLUSTER.read_text()))
        terminal.wait_until(lambda seen: "Cluster harbour" in seen.text and "machines ready" in seen.text)
        assert terminal.lines[0].startswith("Homeport ")
        assert "[" in next(line for line in terminal.lines if "machines ready" in line)
        terminal.press(b"c")
        terminal.wait_until(lambda seen: "RECONCILES" in seen.text)
        terminal.press(b"l")
        terminal.wait_until(lambda seen: "controller=" in seen.text)
        terminal.press(b"l")
        terminal.wait_until(lambda seen: "Available" in seen.text and "2 of 2" in seen.text, seconds=150)
        terminal.wait_until(lambda seen: seen.lines[-1] == KEYS)
        terminal.interrupt()
        assert terminal.wait() == 0
        assert "Homeport is ready at https://127.0.0.1:" in terminal.history  # as before the view
        assert "RECONCILES" not in terminal.text
        left = terminal.history.partition("Homeport stops after ")[2]
        assert "Cluster harbour  Available" in left
        assert f"log: {tmp_path / 'homeport.log'}" in left.replace("\n", "")
        assert f"next: homeport up --data {tmp_path}" in left.replace("\n", "")


def test_the_next_start_remembers_the_address_and_the_simulators(tmp_path: Path) -> None:
    def homeport(*arguments: str) -> str:
        done = subprocess.run(
            [*HOMEPORT, *arguments, "--data", str(tmp_path)], capture_output=True, text=True, timeout=90
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        first = homeport("up", "--listen", "127.0.0.1:0", "--sim", "prism", "--detach")
        url = first.split()[4]
        homeport("down")
        again = homeport("up", "--detach")
        assert "simulating prism as at the last start (--sim none turns it off)" in again
        assert f"listening at {url.removeprefix('https://')} as at the last start" in again
        assert f"Homeport is ready at {url} " in again
        assert "Simulated Prism Central" in again
        homeport("down")
        without = homeport("up", "--detach", "--sim", "none")
        assert "warning" in without
        assert "Simulated" not in without
        homeport("down")
        assert "simulating" not in homeport("up", "--detach")
    finally:
        homeport("down")
