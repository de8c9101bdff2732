"""The service that `k0s install` writes: a unit of systemd on the machine's disk, which survives restarts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.sim.machine.disk import Disk
from homeport.sim.machine.shell.flag import parse_flags

_FOLDER = "/etc/systemd/system"
ROLES = ("controller", "worker")


@dataclass(frozen=True, slots=True)
class Unit:
    role: str
    program: str
    flags: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"k0s{self.role}"

    def flag(self, name: str, default: str = "") -> str:
        return self.flags.get(name, default)

    def has(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.flags.get(name) == "true"

    def listed(self, name: str) -> list[str]:
        return [each.strip() for each in self.flag(name).split(",") if each.strip()]

    @property
    def has_worker(self) -> bool:
        return self.role == "worker" or self.has("enable-worker") or self.has("single")


def path_of(role: str) -> str:
    return f"{_FOLDER}/k0s{role}.service"


def write_unit(disk: Disk, unit: Unit) -> None:
    words = [unit.program, unit.role, *(f"--{name}={value}" for name, value in unit.flags.items())]
    lines = [
        "[Unit]",
        "Description=k0s - Zero Friction Kubernetes",
        "After=network-online.target",
        "[Service]",
        *(f"Environment={shlex.quote(f'{name}={value}')}" for name, value in unit.env.items()),
        f"ExecStart={shlex.join(words)}",
        "Restart=always",
        "RestartSec=120",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    disk.write(path_of(unit.role), "".join(f"{line}\n" for line in lines).encode())


def read_unit(disk: Disk) -> Unit | None:
    """The service that is installed on a machine."""
    for role in ROLES:
        text = disk.text(path_of(role))
        if text is None:
            continue
        env: dict[str, str] = {}
        words: list[str] = []
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key == "Environment":
                name, _, given = "".join(shlex.split(value)).partition("=")
                env[name] = given
            elif key == "ExecStart":
                words = shlex.split(value)
        return Unit(role, words[0], parse_flags(words[2:])[1], env) if words else None
    return None
