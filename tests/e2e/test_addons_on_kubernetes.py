"""Add-ons in a workload cluster that is a real kube-apiserver: applied, at rest, repaired, pruned and removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from homeport import addons
from homeport.addons.definition import definitions as addon_definitions
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.definition.kind import definitions
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.runtime.testing import Plane, plane
from realkube import RealKube
from scenario.addons.port import cluster
from scenario.addons.stage import CONFIG_MAP, DEPLOYMENT, SECRET, addon, config_map, data, deployment, exists, text
from scenario.capi.look import says

pytestmark = [pytest.mark.timeout(240)]

APP = Key("default", "app")
READY = says("Ready", status="True")
SERVICE = Resource("", "v1", "Service", "services")


@pytest.fixture(scope="module")
def real(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as started:
        yield started


@asynccontextmanager
async def managed(real: RealKube) -> AsyncIterator[tuple[Plane, Client]]:
    config = kubeconfig.load(real.kubeconfig)

    def connect(content: bytes, proxy: str, /) -> Client:
        return HttpClient(config)

    def install(p: Plane) -> None:
        addons.install(Capi.make(p.manager, connect=connect), ChartSettings(simulated=True))

    user = HttpClient(config)
    try:
        async with plane(install, crds=[*definitions(), *addon_definitions()]) as p:
            await p.have(*cluster("one"))
            yield p, user
    finally:
        await user.close()


async def until(p: Plane, key: Key, *said: str, status: str = "") -> ClusterAddon:
    found: ClusterAddon = await p.until(ClusterAddon, key, says("Ready", *said, status=status), 60)
    return found


async def watch_until(client: Client, kind: Resource, key: Key, good: Any) -> None:
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    async with asyncio.timeout(30), client.watch(kind, query, initial_events=True) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and good(event.object):
                return


async def test_manifests_are_applied_repaired_pruned_and_removed(real: RealKube) -> None:
    async with managed(real) as (p, user):
        await p.have(addon("app", config_map("a", x="1"), config_map("b", x="1"), deployment("web"), wait=False))
        found = await until(p, APP, status="True")
        assert found.status.object_count == 3
        await user.patch(CONFIG_MAP, Key("default", "a"), MergePatch({"data": {"x": "2", "own": "kept"}}))
        await watch_until(user, CONFIG_MAP, Key("default", "a"), lambda o: o["data"] == {"x": "1", "own": "kept"})
        await user.patch(DEPLOYMENT, Key("default", "web"), MergePatch({"spec": {"replicas": 5}}))
        await watch_until(user, DEPLOYMENT, Key("default", "web"), lambda o: o["spec"]["replicas"] == 1)
        written = {"manifests": [{"inline": text(config_map("a", x="3"), deployment("web"))}]}
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": written}))
        await p.until(ClusterAddon, APP, lambda o: READY(o) and o.status.object_count == 2, 60)
        assert (await data(user, "a"))["x"] == "3"
        assert not await exists(user, CONFIG_MAP, "b")
        await p.client.delete(ClusterAddon, APP)
        await p.gone(ClusterAddon, APP, 60)
        assert not await exists(user, CONFIG_MAP, "a")
        assert not await exists(user, DEPLOYMENT, "web")
        assert not await exists(user, CONFIG_MAP, "homeport-addon-app", "kube-system")


async def test_a_chart_is_installed_repaired_upgraded_and_uninstalled(real: RealKube) -> None:
    async with managed(real) as (p, user):
        await p.have(addon("app", addon="traefik", version="40.3.0", wait=False))
        found = await until(p, APP, status="True")
        assert (found.status.version, found.status.release.status) == ("40.3.0", "deployed")
        web = Key("traefik", "traefik")
        await user.patch(SERVICE, web, MergePatch({"spec": {"type": "ClusterIP"}}))
        await watch_until(user, SERVICE, web, lambda o: o["spec"]["type"] == "LoadBalancer")
        await user.delete(DEPLOYMENT, web)
        await watch_until(user, DEPLOYMENT, web, lambda o: True)
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"version": "41.3.0"}}))
        await p.until(ClusterAddon, APP, lambda o: READY(o) and o.status.version == "41.3.0", 60)
        assert len((await user.list(SECRET, Query(namespace="traefik", labels="owner=helm"))).items) == 2
        await p.client.delete(ClusterAddon, APP)
        await p.gone(ClusterAddon, APP, 60)
        assert not (await user.list(SECRET, Query(namespace="traefik", labels="owner=helm"))).items
        assert not await exists(user, DEPLOYMENT, "traefik", "traefik")
