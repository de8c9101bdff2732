"""One replica of a controller as a process of its own: `python -m conformance.runtime.replica KUBECONFIG NAMESPACE WHO MODE`.

Its only way to be heard is the API: whoever works writes its name into ConfigMaps.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Any

from homeport.api.meta import Resource
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LeaseLost, LeaseTiming
from homeport.runtime.manager import Elected, Manager, Sharded
from homeport.runtime.outcome import Wait

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
TIMING = LeaseTiming(4.0, 3.0, 0.3)  # real time: a busy machine stands still for a second now and then
LOST = 3  # exit code


class Sign:
    """Signs its keys, again and again."""

    def __init__(self, client: Any, who: str) -> None:
        self._client = client
        self._who = who
        self._numbers = itertools.count()

    async def reconcile(self, key: Key) -> Wait | None:
        data = {"writer": self._who, "n": str(next(self._numbers))}
        await self._client.patch(CONFIG_MAP, key, MergePatch({"data": data}))
        return Wait("Again", after=0.05, quiet=True)


async def main(kubeconfig: str, namespace: str, who: str, mode: str) -> int:
    async with HttpClient(load(Path(kubeconfig))) as client:
        kind = Sharded if mode == "sharded" else Elected
        manager = Manager(client, mode=kind(namespace, "replicas", TIMING), who=who)
        query = Query(namespace=namespace, labels="sign")
        never = lambda old, new: old is None  # noqa: E731  (its own signature is no reason to sign again)
        manager.add(Controller("sign", CONFIG_MAP, Sign(manager.client, who), query=query, predicate=never))
        code = 0
        try:
            await manager.run()
        except* LeaseLost:
            code = LOST
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
