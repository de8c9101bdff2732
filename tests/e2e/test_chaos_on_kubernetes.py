"""Replicas on a real kube-apiserver while it, etcd, replicas and clocks misbehave: the work goes on, by one at a time."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from capikit.world import WorldProcess
from e2e.test_homeport_on_cluster import CONFIG_MAP, LEASE, NAMESPACE, Replica, fetch, sample, signatures
from e2e.test_install_on_kubernetes import EXAMPLE
from e2e.test_webhook_on_kubernetes import PLATFORM, WITHOUT
from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.meta import Resource
from homeport.app.kubernetes.install import prepare
from homeport.client import kubeconfig
from homeport.client.errors import ApiError, TooManyRequests
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.client.wire.retry import NEVER
from present import present
from realkube import RealKube

pytestmark = [pytest.mark.timeout(600)]

# Few requests at a time, and 429 for the others.
TIGHT = ["--enable-priority-and-fairness=false", "--max-requests-inflight=4", "--max-mutating-requests-inflight=2"]
NS = "chaos"
NAMES = ("atlantic", "baltic")
SECONDS = 240.0
T = TypeVar("T")
USER = "homeport"
BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries, TIGHT) as made:
        yield made


@pytest.fixture
async def client(kube: RealKube) -> AsyncIterator[HttpClient]:
    async with HttpClient(kubeconfig.load(kube.kubeconfig)) as made:
        await made.create({"metadata": {"name": NS}}, kind=NAMESPACE)
        yield made


@pytest.fixture
async def user(kube: RealKube, client: HttpClient) -> Path:
    """The kubeconfig of a user who may do everything; system:masters would never be turned away."""
    role = {"apiGroup": BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": BINDING.group, "kind": "User", "name": USER}
    await client.create({"metadata": {"name": NS}, "roleRef": role, "subjects": [subject]}, kind=BINDING)
    return kube.write_kubeconfig(USER, kube.issue(USER))


def start(config: Path, replicas: list[Replica], *more: str) -> Replica:
    plugin = ("--plugin", "sample_controller:install", *more)
    common = ("--kubeconfig", str(config), "--namespace", NS, "--health", "127.0.0.1:0")
    replicas.append(Replica(*common, *plugin))
    return replicas[-1]


def health_of(replica: Replica) -> str:
    return present(re.search(r"http://\S+", replica.until("health: ", seconds=120)))[0]


async def until_ready(url: str) -> None:
    async with asyncio.timeout(60):
        while (await asyncio.to_thread(fetch, url))[0] != 200:  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.2)


@asynccontextmanager
async def paused(kube: RealKube, program: str) -> AsyncIterator[None]:
    process = kube.processes[program]
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


async def signed(client: HttpClient, name: str, count: int) -> set[str]:
    async with asyncio.timeout(60):
        await insist(lambda: client.create(sample(NS, name), kind=CONFIG_MAP))
        while True:
            with suppress(ApiError, AssertionError):  # its watch ended with the server
                return await signatures(client, NS, count)


async def flood(config: Path, turned_away: asyncio.Event) -> None:
    """Many requests at once until cancelled; tells when the server turned one away."""

    async def ask(asking: HttpClient) -> None:
        while True:
            try:
                await asking.list(CONFIG_MAP)
            except TooManyRequests:
                turned_away.set()

    async with HttpClient(kubeconfig.load(config), retry=NEVER) as asking, asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(ask(asking))


@asynccontextmanager
async def flooded(config: Path) -> AsyncIterator[None]:
    turned_away = asyncio.Event()
    flooding = asyncio.create_task(flood(config, turned_away))
    try:
        async with asyncio.timeout(30):
            await turned_away.wait()
        yield
    finally:
        flooding.cancel()
        with suppress(asyncio.CancelledError):
            await flooding


async def insist(work: Callable[[], Awaitable[T]], holds: Callable[[T], bool] = lambda _: True) -> T:
    """What it gives as soon as that holds; the server itself is what misbehaves."""
    async with asyncio.timeout(SECONDS):
        while True:
            with suppress(ApiError):
                found = await work()
                if holds(found):
                    return found
            await asyncio.sleep(0.2)


async def test_the_work_goes_on_whatever_breaks(
    kube: RealKube, client: HttpClient, user: Path, replicas: list[Replica]
) -> None:
    leader = start(user, replicas, "--plugin", "jumping_clock:install")
    await asyncio.to_thread(leader.until, "controllers: running")
    standby = start(user, replicas)
    ready = await asyncio.to_thread(health_of, standby)
    await asyncio.to_thread(standby.until, "controllers: standing by")
    before = (await client.get(LEASE, Key(NS, "homeport")))["spec"]["leaseTransitions"]

    # The clock of the leader jumps by days all the time, and the server stops for a moment, as on a slow disk.
    for number, program in enumerate(("kube-apiserver", "etcd")):
        async with paused(kube, program):
            await asyncio.sleep(3)
        assert await signed(client, f"paused-{number}", number + 1) == {str(leader.pid)}

    # The server has no time for everybody.
    async with flooded(user):
        assert await signed(client, "flooded", 3) == {str(leader.pid)}
    assert (await client.get(LEASE, Key(NS, "homeport")))["spec"]["leaseTransitions"] == before

    # It is killed, and has lost its history when it comes back: watches get 410 and everything is listed again.
    revision = int((await client.list(CONFIG_MAP)).resource_version)
    kube.compact(revision)
    await asyncio.to_thread(kube.restart_apiserver)
    by = await signed(client, "restarted", 4)
    assert by <= {str(leader.pid), str(standby.pid)}
    await until_ready(ready)

    # So is etcd; the server answers with errors meanwhile.
    await asyncio.to_thread(kube.restart_etcd)
    assert await signed(client, "stored", 5) <= {str(leader.pid), str(standby.pid)}
    await until_ready(ready)

    # The one that leads is killed; the other takes over within a lease.
    holder = str((await client.get(LEASE, Key(NS, "homeport")))["spec"]["holderIdentity"])
    killed, left = (leader, standby) if f"-{leader.pid}-" in holder else (standby, leader)
    os.kill(killed.pid, signal.SIGKILL)
    assert str(left.pid) in await signed(client, "after", 6)


# -- clusters under way ---------------------------------------------------------------------------------------------


def cluster(name: str, address: str) -> str:
    """One control plane and two workers."""
    text = EXAMPLE.read_text().replace("harbour", name).replace("10.0.0.101", address)
    assert text.count("replicas: 3") == 1
    return text.replace("replicas: 3", "replicas: 1")


async def machines(client: HttpClient) -> dict[str, str]:
    """UID > VM. Who is replaced has another."""
    return {each.metadata.uid: each.spec.provider_id for each in (await client.list(Machine)).items}


async def workers(client: HttpClient) -> list[int]:
    """Available workers of each cluster."""
    return [each.status.available_replicas or 0 for each in (await client.list(MachineDeployment)).items]


async def test_clusters_under_way_end_with_exactly_their_machines(
    kube: RealKube, client: HttpClient, user: Path, replicas: list[Replica]
) -> None:
    with WorldProcess() as world:
        site = ("--proxy", world.proxy, "--trust", str(world.authority), "--shards", *WITHOUT)
        await prepare(client, PLATFORM, print)
        for number in range(3):
            start(user, replicas, *site, *(("--plugin", "jumping_clock:install") if number == 0 else ()))
        for each in replicas:
            await asyncio.to_thread(each.until, "shards agreed", seconds=120)
        for number, name in enumerate(NAMES):
            applied = await asyncio.to_thread(
                kube.kubectl, "apply", "-f", "-", stdin=cluster(name, f"10.0.0.10{number}")
            )
            assert applied.returncode == 0, applied.stderr
        await insist(lambda: machines(client), bool)
        async with paused(kube, "kube-apiserver"):
            os.kill(replicas[1].pid, signal.SIGKILL)
            await asyncio.sleep(3)
        async with paused(kube, "etcd"):
            await asyncio.sleep(3)
        first = await insist(lambda: machines(client))
        await asyncio.to_thread(kube.restart_etcd)
        start(user, replicas, *site)
        async with flooded(user):
            for name in NAMES:
                key, three = Key("default", f"{name}-workers"), MergePatch({"spec": {"replicas": 3}})
                await insist(partial(client.patch, MachineDeployment, key, three))
        kube.compact(int((await insist(lambda: client.list(CONFIG_MAP))).resource_version))
        await asyncio.to_thread(kube.restart_apiserver)
        os.kill(replicas[0].pid, signal.SIGKILL)

        await insist(lambda: workers(client), lambda found: found == [3] * len(NAMES))
        last = await insist(lambda: machines(client))
        state = world.state()
    assert first.keys() <= last.keys(), "a Machine was replaced"
    assert len(last) == len(set(last.values())) == 4 * len(NAMES)
    assert {f"nutanix://{ext_id}" for ext_id, _, _ in state["touched"].values()} == set(last.values())
    assert not [each for each in state["calls"] if each.startswith("DELETE") and "/vms" in each], state["calls"]
