"""What an operator runs on a cluster of `homeport up --sim`: live views on a terminal, pipes, Ctrl-C, heal, images, top."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apply import apply
from homeport.machinery.yaml import load_all
from terminal import Terminal

pytestmark = [pytest.mark.timeout(400)]

EXAMPLES = Path(__file__).parents[2] / "examples"
HOMEPORT = [sys.executable, "-m", "homeport"]
METRICS = {
    "apiVersion": "addons.homeport.dev/v1alpha1",
    "kind": "ClusterAddon",
    "metadata": {"name": "metrics-server"},
    "spec": {"clusterName": "harbour", "addon": "metrics-server"},
}
SECONDS = 180.0


class Plane:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.place = ["--data", str(data)]
        # A user's own HOME and KUBECONFIG must not matter.
        kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "HOMEPORT_DATA")}
        self.environment = {**kept, "HOME": str(data.parent)}

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*HOMEPORT, *arguments, *self.place]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=self.environment)

    def homeport(self, *arguments: str) -> str:
        done = self.start(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def read(self, *arguments: str) -> Any:
        return json.loads(self.homeport(*arguments, "-o", "json"))

    def terminal(self, *arguments: str) -> Terminal:
        """All lines of the tree fit, whichever names the machines get."""
        return Terminal([*HOMEPORT, *arguments, *self.place], columns=120, rows=60, environment=self.environment)

    def machines(self) -> list[str]:
        return [each["machine"] for each in self.read("top", "machines")]

    def until_well(self) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            [cluster] = self.read("status")["clusters"]
            counts = [(part["ready"], part["desired"]) for part in (cluster["controlPlane"], cluster["workers"])]
            if cluster["health"] == "Available" and counts == [(3, 3), (2, 2)]:
                return
            assert time.monotonic() < deadline, cluster
            time.sleep(0.5)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("operator") / "data")
    made.homeport("up", "--listen", "127.0.0.1:0", "--sim", "prism", "--detach")
    try:
        account = [
            each
            for each in load_all((EXAMPLES / "09-tenant/tenant.yaml").read_text())
            if each["kind"] in ("Secret", "Namespace", "ProviderConfig")
        ]
        apply(made.data / "kubeconfig", [*account, *load_all((EXAMPLES / "02-cluster/cluster.yaml").read_text())])
        apply(made.data / "kubeconfig", [METRICS])
        made.until_well()
        yield made
    finally:
        made.start("down")


def test_top_shows_what_machines_use_beside_what_they_have(plane: Plane) -> None:
    deadline = time.monotonic() + SECONDS  # the simulated metrics-server measures once a minute
    while not (found := plane.read("top", "clusters")[0])["measured"]:
        assert time.monotonic() < deadline, found
        time.sleep(1.0)
    assert found["size"]["cpus"] == 10
    assert 0 < found["used"]["cpus"] < 10
    assert 0 < found["used"]["memoryBytes"] < found["size"]["memoryBytes"]
    head, *machines = plane.homeport("top", "machines", "-o", "wide").splitlines()
    assert head.split()[3:] == ["CPU", "USED", "MEMORY", "USED", "DISK", "NODE"]
    assert len(machines) == 5
    assert any("-" not in each.split() for each in machines)


def test_describe_and_status_follow_a_replacement_on_a_terminal_until_ctrl_c(plane: Plane) -> None:
    before = set(plane.machines())
    worker = next(name for name in sorted(before) if "workers" in name)
    with plane.terminal("describe", "cluster", "harbour", "--watch") as tree, plane.terminal("status", "-w") as status:
        tree.wait_until(lambda seen: worker in seen.text)
        assert tree.lines[0] == "Cluster harbour in namespace default"
        status.wait_until(lambda seen: "Cluster harbour" in seen.text)
        healed = plane.homeport("heal", worker, "--force", "--wait")
        assert f"Machine {worker} is marked: MachineSet " in healed
        assert f"Machine {worker} is gone" in healed
        tree.wait_until(lambda seen: worker not in seen.text, seconds=SECONDS)
        plane.until_well()
        [new] = set(plane.machines()) - before
        tree.wait_until(lambda seen: new in seen.text and "5 of 5 ready" in seen.text, seconds=SECONDS)
        status.wait_until(lambda seen: "2 of 2" in seen.text and "3 of 3" in seen.text, seconds=SECONDS)
        for terminal in (tree, status):
            assert terminal.lines[0].startswith(("Cluster harbour", "Homeport "))  # redrawn in place, not scrolled
            terminal.interrupt()
            assert terminal.wait() == 0
            assert "Traceback" not in terminal.history


def test_a_healthy_machine_is_not_replaced_without_force(plane: Plane) -> None:
    done = plane.start("heal", plane.machines()[0])
    assert done.returncode == 1
    assert "is healthy: use --force to replace it nevertheless" in done.stderr


def test_an_image_is_uploaded_and_then_listed(plane: Plane, tmp_path: Path) -> None:
    file = tmp_path / "deck.img"
    file.write_bytes(os.urandom(1 << 16))
    said = plane.homeport("image", "upload", "deck-1.0", "--file", str(file), "--provider-config", "nutanix-prod")
    assert said.splitlines()[-1].startswith("ImageSync butler-system/deck-1.0: Ready")
    again = plane.homeport("image", "upload", "deck-1.0", "--file", str(file), "--provider-config", "nutanix-prod")
    assert "Ready" in again
    names = plane.homeport("image", "list", "--provider-config", "nutanix-prod", "-o", "name").splitlines()
    assert names.count("image/deck-1.0") == 1


def test_the_console_of_a_machine_ends_with_its_join(plane: Plane) -> None:
    worker = next(name for name in plane.machines() if "workers" in name)
    assert "This node has joined the cluster" in plane.homeport("console", worker)


@pytest.mark.parametrize("verb", ["tree", "status", "addons list -o yaml", "tree --watch", "status --watch"])
def test_a_closed_pipe_ends_a_command_quietly(plane: Plane, verb: str) -> None:
    words = " ".join([*HOMEPORT, verb, *([] if verb.startswith("addons") else plane.place)])
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -1"], capture_output=True, text=True, timeout=SECONDS, env=plane.environment
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_terminal_without_unicode_gets_ascii(plane: Plane) -> None:
    command = [*HOMEPORT, "tree", "harbour", *plane.place]
    environment = {**plane.environment, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    assert done.returncode == 0, done.stderr
    assert "|-Infrastructure" in done.stdout
