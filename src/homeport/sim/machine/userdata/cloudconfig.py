"""A cloud-config, read: files, users and commands, as the modules of cloud-init understand them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from homeport.sim.machine.userdata.part import gunzip

Json = dict[str, Any]
Command = str | tuple[str, ...]  # a line for the shell, or a program and its arguments

_GZIP = ("gz", "gzip")
_BASE64 = ("b64", "base64")
_BOTH = frozenset(f"{g}+{b}" for g in _GZIP for b in _BASE64)


class BadConfig(ValueError):
    """A module of cloud-init would fail on this."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: bytes
    mode: int = 0o644
    owner: str = "root:root"
    append: bool = False
    defer: bool = False


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    shell: str = ""
    sudo: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    locked: bool = True


@dataclass(slots=True)
class CloudConfig:
    """What is wrong with one module's part is in `failures`; the rest counts all the same."""

    hostname: str = ""
    fqdn: str = ""
    preserve_hostname: bool = False
    files: list[File] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)  # of the default user
    bootcmd: list[Command] = field(default_factory=list)
    runcmd: list[Command] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)  # (module, why)


def read_cloud_config(config: Json) -> CloudConfig:
    found = CloudConfig(
        hostname=str(config.get("hostname") or ""),
        fqdn=str(config.get("fqdn") or ""),
        preserve_hostname=bool(config.get("preserve_hostname")),
    )
    _read_files(found, config.get("write_files"))
    readers: tuple[tuple[str, Callable[[], None]], ...] = (
        ("users_groups", lambda: found.users.extend(_users(config.get("users")))),
        ("ssh", lambda: found.keys.extend(_texts(config.get("ssh_authorized_keys"), split=False))),
        ("bootcmd", lambda: found.bootcmd.extend(_commands(config.get("bootcmd")))),
        ("runcmd", lambda: found.runcmd.extend(_commands(config.get("runcmd")))),
        ("package_update_upgrade_install", lambda: found.packages.extend(_packages(config.get("packages")))),
    )
    for module, read in readers:
        try:
            read()
        except BadConfig as bad:
            found.failures.append((module, str(bad)))
    return found


def _read_files(found: CloudConfig, entries: Any) -> None:
    """In order; a file that can't be decoded ends the module, and those before it are there."""
    if entries is not None and not isinstance(entries, list):
        found.failures.append(("write_files", f"write_files is not a list but {type(entries).__name__}"))
        return
    for i, entry in enumerate(entries or ()):
        if not isinstance(entry, dict) or not entry.get("path"):
            found.failures.append(("write_files", f"No path provided to write for entry {i + 1}"))
            continue
        try:
            found.files.append(_file(entry))
        except BadConfig as bad:
            found.failures.append(("write_files", str(bad)))
            return


def _file(entry: Json) -> File:
    path = str(entry["path"])
    return File(
        path=path,
        content=_content(entry.get("content", ""), str(entry.get("encoding") or "text/plain"), path),
        mode=_mode(entry.get("permissions"), path),
        owner=str(entry.get("owner") or "root:root"),
        append=bool(entry.get("append")),
        defer=bool(entry.get("defer")),
    )


def _content(content: Any, encoding: str, path: str) -> bytes:
    raw = content if isinstance(content, bytes) else str("" if content is None else content).encode()
    encoding = encoding.lower().strip()
    try:
        if encoding in _BASE64 or encoding in _BOTH:
            raw = base64.b64decode(raw, validate=False)
        if encoding in _GZIP or encoding in _BOTH:
            raw = gunzip(raw)
    except (binascii.Error, ValueError) as broken:
        raise BadConfig(f"{path}: content is not {encoding}: {broken}") from broken
    return raw


def _mode(given: Any, path: str) -> int:
    if given is None:
        return 0o644
    if isinstance(given, int | float):
        return int(given)  # YAML has read 0644 as octal already
    try:
        return int(str(given), 8)
    except ValueError as wrong:
        raise BadConfig(f"{path}: permissions {given!r} are not octal") from wrong


def _users(entries: Any) -> list[User]:
    if entries is None:
        return []
    if isinstance(entries, str):
        entries = [each.strip() for each in entries.split(",")]
    if not isinstance(entries, list):
        raise BadConfig(f"users is not a list but {type(entries).__name__}")
    return [_user(entry) for entry in entries if entry]


def _user(entry: Any) -> User:
    if isinstance(entry, str):
        return User(entry)
    if not isinstance(entry, dict) or not entry.get("name"):
        raise BadConfig(f"a user needs a name: {entry!r}")
    return User(
        name=str(entry["name"]),
        groups=_texts(entry.get("groups")),
        shell=str(entry.get("shell") or ""),
        sudo=_texts(entry.get("sudo"), split=False),
        keys=_texts(entry.get("ssh_authorized_keys") or entry.get("ssh-authorized-keys"), split=False),
        locked=entry.get("lock_passwd", True) is not False,
    )


def _texts(value: Any, *, split: bool = True) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip()) if split else (value,)
    return tuple(str(each) for each in value)


def _commands(entries: Any) -> list[Command]:
    """A command that is neither text nor a list of texts spoils the whole script."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise BadConfig(f"Input to shellify was type '{type(entries).__name__}'. Expected list or tuple.")
    found: list[Command] = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        elif isinstance(entry, list):
            found.append(tuple(str(each) for each in entry))
        elif entry is not None:
            raise BadConfig(
                f"Unable to shellify type '{type(entry).__name__}'. Expected list, string, tuple. Got: {entry}"
            )
    return found


def _packages(entries: Any) -> list[str]:
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise BadConfig(f"packages is not a list but {type(entries).__name__}")
    return ["=".join(map(str, each)) if isinstance(each, list) else str(each) for each in entries]
