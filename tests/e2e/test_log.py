"""kubectl logs, served by a component of the plane."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from e2e.cluster import Cluster, Output, finish
from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.registry import Raw

PODS = Resource("", "v1", "Pod", "pods")


async def _run(cluster: Cluster, *args: str) -> Output:
    return await asyncio.to_thread(finish, cluster.start(*args))


async def test_kubectl_reads_the_log_that_a_component_serves(tmp_path: Path, kubectl: str) -> None:
    asked: list[dict[str, str]] = []

    async def lines() -> AsyncIterator[bytes]:
        yield b"first\n"
        yield b"second\n"

    async def serve(call: Any) -> Raw:
        asked.append(dict(call.query))
        return Raw(lines(), "text/plain")

    server = await EmbeddedServer.open(tmp_path / "db", PKI.ensure(tmp_path / "pki"))
    try:
        await server.serve()
        server.registry.connect("", "pods", "log", serve, "GET")
        server.pki.write_kubeconfig(tmp_path / "kubeconfig", server.url)
        pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await server.client().create(pod, kind=PODS)
        cluster = Cluster("ours", kubectl, tmp_path / "kubeconfig", tmp_path)
        output = await _run(cluster, "logs", "p", "--tail=5")
        assert (output.code, output.out) == (0, "first\nsecond\n"), output
        followed = await _run(cluster, "logs", "-f", "p", "-c", "c")
        assert followed.out == "first\nsecond\n"
        assert asked[0]["tailLines"] == "5"
        assert asked[1]["follow"] == "true"
    finally:
        await server.close()
