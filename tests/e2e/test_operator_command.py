"""What an operator runs on a cluster of `homeport up --sim`: live views on a terminal, pipes, Ctrl-C, heal, images, top."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from apply import apply
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.nutanix.v1beta1 import NutanixMachine
from homeport.client import kubeconfig
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.yaml import load_all
from terminal import Terminal

pytestmark = [pytest.mark.timeout(400)]

T = TypeVar("T")

EXAMPLES = Path(__file__).parents[2] / "examples"
HOMEPORT = [sys.executable, "-m", "homeport"]
METRICS = {
    "apiVersion": "addons.homeport.dev/v1alpha1",
    "kind": "ClusterAddon",
    "metadata": {"name": "metrics-server"},
    "spec": {"clusterName": "harbour", "addon": "metrics-server"},
}
SECONDS = 180.0


def on(plane: Plane, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    async def run() -> T:
        client = HttpClient(kubeconfig.load(plane.data / "kubeconfig"))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


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

    def terminal(self, *arguments: str, columns: int = 120, rows: int = 60) -> Terminal:
        """By default all lines of the tree fit, whichever names the machines get."""
        command = [*HOMEPORT, *arguments, *self.place]
        return Terminal(command, columns=columns, rows=rows, environment=self.environment)

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


@pytest.mark.parametrize(("columns", "rows"), [(60, 24), (80, 12)])
def test_status_on_a_small_terminal_is_redrawn_in_place_with_its_clusters(
    plane: Plane, columns: int, rows: int
) -> None:
    with plane.terminal("status", "--watch", columns=columns, rows=rows) as status:
        status.wait_until(lambda seen: "Cluster harbour" in seen.text)
        assert status.lines[0].startswith("Homeport ")
        assert len(status.lines) <= rows
        status.interrupt()
        assert status.wait() == 0


def test_create_asks_again_until_an_answer_fits_and_ctrl_c_writes_nothing(plane: Plane) -> None:
    with plane.terminal("create", "cluster", "quay", "--no-plan") as terminal:

        def answer(question: str, text: str) -> None:
            terminal.wait_until(lambda seen: seen.lines[-1:] != [] and question in seen.lines[-1])
            terminal.press(f"{text}\n".encode())
            terminal.wait_until(lambda seen: question not in seen.lines[-1] or seen.lines[-1].endswith(":"))

        answer("API", "")
        answer("Provider", "")
        answer("Secret with the credentials", "")
        answer("Address of Prism Central", " ")
        terminal.wait_until(lambda seen: "an answer is needed" in seen.text)
        answer("Address of Prism Central, as HOST or HOST:PORT [prism-central.example.com]", "")
        terminal.wait_until(lambda seen: "Reading what the hypervisor has" in seen.text)
        answer("Cluster of the hypervisor", "")
        terminal.wait_until(lambda seen: "Image of the machines [" in seen.text)
        default = terminal.lines[-1].partition("[")[2].partition("]")[0]
        assert any(line.strip().startswith(f"{default}. ") and "kubernetes v1." in line for line in terminal.lines)
        answer("Image of the machines", "")
        answer("Network of the machines", "")
        answer("Free IP address", "harbour")
        terminal.wait_until(lambda seen: "--endpoint harbour: not an IP address" in seen.text)
        terminal.interrupt()
        assert terminal.wait() == 1
        assert "Traceback" not in terminal.history
    assert [each["name"] for each in plane.read("status")["clusters"]] == ["harbour"]


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


def test_an_image_that_can_not_be_downloaded_says_why_while_it_is_tried_again(plane: Plane) -> None:
    source = ("--url", "http://127.0.0.1:1/reef.qcow2", "--provider-config", "nutanix-prod")
    with plane.terminal("image", "upload", "reef-1.0", *source) as upload:
        upload.wait_until(lambda seen: "connection refused" in "".join(seen.lines))
        upload.interrupt()
        assert upload.wait() != 0
        assert "Traceback" not in upload.history


def test_a_mistyped_secret_is_named_with_the_nearest_one(plane: Plane) -> None:
    wrong = plane.start("discover", "--secret", "harbor-prism")
    assert wrong.returncode == 1
    assert "Secret default/harbor-prism does not exist; did you mean 'harbour-prism'" in wrong.stderr


def test_the_console_of_a_machine_ends_with_its_join(plane: Plane) -> None:
    worker = next(name for name in plane.machines() if "workers" in name)
    assert "This node has joined the cluster" in plane.homeport("console", worker)


def test_logs_of_a_name_that_does_not_exist_are_an_error(plane: Plane) -> None:
    worker = next(name for name in plane.machines() if "workers" in name)
    assert worker in plane.homeport("logs", f"machine/{worker}")
    for thing, told in ((f"machine/{worker}x", f"did you mean '{worker}'"), ("boat/x", "the plane has no such kind")):
        wrong = plane.start("logs", thing)
        assert wrong.returncode == 1
        assert told in wrong.stderr


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


# -- what -o prints, of commands that need a hypervisor or a release ---------------------------------------------------

CONFIG = ("--provider-config", "nutanix-prod")


def test_discover_prints_facts_names_and_ids(plane: Plane) -> None:
    found = {each["name"]: each for each in plane.read("discover", "images", *CONFIG)}
    image = found["ubuntu-22.04-kube-v1.29.0"]
    assert (image["kind"], image["usable"], image["details"]["kubernetes"]) == ("image", True, "v1.29.0")
    assert not found["ubuntu-22.04-server-iso"]["usable"]
    names = plane.homeport("discover", "networks", *CONFIG, "-o", "name").splitlines()
    assert "network/vm-network" in names
    assert all(name.startswith("network/") for name in names)
    more(plane, ("discover", "images", *CONFIG), "ID", image["id"])


def test_image_list_prints_facts_names_and_ids(plane: Plane) -> None:
    found = {each["name"]: each for each in plane.read("image", "list", *CONFIG)}
    image = found["ubuntu-22.04-kube-v1.30.0"]
    assert image["details"]["kubernetes"] == "v1.30.0"
    assert "image/ubuntu-22.04-kube-v1.30.0" in plane.homeport("image", "list", *CONFIG, "-o", "name").splitlines()
    more(plane, ("image", "list", *CONFIG), "ID", image["id"])


def more(plane: Plane, words: tuple[str, ...], column: str, cell: str) -> None:
    """The wide table has this column and cell, the usual one has not."""
    usual, wide = plane.homeport(*words), plane.homeport(*words, "-o", "wide")
    heads = [next(line.split() for line in text.splitlines() if "NAME" in line.split()) for text in (usual, wide)]
    assert column not in heads[0]
    assert column in heads[1]
    assert cell not in usual
    assert cell in wide


def test_preflight_prints_each_check_and_names_what_failed(plane: Plane, tmp_path: Path) -> None:
    found = plane.read("preflight", "cluster", "harbour")
    assert {(each["kind"], each["name"]) for each in found} == {("NutanixCluster", "harbour")}
    assert "ReferencesResolved" in {each["check"] for each in found if each["ok"]}
    assert plane.homeport("preflight", "cluster", "harbour", "-o", "name") == ""
    text = (
        (EXAMPLES / "02-cluster/cluster.yaml")
        .read_text()
        .replace("harbour", "jetty")
        .replace("10.0.0.101", "10.0.0.109")
    )
    file = tmp_path / "wrong.yaml"
    file.write_text(text.replace("name: vm-network", "name: vm-netwrok"))
    failed = plane.start("preflight", "-f", str(file), "-o", "json")
    assert failed.returncode == 1
    [wrong] = [each for each in json.loads(failed.stdout) if not each["ok"]]
    assert wrong["check"] == "ReferencesResolved"
    assert "vm-netwrok" in wrong["message"]
    assert "vm-network" in wrong["message"]
    assert plane.start("preflight", "-f", str(file), "-o", "name").stdout == "nutanixcluster/jetty\n"
    wide = plane.start("preflight", "-f", str(file), "-o", "wide").stdout
    assert "failed  NutanixCluster jetty: ReferencesResolved" in wide


def test_chart_show_and_history_print_facts_and_names(plane: Plane) -> None:
    chart = str(EXAMPLES / "08-chart/buoy")
    shown = json.loads(subprocess.check_output([*HOMEPORT, "chart", "show", chart, "-o", "json"], text=True))
    assert (shown["name"], shown["version"], shown["appVersion"]) == ("buoy", "1.0.0", "1")
    name = subprocess.check_output([*HOMEPORT, "chart", "show", chart, "-o", "name"], text=True)
    assert name == "chart/buoy\n"
    plane.homeport("chart", "install", "mine", chart)
    [release] = plane.read("chart", "history", "mine")
    assert (release["name"], release["chart"], release["status"]) == ("mine", "buoy-1.0.0", "deployed")
    assert plane.homeport("chart", "history", "mine", "-o", "name") == "release/mine\n"
    [shown, wide] = [plane.homeport("chart", "history", "mine", *more).splitlines()[0] for more in ((), ("-o", "wide"))]
    assert set(shown.split()) < set(wide.split())


def test_orphans_list_prints_the_vm_that_lost_its_object(plane: Plane) -> None:
    assert plane.read("orphans", "list", "harbour") == []
    worker = next(name for name in plane.machines() if "workers" in name)
    on(plane, lambda client: forget(client, worker))
    deadline = time.monotonic() + SECONDS
    while not (found := plane.read("orphans", "list", "harbour")):
        assert time.monotonic() < deadline
        time.sleep(1.0)
    [orphan] = found
    assert (orphan["name"], orphan["role"], orphan["power"]) == (worker, "worker", "on")
    assert plane.homeport("orphans", "list", "harbour", "-o", "name") == f"vm/{worker}\n"
    assert "KEPT" in plane.homeport("orphans", "list", "harbour", "-o", "wide").splitlines()[0].split()


async def forget(client: HttpClient, name: str) -> None:
    """Removes a Machine's objects by force, while no controller looks: its VM stays."""
    harbour = Key("default", "harbour")
    await client.patch(Cluster, harbour, MergePatch({"spec": {"paused": True}}))
    for kind in (NutanixMachine, Machine):
        paused = await client.get(kind, Key("default", name))
        assert paused.metadata.finalizers
        await client.delete(kind, Key("default", name))
        with contextlib.suppress(NotFound):
            await client.patch(kind, Key("default", name), MergePatch({"metadata": {"finalizers": None}}))
    await client.patch(Cluster, harbour, MergePatch({"spec": {"paused": None}}))
