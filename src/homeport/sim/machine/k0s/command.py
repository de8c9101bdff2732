"""The program `k0s`, as commands in user data call it, and the service that it installs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from homeport.sim.machine.k0s import release
from homeport.sim.machine.k0s.agent import attach
from homeport.sim.machine.k0s.config import check_config
from homeport.sim.machine.k0s.controller import run_controller
from homeport.sim.machine.k0s.journal import Journal
from homeport.sim.machine.k0s.unit import ROLES, Unit, read_unit, write_unit
from homeport.sim.machine.k0s.worker import KubeletDown, run_worker
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.shell.flag import parse_flags
from homeport.sim.machine.shell.shell import NOT_EXECUTABLE, NOT_FOUND, Invocation, Program, Ran
from homeport.sim.machine.vm import Machine

Joined = Callable[[Machine], Awaitable[None]]

_PREINSTALLED = ("k0s", "/usr/local/bin/k0s", "/usr/bin/k0s")
_WORKER_FLAGS = frozenset(
    {
        "cidr-range", "cri-socket", "data-dir", "debug", "enable-cloud-provider", "env", "force",
        "ignore-pre-flight-checks", "iptables-mode", "kubelet-extra-args", "kubelet-root-dir", "labels", "logging",
        "profile", "start", "status-socket", "taints", "token-file", "verbose", "d", "e", "l", "v",
    }
)  # fmt: skip
_CONTROLLER_FLAGS = _WORKER_FLAGS | {
    "api-server-stop-timeout", "c", "config", "disable-components", "enable-dynamic-config",
    "enable-k0s-cloud-provider", "enable-metrics-scraper", "enable-worker", "feature-gates", "init-only",
    "k0s-cloud-provider-port", "k0s-cloud-provider-update-frequency", "kube-controller-manager-extra-args",
    "no-taints", "single",
}  # fmt: skip


@dataclass(slots=True)
class K0s:
    """The program and its service on one machine."""

    machine: Machine
    joined: Joined

    def programs(self) -> dict[str, Program]:
        return {"k0s": self.run}

    # -- the program -------------------------------------------------------------------------------------------

    async def run(self, call: Invocation) -> Ran:
        version, problem = self._binary(call)
        if problem is not None:
            return problem
        words, flags = parse_flags(call.args[1:])
        verb = words[0] if words else ""
        if verb == "version":
            return Ran(0, f"{version}\n")
        if verb == "install":
            return self._install(call, words[1:], flags, version)
        if verb == "start":
            return Ran() if await self.start() else call.fail("Error: the k0s service is not installed")
        if verb == "status":
            return self._status(call)
        if verb in ("stop", "reset"):
            return call.fail(f"(simulated) k0s {verb} is not simulated: power the machine off instead")
        if verb == "token" or verb == "etcd":
            return call.fail(f"(simulated) k0s {verb} is not simulated: use the API of the cluster")
        return Ran() if verb else Ran(0, "k0s - The zero friction Kubernetes\n")

    def _binary(self, call: Invocation) -> tuple[str, Ran | None]:
        """The version of the binary that a command starts, or why it does not start."""
        name, machine = call.args[0], self.machine
        path = call.shell.find(name)
        entry = machine.disk.entry(path) if path is not None else None
        if entry is None:
            if machine.image.k0s and name in _PREINSTALLED:
                return f"v{machine.image.k0s}+k0s.0", None
            return "", call.fail(f"sh: 1: {name}: not found", NOT_FOUND)
        if not entry.mode & 0o111:
            return "", call.fail(f"sh: 1: {name}: Permission denied", NOT_EXECUTABLE)
        version = release.version_of(entry.content)
        return version, None if version else call.fail(f"sh: 1: {name}: Exec format error", NOT_EXECUTABLE)

    def _install(self, call: Invocation, words: list[str], flags: dict[str, str], version: str) -> Ran:
        role = {"server": "controller"}.get(words[0], words[0]) if words else ""
        if role not in ROLES:
            return call.fail(f'Error: unknown command "{role}" for "k0s install"')
        known = _CONTROLLER_FLAGS if role == "controller" else _WORKER_FLAGS
        unknown = sorted(flags.keys() - known)
        if unknown:
            return call.fail(f"Error: unknown flag: --{unknown[0]}")
        if len(words) > 1:
            return call.fail(f'Error: unknown command "{words[1]}" for "k0s install {role}"')
        if read_unit(self.machine.disk) is not None and "force" not in flags:
            return call.fail(f"Error: failed to install {role} service: Init already exists: k0s{role}.service")
        env = dict(pair.split("=", 1) for pair in (flags.get("env") or flags.get("e", "")).split(",") if "=" in pair)
        kept = {"config" if name == "c" else name: value for name, value in flags.items()}
        kept = {name: value for name, value in kept.items() if name not in ("env", "e", "force", "start")}
        unit = Unit(role, call.args[0], kept, env)
        try:
            check_config(self.machine, unit)
        except KubeadmError as wrong:
            return call.fail(f"Error: {wrong}")
        self.machine.k0s = version.removeprefix("v")
        write_unit(self.machine.disk, unit)
        return Ran()

    def _status(self, call: Invocation) -> Ran:
        unit, machine = read_unit(self.machine.disk), self.machine
        if unit is None or machine.cluster is None:
            return call.fail("Error: k0s is not running: dial unix /run/k0s/status.sock: connect: no such file")
        lines = {
            "Version": f"v{machine.k0s}",
            "Process ID": "812",
            "Role": unit.role,
            "Workloads": str(unit.has_worker).lower(),
        }
        return Ran(0, "".join(f"{name}: {value}\n" for name, value in lines.items()))

    # -- the service -------------------------------------------------------------------------------------------

    def is_service(self, name: str) -> bool:
        """Whether systemd knows the unit."""
        unit = read_unit(self.machine.disk)
        return unit is not None and name.removesuffix(".service") == unit.name

    async def start(self) -> bool:
        """Returns after the first attempt. One that failed is repeated until it succeeds, as systemd does it."""
        unit, machine = read_unit(self.machine.disk), self.machine
        if unit is None:
            return False
        if machine.service is None and not _runs(machine, unit):
            service = _Service(machine, unit, self.joined)
            if not await service.attempt():
                machine.service = machine.spawn(service.repeat(), f"k0s of {machine.name}")
        return True


class _Service:
    def __init__(self, machine: Machine, unit: Unit, joined: Joined) -> None:
        self._machine = machine
        self._unit = unit
        self._joined = joined
        self._journal = Journal(machine, unit.name)
        self._last = ""

    async def repeat(self) -> None:
        """As systemd does: until the service runs."""
        count, machine = 0, self._machine
        while True:
            await asyncio.sleep(machine.pace.restart)
            count += 1
            if not self._last:
                return
            self._journal.systemd(f"Scheduled restart job, restart counter is at {count}.")
            if await self.attempt():
                machine.service = None
                return

    async def attempt(self) -> bool:
        machine, unit = self._machine, self._unit
        machine.console.say(f"systemd[1]: Started {unit.name}.service - k0s - Zero Friction Kubernetes.")
        try:
            if unit.role == "worker":
                await run_worker(machine, unit, self._journal)
            else:
                await run_controller(machine, unit, self._journal)
        except KubeadmError as error:
            if str(error) != self._last:
                self._journal.fatal(str(error))
            self._last = str(error)
            return False
        except KubeletDown as down:
            self._last = str(down)
            return False
        self._last = ""
        await self._joined(machine)
        return True


def _runs(machine: Machine, unit: Unit) -> bool:
    """Whether the machine already is what its service makes of it."""
    if machine.cluster is None or machine.cluster.closed:
        return False
    if unit.has_worker and machine.kubelet is None:
        return False
    return unit.role == "worker" or machine.cluster.runs_on(machine)


async def resume(machine: Machine, joined: Joined) -> None:
    """After a restart of the machine: systemd starts the service, which goes on where it was."""
    unit = read_unit(machine.disk)
    if unit is None:
        return
    if _runs(machine, unit):
        await attach(machine, unit)
        return
    await K0s(machine, joined).start()
