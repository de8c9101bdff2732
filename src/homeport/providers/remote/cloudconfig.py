"""Bootstrap data for a machine that runs already: the parts of a cloud-config that an SSH session can carry out. Pure.

cloud-init itself is not started again: a second run would also change users, disks and networks of the machine.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import shlex
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.infra.error import Misconfigured
from homeport.infra.machine.userdata import is_cloud_config, render_user_data
from homeport.machinery import yaml

Json = dict[str, Any]
_KEYS = frozenset(("write_files", "runcmd", "bootcmd"))
_FILE_KEYS = frozenset(("path", "content", "encoding", "permissions", "owner", "append"))
_BASE64 = frozenset(("b64", "base64"))
_BOTH = frozenset(("gz+base64", "gzip+base64", "gz+b64", "gzip+b64"))


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: bytes
    mode: str = "0644"
    owner: str = ""
    append: bool = False

    def __repr__(self) -> str:
        return f"File({self.path!r})"  # contents are secrets


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Files are written first, as cloud-init does."""

    files: tuple[File, ...] = ()
    commands: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.files)} files, {len(self.commands)} commands)"


def parse_bootstrap(data: bytes, format_: str, machine: str, instance_id: str) -> Bootstrap:
    """Raises Misconfigured: what can't be carried out is refused before the machine is touched.

    `instance_id` takes the place of cloud-init's: kubeadm's kubelet reports its provider ID with it."""
    what = f"bootstrap data of Machine {machine}"
    if format_ not in ("", "cloud-config"):
        raise Misconfigured(
            f"{what} has the format {format_!r}: a RemoteMachine needs cloud-config; set spec.provisioner.type of the "
            "bootstrap config to cloud-config"
        )
    data = render_user_data(data, machine, instance_id)
    if data.startswith((b"MIME-Version:", b"Content-Type:")):
        raise Misconfigured(
            f"{what} has several parts: customUserDataRef is not supported with a RemoteMachine; use files and commands"
        )
    if not is_cloud_config(data) or data.lstrip().startswith(b"## template"):
        raise Misconfigured(
            f"{what} is not a cloud-config, or a template that asks for more than ds.meta_data.hostname and "
            "ds.meta_data.instance_id: a RemoteMachine can't use it"
        )
    try:
        config = yaml.load(data)
    except yaml.YamlError:
        raise Misconfigured(f"{what} is not valid YAML") from None  # the error would quote the text
    if not isinstance(config, dict):
        raise Misconfigured(f"{what} is not a cloud-config: expected a map")
    unknown = sorted(set(config) - _KEYS)
    if unknown:
        raise Misconfigured(
            f"{what} uses {', '.join(unknown)}: on a machine that runs already only write_files, bootcmd and runcmd "
            "are carried out; remove the fields of the bootstrap config that ask for more"
        )
    files = tuple(_file(each, number, what) for number, each in enumerate(_items(config, "write_files", what)))
    return Bootstrap(files, tuple(_commands(config, what)))


def _items(config: Json, name: str, what: str) -> list[Any]:
    found = config.get(name) or []
    if not isinstance(found, list):
        raise Misconfigured(f"{what}: {name} is not a list")
    return found


def _commands(config: Json, what: str) -> Iterator[str]:
    for name in ("bootcmd", "runcmd"):
        for number, each in enumerate(_items(config, name, what)):
            if isinstance(each, str):
                yield each
            elif isinstance(each, list) and each and all(isinstance(word, str | int) for word in each):
                yield shlex.join(str(word) for word in each)
            else:
                raise Misconfigured(f"{what}: {name}[{number}] is not a command")


def _file(entry: Any, number: int, what: str) -> File:
    where = f"{what}: write_files[{number}]"
    if not isinstance(entry, Mapping) or not str(entry.get("path") or "").startswith("/"):
        raise Misconfigured(f"{where} has no absolute path")
    unknown = sorted(set(entry) - _FILE_KEYS)
    if unknown:
        raise Misconfigured(f"{where} ({entry['path']}): {', '.join(unknown)} is not supported on a RemoteMachine")
    mode = str(entry.get("permissions") or "0644")
    if not mode.isdigit() or any(each not in "01234567" for each in mode):
        raise Misconfigured(f"{where} ({entry['path']}): permissions {mode!r} is not an octal mode")
    content = _decoded(str(entry.get("content") or ""), str(entry.get("encoding") or ""), f"{where} ({entry['path']})")
    return File(str(entry["path"]), content, mode, str(entry.get("owner") or ""), entry.get("append") is True)


def _decoded(text: str, encoding: str, where: str) -> bytes:
    try:
        if encoding in ("", "text/plain"):
            return text.encode()
        if encoding in _BASE64:
            return base64.b64decode("".join(text.split()), validate=True)
        if encoding in _BOTH:
            return gzip.decompress(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, OSError, EOFError, zlib.error):
        raise Misconfigured(f"{where}: the content is not encoded as {encoding}") from None
    known = ", ".join(sorted(_BASE64 | _BOTH))
    raise Misconfigured(f"{where}: encoding {encoding!r} is not supported: use {known}, or none")
