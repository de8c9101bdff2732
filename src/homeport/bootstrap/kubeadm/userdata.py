"""What a machine should do on its first boot, before the format of its user data is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Verb = Literal["init", "join"]

SUCCESS_FOLDER = "/run/cluster-api"
SUCCESS_FILE = f"{SUCCESS_FOLDER}/bootstrap-success.complete"


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: str
    owner: str = ""
    permissions: str = ""
    encoding: str = ""  # "", base64, gzip or gzip+base64: how `content` is to be read
    append: bool = False


@dataclass(frozen=True, slots=True)
class UserData:
    """Users, disks and the like are in the wire form of our types; passwords are filled in."""

    verb: Verb
    configuration: tuple[Json, ...]  # kubeadm's documents
    files: tuple[File, ...] = ()
    boot_commands: tuple[str, ...] = ()
    pre_commands: tuple[str, ...] = ()
    post_commands: tuple[str, ...] = ()
    users: tuple[Json, ...] = ()
    ntp: Json = field(default_factory=dict)
    disk_setup: Json = field(default_factory=dict)
    mounts: tuple[tuple[str, ...], ...] = ()
    verbosity: int | None = None

    def command(self, path: str) -> str:
        verbosity = "" if self.verbosity is None else f" --v {self.verbosity}"
        return f"kubeadm {self.verb} --config {path}{verbosity}"


def ended(text: str) -> str:
    """Text files end with a line break: what reads them line by line (cron, hosts) wants one after the last, too."""
    return text if not text or text.endswith("\n") else f"{text}\n"
