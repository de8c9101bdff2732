"""Connections to the API servers of hosted control planes: one each, made again when its kubeconfig changes."""

from __future__ import annotations

import asyncio
import hashlib

from homeport.capi.remote.workload import Connect, Remote, connect_over_http
from homeport.client.errors import Unavailable
from homeport.client.protocol import Key
from homeport.runtime.manager import Manager
from homeport.runtime.task import Tasks


class Connections:
    """Watches of the workload side live in the Remote, over reconnects. Closed when the manager stops."""

    def __init__(self, manager: Manager, *, connect: Connect | None = None, proxy: str = "") -> None:
        self._connect: Connect = connect or connect_over_http
        self._proxy = proxy
        self._remotes: dict[Key, tuple[bytes, Remote]] = {}
        self._tasks = Tasks()
        self._stopped = False
        manager.job(self.run)

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._stopped = True
            await self.close()

    async def get(self, key: Key, kubeconfig: bytes) -> Remote:
        """Raises ConfigError. Whether the server answers is found out by the first call."""
        if self._stopped:  # a loop that is just ending: nobody would close what it opens
            raise Unavailable(f"control plane {key}: the manager has stopped")
        digest = hashlib.sha256(kubeconfig).digest()
        known = self._remotes.get(key)
        if known is not None and known[0] == digest:
            return known[1]
        if known is None:
            remote = Remote(key, self._tasks.start)
        else:
            remote = known[1]
            await remote.stop()  # what is watched is watched through the new one
        remote.use(self._connect(kubeconfig, self._proxy))
        self._remotes[key] = (digest, remote)
        return remote

    def known(self, key: Key) -> Remote | None:
        found = self._remotes.get(key)
        return None if found is None else found[1]

    async def forget(self, key: Key) -> None:
        known = self._remotes.pop(key, None)
        if known is not None:
            await known[1].stop()

    async def close(self) -> None:
        for key in list(self._remotes):
            await self.forget(key)
        await self._tasks.close()
