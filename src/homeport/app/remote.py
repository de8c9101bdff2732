"""Asking a running plane, for the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson

from homeport.client import kubeconfig
from homeport.client.wire.quick import import_aiohttp


def ask(config: Path, path: str, method: str = "POST") -> Any:
    """The JSON answer of a path of the plane's own. Raises ApiError."""
    import_aiohttp()
    from homeport.client.http import HttpClient

    async def call() -> Any:
        client = HttpClient(kubeconfig.load(config))
        try:
            answer = await client.raw(method, path)
            return orjson.loads(answer.check(path))
        finally:
            await client.close()

    return asyncio.run(call())
