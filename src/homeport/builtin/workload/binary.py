"""A runner for control planes whose programs are on this machine: `homeport up --hosted-binaries DIR`.

The programs run with the flags of their containers. What is an address of the container is one of the Pod here: each
Pod has a loopback address of its own, so that the same ports serve any number of control planes.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from homeport.apiserver.auth.file import make_private_dir
from homeport.builtin.workload.confine import check_launch, check_program
from homeport.builtin.workload.process import Process, ProcessRunner, end_leftovers
from homeport.runtime.workload.runner import Launch, Mount, RunError, Runners

RUNNER = "hosted-binaries"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_MORE = ("proxy-server", "kine")  # run if they are there
# Addresses of the container itself. `localhost` only in URLs: elsewhere it may be a name in a certificate.
_OWN = re.compile(r"(?<![\w.])(?:0\.0\.0\.0|127\.0\.0\.1)(?![\w.])|(?<=://)localhost(?=[:/])")
_URL = re.compile(rb"://(?:127\.0\.0\.1|localhost)(?=[:/])")
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_TEXT_BYTES = 1 << 20


class BinariesMissing(Exception):
    """The folder does not have the programs; the text names it and them."""


class BinaryRunner:
    """`binaries` has the programs, `folder` keeps files and data, for the owner's eyes only."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        """Raises BinariesMissing. Ends programs that a plane which was killed left behind."""
        missing = [name for name in PROGRAMS if not _runs(binaries / name)]
        if missing:
            raise BinariesMissing(
                f"{binaries} has no {', '.join(missing)}: put the programs there, for example with tools/kube/build"
            )
        self._binaries = binaries
        make_private_dir(folder)
        end_leftovers(folder)
        self._process = ProcessRunner(folder)
        self._started: list[tuple[str, Process]] = []

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(name for name in (*PROGRAMS, *_MORE) if _runs(self._binaries / name))

    def register(self, runners: Runners) -> None:
        images = [pattern for name in self.programs for pattern in (f"*{name}:*", f"*{name}@*")]
        runners.register(RUNNER, self, images=images)

    async def run(self, launch: Launch) -> Process:
        """Raises RunError also for what reaches beyond the Pod."""
        check_launch(launch, self.programs)
        probes = (launch.container.get(each) or {} for each in ("startupProbe", "livenessProbe", "readinessProbe"))
        for command in [(each.get("exec") or {}).get("command") for each in probes]:
            if command and (why := check_program(command, self.programs)):
                raise RunError(f"container {launch.container.get('name')!r}: a probe can't run: {why}")
        started = await self._process.run(self._localized(launch))
        self._started = [each for each in self._started if each[1].ready]
        self._started.append((launch.command[0].rpartition("/")[2], started))
        return started

    def running(self) -> Counter[str]:
        """How many of each program run."""
        return Counter(name for name, process in self._started if process.ready)

    def forget(self, uid: str) -> None:
        self._process.forget(uid)

    def forget_claim(self, namespace: str, name: str) -> None:
        self._process.forget_claim(namespace, name)

    def _localized(self, launch: Launch) -> Launch:
        at = launch.address
        command = [localize(word, at) for word in launch.command]
        program = command[0].rpartition("/")[2] if command else ""
        if program in self.programs:
            path = self._path(program, str(launch.container.get("image") or ""))
            command = [str(path), *pinned(program, command[1:], at)]
        env = {name: localize(value, at) for name, value in launch.env.items()}
        env.setdefault("PATH", f"{self._binaries}:{os.environ.get('PATH', '')}")
        mounts = [replace(mount, files=_localized_files(mount, at)) for mount in launch.mounts]
        return replace(launch, command=command, env=env, mounts=mounts)

    def _path(self, program: str, image: str) -> Path:
        """Of the image's version, if the folder has one for it: DIR/v1.33.1/kube-apiserver."""
        version = image.rpartition(":")[2]
        found = self._binaries / version / program
        return found if _VERSION.fullmatch(version) and _runs(found) else self._binaries / program


def pinned(program: str, arguments: list[str], address: str) -> list[str]:
    """The arguments, with every port on the Pod's own address."""
    given = {word.partition("=")[0] for word in arguments}
    if program.startswith("kube-"):
        arguments = [word for word in arguments if not word.startswith("--bind-address")]
        more = [f"--bind-address={address}"]
        if "--tls-cert-file" not in given and "--cert-dir" not in given:
            more.append("--cert-dir=run")  # in its own folder: it makes a certificate for itself
        return [*arguments, *more]
    if program == "proxy-server":
        flags = [f"--{each}-bind-address" for each in ("agent", "admin", "health")]
        return [*arguments, *(f"{flag}={address}" for flag in flags if flag not in given)]
    if program == "etcd" and not any(word.startswith("--listen-peer-urls") for word in arguments):
        peer = f"http://{address}:2380"
        name = next((word.partition("=")[2] for word in arguments if word.startswith("--name=")), "default")
        more = [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        return [*arguments, *more, *([] if "--initial-cluster" in given else [f"--initial-cluster={name}={peer}"])]
    return arguments


def localize(text: str, address: str) -> str:
    """Addresses that stand for the container itself by the Pod's."""
    return _OWN.sub(address, text)


def _localized_files(mount: Mount, address: str) -> Mapping[str, bytes]:
    """Kubeconfigs of programs name the API server beside them as 127.0.0.1."""
    found: dict[str, bytes] = {}
    for name, content in mount.files.items():
        found[name] = content
        if len(content) <= _TEXT_BYTES:
            found[name] = _URL.sub(f"://{address}".encode(), content)
    return found


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
