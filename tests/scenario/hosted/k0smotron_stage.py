"""A plane with k0smotron's controllers, whose Pods run as long as they are asked to; the cluster that the Pods serve is
a server in memory. In virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from capikit import generic
from homeport import core
from homeport.api.cluster.v1beta2 import Cluster as CapiCluster
from homeport.api.k0smotron.v1beta2 import Cluster, JoinTokenRequest, K0smotronControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.install import install as install_builtin
from homeport.builtin.workload.address import ServiceOptions
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.remote import kubeconfig
from homeport.client.errors import Unavailable
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.hosted.k0smotron import admission
from homeport.hosted.k0smotron.definition import definitions
from homeport.hosted.k0smotron.install import install
from homeport.machinery import condition
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, shared_pki
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.workload.coroutine import ContainerHandle, CoroutineRunner
from homeport.runtime.workload.runner import Launch, Runners
from homeport.sim.hosted.site import ServiceSite
from homeport.sim.network import Network

NAMESPACE = "default"
SECRET = Resource("", "v1", "Secret", "secrets")
SERVICE = Resource("", "v1", "Service", "services")
POD = Resource("", "v1", "Pod", "pods")
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
CRON_JOB = Resource("batch", "v1", "CronJob", "cronjobs")
INGRESS = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
KINDS = (SECRET, SERVICE, POD, CLAIM, CONFIG_MAP, STATEFUL_SET, CRON_JOB, INGRESS)
HOST = "https://host.example:6443"  # another cluster, in which Pods may run
Wrap = Callable[[Client], Any]
Json = dict[str, Any]


def kmc(name: str = "edge", **spec: Any) -> Json:
    service = {"type": "LoadBalancer", "apiPort": 6443, "konnectivityPort": 8132}
    return {
        "apiVersion": "k0smotron.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"version": "v1.33.4+k0s.0", "service": service, **spec},
    }


def request(name: str = "join", cluster: str = "edge", **spec: Any) -> Json:
    return {
        "apiVersion": "k0smotron.io/v1beta2",
        "kind": "JoinTokenRequest",
        "metadata": {"name": name},
        "spec": {"clusterName": cluster, **spec},
    }


def capi_objects(name: str = "edge", **spec: Any) -> list[Json]:
    """A Cluster, its infrastructure and its control plane."""
    control_plane = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "K0smotronControlPlane",
        "metadata": {"name": f"{name}-cp"},
        "spec": kmc(**spec)["spec"],
    }
    infra = {"apiVersion": generic.CLUSTER.api_version, "kind": "GenericCluster", "metadata": {"name": name}}
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": ["10.8.0.0/16"]}, "serviceDomain": "edge.local"},
            "controlPlaneRef": {
                "apiGroup": "controlplane.cluster.x-k8s.io",
                "kind": "K0smotronControlPlane",
                "name": f"{name}-cp",
            },
            "infrastructureRef": {"apiGroup": generic.GROUP, "kind": "GenericCluster", "name": name},
        },
    }
    return [infra, cluster, control_plane]


class Stage:
    def __init__(self, made: Plane, child: EmbeddedServer, host: EmbeddedServer | None, wrap: Wrap) -> None:
        self.plane = made
        self.client = made.client
        self.child = child
        self.host = host
        self.answers = True  # whether the API server of the cluster can be reached
        self.sick: set[str] = set()  # Pods whose containers do not become ready
        self.launches: list[Launch] = []
        self._wrap = wrap
        self._builtin: list[tuple[Manager, asyncio.Task[None]]] = []

    # -- running -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self._run_builtin(self.plane.server)
        if self.host is not None:
            await self._run_builtin(self.host)
        await self._begin()

    async def _run_builtin(self, server: EmbeddedServer) -> None:
        runners = Runners()
        runners.register("test", CoroutineRunner(self._contain, ready_at_start=False), images=["*"])
        manager = Manager(server.client(), name="builtin", clock=self.plane.clock)
        install_builtin(server, manager, runners, ServiceOptions(site=ServiceSite(Network())))
        task = asyncio.create_task(manager.run())
        await manager.ready.wait()
        self._builtin.append((manager, task))

    async def _contain(self, launch: Launch, inside: ContainerHandle) -> int:
        self.launches.append(launch)
        name = launch.container["name"]
        if name in ("certs-init", "join-cluster"):
            return 0
        if launch.pod["metadata"]["name"] not in self.sick:
            inside.ready()
        await inside.stopping.wait()
        return 0

    async def _begin(self) -> None:
        manager = Manager(self._wrap(self.plane.server.client()), clock=self.plane.clock)
        capi = Capi.make(manager, connect=self._connect)
        core.install(manager, capi)
        install(manager, capi)
        self.plane.manager = manager
        await self.plane.start()

    def _connect(self, content: bytes, proxy: str) -> Client:
        server = kubeconfig.parse(content).server
        if server == HOST and self.host is not None:
            return self.host.client(field_manager="remote")
        if not self.answers:
            raise Unavailable(f"connection to {server} refused")
        return self.child.client(field_manager="workload")

    async def restart(self) -> None:
        await self.plane.stop()
        await self._begin()

    async def close(self) -> None:
        await self.plane.stop()
        for _, task in self._builtin:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # -- a user ------------------------------------------------------------------------------------------------

    async def have(self, *objects: Json) -> None:
        await self.plane.have(*objects)

    async def patch(self, kind: Any, name: str, body: Json) -> None:
        await self.client.patch(kind, Key(NAMESPACE, name), MergePatch(body))

    async def delete(self, kind: Any, name: str) -> None:
        await self.client.delete(kind, Key(NAMESPACE, name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def available(self, name: str = "edge", kind: Any = Cluster, replicas: int = 1, timeout: float = 900) -> Any:
        return await self.plane.until(
            kind,
            Key(NAMESPACE, name),
            lambda obj: is_available(obj) and (obj.status.replicas, obj.status.ready_replicas) == (replicas, replicas),
            timeout,
            what=f"Available with {replicas} replicas",
        )

    async def until(self, kind: Any, name: str, predicate: Callable[[Any], bool], what: str = "") -> Any:
        return await self.plane.until(kind, Key(NAMESPACE, name), predicate, 900, what=what)

    async def get(self, kind: Resource, name: str, server: EmbeddedServer | None = None) -> Unstructured:
        return await (server or self.plane.server).client().get(kind, Key(NAMESPACE, name))

    async def names(self, kind: Resource, server: EmbeddedServer | None = None) -> set[str]:
        client = (server or self.plane.server).client()
        return {each.name for each in (await client.list(kind, Query(namespace=NAMESPACE))).items}

    async def inventory(self, server: EmbeddedServer | None = None) -> dict[str, set[str]]:
        """Everything of the namespace, but what every namespace has."""
        found = {each.kind: await self.names(each, server) - {"kube-root-ca.crt", "kubernetes"} for each in KINDS}
        return {kind: names for kind, names in found.items() if names}

    async def tokens(self) -> set[str]:
        """Bootstrap tokens in the cluster."""
        listed = await self.child.client().list(SECRET, Query(namespace="kube-system"))
        return {each.name for each in listed.items if each.name.startswith("bootstrap-token-")}


def is_available(obj: Any) -> bool:
    return condition.is_true(obj.status.conditions, "Available")


@contextlib.asynccontextmanager
async def stage(*, host: bool = False, wrap: Wrap = lambda client: client) -> AsyncIterator[Stage]:
    crds = capi_definitions()
    async with plane() as made:
        hooks = Hooks()
        conversion.register(hooks)
        admission.register(hooks)
        install_hooks(hooks, made.server)
        await establish(made.client, *crds, *generic.definitions(), *definitions())
        child = await EmbeddedServer.open(None, shared_pki(), clock=made.clock.now)
        other = await EmbeddedServer.open(None, shared_pki(), clock=made.clock.now) if host else None
        found = Stage(made, child, other, wrap)
        try:
            await found.start()
            yield found
        finally:
            await found.close()
            await child.close(drain_seconds=0.0)
            if other is not None:
                await other.close(drain_seconds=0.0)


__all__ = ["CapiCluster", "Cluster", "JoinTokenRequest", "K0smotronControlPlane", "Stage", "stage"]
