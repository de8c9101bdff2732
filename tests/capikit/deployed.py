"""An installation whose Deployments run in this process, on a real kube-apiserver whose Pods are simulated.

Each Deployment works as its own ServiceAccount. A real kube-controller-manager removes namespaces and what has no owner
any more; what a node and its cluster do for Pods is done here, and the programs of control planes are simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from capikit.podnetwork import NetworkedKube, Pod
from capikit.world import Site
from homeport.apiserver.kinds.pod.log import LogSources
from homeport.app.kubernetes.layout import Placement, placements
from homeport.app.kubernetes.manager import Cluster, Replica
from homeport.app.kubernetes.standin import PodLog
from homeport.app.kubernetes.webhook import WebhookSettings, pod_labels
from homeport.app.platform import chosen
from homeport.builtin.workload.address import ADDRESS_ANNOTATION, Pool, ServiceOptions
from homeport.builtin.workload.install import install_workloads
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.environment import Environment
from homeport.client import kubeconfig
from homeport.client.config import Impersonation
from homeport.client.dial import DialOptions
from homeport.client.http import HttpClient
from homeport.runtime.manager import Manager
from homeport.runtime.workload.kind import SERVICE
from homeport.runtime.workload.runner import Runners
from homeport.sim.hosted.hosting import Hosting
from homeport.sim.hosted.site import ServiceSite
from realkube import free_port

_CONTROLLERS = "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller"
_READY_SECONDS = 120.0
_ADDRESSES = "10.240.0.10-10.240.0.99,10.1.1.200"  # the last is the one that the guide of k0rdent chooses


class PodReplica(Replica):
    """In a Pod of a cluster whose internet is simulated."""

    def _environment(self) -> Environment:
        return replace(super()._environment(), in_cluster=True, charts=ChartSettings(simulated=True))


def user_of(placement: Placement) -> str:
    return f"system:serviceaccount:{placement.namespace}:{placement.name}"


@dataclass(frozen=True)
class Deployed:
    client: HttpClient  # of a user who may do everything
    site: Site  # the simulated machines


@asynccontextmanager
async def deployed(kube: NetworkedKube, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Deployed]:
    """In the split layout."""
    config = kubeconfig.load(kube.kubeconfig)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(HttpClient(config, field_manager="user"))
        site = Site(folder)
        facts = await site.start()
        stack.push_async_callback(site.close)
        dial = DialOptions(facts["proxy"], await asyncio.to_thread(Path(facts["authority"]).read_bytes))
        stack.enter_context(_removing(kube))
        await asyncio.to_thread(_install, kube)
        nodes = _nodes(client, site)
        patch.setattr(socket, "getaddrinfo", _named(nodes))
        below = [asyncio.create_task(nodes.run()), asyncio.create_task(site.run())]
        replicas = []
        for place in placements(chosen().components, "split"):
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{place.namespace}", "system:authenticated")
            account = replace(config, impersonate=Impersonation(user_of(place), groups=groups))
            own = await stack.enter_async_context(HttpClient(account))
            replicas.append(_replica(kube, own, place, dial))
        above = [asyncio.create_task(each.run()) for each in replicas]
        try:
            await _ready(replicas, [*below, *above])
            yield Deployed(client, site)
        finally:
            for tasks in (above, below):  # nobody connects any more to what is closed
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


def _replica(kube: NetworkedKube, client: HttpClient, place: Placement, dial: DialOptions) -> Replica:
    namespace, lease = place.lease
    cluster = Cluster(None, namespace=namespace, lease=lease, dial=dial)
    if place.home:
        port = free_port()
        cluster = replace(cluster, webhook=WebhookSettings(("127.0.0.1", port)))
        kube.pods.append(Pod(place.namespace, pod_labels(), {"webhook": port}))
    platform = replace(chosen(), placement=place)
    return PodReplica(client, cluster, namespace, PodLog(lambda text: None), platform)


async def _ready(replicas: list[Replica], tasks: list[asyncio.Task[None]]) -> None:
    async with asyncio.timeout(_READY_SECONDS):
        while any(each.problems() for each in replicas):
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.1)


def _install(kube: NetworkedKube) -> None:
    command = [sys.executable, "-m", "homeport", "install", "--layout", "split", "--kubeconfig", str(kube.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _nodes(client: HttpClient, site: Site) -> Manager:
    """What runs Pods."""
    manager, runners = Manager(client), Runners()
    Hosting(site.fleet, manager.clock).register(runners)
    options = ServiceOptions(site=ServiceSite(site.network), pool=Pool(_ADDRESSES))
    install_workloads(manager, runners, LogSources(), options)
    return manager


def _named(nodes: Manager) -> Any:
    """The DNS of the cluster: NAME.NAMESPACE.svc is where the Service answers on this machine."""
    services, resolve = nodes.informers.get(SERVICE).cache, socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
        name, _, rest = str(host).partition(".")
        if rest.endswith(".svc"):
            found = [each for each in services if (each.name, f"{each.namespace}.svc") == (name, rest)]
            host = next((each.metadata["annotations"][ADDRESS_ANNOTATION] for each in found), host)
        return resolve(host, *arguments, **more)

    return getaddrinfo


@contextmanager
def _removing(kube: NetworkedKube) -> Iterator[None]:
    program = kube.binaries["etcd"].parent / "kube-controller-manager"
    if not program.exists():
        pytest.skip(f"no {program}: run tools/kube/build")
    options = [
        f"--kubeconfig={kube.kubeconfig}",
        f"--controllers={_CONTROLLERS}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--cert-dir={kube.dir}",
    ]
    with open(kube.dir / "kube-controller-manager.log", "ab") as log:
        process = subprocess.Popen([str(program), *options], stdout=log, stderr=log)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
