"""Controllers for tests of `homeport up --plugin`. What a ConfigMap's `work` says decides what becomes of it."""

from __future__ import annotations

import asyncio
import os
from itertools import count

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
WRITE = Write(field_manager="sample")


class Sign:
    """Writes the number of this process on every ConfigMap that asks for it."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._cache = manager.informers.get(CONFIG_MAP, Query(labels="sample")).cache

    async def reconcile(self, key: Key) -> Wait | None:
        data = (self._cache.get(key) or Unstructured()).get("data", {})
        work = data.get("work")
        if work == "wait":
            return Wait("WaitingForGodot", "he does not come")
        if work == "fail":
            raise RuntimeError("told to fail")
        if work == "sign" and "signed" not in data:
            patch = MergePatch({"data": {"signed": str(os.getpid())}})
            await self._client.patch(CONFIG_MAP, key, patch, WRITE)
        return None


def install(manager: Manager) -> None:
    manager.add(Controller("sample", CONFIG_MAP, Sign(manager), query=Query(labels="sample")))


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
