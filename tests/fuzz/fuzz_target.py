"""The server under fire: in a process of its own, in memory, with one custom kind.

python fuzz_target.py DIR    prints one JSON line (url, token) when ready; ends with its standard input
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import structlog
import uvloop

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.request import SYSTEM, Context

TOKEN = "fuzz-token"

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [{"rule": "self.replicas <= 100"}],
                                "properties": {
                                    "color": {"type": "string", "enum": ["red", "green"]},
                                    "replicas": {"type": "integer", "default": 1, "minimum": 0},
                                    "share": {"type": "number"},
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port"],
                                        "items": {
                                            "type": "object",
                                            "required": ["port"],
                                            "properties": {"port": {"type": "integer"}, "name": {"type": "string"}},
                                        },
                                    },
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


async def open_server(directory: Path) -> EmbeddedServer:
    """With the custom kind being served, and an administrator's token."""
    pki = PKI.ensure(directory)
    pki.tokens_path.write_text(f'{TOKEN},fuzz,1,"system:masters"\n')
    server = await EmbeddedServer.open(None, pki)
    await server.registry.create(
        Context(SYSTEM), *server.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "", WIDGETS
    )
    async with asyncio.timeout(10):
        while server.catalog.find("example.com", "v1", "widgets") is None:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.01)
    return server


async def main() -> None:
    server = await open_server(Path(sys.argv[1]))
    url = await server.serve()
    print(json.dumps({"url": url, "token": TOKEN}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.close(drain_seconds=1)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for the one line
    uvloop.run(main())
