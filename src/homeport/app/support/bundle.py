"""Collects the support bundle of a plane and writes it as tar.gz."""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import orjson

from homeport import __version__
from homeport.api.meta import Resource
from homeport.app.doctor.console import read_simulated
from homeport.app.doctor.diagnosis import Commands
from homeport.app.doctor.examine import examine
from homeport.app.doctor.gather import gather
from homeport.app.plane.instance import STATUS_PATH
from homeport.app.support.redaction import REMOVED, Redaction, is_secret
from homeport.app.tree.read import NoCluster
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.client.restmapper import RestMapper

_LOG_BYTES = 8 * 1024 * 1024  # of each file
_SECRET = ("", "Secret")
_DEFINITION = "CustomResourceDefinition"
_SHOWN = ("LANG", "LC_ALL", "TERM", "TZ", "PATH")


class Bundle:
    """Files by name, each without secrets. What can't be read is listed in `missing.txt`."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._redaction = Redaction()
        self.files: dict[str, str] = {}
        self.missing: list[str] = []

    async def collect(self, environment: Mapping[str, str], logs: Sequence[Path]) -> None:
        self._redaction.learn_values(value for name, value in environment.items() if is_secret(name))
        await self._objects()
        await self._answer("status.json", "POST", STATUS_PATH)
        await self._answer("metrics.txt", "GET", "/metrics")
        await self._answer("version.json", "GET", "/version")
        await self._findings()
        for name, lines in (await read_simulated(self._client)).items():
            self._add(f"consoles/{name}.txt", "\n".join(lines))
        for log in logs:
            self._log(log)
        self.files["versions.json"] = _json(_versions())
        variables = {name: _shown(name, value) for name, value in sorted(environment.items())}
        self.files["environment.json"] = self._redaction.known(_json(self._redaction.data(variables)))
        self.files["missing.txt"] = "".join(f"{self._redaction.text(each)}\n" for each in self.missing)

    def write(self, target: Path) -> None:
        """Readable for its owner alone; never half written under this name."""
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out, tarfile.open(fileobj=out, mode="w:gz") as archive:
                for name, text in sorted(self.files.items()):
                    content = text.encode()
                    entry = tarfile.TarInfo(f"homeport-support/{name}")
                    entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
                    archive.addfile(entry, io.BytesIO(content))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    # -- parts -------------------------------------------------------------------------------------------------

    def _add(self, name: str, text: str) -> None:
        self.files[name] = self._redaction.text(text)

    async def _objects(self) -> None:
        """Secrets first: their values are then removed from everything else."""
        kinds = sorted(await RestMapper(self._client).listed(), key=lambda each: (each.group, each.kind) != _SECRET)
        for kind in kinds:
            listed = await self._list(kind)
            if (kind.group, kind.kind) == _SECRET:
                for each in listed:
                    self._redaction.learn(each)
            if listed:
                name = f"objects/{kind.plural}{f'.{kind.group}' if kind.group else ''}.json"
                cleaned = [self._redaction.object({**each, "kind": kind.kind}) for each in listed]
                self.files[name] = self._redaction.known(_json(cleaned))

    async def _list(self, kind: Resource) -> Sequence[Mapping[str, Any]]:
        try:
            return (await self._client.list(kind, Query())).items
        except ApiError as error:
            if error.http_code not in (404, 405):
                self.missing.append(f"{kind.plural}: {error}")
            return ()

    async def _answer(self, name: str, method: str, path: str) -> None:
        try:
            answer = await self._client.raw(method, path)
            content = answer.check(path)
        except ApiError as error:
            self.missing.append(f"{name}: {error}")
            return
        if name.endswith(".json"):
            self.files[name] = self._redaction.known(_json(self._redaction.object(orjson.loads(content))))
        else:
            self._add(name, content.decode(errors="replace"))

    async def _findings(self) -> None:
        try:
            found = examine(await gather(self._client, Key("", ""), Commands(), everywhere=True))
        except (ApiError, NoCluster) as error:
            self.missing.append(f"doctor.json: {error}")
            return
        self.files["doctor.json"] = self._redaction.known(_json(self._redaction.data(msgspec.to_builtins(found))))

    def _log(self, file: Path) -> None:
        try:
            with file.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
                self._add(f"logs/{file.name}", log.read().decode(errors="replace"))
        except FileNotFoundError:
            return
        except OSError as error:
            self.missing.append(f"{file}: {error.strerror}")


def _json(value: object) -> str:
    return json.dumps(value, indent=1, default=str) + "\n"


def _shown(name: str, value: str) -> str:
    """Any variable may hold a secret: the values of a few are shown."""
    return value if name in _SHOWN else REMOVED


def _versions() -> dict[str, Any]:
    packages = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return {
        "homeport": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(sorted(packages.items())),
    }
