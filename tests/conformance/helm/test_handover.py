"""Real Helm and Homeport hand each other releases over, on the embedded server and on a real kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.helm.server import CONFIG_MAP, JOB, Server, embedded, finishing, real
from homeport.client.protocol import Key
from homeport.helm.release.desired import Desired
from present import present
from realhelm import Helm
from realkube import RealKube, find_binaries
from scenario.helm.small import chart, config_map, job

FIRST = chart(
    {
        "one": config_map("one", "{{ .Values.size }}"),
        "two": config_map("two"),
        "kept": config_map("kept", annotations={"helm.sh/resource-policy": "keep"}),
        "before": job("before", "pre-install", policy="hook-succeeded"),
        "after": job("after", "post-install,post-upgrade,post-rollback"),
        "end": job("end", "post-delete", policy="hook-succeeded"),
        "service": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n",
        "NOTES": "",
    }
) | {"values.yaml": b"size: 1\nextra: {deep: true}\n", "README.md": b"A buoy.\n", "templates/NOTES.txt": b"Ahoy.\n"}
SECOND = {
    **FIRST,
    **chart({"one": config_map("one", "{{ .Values.size }}").replace("value", "level"), "two": ""}, version="2.0.0"),
}


@pytest.fixture(scope="session")
def kube() -> Iterator[RealKube]:
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    with RealKube(found) as started:
        yield started


@pytest.fixture(params=["embedded", "real"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    namespace = f"h-{uuid.uuid4().hex[:8]}"
    if request.param == "embedded":
        async with embedded(tmp_path, namespace) as started:
            yield started
    else:
        async with real(request.getfixturevalue("kube"), tmp_path, namespace) as started:
            yield started


def write_chart(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


async def run(helm: Helm, *args: str) -> str:
    return await asyncio.to_thread(helm.ok, *args)


async def told(helm: Helm, *args: str) -> Any:
    return json.loads(await run(helm, *args, "-o", "json"))


def desired(server: Server, files: Mapping[str, bytes], **more: Any) -> Desired:
    return Desired("web", server.namespace, files, **more)


async def test_helm_works_on_what_homeport_installed(server: Server, helm: Helm, tmp_path: Path) -> None:
    helm = server.helm(helm)
    async with finishing(server.client, server.namespace) as jobs:
        await server.until_done(lambda: server.releases.install(desired(server, FIRST, values={"size": 3})))
        assert jobs == ["before", "after"]
        listed = await told(helm, "list")
        assert [(each["name"], each["revision"], each["status"], each["chart"]) for each in listed] == [
            ("web", "1", "deployed", "buoy-1.0.0")
        ]
        status = await told(helm, "status", "web")
        assert (status["info"]["status"], status["info"]["notes"].strip()) == ("deployed", "Ahoy.")
        assert await told(helm, "get", "values", "web") == {"size": 3}
        assert await told(helm, "get", "values", "web", "--all") == {"size": 3, "extra": {"deep": True}}
        assert "name: one" in await run(helm, "get", "manifest", "web")
        assert "helm.sh/hook: post-delete" in await run(helm, "get", "hooks", "web")

        folder = write_chart(tmp_path / "second", SECOND)
        await run(helm, "upgrade", "web", str(folder), "--set", "size=4")
        assert await server.data("one") == {"level": "4"}  # a field that the chart no longer has is gone
        assert await server.names() == {"one", "kept"}
        await run(helm, "rollback", "web", "1")
        assert await server.data("one") == {"value": "3"}
        assert await server.names() == {"one", "two", "kept"}
        history = await told(helm, "history", "web")
        assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]
        await run(helm, "uninstall", "web")
        assert jobs[2:] == ["after", "after", "end"]
    assert await server.names() == {"kept"}
    assert await told(helm, "list") == []


async def test_homeport_goes_on_with_what_helm_installed(server: Server, helm: Helm, tmp_path: Path) -> None:
    helm = server.helm(helm)
    async with finishing(server.client, server.namespace) as jobs:
        folder = write_chart(tmp_path / "first", FIRST)
        await run(helm, "install", "web", str(folder), "--set", "size=3")
        same = await server.releases.ensure(desired(server, FIRST, values={"size": 3}))
        assert present(same.release).version == 1
        assert await server.releases.drift(present(same.release)) == ()

        outcome = await server.until_done(lambda: server.releases.ensure(desired(server, SECOND, values={"size": 5})))
        assert present(outcome.release).version == 2
        assert await server.data("one") == {"level": "5"}
        assert await server.names() == {"one", "kept"}
        history = await told(helm, "history", "web")
        assert [(each["status"], each["description"]) for each in history] == [
            ("superseded", "Install complete"),
            ("deployed", "Upgrade complete"),
        ]
        await run(helm, "upgrade", "web", str(folder), "--set", "size=6")
        assert await server.data("one") == {"value": "6"}
        await server.until_done(lambda: server.releases.rollback(server.namespace, "web", 2))
        assert await server.data("one") == {"level": "5"}
        await server.until_done(lambda: server.releases.uninstall(server.namespace, "web"))
        assert jobs == ["before", "after", "after", "after", "after", "end"]
    assert await server.names() == {"kept"}
    assert await server.names(JOB) == {"after"}
    assert await told(helm, "list") == []


async def test_both_record_the_same_release(server: Server, helm: Helm, tmp_path: Path) -> None:
    helm = server.helm(helm)
    async with finishing(server.client, server.namespace):
        await run(helm, "install", "theirs", str(write_chart(tmp_path / "first", FIRST)), "--set", "size=3")
        theirs = present(await server.releases.current(server.namespace, "theirs"))
        await run(helm, "uninstall", "theirs")
        await server.client.delete(CONFIG_MAP, Key(server.namespace, "kept"))
        made = Desired("theirs", server.namespace, FIRST, values={"size": 3})
        outcome = await server.until_done(lambda: server.releases.install(made))
    ours = present(outcome.release)
    # Homeport renders by the rules of Helm 4, which keeps the white space at the end of a document.
    assert ours.manifest == theirs.manifest or helm.program.name == "helm3"
    assert "".join(ours.manifest.split()) == "".join(theirs.manifest.split())
    assert ours.config == theirs.config
    assert ours.info["notes"] == theirs.info["notes"]
    assert _without_times(ours.chart) == _without_times(theirs.chart)
    assert [_hook(each) for each in ours.hooks] == [_hook(each) for each in theirs.hooks]


async def test_a_helm_that_was_killed_is_no_obstacle(server: Server, helm: Helm, tmp_path: Path) -> None:
    """Its record stays pending, and Helm itself answers "another operation is in progress"."""
    helm = server.helm(helm)
    async with finishing(server.client, server.namespace):
        folder = write_chart(tmp_path / "first", FIRST)
        await run(helm, "install", "web", str(folder))
        release = present(await server.releases.current(server.namespace, "web"))
        release.raw["version"] = 2
        release.set_status("pending-upgrade", "Preparing upgrade")
        release.info["last_deployed"] = "2026-01-01T00:00:00.123456789Z"
        release.resource_version = ""
        await server.releases._storage.create(release)
        refused = await asyncio.to_thread(helm.run, "upgrade", "web", str(folder))
        assert "in progress" in refused.stderr
        outcome = await server.until_done(lambda: server.releases.ensure(desired(server, SECOND)))
        assert present(outcome.release).status == "deployed"
        history = await told(helm, "history", "web")
        assert [each["status"] for each in history] == ["superseded", "failed", "deployed"]
        await run(helm, "uninstall", "web")


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        dropped = ("modtime", "schemamodtime")
        return {name: _without_times(below) for name, below in value.items() if name not in dropped}
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    return value


def _hook(record: dict[str, Any]) -> dict[str, Any]:
    """Helm adds the default policy when a hook runs."""
    made = {name: value for name, value in record.items() if name != "last_run"}
    made["manifest"] = record["manifest"].rstrip()
    made.setdefault("delete_policies", ["before-hook-creation"])
    return made
