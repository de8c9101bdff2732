"""Charts of the corpus, installed by real Helm and by Homeport: the objects on the cluster are the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conformance.chart import judge
from conformance.helm.server import Server, embedded
from homeport.helm.errors import ReleaseError
from homeport.helm.release.content import parse_manifest
from homeport.helm.release.desired import Desired
from homeport.helm.release.record import Release
from homeport.helm.release.target import Target
from homeport.machinery.chart import without_ignored
from present import present
from realhelm import Helm

# Most have objects that an API server accepts, some have what it refuses; the others judge rendering alone.
CHARTS = (
    "broken", "builtin", "definitions", "dependencies", "documents", "hooks", "ignored", "merge", "multivalues",
    "numberversion", "spans", "withlib", "yaml",
)  # fmt: skip
NAMESPACE = "shop"


@pytest.fixture
def helm4(programs: dict[str, Path], tmp_path: Path) -> Helm:
    return Helm(programs["helm4"], tmp_path / "home")


@pytest.mark.parametrize("chart", CHARTS)
async def test_a_chart_becomes_the_same_objects(chart: str, helm4: Helm, tmp_path: Path) -> None:
    async with embedded(tmp_path, NAMESPACE) as server:
        helm = server.helm(helm4)
        folder = str(judge.CORPUS / chart)
        installed = await asyncio.to_thread(helm.run, "install", "web", folder, "--no-hooks")
        if installed.returncode == 0:
            await asyncio.to_thread(helm.ok, "upgrade", "web", folder, "--no-hooks")
            await asyncio.to_thread(helm.ok, "rollback", "web", "1", "--no-hooks")
        theirs = (
            await objects(server, present(await server.releases.current(NAMESPACE, "web")))
            if not installed.returncode
            else {}
        )
        await asyncio.to_thread(helm.run, "uninstall", "web", "--no-hooks", "--wait", "--ignore-not-found")

        files = without_ignored(judge.read_folder(judge.CORPUS / chart))
        release = await install(server, Desired("web", NAMESPACE, files, hooks=False))
        told = release if isinstance(release, str) else release.description
        deployed = isinstance(release, Release) and release.status == "deployed"
        assert deployed == (installed.returncode == 0), f"{told}\n{installed.stderr}"
        if deployed and isinstance(release, Release):
            assert await objects(server, release) == theirs
            assert await server.releases.drift(release) == ()
            await asyncio.to_thread(helm.ok, "uninstall", "web", "--no-hooks", "--wait")
            assert await server.releases.history(NAMESPACE, "web") == []


async def install(server: Server, desired: Desired) -> Release | str:
    """The release, or why there is none."""
    try:
        outcome = await server.until_done(lambda: server.releases.install(desired))
    except ReleaseError as error:
        return str(error)
    return present(outcome.release)


async def objects(server: Server, release: Release) -> dict[str, Any]:
    """What is on the cluster, without what the server and the clock put there."""
    target = Target(server.client, release.namespace)
    found = {}
    for obj in parse_manifest(release.manifest, release.label):
        live = dict(present(await target.get(obj)))
        metadata = dict(live.pop("metadata"))
        managers = sorted((each["manager"], each["operation"]) for each in metadata.pop("managedFields", ()))
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation"):
            metadata.pop(field, None)
        live.pop("status", None)
        spec = live.get("spec")
        if isinstance(spec, dict):
            live["spec"] = {name: value for name, value in spec.items() if name not in ("clusterIP", "clusterIPs")}
        found[f"{obj['kind']}/{obj['metadata']['name']}"] = (live, metadata, managers)
    return found
