"""Ignition, as far as it brings up a node: files, and units whose commands are run once."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from homeport.sim.machine.shell.shell import Shell
from homeport.sim.machine.userdata.part import gunzip

Json = dict[str, Any]

_DATA = re.compile(r"data:([^,]*),(.*)", re.DOTALL)
_EXEC = re.compile(r"^ExecStart(?:Pre)?=-?(.*)$", re.MULTILINE)


async def run_ignition(document: Json, shell: Shell) -> None:
    """Raises ValueError for a configuration that Ignition refuses."""
    version = str((document.get("ignition") or {}).get("version") or "")
    if not re.match(r"[23]\.\d+\.\d+", version):
        raise ValueError(f"unsupported config version {version!r}")
    storage = document.get("storage") or {}
    for file in storage.get("files") or ():
        contents = file.get("contents") or {}
        content = _decoded(str(contents.get("source") or "data:,"), str(contents.get("compression") or ""))
        shell.disk.write(str(file["path"]), content, mode=int(file.get("mode") or 0o644))
    for unit in (document.get("systemd") or {}).get("units") or ():
        if unit.get("enabled") or unit.get("enable"):
            for command in _EXEC.findall(str(unit.get("contents") or "")):
                shell.console.say(f"systemd[1]: Starting {unit.get('name')}...")
                await shell.script(command)


def _decoded(source: str, compression: str) -> bytes:
    found = _DATA.fullmatch(source)
    if found is None:
        raise ValueError(f"source {source[:60]!r} can't be fetched: only data: URLs are known here")
    raw = unquote_to_bytes(found.group(2))
    if found.group(1).endswith(";base64"):
        raw = base64.b64decode(raw)
    return gunzip(raw) if compression == "gzip" else raw
