"""ClusterResourceSets: one reconcile on a real API, and a workload cluster behind a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.addons.v1beta2 import ClusterResourceSet, ClusterResourceSetBinding
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.core.clusterresourceset.binding import BindingReconciler
from homeport.core.clusterresourceset.reconciler import SetReconciler
from homeport.runtime.testing import Plane, Reconciled, plane, shared_pki

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SET, ONE = Key("default", "set"), Key("default", "one")


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def inner(*names: str) -> str:
    return "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {each}}}\ndata: {{a: b}}\n" for each in names
    )


def cluster(name: str, **meta: Any) -> dict[str, Any]:
    infra = {"apiGroup": "provider.example.com", "kind": "FakeCluster", "name": name}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"cni": "ours"}, **meta},
        "spec": {"infrastructureRef": infra},
    }


def resource_set(*names: str, strategy: str = "ApplyOnce", kind: str = "ConfigMap", **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSet",
        "metadata": {"name": "set", **meta},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "ours"}},
            "resources": [{"kind": kind, "name": each} for each in names],
            "strategy": strategy,
        },
    }


class Desk:
    def __init__(self, p: Plane, workload: EmbeddedServer) -> None:
        self.p = p
        self.capi = Capi.make(p.manager)
        self.reconciler = SetReconciler(self.capi)
        self.bindings = BindingReconciler(p.manager)
        self.server = workload
        self.workload = workload.client(field_manager="user")

    async def connect(self, key: Key = ONE) -> None:
        issued = self.server.pki.issue_client("admin", ("system:masters",))
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        client = HttpClient(Config(self.server.url, credential, self.server.pki.ca_pem))
        await self.capi.remotes.attach(key, client)

    async def once(self) -> Reconciled:
        return await self.p.reconcile(self.reconciler, SET)

    async def said(self) -> tuple[str, str, str]:
        found = await self.p.client.get(ClusterResourceSet, SET)
        made = next(each for each in found.status.conditions if each["type"] == "ResourcesApplied")
        return made["status"], made["reason"], made["message"]

    async def binding(self) -> ClusterResourceSetBinding:
        return await self.p.client.get(ClusterResourceSetBinding, ONE)

    async def has(self, *names: str) -> bool:
        found = {each.name for each in (await self.workload.list(CONFIG_MAP)).items}
        return set(names) <= found


@asynccontextmanager
async def desk(*objects: dict[str, Any], connect: bool = True) -> AsyncIterator[Desk]:
    async with plane(crds=definitions()) as p:
        server = await EmbeddedServer.open(None, shared_pki())
        await server.serve()
        made = Desk(p, server)
        try:
            await p.have(*objects)
            if connect:
                await made.connect()
            yield made
        finally:
            await made.capi.remotes.close()
            await server.close(drain_seconds=0.1)


async def test_a_set_is_applied_with_few_writes_and_none_the_second_time() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x", "z")), resource_set("net")) as d:
        done = await d.once()
        assert (done.wait, done.error) == (None, None)
        assert await d.has("x", "z")
        assert await d.said() == ("True", "Applied", "")
        written = sorted(f"{kind.kind} {key.name}" for kind, key in done.written)
        assert written == [
            "ClusterResourceSet set",  # finalizer
            "ClusterResourceSet set",  # status
            "ClusterResourceSetBinding one",
            "ConfigMap net",  # owner
        ]
        assert (await d.once()).written == ()


async def test_without_a_connection_nobody_polls_and_the_condition_says_why() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net"), connect=False) as d:
        done = await d.once()
        assert done.wait is not None
        assert done.wait.after is None
        status, reason, message = await d.said()
        assert (status, reason) == ("False", "NotApplied")
        assert message.startswith("Cluster one: connecting to the workload cluster")


async def test_a_manifest_that_can_not_be_read_waits_for_its_change() -> None:
    async with desk(cluster("one"), config_map("net", a="kind: Pod"), resource_set("net")) as d:
        done = await d.once()
        assert done.wait is not None
        assert done.wait.after is None
        assert await d.said() == ("False", "NotApplied", "ConfigMap net: a: object 1: apiVersion is missing")


async def test_a_secret_of_another_type_is_refused() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {}}
    async with desk(cluster("one"), secret, resource_set("s", kind="Secret")) as d:
        await d.once()
        status, reason, message = await d.said()
        assert (status, reason) == ("False", "WrongSecretType")
        assert (
            message == "Secret s: it is of type Opaque: create it again with type addons.cluster.x-k8s.io/resource-set"
        )


async def test_what_a_cluster_refuses_is_tried_again_less_and_less_often() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x", "No_Name")), resource_set("net")) as d:
        waits = [(await d.once()).wait for _ in range(3)]
        assert [each.after for each in waits if each is not None] == [1.0, 2.0, 4.0]
        version = (await d.binding()).metadata.resource_version
        assert (await d.once()).wait is not None
        assert (await d.binding()).metadata.resource_version == version  # no news, no write
        assert await d.has("x")


async def test_a_manifest_that_has_grown_old_is_reported_with_what_the_cluster_serves() -> None:
    old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
    unknown = "apiVersion: v1\nkind: Boat\nmetadata: {name: b}\n"
    async with desk(cluster("one"), config_map("net", a=old, b=unknown), resource_set("net")) as d:
        await d.once()
        assert (await d.said())[2].splitlines() == [
            "Cluster one: ConfigMap net: Boat b: the cluster serves no Boat of v1",
            "Cluster one: ConfigMap net: PodDisruptionBudget a: the cluster serves no PodDisruptionBudget of "
            "policy/v1beta1, but it serves policy/v1: use that version in the manifest",
        ]


async def test_a_cluster_that_went_away_is_named_once_and_not_asked_for_every_object() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("u", "v", "w")), resource_set("net")) as d:
        await d.server.close(drain_seconds=0.1)
        done = await d.once()
        assert done.wait is not None
        lines = (await d.said())[2].splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("Cluster one: ConfigMap net: ConfigMap u: ")


async def test_objects_that_are_there_are_left_alone_by_apply_once_and_taken_by_reconcile() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net")) as d:
        await d.workload.create(
            {**config_map("x", a="theirs"), "metadata": {"name": "x", "namespace": "default"}}, kind=CONFIG_MAP
        )
        await d.once()
        assert (await d.workload.get(CONFIG_MAP, Key("default", "x")))["data"] == {"a": "theirs"}
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net", strategy="Reconcile")) as d:
        body = {**config_map("x", a="theirs", c="d"), "metadata": {"name": "x", "namespace": "default"}}
        await d.workload.create(body, kind=CONFIG_MAP)
        await d.once()
        assert (await d.workload.get(CONFIG_MAP, Key("default", "x")))["data"] == {"a": "b", "c": "d"}


async def test_sets_that_write_into_one_binding_at_the_same_time_lose_nothing() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net")) as d:
        await d.p.have(config_map("more", a=inner("z")), {**resource_set("more"), "metadata": {"name": "other"}})
        async with d.p._informed():
            await asyncio.gather(*(d.reconciler.reconcile(Key("default", each)) for each in ("set", "other")))
        found = await d.binding()
        assert {each.cluster_resource_set_name for each in found.spec.bindings} == {"set", "other"}
        assert {each.name for each in found.metadata.owner_references} == {"set", "other"}


async def test_a_paused_set_only_says_so() -> None:
    paused = resource_set("net", annotations={"cluster.x-k8s.io/paused": ""})
    async with desk(cluster("one"), config_map("net", a=inner("x")), paused) as d:
        await d.once()
        assert not await d.has("x")
        found = await d.p.client.get(ClusterResourceSet, SET)
        assert [(each["type"], each["status"]) for each in found.status.conditions] == [("Paused", "True")]


async def test_a_binding_without_a_cluster_goes() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net")) as d:
        await d.once()
        assert (await d.p.reconcile(d.bindings, ONE)).written == ()
        where = Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters")
        await d.p.client.delete(where, ONE)
        await d.p.reconcile(d.bindings, ONE)
        await d.p.gone(ClusterResourceSetBinding, ONE)


async def test_a_deleted_set_leaves_bindings_of_clusters_that_match_no_more() -> None:
    async with desk(cluster("one"), config_map("net", a=inner("x")), resource_set("net")) as d:
        await d.once()
        where = Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters")
        await d.p.client.patch(where, ONE, MergePatch({"metadata": {"labels": {"cni": None}}}))
        await d.once()
        assert (await d.said())[2].startswith("no Cluster matches")
        await d.p.client.delete(ClusterResourceSet, SET)
        await d.once()
        await d.p.gone(ClusterResourceSet, SET)
        await d.p.gone(ClusterResourceSetBinding, ONE)
        assert await d.has("x")
