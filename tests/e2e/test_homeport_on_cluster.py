"""`homeport up --kubeconfig FILE`: controllers as processes on a cluster, ours and a real one."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from e2e.cluster import Cluster
from homeport.api.meta import Resource
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from present import present

pytestmark = [pytest.mark.timeout(120)]

HERE = Path(__file__).parent
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
WAIT_SECONDS = 40.0
_SHOWN_LINES = 100


@pytest.fixture(params=["ours", "real"])
def config(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of an administrator."""
    found = request.getfixturevalue(request.param)
    if found is None:
        pytest.skip(str(request.getfixturevalue("binaries")))
    path: Path = found.kubeconfig
    return path


@pytest.fixture
async def client(config: Path) -> AsyncIterator[HttpClient]:
    async with HttpClient(kubeconfig.load(config)) as made:
        yield made


@pytest.fixture
async def namespace(client: HttpClient) -> str:
    """One per test: the Lease in it has its own candidates."""
    name = f"replicas-{uuid.uuid4().hex[:8]}"
    await client.create({"metadata": {"name": name}}, kind=NAMESPACE)
    return name


class Replica:
    """A process, and what it has said so far."""

    def __init__(self, *arguments: str) -> None:
        paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "homeport", "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self.pid = self._process.pid
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, *texts: str, seconds: float = WAIT_SECONDS) -> str:
        """The line that says all this."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                pytest.fail(f"it never said {texts}:\n{''.join(self.said)}")
            self.said.append(line)
            if all(text in line for text in texts):
                return line

    def terminate(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        while (line := self._lines.get()) is not None:
            self.said.append(line)
        return code

    @property
    def text(self) -> str:
        return "".join(self.said)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        while not self._lines.empty():
            self.said.append(self._lines.get() or "")
        print(f"the end of the log of {self.pid}:", *self.said[-_SHOWN_LINES:])  # for a test that fails


class Start(Protocol):
    def __call__(self, config: Path, *arguments: str) -> Replica: ...


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Replica] = []

    def begin(config: Path, *arguments: str) -> Replica:
        replica = Replica("--kubeconfig", str(config), "--plugin", "sample_controller:install", *arguments)
        made.append(replica)
        return replica

    yield begin
    for replica in made:
        replica.end()


def sample(namespace: str, name: str) -> dict[str, object]:
    meta = {"name": name, "namespace": namespace, "labels": {"sample": "yes"}}
    return {"metadata": meta, "data": {"work": "sign"}}


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def signatures(client: HttpClient, namespace: str, count: int) -> set[str]:
    """Who signed, once `count` ConfigMaps are signed."""
    found: dict[str, str] = {}
    async with client.watch(CONFIG_MAP, Query(namespace=namespace, labels="sample"), initial_events=True) as events:
        async for event in events:
            if event.type != "BOOKMARK" and "signed" in event.object["data"]:
                found[event.object.name] = event.object["data"]["signed"]
            if len(found) == count:
                return set(found.values())
    raise AssertionError(f"the watch ended with {len(found)} of {count}")


async def test_the_leader_works_and_sigterm_gives_the_lease_back(
    config: Path, client: HttpClient, namespace: str, start: Start
) -> None:
    replica = start(config, "--namespace", namespace)
    replica.until("Homeport runs its controllers on the cluster at https://")
    replica.until("controllers: running")
    await client.create(sample(namespace, "a"), kind=CONFIG_MAP)
    assert await signatures(client, namespace, 1) == {str(replica.pid)}
    held = await client.get(LEASE, Key(namespace, "homeport"))
    assert str(replica.pid) in held["spec"]["holderIdentity"]
    assert replica.terminate() == 0
    given_back = await client.get(LEASE, Key(namespace, "homeport"))
    assert not given_back["spec"].get("holderIdentity")


async def test_a_second_replica_stands_by_and_takes_over(
    config: Path, client: HttpClient, namespace: str, start: Start
) -> None:
    first = start(config, "--namespace", namespace)
    first.until("controllers: running")
    second = start(config, "--namespace", namespace, "--health", "127.0.0.1:0")
    address = present(re.search(r"http://\S+", second.until("health: ")))[0].removesuffix("/readyz")
    second.until("controllers: standing by: another replica is the leader")
    assert await asyncio.to_thread(fetch, f"{address}/readyz") == (200, "ok")
    await client.create(sample(namespace, "before"), kind=CONFIG_MAP)
    assert await signatures(client, namespace, 1) == {str(first.pid)}
    assert first.terminate() == 0
    second.until("controllers: running")
    await client.create(sample(namespace, "after"), kind=CONFIG_MAP)
    assert await signatures(client, namespace, 2) == {str(first.pid), str(second.pid)}
    _, numbers = await asyncio.to_thread(fetch, f"{address}/metrics")
    assert 'homeport_reconcile_total{controller="sample",outcome="done"}' in numbers
    assert (await asyncio.to_thread(fetch, f"{address}/secrets"))[0] == 404
    assert second.terminate() == 0


async def test_shards_share_the_work(config: Path, client: HttpClient, namespace: str, start: Start) -> None:
    replicas = [start(config, "--namespace", namespace, "--shards") for _ in range(2)]
    pids = {str(replica.pid) for replica in replicas}
    for replica in replicas:
        replica.until("shards agreed", *(f"-{pid}-" for pid in pids))
    for number in range(40):
        await client.create(sample(namespace, f"n{number}"), kind=CONFIG_MAP)
    assert await signatures(client, namespace, 40) == pids
    assert [replica.terminate() for replica in replicas] == [0, 0]


def changed(config: Path, target: Path, change: Callable[[dict[str, dict[str, object]]], None]) -> Path:
    """A kubeconfig with another user, cluster or context."""
    loaded = yaml.safe_load(config.read_text())
    change({"user": loaded["users"][0]["user"], "cluster": loaded["clusters"][0]["cluster"]})
    target.touch(mode=0o600)
    target.write_text(json.dumps(loaded))
    return target


def test_missing_permissions_are_named(config: Path, start: Start, tmp_path: Path) -> None:
    def as_nobody(parts: dict[str, dict[str, object]]) -> None:
        parts["user"]["as"] = "nobody"

    replica = start(changed(config, tmp_path / "nobody", as_nobody), "--namespace", "default")
    assert replica.wait() == 1
    assert "user 'nobody' lacks permissions that the controllers need:" in replica.text
    assert "  create leases.coordination.k8s.io in namespace default\n" in replica.text
    assert "  get, update leases.coordination.k8s.io homeport in namespace default\n" in replica.text
    assert re.search(r"\n  (get, )?list, watch[^\n]* configmaps\b", replica.text), replica.text
    assert "create, patch events" in replica.text
    assert "'homeport install'" in replica.text


def test_a_refused_credential_is_reported(config: Path, start: Start, tmp_path: Path) -> None:
    def with_token(parts: dict[str, dict[str, object]]) -> None:
        parts["user"].clear()
        parts["user"]["token"] = "of-somebody-else"

    replica = start(changed(config, tmp_path / "stranger", with_token))
    assert replica.wait() == 1
    assert "rejects the credentials of" in replica.text
    assert "of-somebody-else" not in replica.text


def test_a_namespace_that_does_not_exist_is_reported_with_the_cure(config: Path, start: Start) -> None:
    replica = start(config, "--namespace", "nowhere")
    assert replica.wait() == 1
    assert "kubectl create namespace nowhere" in replica.text


def test_files_and_contexts_that_do_not_exist_are_reported(ours: Cluster, start: Start, tmp_path: Path) -> None:
    replica = start(tmp_path / "nothing")
    assert replica.wait() == 1
    assert f"{tmp_path / 'nothing'}: no such file" in replica.text
    replica = start(ours.kubeconfig, "--context", "elsewhere")
    assert replica.wait() == 1
    assert "no context named 'elsewhere'" in replica.text


def test_options_that_exclude_each_other_are_refused(start: Start, tmp_path: Path) -> None:
    replica = start(tmp_path / "nothing", "--detach")
    assert replica.wait() == 2
    assert "--detach applies to the embedded API server only" in replica.text
    alone = Replica("--data", str(tmp_path / "data"), "--shards")
    assert alone.wait() == 2
    assert "--shards requires --kubeconfig FILE" in alone.text
    alone.end()
    assert not (tmp_path / "data").exists()


def test_an_unreachable_cluster_is_waited_for(start: Start, tmp_path: Path) -> None:
    data = tmp_path / "data"

    def homeport(*arguments: str) -> None:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    homeport("up", "--detach", "--listen", "127.0.0.1:0")
    listen = json.loads((data / "run.json").read_bytes())["url"].removeprefix("https://")
    homeport("down")
    replica = start(data / "kubeconfig", "--health", "127.0.0.1:0")
    address = present(re.search(r"http://\S+", replica.until("health: ")))[0]
    assert "connection refused" in replica.until("waiting for the cluster: no connection to https://")
    code, why = fetch(address)
    assert code == 503
    assert "connection refused" in why
    homeport("up", "--detach", "--listen", listen)
    try:
        replica.until("controllers: running")
        assert replica.terminate() == 0
    finally:
        homeport("down")


def test_sigterm_while_waiting_for_the_cluster_ends_it_at_once(start: Start, tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "current-context": "c",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    replica = start(tmp_path / "config")
    replica.until("waiting for the cluster")
    assert replica.terminate() == 0
