"""The steps of `homeport bootstrap`: apply, follow, save credentials, pivot. Each can be repeated after any failure."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.api.butler.v1alpha1 import ClusterBootstrap
from homeport.api.meta import Resource
from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.capi.name import KUBECONFIG_SUFFIX, SECRET_VALUE
from homeport.client import kubeconfig
from homeport.client.config import Config
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.client.restmapper import RestMapper
from homeport.machinery import condition
from homeport.machinery.manifest import described
from homeport.move.pivot import pivot
from homeport.move.side import CONFIG_MAP, find
from homeport.move.standby import STANDBY
from homeport.platforms.butler.bootstrap.file import BootstrapFile
from homeport.platforms.butler.bootstrap.name import (
    PIVOT_ANNOTATION,
    PIVOT_DONE,
    PIVOT_MOVING,
    TALOSCONFIG_KEY,
    talosconfig_secret,
)
from homeport.platforms.butler.bootstrap.state import FAILED, PIVOTED
from homeport.runtime.clock import Clock, SystemClock

SECRET = Resource("", "v1", "Secret", "secrets")
_WRITE = Write(field_manager="homeport-bootstrap", field_validation="Strict")
_FAILED_SECONDS = 60.0  # a cause that somebody has to remove; some of them pass by themselves
_ANSWER_SECONDS = 60.0
_POLL_SECONDS = 1.0

Say = Callable[[str], None]


class BootstrapError(Exception):
    """It can't go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Files:
    """What an administrator of the new cluster needs."""

    kubeconfig: Path
    talosconfig: Path

    @classmethod
    def of(cls, folder: Path, cluster: str) -> Files:
        return cls(folder / f"{cluster}-kubeconfig", folder / f"{cluster}-talosconfig")


class Bootstrap:
    """One file on one plane."""

    def __init__(self, client: Client, file: BootstrapFile, files: Files, say: Say, clock: Clock | None = None) -> None:
        self._client = client
        self._file = file
        self._files = files
        self._say = say
        self._clock = clock or SystemClock()
        meta = file.bootstrap["metadata"]
        self.key = Key(meta["namespace"], meta["name"])
        self._cluster = Key(meta["namespace"], file.model.name)

    async def begin(self) -> str:
        """How far an earlier run came: '', Moving or Done. Applies the file unless its objects are leaving."""
        found = await self._find()
        mark = found.metadata.annotations.get(PIVOT_ANNOTATION, "") if found is not None else ""
        if mark:
            return mark
        if await find(self._client, CONFIG_MAP, STANDBY) is not None:
            text = "this plane has stepped back: its clusters were moved to another plane, and its controllers are off"
            raise BootstrapError(f"{text}. Start another one with 'homeport up --data DIR', and use its --data here")
        mapper = RestMapper(self._client)
        for each in self._file.objects:
            kind = await mapper.find(each["apiVersion"], each["kind"])
            await self._client.apply(each, _WRITE, kind=kind, force=True)
            self._say(f"applied {described(each)}")
        return ""

    # -- following -------------------------------------------------------------------------------------------------

    async def follow(self, seconds: float) -> ClusterBootstrap:
        """Until the cluster is ready. Raises BootstrapError."""
        started, failed_at, last = self._clock.monotonic(), 0.0, ""
        while True:
            found = await self._find()
            if found is None:
                raise BootstrapError(f"ClusterBootstrap {self.key} was deleted meanwhile")
            now = self._clock.monotonic()
            text = _progress(found)
            if text != last:
                self._say(text)
                last = text
            if _is_ready(found):
                return found
            failed_at = (failed_at or now) if found.status.phase == FAILED else 0.0
            if failed_at and now - failed_at > _FAILED_SECONDS:
                advice = "Correct it and run the same command again: it continues"
                raise BootstrapError(f"{found.status.failure_reason}: {found.status.failure_message}. {advice}")
            if now - started > seconds:
                raise BootstrapError(f"not ready after {seconds:.0f} s: {text}. Run the same command again to go on")
            await asyncio.sleep(_POLL_SECONDS)

    async def _find(self) -> ClusterBootstrap | None:
        try:
            return await self._client.get(ClusterBootstrap, self.key)
        except NotFound:
            return None

    # -- credentials -----------------------------------------------------------------------------------------------

    async def save(self) -> None:
        """Before the Secrets move: with these files the command continues, whatever happens."""
        folder = self._files.kubeconfig.parent
        if not folder.exists():  # one that the user named stays as it is: the files themselves are private
            make_private_dir(folder)
        config = await self._secret(Key(self._cluster.namespace, f"{self._cluster.name}{KUBECONFIG_SUFFIX}"))
        write_private(self._files.kubeconfig, _decoded(config, SECRET_VALUE))
        talos = await self._secret(talosconfig_secret(self._cluster))
        write_private(self._files.talosconfig, _decoded(talos, TALOSCONFIG_KEY))

    async def _secret(self, key: Key) -> Mapping[str, Any]:
        try:
            return await self._client.get(SECRET, key)
        except NotFound:
            raise BootstrapError(f"Secret {key} does not exist") from None

    def target(self) -> Config:
        """How the new cluster is reached. Raises BootstrapError and ConfigError."""
        path = self._files.kubeconfig
        if not path.exists():
            text = f"{path} does not exist, and the Secret with it may have moved already"
            raise BootstrapError(f"{text}: put the kubeconfig of the management cluster there, and run this again")
        return kubeconfig.load(path)

    # -- pivot -----------------------------------------------------------------------------------------------------

    async def pivot(self, target: Client) -> int:
        """Moves all objects of the plane into the cluster, and turns the controllers of the plane off.

        The ClusterBootstrap confirms an annotation first: from then on nothing is made again that has left.
        """
        found = await self._find()
        mark = found.metadata.annotations.get(PIVOT_ANNOTATION, "") if found is not None else PIVOT_DONE
        if mark != PIVOT_DONE:
            await self._mark(PIVOT_MOVING, "False")
        name = str(self._files.kubeconfig)
        return await pivot(self._client, target, self._say, target_name=name, clock=self._clock, arrived=self._arrived)

    async def _arrived(self) -> None:
        if await self._find() is not None:
            await self._mark(PIVOT_DONE, "True")

    async def _mark(self, mark: str, answer: str) -> None:
        """Waits until the controller has seen it: no reconcile that began before is still at work."""
        body = MergePatch({"metadata": {"annotations": {PIVOT_ANNOTATION: mark}}})
        await self._client.patch(ClusterBootstrap, self.key, body, Write(field_manager=_WRITE.field_manager))
        until = self._clock.monotonic() + _ANSWER_SECONDS
        while True:
            found = await self._find()
            said = condition.find(found.status.conditions, PIVOTED) if found is not None else None
            if said is not None and said.get("status") == answer:
                return
            if self._clock.monotonic() > until:
                if await find(self._client, CONFIG_MAP, STANDBY) is not None:
                    return  # its controllers are off already
                raise BootstrapError(
                    "the controllers of the plane do not answer: check that it runs, and run this again"
                )
            await asyncio.sleep(_POLL_SECONDS)


def _is_ready(found: ClusterBootstrap) -> bool:
    said = condition.find(found.status.conditions, "Ready") or {}
    return said.get("status") == "True" and said.get("observedGeneration") == found.metadata.generation


def _progress(found: ClusterBootstrap) -> str:
    said = condition.find(found.status.conditions, "Ready") or {}
    if said.get("status") == "True":
        return "Ready"
    message = str(said.get("message") or said.get("reason") or "").partition("\n")
    more = f" ({message[2].splitlines()[0]})" if message[2] else ""
    return f"{found.status.phase or 'Pending'}: {message[0]}{more}" if message[0] else found.status.phase or "Pending"


def _decoded(secret: Mapping[str, Any], key: str) -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key) or "")
