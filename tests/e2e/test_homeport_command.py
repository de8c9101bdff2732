"""The `homeport` command as its user meets it: real processes, real files, real signals."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

T = TypeVar("T")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    """Where `--plugin sample_controller:...` is found."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class Plane:
    def __init__(self, data: Path) -> None:
        self.data = data

    def homeport(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=environment())
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def up(self, *more: str) -> int:
        """Starts in the background; gives the process number."""
        self.homeport("up", "--listen", "127.0.0.1:0", "--detach", *more)
        return int(json.loads((self.data / "run.json").read_bytes())["pid"])

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.request_text(method, path, body))
        return answer

    def request_text(self, method: str, path: str, body: object = None) -> str:
        script = (
            "import sys, json, asyncio\n"
            "from homeport.client import kubeconfig\n"
            "from homeport.client.http import HttpClient\n"
            "from pathlib import Path\n"
            "async def main():\n"
            "    client = HttpClient(kubeconfig.load(Path(sys.argv[1])))\n"
            "    body = sys.argv[4].encode() if sys.argv[4] else None\n"
            "    answer = await client.raw(sys.argv[2], sys.argv[3], body)\n"
            "    await client.close()\n"
            "    print(answer.body.decode())\n"
            "asyncio.run(main())\n"
        )
        config = str(self.data / "kubeconfig")
        arguments = [sys.executable, "-c", script, config, method, path, json.dumps(body) if body else ""]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create_config_map(self, name: str) -> dict[str, Any]:
        path = "/api/v1/namespaces/default/configmaps"
        return self.request("POST", path, {"metadata": {"name": name}, "data": {"k": "v"}})

    def read_config_map(self, name: str) -> dict[str, Any]:
        return self.request("GET", f"/api/v1/namespaces/default/configmaps/{name}")


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    plane = Plane(tmp_path / "data")
    yield plane
    plane.homeport("down", check=False)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_up_is_ready_when_it_returns_and_keeps_its_secrets_to_itself(plane: Plane) -> None:
    done = plane.homeport("up", "--listen", "127.0.0.1:0", "--detach")
    assert str(plane.data / "kubeconfig") in done.stdout
    assert "next: export KUBECONFIG=" in done.stdout
    names = {item["metadata"]["name"] for item in plane.request("GET", "/api/v1/namespaces")["items"]}
    assert {"default", "kube-system"} <= names
    for path in [plane.data / "kubeconfig", *plane.data.glob("pki/*"), *plane.data.glob("state.db*")]:
        assert mode(path) == 0o600, path
    assert mode(plane.data) == mode(plane.data / "pki") == 0o700


def test_a_second_up_on_the_same_data_says_that_it_already_runs(plane: Plane) -> None:
    pid = plane.up()
    again = plane.homeport("up", "--listen", "127.0.0.1:0", check=False)
    assert again.returncode == 1
    assert f"is already running on {plane.data} (process {pid}" in again.stdout
    assert plane.homeport("up", "--detach").returncode == 0


def test_of_several_that_start_in_the_same_moment_one_runs_and_all_say_so(plane: Plane) -> None:
    """The first start makes the keys: nobody else may make others meanwhile."""
    command = [sys.executable, "-m", "homeport", "up", "--data", str(plane.data), "--listen", "127.0.0.1:0", "--detach"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(4)]
    answers = [process.communicate(timeout=90)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4, answers
    pid = json.loads((plane.data / "run.json").read_bytes())["pid"]
    assert all(f"process {pid}" in answer for answer in answers), answers
    # Its certificates are of the authority that lies there, and it writes with the keys that lie there.
    plane.create_config_map("kept")
    plane.homeport("down")
    plane.up()
    assert plane.read_config_map("kept")["data"] == {"k": "v"}


def test_a_foreground_start_beside_one_that_is_not_ready_yet_is_refused(plane: Plane) -> None:
    plane.data.mkdir(mode=0o700)
    with (plane.data / "run.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(b"4711")
        lock.flush()
        refused = plane.homeport("up", "--listen", "127.0.0.1:0", check=False)
    assert refused.returncode == 1
    assert "in use by process 4711" in refused.stderr
    assert "homeport down" in refused.stderr
    assert not (plane.data / "pki").exists()


def test_a_taken_port_is_reported_with_its_holder_and_the_cure(plane: Plane) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = plane.homeport("up", "--listen", f"127.0.0.1:{port}", check=False)
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is already in use by process {os.getpid()}" in done.stderr
    assert "--listen 127.0.0.1:PORT" in done.stderr


def test_a_wrong_listen_address_is_refused_before_anything_is_made(plane: Plane) -> None:
    done = plane.homeport("up", "--listen", "localhost:http", check=False)
    assert done.returncode == 2
    assert "--listen 'localhost:http': the port must be a number" in done.stderr
    assert not plane.data.exists()


def test_sigterm_drains_and_exits_with_zero(plane: Plane) -> None:
    command = [sys.executable, "-m", "homeport", "up", "--data", str(plane.data), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert b"ready" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()
    assert plane.homeport("status", check=False).returncode == 3


def test_what_was_acknowledged_is_there_after_kill_9(plane: Plane) -> None:
    for round_ in range(3):
        pid = plane.up()
        made = plane.create_config_map(f"kept-{round_}")
        os.kill(pid, signal.SIGKILL)
        plane.up()
        for earlier in range(round_ + 1):
            assert plane.read_config_map(f"kept-{earlier}")["data"] == {"k": "v"}
        assert plane.read_config_map(f"kept-{round_}")["metadata"] == made["metadata"]
        plane.homeport("down")


def test_status_tells_where_it_runs_and_what_it_holds(plane: Plane) -> None:
    down = plane.homeport("status", check=False)
    assert down.returncode == 3
    assert "no plane is running" in down.stdout
    pid = plane.up()
    assert f"next: homeport up --data {plane.data}\n" in down.stdout
    up = plane.homeport("status").stdout
    assert f"process {pid}" in up
    assert f"kubeconfig  {plane.data / 'kubeconfig'}\n" in up
    assert "No clusters yet" in up
    assert "CONTROLLER" not in up
    assert "CONTROLLER" in plane.homeport("status", "--controllers").stdout


def test_status_as_data_is_what_scripts_read(plane: Plane) -> None:
    stopped = plane.homeport("status", "-o", "json", check=False)
    assert (stopped.returncode, json.loads(stopped.stdout)["running"]) == (3, False)
    pid = plane.up()
    as_json = json.loads(plane.homeport("status", "-o", "json").stdout)
    assert (as_json["running"], as_json["pid"], as_json["clusters"]) == (True, pid, [])
    as_yaml = yaml.safe_load(plane.homeport("status", "-o", "yaml").stdout)
    assert as_yaml["kubeconfig"] == as_json["kubeconfig"] == str(plane.data / "kubeconfig")


def test_a_simulated_plane_started_without_simulators_says_so_and_hints_repeat_the_options(plane: Plane) -> None:
    plane.up("--sim")
    plane.homeport("down")
    assert f"next: homeport up --data {plane.data}\n" in plane.homeport("status", check=False).stdout
    hint = f"homeport up --data {plane.data} --sim"
    detached = plane.homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim", "none").stdout
    assert f"warning: {plane.data} was used with --sim before" in detached
    assert hint in detached
    plane.homeport("down")
    again = plane.homeport("up", "--sim", "--listen", "127.0.0.1:0", "--detach").stdout
    assert "warning" not in again


def eventually(read: Callable[[], T], true: Callable[[T], bool], what: str, seconds: float = 30.0) -> T:
    """Processes of others tell nobody when they are done: asked again and again."""
    deadline = time.monotonic() + seconds
    while True:
        found = read()
        if true(found):
            return found
        assert time.monotonic() < deadline, f"{what}: {found}"
        time.sleep(0.05)


def sample(name: str, work: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"sample": "yes"}}, "data": {"work": work}}


def test_plugins_run_and_the_status_says_why_objects_are_stuck(plane: Plane) -> None:
    pid = plane.up("--plugin", "sample_controller:install")
    for work in ("sign", "wait", "fail"):
        plane.request("POST", "/api/v1/namespaces/default/configmaps", sample(work, work))
    signed = eventually(lambda: plane.read_config_map("sign"), lambda found: "signed" in found["data"], "not signed")
    assert signed["data"]["signed"] == str(pid)
    shown = eventually(
        lambda: plane.homeport("status", "--controllers").stdout,
        lambda text: "Stuck:\n  ConfigMap fail" in text and "Under way:\n  ConfigMap wait" in text,
        "the status",
    )
    assert "Stuck:\n  ConfigMap fail: RuntimeError: told to fail\n" in shown
    assert "Under way:\n  ConfigMap wait: he does not come\n" in shown
    assert "ConfigMap wait: WaitingForGodot: he does not come (sample)" in shown
    assert "ConfigMap fail: Failed: RuntimeError: told to fail (sample)" in shown
    assert "component controllers: running\n" in shown
    numbers = plane.request_text("GET", "/metrics")
    assert 'homeport_queue_depth{controller="sample"}' in numbers
    assert "apiserver_request_total{" in numbers


def test_a_part_that_crashes_is_started_again_and_the_status_tells(plane: Plane) -> None:
    plane.up("--plugin", "sample_controller:crash")
    shown = eventually(
        lambda: plane.homeport("status", "--controllers").stdout,
        lambda text: "controllers: running, 2 crashes" in text,
        "the status",
    )
    assert "the last: ValueError: broken 2" in shown
    assert "component loops: running\n" in shown
    log = (plane.data / "homeport.log").read_text()
    assert "controllers: crashed (ValueError: broken 1), restarting in" in log
    assert "controllers: running again after 2 crashes" in log


def test_a_plugin_that_can_not_be_loaded_is_reported_before_anything_is_made(plane: Plane) -> None:
    for name, why in (
        ("nowhere:install", "No module named 'nowhere'"),
        ("json:nothing", "no Component or function nothing"),
    ):
        refused = plane.homeport("up", "--plugin", name, check=False)
        assert refused.returncode == 2
        assert why in refused.stderr
    assert not plane.data.exists()


def test_a_backup_taken_while_running_restores_elsewhere_with_its_secrets(plane: Plane, tmp_path: Path) -> None:
    plane.up()
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "correct horse"}}
    plane.request("POST", "/api/v1/namespaces/default/secrets", secret)
    archive = tmp_path / "plane.backup"
    plane.homeport("backup", str(archive))
    assert mode(archive) == 0o600
    assert not list(plane.data.glob("backup-*"))

    other = Plane(tmp_path / "other")
    assert "next: homeport up" in other.homeport("restore", str(archive)).stdout
    other.up()
    try:
        found = other.request("GET", "/api/v1/namespaces/default/secrets/s")
        assert found["data"] == {"password": "Y29ycmVjdCBob3JzZQ=="}
    finally:
        other.homeport("down")


def test_a_backup_never_replaces_a_file_by_accident(plane: Plane, tmp_path: Path) -> None:
    plane.up()
    archive = tmp_path / "plane.backup"
    archive.write_text("precious")
    refused = plane.homeport("backup", str(archive), check=False)
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert archive.read_text() == "precious"


def test_restoring_over_a_running_plane_is_refused(plane: Plane, tmp_path: Path) -> None:
    plane.up()
    archive = tmp_path / "plane.backup"
    plane.homeport("backup", str(archive))
    refused = plane.homeport("restore", str(archive), check=False)
    assert refused.returncode == 1
    assert "homeport down" in refused.stderr
    assert plane.request("GET", "/api/v1/namespaces/default")["kind"] == "Namespace"


@pytest.mark.parametrize("content", [b"", b"not a tar at all", b"\0" * 4096])
def test_what_is_no_backup_is_refused_and_nothing_changes(plane: Plane, tmp_path: Path, content: bytes) -> None:
    plane.up()
    plane.create_config_map("kept")
    plane.homeport("down")
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    refused = plane.homeport("restore", str(broken), check=False)
    assert refused.returncode == 1
    assert str(broken) in refused.stderr
    plane.up()
    assert plane.read_config_map("kept")["data"] == {"k": "v"}


def test_a_damaged_database_is_reported_and_left_alone(plane: Plane) -> None:
    plane.up()
    plane.homeport("down")
    database = plane.data / "state.db"
    damaged = b"\x13" * 4096 + database.read_bytes()[4096:]
    database.write_bytes(damaged)
    refused = plane.homeport("up", "--listen", "127.0.0.1:0", "--detach", check=False)
    assert refused.returncode == 1
    assert str(database) in refused.stderr
    assert f"homeport restore FILE --data {plane.data}" in refused.stderr
    assert database.read_bytes() == damaged


def test_a_lost_key_is_reported_instead_of_starting_empty(plane: Plane) -> None:
    plane.up()
    plane.homeport("down")
    shutil.rmtree(plane.data / "pki")
    refused = plane.homeport("up", "--listen", "127.0.0.1:0", "--detach", check=False)
    assert refused.returncode == 1
    assert "pki" in refused.stderr
    assert not (plane.data / "pki" / "ca.key").exists()


def test_each_controller_s_lines_are_the_log_of_a_container(plane: Plane) -> None:
    plane.up()
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
    plane.request("DELETE", "/api/v1/namespaces/short")
    pod = plane.request("GET", "/api/v1/namespaces/homeport-system/pods/homeport")
    assert pod["status"]["phase"] == "Running"
    names = [container["name"] for container in pod["spec"]["containers"]]
    assert {"namespace", "deployment"} <= set(names)
    path = "/api/v1/namespaces/homeport-system/pods/homeport/log?container=namespace&follow=true&limitBytes=20"
    assert plane.request_text("GET", path).startswith('{"')


def test_a_component_that_is_left_out_has_no_kinds_and_no_deployment(plane: Plane) -> None:
    plane.up("--without", "nutanix")
    groups = {each["name"] for each in plane.request("GET", "/apis")["groups"]}
    assert "cluster.x-k8s.io" in groups
    definitions = plane.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    kinds = {each["spec"]["names"]["kind"] for each in definitions}
    assert "Machine" in kinds
    assert not [kind for kind in kinds if kind.startswith("Nutanix")]


def test_help_lists_every_verb_and_version_says_which_kubernetes() -> None:
    run = [sys.executable, "-m", "homeport"]
    shown = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True).stdout
    for verb in ("up", "down", "status", "backup", "restore", "version"):
        assert f"  {verb} " in shown
    version = subprocess.run([*run, "version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("homeport ")
    assert "Kubernetes API v1." in version
