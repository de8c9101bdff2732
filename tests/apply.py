"""Applies manifests to a running plane, without kubectl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Write
from homeport.client.restmapper import RestMapper


def apply(file: Path, objects: Iterable[dict[str, Any]]) -> None:
    """`file`: the kubeconfig of the plane."""

    async def run() -> None:
        client = HttpClient(kubeconfig.load(file))
        try:
            kinds = RestMapper(client)
            for obj in objects:
                named = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
                kind = await kinds.find(obj["apiVersion"], obj["kind"])
                await client.apply(named, Write(field_manager="test"), kind=kind)
        finally:
            await client.close()

    asyncio.run(run())
