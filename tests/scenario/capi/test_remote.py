"""Connections to workload clusters, over TLS to servers of this process, in virtual time."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.remotes import NODE, Remotes
from homeport.capi.remote.workload import RENEW_SECONDS, Connect, connect_over_http
from homeport.client.errors import BadRequest, Unavailable
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.runtime.testing import Plane, definition, plane, virtual

CLUSTER = Key("default", "prod")
SECRET = Resource("", "v1", "Secret", "secrets")
POD = Resource("", "v1", "Pod", "pods")
DEFINITION = definition(Cluster.__resource__)


def cluster(name: str = "prod", *, provisioned: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}}
    return made | ({"status": {"initialization": {"infrastructureProvisioned": True}}} if provisioned else {})


def secret(content: str, name: str = "prod") -> dict[str, Any]:
    return kubeconfig.as_secret(Key("default", name), content.encode(), None)


def node(name: str, provider_id: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}}
    if provider_id:
        made["spec"] = {"providerID": provider_id}
    return made


class World:
    """A management plane whose Remotes run, and a workload cluster."""

    def __init__(self, management: Plane, workload: Plane, remotes: Remotes) -> None:
        self.management = management
        self.workload = workload
        self.remotes = remotes
        self.told: list[tuple[Key, bool]] = []
        self.nodes: list[tuple[str | None, str | None]] = []
        self._wakeup = asyncio.Event()
        remotes.follow(self._changed)
        remotes.on_node(self._node_changed)

    def _changed(self, key: Key) -> None:
        self.told.append((key, self.remotes.get(key) is not None))
        self._wakeup.set()

    def _node_changed(self, key: Key, old: Any, new: Any) -> None:
        self.nodes.append((old and old.name, new and new.name))
        self._wakeup.set()

    async def until(self, true: Callable[[], bool], timeout: float = 600.0) -> None:
        async with asyncio.timeout(timeout):
            while not true():
                self._wakeup.clear()
                await self._wakeup.wait()

    async def connected(self) -> None:
        await self.until(lambda: self.remotes.get(CLUSTER) is not None)

    async def rotate(self, content: str) -> None:
        data = {"data": {"value": base64.b64encode(content.encode()).decode()}}
        await self.management.client.patch(SECRET, Key("default", "prod-kubeconfig"), MergePatch(data))


@asynccontextmanager
async def world(connect: Connect = connect_over_http) -> AsyncIterator[World]:
    async with plane(serve=True) as workload:
        made: list[Remotes] = []
        async with plane(lambda p: made.append(Remotes(p.manager, connect=connect)), crds=[DEFINITION]) as management:
            yield World(management, workload, made[0])


def admin(w: World) -> str:
    return w.workload.server.pki.kubeconfig(w.workload.server.url)


@virtual
async def test_a_cluster_is_connected_when_it_is_provisioned_and_has_a_kubeconfig() -> None:
    async with world() as w:
        assert w.remotes.why(CLUSTER) == "Cluster default/prod does not exist"
        await w.management.have(cluster(provisioned=False))
        await w.management.settle()
        assert "not provisioned" in w.remotes.why(CLUSTER)
        status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        await w.management.client.patch(Cluster, CLUSTER, MergePatch(status), subresource="status")
        await w.management.settle()
        assert w.remotes.why(CLUSTER) == "Secret prod-kubeconfig with the kubeconfig does not exist yet"
        assert w.remotes.get(CLUSTER) is None
        await w.workload.have(node("n1", "nutanix://1"))
        await w.management.have(secret(admin(w)))
        before = w.management.clock.monotonic()
        await w.connected()
        assert w.management.clock.monotonic() - before < 1.0
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        assert [n.name for n in remote.nodes.by("providerID", "nutanix://1")] == ["n1"]
        assert w.remotes.why(CLUSTER) == ""
        assert (await remote.client.get(NODE, Key("", "n1"))).name == "n1"
        assert w.told == [(CLUSTER, True)]


@virtual
async def test_attempts_with_the_same_kubeconfig_share_a_client_that_is_closed_when_there_is_another() -> None:
    made: list[Client] = []

    def connect(content: bytes, proxy: str) -> Client:
        made.append(connect_over_http(content, proxy))
        return made[-1]

    async with world(connect) as w:
        await w.management.have(cluster(), secret(w.workload.server.pki.kubeconfig("https://127.0.0.1:9")))
        await w.until(lambda: w.remotes.failures(CLUSTER) >= 5)
        assert len(made) == 1
        await w.rotate(admin(w))
        await w.connected()
        assert len(made) == 2
        with pytest.raises(Unavailable, match="is closed"):
            await made[0].list(NODE)
        assert (await made[1].list(NODE)).items == []


@virtual
async def test_changes_of_nodes_reach_everybody_who_asked() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        await w.workload.have(node("n1"))
        await w.until(lambda: w.nodes == [(None, "n1")])
        await w.workload.client.delete(NODE, Key("", "n1"))
        await w.until(lambda: w.nodes == [(None, "n1"), ("n1", None)])


@virtual
async def test_a_cluster_is_probed_and_its_last_answer_known() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        for _ in range(10):
            await asyncio.sleep(19.5)
            last = w.remotes.last_probe(CLUSTER)
            assert last is not None
            assert w.management.clock.now() - last <= RENEW_SECONDS + 1
        assert w.told == [(CLUSTER, True)]


@virtual
async def test_a_cluster_at_rest_is_asked_through_its_watch_alone() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        await asyncio.sleep(90)
        http = w.workload.server.http
        assert http is not None
        before = Counter(http.metrics.requests())
        await asyncio.sleep(600)
        asked = Counter(http.metrics.requests()) - before
        assert set(asked) == {"WATCH nodes"}
        assert 20 <= asked.total() <= 28


@virtual
async def test_a_watch_that_breaks_lets_the_cluster_be_asked_at_once() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        await asyncio.sleep(1)
        assert w.workload.server.http is not None
        await w.workload.server.http.drain(0)
        await asyncio.sleep(9)
        assert w.remotes.failures(CLUSTER) == 1
        assert w.remotes.get(CLUSTER) is not None


@virtual
async def test_a_cluster_that_goes_away_is_given_up_and_found_again_with_all_that_changed() -> None:
    async with world() as w:
        await w.workload.have(node("n1"), node("n2"))
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        last = w.remotes.last_probe(CLUSTER)
        assert w.workload.server.http is not None
        port = int(w.workload.server.url.rpartition(":")[2])
        await w.workload.server.http.drain(0)
        gone = w.management.clock.monotonic()
        await w.until(lambda: w.remotes.get(CLUSTER) is None)
        assert w.management.clock.monotonic() - gone < 75.0
        assert "no connection to https://127.0.0.1" in w.remotes.why(CLUSTER)
        await w.until(lambda: len(w.told) == 4)  # connected, disconnected, 50 s and 300 s without an answer
        assert [state for _, state in w.told] == [True, False, False, False]
        assert w.management.clock.monotonic() - gone < 311.0
        assert w.remotes.last_probe(CLUSTER) == last
        await w.workload.client.delete(NODE, Key("", "n1"))
        w.nodes.clear()
        await w.workload.server.serve(port=port)
        back = w.management.clock.monotonic()
        await w.connected()
        assert w.management.clock.monotonic() - back < 12.0
        assert w.nodes == [("n1", None)]
        await w.workload.have(node("n3"))
        await w.until(lambda: w.nodes == [("n1", None), (None, "n3")])


@virtual
async def test_a_restart_ends_no_connection_and_followers_hear_when_it_answers_again() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        port = int(w.workload.server.url.rpartition(":")[2])
        assert w.workload.server.http is not None
        await w.workload.server.http.drain(0)
        await asyncio.sleep(15)
        await w.workload.server.serve(port=port)
        await w.workload.have(node("n1"))
        await w.until(lambda: w.nodes == [(None, "n1")])
        await w.until(lambda: w.told == [(CLUSTER, True), (CLUSTER, True)])  # connected, and it answers again


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "robot"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}],
}
ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")


async def robot(w: World) -> str:
    """A kubeconfig with a token that ends with its account."""
    await w.workload.have({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}, BINDING)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = await w.workload.client.create(request, kind=ACCOUNT, key=Key("default", "robot"), subresource="token")
    return f"""
clusters:
- name: c
  cluster:
    server: {w.workload.server.url}
    certificate-authority-data: {base64.b64encode(w.workload.server.pki.ca_pem).decode()}
users:
- name: u
  user: {{token: {made["status"]["token"]}}}
contexts:
- name: x
  context: {{cluster: c, user: u}}
current-context: x
"""


@virtual
async def test_a_refused_credential_ends_the_connection_at_once_and_the_next_one_is_taken() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(await robot(w)))
        await w.connected()
        await w.workload.client.delete(ACCOUNT, Key("default", "robot"))
        revoked = w.management.clock.monotonic()
        await w.until(lambda: w.remotes.get(CLUSTER) is None)
        assert w.management.clock.monotonic() - revoked < 35.0
        assert "Unauthorized" in w.remotes.why(CLUSTER)
        await w.rotate(admin(w))
        await w.connected()
        assert [state for _, state in w.told] == [True, False, True]


@virtual
async def test_a_new_kubeconfig_is_used_without_a_gap_and_a_broken_one_is_not() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(await robot(w)))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        first: Client = remote.client
        await w.rotate("nonsense: [")
        await w.management.settle()
        await asyncio.sleep(60)
        assert remote.client is first
        await w.rotate(admin(w))
        await w.management.settle()
        assert remote.client is not first
        await w.workload.client.delete(ACCOUNT, Key("default", "robot"))
        await asyncio.sleep(60)
        await w.workload.have(node("n1"))
        await w.until(lambda: w.nodes == [(None, "n1")])
        assert w.told == [(CLUSTER, True)]


@virtual
async def test_labels_on_the_secret_change_nothing() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        before = remote.client
        patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
        await w.management.client.patch(SECRET, Key("default", "prod-kubeconfig"), patch)
        await asyncio.sleep(30)
        assert remote.client is before


@virtual
async def test_a_kubeconfig_that_would_run_a_program_is_refused() -> None:
    async with world() as w:
        text = admin(w).replace("users:\n", "users:\n- name: evil\n  user: {exec: {command: /bin/sh}}\n")
        await w.management.have(cluster(), secret(text))
        await w.until(lambda: len(w.told) == 1)  # five attempts in vain
        assert "can't be used in a Secret" in w.remotes.why(CLUSTER)
        assert w.remotes.failures(CLUSTER) == 5
        assert w.remotes.last_probe(CLUSTER) is None


@virtual
async def test_a_deleted_cluster_is_forgotten() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        await w.management.client.delete(Cluster, CLUSTER)
        await w.until(lambda: w.remotes.get(CLUSTER) is None)
        assert w.told == [(CLUSTER, True), (CLUSTER, False)]
        assert w.remotes.why(CLUSTER) == "Cluster default/prod does not exist"
        await w.management.have(cluster())
        await w.connected()


@virtual
async def test_further_kinds_are_watched_over_reconnects() -> None:
    async with world() as w:
        await w.management.have(cluster(), secret(admin(w)))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        seen: list[str] = []

        def changed(old: Any, new: Any) -> None:
            seen.append((new or old).name)
            w._wakeup.set()

        query = Query(namespace="default")
        cache = await remote.cached(POD, query)
        assert remote.watch(POD, query, changed) is cache
        assert remote.watch(POD, query, changed) is cache
        assert remote.has_synced(POD, query)
        assert len(cache) == 0
        await w.rotate(admin(w) + "\n# the same, written otherwise\n")
        await w.management.settle()
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await w.workload.have(pod)
        await w.until(lambda: seen == ["p"])
        assert len(cache) == 1


@virtual
async def test_a_client_that_is_there_can_be_attached() -> None:
    async with plane() as workload, plane(crds=[DEFINITION]) as management:
        await workload.have({**node("n1", "x://1"), "status": {"images": [{"names": ["a"], "sizeBytes": 1}]}})
        remotes = Remotes(management.manager)
        remote = await remotes.attach(CLUSTER, workload.client)
        assert remotes.get(CLUSTER) is remote
        (found,) = remote.nodes.by("providerID", "x://1")
        assert "images" not in found["status"]
        with pytest.raises(BadRequest, match="can't forward ports"):
            await remote.port_forward("kube-system", "etcd", 2379)
        await remotes.close()
        assert remotes.get(CLUSTER) is None
        with pytest.raises(Unavailable, match="default/prod is not connected"):
            _ = remote.client


@virtual
async def test_the_node_of_a_machine_is_found_whichever_of_both_has_the_longer_provider_id() -> None:
    central, first, second = (f"9f3c1f9a-1111-4222-8333-00000000000{number}" for number in range(3))
    async with plane() as workload, plane(crds=[DEFINITION]) as management:
        await workload.have(node("short", f"nutanix://{first}"), node("long", f"nutanix://{central}/{second}"))
        remotes = Remotes(management.manager)
        remote = await remotes.attach(CLUSTER, workload.client)
        for machine, name in ((first, "short"), (second, "long")):
            for asked in (f"nutanix://{machine}", f"nutanix://{central}/{machine}"):
                assert [each.name for each in remote.nodes_of(asked)] == [name]
        assert remote.nodes_of(f"nutanix://{central}") == []
        await remotes.close()


class Counting:
    """A client that counts how often it was closed, and whose watches may never begin."""

    def __init__(self, client: Client, *, stuck: bool = False) -> None:
        self._client = client
        self._stuck = stuck
        self.closed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @asynccontextmanager
    async def watch(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        if self._stuck:
            await asyncio.Event().wait()
        async with self._client.watch(*args, **more) as events:
            yield events

    async def close(self) -> None:
        self.closed += 1


@virtual
async def test_a_replaced_client_is_closed_though_the_end_comes_before_anything_else_runs() -> None:
    async with plane() as workload, plane(crds=[DEFINITION]) as management:
        remotes = Remotes(management.manager)
        before, after = Counting(workload.client), Counting(workload.client)
        await remotes.attach(CLUSTER, cast(Client, before))
        await remotes.attach(CLUSTER, cast(Client, after))
        assert (before.closed, after.closed) == (0, 0)
        await remotes.close()
        assert (before.closed, after.closed) == (1, 1)


@virtual
async def test_a_replaced_client_is_closed_though_its_successor_is_given_up_while_it_begins() -> None:
    async with plane() as workload, plane(crds=[DEFINITION]) as management:
        remotes = Remotes(management.manager)
        before, after = Counting(workload.client), Counting(workload.client, stuck=True)
        await remotes.attach(CLUSTER, cast(Client, before))
        replacing = asyncio.create_task(remotes.attach(CLUSTER, cast(Client, after)))
        await asyncio.sleep(1)
        replacing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replacing
        await remotes.close()
        assert (before.closed, after.closed) == (1, 1)


@virtual
async def test_a_replaced_client_is_closed_when_its_requests_had_time_to_end() -> None:
    async with plane() as workload, plane(crds=[DEFINITION]) as management:
        remotes = Remotes(management.manager)
        before = Counting(workload.client)
        await remotes.attach(CLUSTER, cast(Client, before))
        await remotes.attach(CLUSTER, workload.client)
        await asyncio.sleep(29)
        assert before.closed == 0
        await asyncio.sleep(2)
        assert before.closed == 1
        await remotes.close()
        assert before.closed == 1
