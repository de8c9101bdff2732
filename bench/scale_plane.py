"""The planes that bench/scale.py measures: embedded with workers, and replicas on a real kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from process import cpu_seconds, end_with_parent
from scale_object import create, secret
from scale_site import SiteProcess

from homeport.app.platform import chosen
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.runtime.definition import establish
from realkube import RealKube, find_binaries

_CONFLICT = re.compile(r'^homeport_reconcile_total\{controller="([^"]+)",outcome="conflict"\} (\S+)', re.M)
_START_SECONDS = 120.0
_QUIET_SECONDS, _QUIET_SHARE, _QUIET_LONGEST = 3.0, 0.02, 30.0


@dataclass
class Stack:
    """A running plane and its site."""

    name: str
    config: Path
    processes: Sequence[int]
    site: SiteProcess
    health: Sequence[str] = ()
    began: float = field(default_factory=time.monotonic)

    def client(self) -> HttpClient:
        return HttpClient(kubeconfig.load(self.config))

    def pids(self) -> list[int]:
        return list(self.processes)

    async def conflicts(self, client: HttpClient) -> dict[str, float]:
        """Writes that lost a race, by controller. Of workers of an embedded plane nothing is known."""
        found: Counter[str] = Counter()
        texts = [(await client.raw("GET", "/metrics")).body.decode()] if not self.health else []
        texts += [await asyncio.to_thread(_fetch, f"{url}/metrics") for url in self.health]
        for text in texts:
            for controller, number in _CONFLICT.findall(text):
                found[controller] += int(float(number))
        return dict(found)


def _fetch(url: str) -> str:
    import urllib.request

    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


@contextmanager
def stack(name: str) -> Iterator[Stack]:
    where, _, number = name.partition(":")
    began = time.monotonic()
    with ExitStack() as held:
        site = held.enter_context(SiteProcess())
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="homeport-bench-")))
        made = {"embedded": _embedded, "kube": _kube}[where](held, name, folder, int(number or 1), site)
        made.began = began
        asyncio.run(_prepare(made))
        _await_rest(made.pids())
        yield made


def _await_rest(pids: Sequence[int]) -> None:
    """A plane that has just started has things to do that are no cluster's."""
    deadline = time.monotonic() + _QUIET_LONGEST
    while time.monotonic() < deadline:
        before = cpu_seconds(pids)
        time.sleep(_QUIET_SECONDS)
        if cpu_seconds(pids) - before <= _QUIET_SHARE * _QUIET_SECONDS * len(pids):
            return


async def _prepare(made: Stack) -> None:
    async with made.client() as client:
        await create(client, secret())


def _embedded(held: ExitStack, name: str, folder: Path, workers: int, site: SiteProcess) -> Stack:
    data = folder / "data"
    options = ("--data", str(data), "--listen", "127.0.0.1:0", "--workers", str(workers))
    process = held.enter_context(_homeport(folder / "log", *options, *site.options))
    process.until("kubeconfig", lambda: (data / "kubeconfig").exists() and (data / "run.json").exists())
    if workers > 1:
        process.until("its workers", lambda: len(_workers(process.pid)) == workers)
    return Stack(name, data / "kubeconfig", [process.pid, *_workers(process.pid)], site)


def _workers(pid: int) -> list[int]:
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [each for each in children if "homeport.app.worker.run" in Path(f"/proc/{each}/cmdline").read_text()]


def _kube(held: ExitStack, name: str, folder: Path, replicas: int, site: SiteProcess) -> Stack:
    binaries = find_binaries()
    if isinstance(binaries, str):
        raise RuntimeError(binaries)
    kube = held.enter_context(RealKube(binaries))
    asyncio.run(_define(kube.kubeconfig))
    shared = ("--shards",) if replicas > 1 else ()
    common = ("--kubeconfig", str(kube.kubeconfig), "--namespace", "default", "--health", "127.0.0.1:0")
    started = [
        held.enter_context(_homeport(folder / f"log-{number}", *common, *shared, *site.options))
        for number in range(replicas)
    ]
    for each in started:
        each.until("controllers", lambda each=each: "controllers: running" in each.said())
    urls = [re.search(r"health: (http://[^/\s]+)", each.said()) for each in started]
    return Stack(name, kube.kubeconfig, [each.pid for each in started], site, [each[1] for each in urls if each])


async def _define(config: Path) -> None:
    async with HttpClient(kubeconfig.load(config)) as client:
        await establish(client, *(dict(crd) for crd in chosen().definitions()))


class _Process:
    def __init__(self, log: Path, arguments: Sequence[str]) -> None:
        self._log = log
        with open(log, "wb") as file:
            command = [sys.executable, "-m", "homeport", "up", "--log-level", "warning", *arguments]
            # Its group ends with it, workers included; Ctrl-C is ours alone.
            self.process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=end_with_parent
            )
        self.pid = self.process.pid

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def until(self, what: str, holds: object) -> None:
        assert callable(holds)
        deadline = time.monotonic() + _START_SECONDS
        while not holds():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"homeport up has no {what}:\n{self.said()[-3000:]}")
            time.sleep(0.2)


@contextmanager
def _homeport(log: Path, *arguments: str) -> Iterator[_Process]:
    made = _Process(log, arguments)
    try:
        yield made
    finally:
        # Nothing of it is needed any more, and with a thousand clusters an orderly end takes minutes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        made.process.wait()
