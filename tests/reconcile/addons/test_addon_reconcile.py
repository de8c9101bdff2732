"""ClusterAddons: one reconcile on a real API, and a workload cluster behind a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from homeport.addons.definition import definitions as addon_definitions
from homeport.addons.reconciler import AddonReconciler
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.definition.kind import definitions
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient
from homeport.client.protocol import ALL, Event, Key, MergePatch, Query
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, Reconciled, plane, shared_pki

H = TypeVar("H", bound=HttpClient)

SIMULATED = ChartSettings(simulated=True)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
APP, ONE = Key("default", "app"), Key("default", "one")


def inner(*names: str) -> str:
    return "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {each}}}\ndata: {{a: b}}\n" for each in names
    )


def cluster(**meta: Any) -> dict[str, Any]:
    infra = {"apiGroup": "provider.example.com", "kind": "FakeCluster", "name": "one"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "one", **meta},
        "spec": {"infrastructureRef": infra},
    }


def addon(*names: str, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    body = {"clusterName": "one", **({"manifests": [{"inline": inner(*names)}]} if names else {}), **spec}
    return {
        "apiVersion": "addons.homeport.dev/v1alpha1",
        "kind": "ClusterAddon",
        "metadata": {"name": "app", **(meta or {})},
        "spec": body,
    }


class Desk:
    def __init__(self, p: Plane, workload: EmbeddedServer, charts: ChartSettings) -> None:
        self.p = p
        self.begin(charts)
        self.server = workload
        self.workload = workload.client(field_manager="user")

    def begin(self, charts: ChartSettings) -> None:
        self.capi = Capi.make(self.p.manager)
        self.reconciler = AddonReconciler(self.capi, charts)

    async def restart(self, charts: ChartSettings) -> None:
        """As another process, which knows nothing of what this one did."""
        await self.capi.remotes.close()
        self.p.manager = Manager(self.p.server.client(), clock=self.p.clock)
        self.begin(charts)
        await self.connect()

    async def connect(self) -> None:
        await self.capi.remotes.attach(ONE, self.dial(HttpClient))

    def dial(self, form: type[H]) -> H:
        issued = self.server.pki.issue_client("admin", ("system:masters",))
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        return form(Config(self.server.url, credential, self.server.pki.ca_pem))

    async def once(self) -> Reconciled:
        return await self.p.reconcile(self.reconciler, APP)

    async def found(self) -> ClusterAddon:
        return await self.p.client.get(ClusterAddon, APP)

    async def names(self) -> set[str]:
        return {each.name for each in (await self.workload.list(CONFIG_MAP)).items if each.namespace == "default"}


@asynccontextmanager
async def desk(
    *objects: dict[str, Any], connect: bool = True, charts: ChartSettings = SIMULATED
) -> AsyncIterator[Desk]:
    async with plane(crds=[*definitions(), *addon_definitions()]) as p:
        server = await EmbeddedServer.open(None, shared_pki())
        await server.serve()
        made = Desk(p, server, charts)
        try:
            await p.have(*objects)
            if connect:
                await made.connect()
            yield made
        finally:
            await made.capi.remotes.close()
            await server.close(drain_seconds=0.1)


async def test_an_add_on_is_applied_with_few_writes_and_none_the_second_time() -> None:
    async with desk(cluster(), addon("x", "z")) as d:
        done = await d.once()
        assert (done.wait, done.error) == (None, None)
        assert await d.names() >= {"x", "z"}
        written = [f"{kind.kind} {key.name}" for kind, key in done.written]
        assert written == ["ClusterAddon app", "ClusterAddon app"]  # finalizer, status
        before = d.server.store.revision
        again = await d.once()
        assert (again.wait, again.error, again.written) == (None, None, ())
        assert d.server.store.revision == before


async def test_nothing_is_asked_of_a_cluster_that_is_not_connected() -> None:
    async with desk(cluster(), addon("x"), connect=False) as d:
        done = await d.once()
        assert done.wait is not None
        assert (done.wait.reason, done.wait.after) == ("WaitingForCluster", None)
        found = await d.found()
        assert found.metadata.finalizers == [], "what was never installed can be deleted at once"
        assert found.status.phase == "Pending"


async def test_a_paused_add_on_is_left_alone() -> None:
    async with desk(cluster(), addon("x", paused=True)) as d:
        done = await d.once()
        assert (done.wait, done.error) == (None, None)
        assert "x" not in await d.names()
        assert (await d.found()).status.phase == "Paused"


async def test_a_deleted_add_on_whose_cluster_does_not_exist_is_let_go_at_once() -> None:
    held = addon("x", meta={"finalizers": ["addons.homeport.dev/clusteraddon", "example.com/other"]})
    async with desk(held, connect=False) as d:
        await d.p.client.delete(ClusterAddon, APP)
        done = await d.once()
        assert (done.wait, done.error) == (None, None)
        assert (await d.found()).metadata.finalizers == ["example.com/other"]


async def test_a_removal_deletes_only_what_is_listed_and_marked() -> None:
    async with desk(cluster(), addon("x", "z")) as d:
        await d.once()
        # Somebody takes the mark away from one object, and copies another with its mark.
        unmarked = {"metadata": {"annotations": {"addons.homeport.dev/owner": None}}}
        await d.workload.patch(CONFIG_MAP, Key("default", "x"), MergePatch(unmarked))
        copy = await d.workload.get(CONFIG_MAP, Key("default", "z"))
        meta = {"name": "copy", "namespace": "default", "annotations": copy.metadata["annotations"]}
        await d.workload.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, kind=CONFIG_MAP)
        await d.p.client.delete(ClusterAddon, APP)
        done = await d.once()
        assert (done.wait, done.error) == (None, None)
        assert await d.names() >= {"x", "copy"}
        assert "z" not in await d.names()


async def test_an_add_on_that_is_installed_does_not_need_its_chart_to_stay_ready(tmp_path: Path) -> None:
    """As after a pivot, or a restart while a repository does not answer."""
    listed = addon(addon="metrics-server", wait=False)
    async with desk(cluster(), listed) as d:
        assert (await d.once()).wait is None
        before = await d.found()
        await d.restart(ChartSettings(folder=tmp_path))
        account = Resource("", "v1", "ServiceAccount", "serviceaccounts")
        await d.workload.delete(account, Key("kube-system", "metrics-server"))
        assert (await d.once()).wait is None
        assert (await d.found()).status.phase == "Installed"
        await d.workload.get(account, Key("kube-system", "metrics-server"))  # repaired from the record of the release
        assert (await d.found()).status.release == before.status.release
        # Something else can't be had without the chart.
        await d.p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"values": {"replicas": 2}}}))
        waits = (await d.once()).wait
        assert waits is not None
        assert waits.reason == "ChartNotAvailable"


class LateWatch(HttpClient):
    """Its watches of ConfigMaps and Secrets begin when `begin` is set."""

    begin: asyncio.Event

    @asynccontextmanager
    async def watch(self, kind: Any, query: Query = ALL, **more: Any) -> AsyncIterator[AsyncIterator[Event[Any]]]:
        if kind in (CONFIG_MAP, SECRET):
            await self.begin.wait()
        async with super().watch(kind, query, **more) as events:
            yield events


def lone_chart(folder: Path) -> None:
    chart = folder / "lone"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: lone\nversion: 1.0.0\n")
    (chart / "templates" / "a.yaml").write_text(inner("x"))


@pytest.mark.parametrize("form", ["manifest", "chart"])
async def test_an_object_that_is_deleted_before_its_watch_begins_comes_back(form: str, tmp_path: Path) -> None:
    lone_chart(tmp_path)
    of_chart: dict[str, Any] = {
        "chart": {"repository": "https://charts.example.com", "name": "lone"},
        "version": "1.0.0",
    }
    listed = addon("x") if form == "manifest" else addon(**of_chart)
    async with desk(cluster(), listed, connect=False, charts=ChartSettings(folder=tmp_path)) as d:
        client = d.dial(LateWatch)
        client.begin = asyncio.Event()
        await d.capi.remotes.attach(ONE, client)
        assert (await d.once()).wait is None
        await d.workload.delete(CONFIG_MAP, Key("default", "x"))
        client.begin.set()
        queue = d.reconciler.controller.queue
        while "x" not in await d.names():
            assert await queue.get() == APP, "the first list lacks the object, and wakes its add-on"
            queue.done(APP)
            assert (await d.once()).wait is None
