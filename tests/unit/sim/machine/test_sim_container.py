"""Containers of simulated clusters that really work."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
import yaml

from homeport.api.meta import Resource
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import (
    CONFIG_MAP,
    DEPLOYMENT,
    NODE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
)
from homeport.sim.machine.workload.pod.container import Program, Run
from unit.sim.machine.sim_kit import Sim, join_data, simulation

IMAGE = "example.com/worker:1"
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


class Works:
    """What runs for IMAGE, and what became of it."""

    def __init__(self) -> None:
        self.started: list[Program] = []
        self.running = 0
        self.crash = False

    def find(self, container: Mapping[str, Any]) -> Run | None:
        return self._run if container["image"] == IMAGE else None

    async def _run(self, program: Program) -> None:
        self.started.append(program)
        if self.crash:
            raise RuntimeError("out of order")
        self.running += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1


def deployment(**pod: Any) -> dict[str, Any]:
    labels = {"app": "worker"}
    spec = {
        "serviceAccountName": "worker",
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [{"name": "c", "image": IMAGE, "args": ["work", "--hard"], **pod.pop("container", {})}],
        **pod,
    }
    return {
        "metadata": {"name": "worker", "namespace": "kube-system"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def have(cluster: WorkloadCluster, body: dict[str, Any]) -> None:
    account = {"metadata": {"name": "worker", "namespace": "kube-system"}}
    await cluster.put([(account, SERVICE_ACCOUNT), (body, DEPLOYMENT)])
    await cluster.controllers.idle()
    await asyncio.sleep(1)


async def started(sim: Sim, works: Works, **pod: Any) -> Program:
    await have(await sim.cluster_up(), deployment(**pod))
    return works.started[-1]


@virtual
async def test_a_program_runs_with_its_pod_and_ends_with_it() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        program = await started(sim, works)
        assert program.args == ["work", "--hard"]
        assert program.host == "cp-0"
        client = sim.cluster.client()
        await client.delete(DEPLOYMENT, Key("kube-system", "worker"))
        for pod in (await client.list(POD, Query(namespace="kube-system", labels="app=worker"))).items:
            await client.delete(POD, Key("kube-system", pod.name))
        await asyncio.sleep(5)
        assert works.running == 0


@virtual
async def test_a_program_may_still_say_goodbye_while_its_pod_is_deleted() -> None:
    said: list[str] = []

    async def polite(program: Program) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3)
            with pytest.raises(Forbidden) as answer:  # an answer all the same: the token is still good
                await program.client.list(SECRET, Query(namespace="kube-system"))
            said.append(str(answer.value))

    async with simulation(programs=lambda container: polite if container["image"] == IMAGE else None) as sim:
        await have(await sim.cluster_up(), deployment())
        client = sim.cluster.client()
        (pod,) = (await client.list(POD, Query(namespace="kube-system", labels="app=worker"))).items
        await client.delete(DEPLOYMENT, Key("kube-system", "worker"))
        await client.delete(POD, Key("kube-system", pod.name))
        await asyncio.sleep(1)
        await client.get(POD, Key("kube-system", pod.name))
        await asyncio.sleep(10)
        with pytest.raises(NotFound):
            await client.get(POD, Key("kube-system", pod.name))
    assert len(said) == 1


@virtual
async def test_a_program_may_do_what_its_service_account_may() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        program = await started(sim, works)
        with pytest.raises(Forbidden, match="system:serviceaccount:kube-system:worker"):
            await program.client.list(CONFIG_MAP, Query(namespace="kube-system"))
        meta = {"name": "worker", "namespace": "kube-system"}
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
        subject = {"kind": "ServiceAccount", **meta}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "worker"}
        await sim.cluster.put(
            [
                ({"metadata": dict(meta), "rules": rules}, ROLE),
                ({"metadata": dict(meta), "roleRef": role, "subjects": [subject]}, ROLE_BINDING),
            ]
        )
        assert (await program.client.list(CONFIG_MAP, Query(namespace="kube-system"))).items
        with pytest.raises(Forbidden):
            await program.client.list(SECRET, Query(namespace="kube-system"))
        await asyncio.sleep(7200)  # tokens are renewed
        assert (await program.client.list(CONFIG_MAP, Query(namespace="kube-system"))).items


@virtual
async def test_a_program_starts_when_its_files_are_there() -> None:
    works = Works()
    mounts = [{"name": "config", "mountPath": "/etc/a"}, {"name": "keys", "mountPath": "/keys/"}]
    volumes = [
        {"name": "config", "configMap": {"name": "worker"}},
        {"name": "keys", "secret": {"secretName": "worker", "items": [{"key": "k", "path": "private"}]}},
    ]
    async with simulation(programs=works.find) as sim:
        await have(await sim.cluster_up(), deployment(volumes=volumes, container={"volumeMounts": mounts}))
        assert works.started == []
        meta = {"name": "worker", "namespace": "kube-system"}
        await sim.cluster.put(
            [
                ({"metadata": dict(meta), "data": {"x": "1"}}, CONFIG_MAP),
                ({"metadata": dict(meta), "stringData": {"k": "2", "other": "3"}}, SECRET),
            ]
        )
        await asyncio.sleep(1)
        assert works.started[0].files == {"/etc/a/x": b"1", "/keys/private": b"2"}


@virtual
async def test_a_program_ends_with_its_machine_and_begins_again_with_it() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        cluster = await sim.cluster_up()
        await sim.boot("md-0", join_data(sim.secrets))
        await have(cluster, deployment(nodeSelector={"kubernetes.io/hostname": "md-0"}))
        assert (works.running, works.started[-1].host) == (1, "md-0")
        sim.power_off("md-0")
        await asyncio.sleep(5)
        assert works.running == 0
        sim.power_on("md-0", again=True)
        await asyncio.sleep(30)
        assert works.running == 1
        await cluster.client().delete(NODE, Key("", "md-0"))
        await asyncio.sleep(30)
        assert works.running == 0


@virtual
async def test_a_program_that_fails_is_started_again_and_again_but_not_all_the_time() -> None:
    works = Works()
    works.crash = True
    async with simulation(programs=works.find) as sim:
        await started(sim, works)
        await asyncio.sleep(1800)
        assert 5 <= len(works.started) <= 12
        assert "ended: out of order" in sim.console("cp-0")
        works.crash = False
        await asyncio.sleep(310)
        assert works.running == 1


@virtual
async def test_other_containers_only_seem_to_run() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        await started(sim, works)
        assert len(works.started) == 1
        found = await sim.cluster.client().list(POD, Query(namespace="kube-system"))
        assert len(found.items) > 1
        await sim.cluster.client().patch(
            DEPLOYMENT, Key("kube-system", "worker"), MergePatch({"metadata": {"labels": {"a": "b"}}})
        )
        await asyncio.sleep(60)
        assert len(works.started) == 1


async def log_of(cluster: WorkloadCluster, labels: str) -> str:
    """As `kubectl logs` reads it."""
    (pod,) = (await cluster.client().list(POD, Query(namespace="kube-system", labels=labels))).items
    assert pod["status"]["phase"] == "Running"
    url = f"{cluster.server.url}/api/v1/namespaces/kube-system/pods/{pod.name}/log"
    tls = ssl.create_default_context(cadata=cluster.pki.ca_pem.decode())
    admin = cluster.pki.client_kubeconfig(cluster.server.url, "admin", ("system:masters",))
    user = yaml.safe_load(admin)["users"][0]["user"]
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        pem.flush()
        tls.load_cert_chain(pem.name)
    async with aiohttp.ClientSession() as session, session.get(url, ssl=tls) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        return text


async def test_what_runs_has_a_log_whether_or_not_a_program_is_behind_it() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        works.crash = True
        await started(sim, works)
        said = await log_of(sim.cluster, "app=worker")
        assert said.splitlines() == ["started on node cp-0", "ended: out of order; it is started again in 10 s"]
        assert await log_of(sim.cluster, "k8s-app=kube-proxy") == ""


def readiness(pod: Mapping[str, Any]) -> tuple[str, bool]:
    (ready,) = [each["status"] for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    return ready, pod["status"]["containerStatuses"][0]["ready"]


@virtual
async def test_a_pod_with_a_readiness_probe_is_ready_while_its_program_says_so() -> None:
    works = Works()
    async with simulation(programs=works.find) as sim:
        probe = {"readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}}}
        program = await started(sim, works, container=probe)
        client, key = sim.cluster.client(), Key("kube-system", program.pod["metadata"]["name"])
        for value, wanted in ((None, ("False", False)), (True, ("True", True)), (False, ("False", False))):
            if value is not None:
                program.ready(value)
            await asyncio.sleep(1)
            assert readiness(await client.get(POD, key)) == wanted


@virtual
async def test_a_port_of_a_program_is_closed_when_it_ends() -> None:
    class Port:
        async def accept(self, sock: socket.socket, source: str) -> None:
            sock.close()

    works = Works()
    async with simulation(programs=works.find) as sim:
        program = await started(sim, works)
        address, pods = program.pod["status"]["podIP"], sim.cluster.pods
        port = Port()
        program.listen(9443, port)
        assert await pods.locate("cp-0", address, 9443) is port
        client = sim.cluster.client()
        await client.delete(DEPLOYMENT, Key("kube-system", "worker"))
        for pod in (await client.list(POD, Query(namespace="kube-system", labels="app=worker"))).items:
            await client.delete(POD, Key("kube-system", pod.name))
        await asyncio.sleep(5)
        with contextlib.suppress(OSError):
            assert await pods.locate("cp-0", address, 9443) is not port


@virtual
async def test_a_namespace_is_deleted_with_everything_in_it() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        client = cluster.client()
        await client.create({"metadata": {"name": "shop"}}, kind=NAMESPACE)
        await client.create({"metadata": {"name": "a", "namespace": "shop"}, "data": {"b": "c"}}, kind=CONFIG_MAP)
        await client.delete(NAMESPACE, Key("", "shop"))
        await asyncio.sleep(30)
        with pytest.raises(NotFound):
            await client.get(NAMESPACE, Key("", "shop"))
        assert not (await client.list(CONFIG_MAP, Query(namespace="shop"))).items
