"""Controllers for tests of `homeport up --plugin`. What a ConfigMap's `work` says decides what becomes of it."""

from __future__ import annotations

import asyncio
import os
from itertools import count

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Elected, Manager
from homeport.runtime.outcome import Wait

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
WRITE = Write(field_manager="sample")
_NUMBERS = count()


class Sign:
    """Writes the number of this process on every ConfigMap that asks for it."""

    def __init__(self, manager: Manager, query: Query) -> None:
        self._client = manager.client
        self._cache = manager.informers.get(CONFIG_MAP, query).cache

    async def reconcile(self, key: Key) -> Wait | None:
        data = (self._cache.get(key) or Unstructured()).get("data", {})
        work = data.get("work")
        if work == "wait":
            return Wait("WaitingForGodot", "he does not come")
        if work == "scribble":
            return await self._scribble(key)
        if work == "fail":
            raise RuntimeError("told to fail")
        if work == "sign" and "signed" not in data:
            patch = MergePatch({"data": {"signed": str(os.getpid())}})
            await self._client.patch(CONFIG_MAP, key, patch, WRITE)
        return None

    async def _scribble(self, key: Key) -> Wait:
        """One write follows the answer to the other, with a pause now and then."""
        for _ in range(20):
            patch = MergePatch({"data": {"writer": str(os.getpid()), "number": str(next(_NUMBERS))}})
            await self._client.patch(CONFIG_MAP, key, patch, WRITE)
        return Wait("Scribbling", after=1.0, quiet=True)


def install(manager: Manager) -> None:
    _install(manager, Query(labels="sample"))


def _install(manager: Manager, query: Query) -> None:
    manager.add(Controller("sample", CONFIG_MAP, Sign(manager, query), query=query))


def install_beside_lease(manager: Manager) -> None:
    """Only for ConfigMaps in the namespace of the Lease."""
    assert isinstance(manager.mode, Elected)
    _install(manager, Query(namespace=manager.mode.namespace, labels="sample"))


_TIMES = count(1)


def crash(manager: Manager) -> None:
    """A job that breaks its first two managers."""
    install(manager)
    time = next(_TIMES)

    async def job() -> None:
        if time <= 2:
            raise ValueError(f"broken {time}")
        await asyncio.Event().wait()

    manager.job(job)
