"""`homeport sim harvester` as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.sim.harvester.kind import NODE
from homeport.sim.harvester.world import default_world, parse_world

START = "from homeport.cli.sim import command; command()"


def run(*arguments: str, tmp_path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "HOMEPORT_DATA": str(tmp_path / "data"), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", START, "harvester", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip


async def test_it_writes_a_kubeconfig_that_works_and_that_of_a_node(tmp_path: Path) -> None:
    process = run("--listen", "127.0.0.1:0", "--state", "state.db", tmp_path=tmp_path)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(5)]
        assert re.match(r"Simulated Harvester is ready at https://127\.0\.0\.1:\d+$", lines[0])
        kubeconfig, node = (Path(line.rpartition(": ")[2]) for line in lines[1:3])
        assert lines[4] == f"next: kubectl --kubeconfig {kubeconfig} get nodes"
        assert {path.stat().st_mode & 0o777 for path in (kubeconfig, node)} == {0o600}
        assert load(node).server == "https://127.0.0.1:6443"
        async with HttpClient(load(kubeconfig)) as client:
            assert len((await client.list(NODE)).items) == 3
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert (tmp_path / "state.db").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world", "w.yaml"], "w.yaml:1: nodes: expected `array`"),
        (["--faults", "f.yaml"], "f.yaml:1: faults[0].effect.kind: 'task-hang' does not apply to harvester"),
        (["--speed", "soon"], "'soon' is not a valid speed"),
        (["--listen", "127.0.0.1:x"], "the port must be a number"),
    ],
)
def test_bad_input_is_refused_with_its_place(arguments: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("nodes: 1\n")
    (tmp_path / "f.yaml").write_text("faults: [{effect: {kind: task-hang}}]\n")
    _, err = run(*arguments, tmp_path=tmp_path).communicate(timeout=30)
    assert told in err


def test_the_built_in_world_and_the_kubeconfig_of_a_node_can_be_printed(tmp_path: Path) -> None:
    out, _ = run("--print-world", tmp_path=tmp_path).communicate(timeout=30)
    assert parse_world(out) == default_world()
    out, _ = run("--print-rke2", tmp_path=tmp_path).communicate(timeout=30)
    (cluster,) = yaml.safe_load(out)["clusters"]
    assert (cluster["name"], cluster["cluster"]["server"]) == ("default", "https://127.0.0.1:6443")
