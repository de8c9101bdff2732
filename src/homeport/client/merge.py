"""Puts the entries of one kubeconfig into another one, which keeps everything else that it has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from homeport.client.config import ConfigError
from homeport.machinery import yaml

Json = dict[str, Any]
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_EMPTY: Json = {"apiVersion": "v1", "kind": "Config", "current-context": ""}


def merge_file(path: Path, added: bytes, *, switch: bool) -> str:
    """The context that was added. `switch`: it becomes the current one. Raises ConfigError and OSError.

    Whole or not at all, and only for the user. kubectl uses the same lock."""
    path = path.resolve()  # a link stays one
    with _locked(path):
        held = _parsed(path.read_bytes(), path) if path.exists() else _EMPTY
        new = _parsed(added, path)
        merged = merge(held, new, str(path), switch=switch)
        write_private(path, yaml.dump(merged).encode())
    return str(new.get("current-context", ""))


def merge(held: Mapping[str, Any], new: Mapping[str, Any], file: str, *, switch: bool) -> Json:
    """Pure. Entries of the same names are replaced if they are about the same server. Raises ConfigError."""
    there = {name: {str(each["name"]): each for each in held.get(name) or ()} for name in _LISTS}
    added = {name: {str(each["name"]): each for each in new.get(name) or ()} for name in _LISTS}
    taken = [f"{_LISTS[name]} {key!r}" for name in _LISTS for key in added[name] if key in there[name]]
    for key, each in added["clusters"].items():
        old = there["clusters"].get(key)
        if taken and (old is None or _server(old) != _server(each)):
            about = f" for {_server(old)}" if old is not None else ""
            raise ConfigError(
                f"{file} already has {', '.join(taken)}{about}, and the new one is for {_server(each)}: "
                "rename or delete the old entries (kubectl config), or write to a file of its own with -o FILE"
            )
    merged = {**held, **{name: list({**there[name], **added[name]}.values()) for name in _LISTS}}
    if switch or not held.get("current-context"):
        merged["current-context"] = new.get("current-context", "")
    return merged


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all, and only for the user."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _server(entry: Mapping[str, Any]) -> str:
    return str((entry.get("cluster") or {}).get("server") or "no server")


def _parsed(text: bytes, path: Path) -> Json:
    try:
        found = yaml.load(text.decode())
    except (yaml.YamlError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a kubeconfig: {error}. It was not changed") from error
    if found is None:
        return _EMPTY
    lists = found.values() if isinstance(found, dict) else ()
    if not isinstance(found, dict) or found.get("kind", "Config") != "Config" or not all(map(_is_sound, lists)):
        raise ConfigError(f"{path} is not a kubeconfig. It was not changed")
    return found


def _is_sound(value: object) -> bool:
    return not isinstance(value, list) or all(isinstance(each, dict) and "name" in each for each in value)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        text = f"{lock} exists: another program changes {path} now. Run the command again; if none does, delete {lock}"
        raise ConfigError(text) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
