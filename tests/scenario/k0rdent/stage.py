"""ClusterDeployments on a simulated Nutanix, in virtual time: all controllers, hosted control planes, add-ons.

@virtual
async def test_a_cluster_comes_up():
    async with deployments() as stage:
        await stage.have(deployment("demo"))
        await stage.ready("demo")
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.k0rdent.v1beta1 import GROUP, VERSION, ClusterDeployment, Management
from homeport.api.meta import Resource
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.app.platform import chosen
from homeport.builtin.install import install as install_builtin
from homeport.builtin.workload.address import ServiceOptions
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.environment import Environment
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.manager import Manager
from homeport.runtime.workload.ranges import ServiceRanges
from homeport.runtime.workload.runner import Runners
from homeport.sim.hosted.hosting import Hosting
from homeport.sim.hosted.site import ServiceSite
from scenario.harvester.site import harvester_site
from scenario.nutanix.site import nutanix_site

SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SPACE = "kcm-system"
Json = dict[str, Any]
Wrap = Callable[[Client], Any]

# As the guide has it.
HOSTED: Json = {
    "nutanix": {
        "prismCentral": {"address": "10.1.1.100", "port": 9440, "insecure": False},
        "controlPlaneEndpoint": {"host": "10.1.1.200", "port": 6443},
    },
    "machineDefaults": {
        "image": {"type": "name", "name": "ubuntu-22.04-k0s"},
        "cluster": {"type": "name", "name": "PE-Cluster-01"},
        "subnets": [{"type": "name", "name": "VM-Network"}],
        "bootType": "legacy",
        "vcpusPerSocket": 1,
        "vcpuSockets": 2,
        "memorySize": "4Gi",
        "systemDiskSize": "40Gi",
    },
    "worker": {"vcpuSockets": 2, "memorySize": "4Gi", "systemDiskSize": "40Gi"},
    "k0s": {"version": "v1.29.2+k0s.0", "worker": {"labels": {"node-role.kubernetes.io/worker": ""}}},
    "clusterNetwork": {"pods": {"cidrBlocks": ["10.243.0.0/16"]}, "services": {"cidrBlocks": ["10.95.0.0/16"]}},
    "workersNumber": 2,
}


def k0rdent(kind: str, name: str, spec: Json, namespace: str = SPACE, **meta: Any) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name, **where, **meta}, "spec": spec}


def hosted(name: str = "nutanix-hcp-demo", host: str = "10.1.1.200", **config: Any) -> Json:
    """The guide's ClusterDeployment; `config` replaces parts of its values."""
    values = copy.deepcopy(HOSTED) | config
    values["nutanix"]["controlPlaneEndpoint"]["host"] = host
    spec = {"template": "nutanix-k0s-hcp", "credential": "nutanix-cluster-identity-cred", "config": values}
    return k0rdent("ClusterDeployment", name, spec)


def standalone(name: str = "nutanix-standalone-demo", host: str = "10.1.1.201", **config: Any) -> Json:
    own = {"vcpuSockets": 4, "memorySize": "8Gi", "systemDiskSize": "80Gi"}
    body = hosted(name, host, controlPlane=own, controlPlaneNumber=3, **config)
    body["spec"]["template"] = "nutanix-k0s-standalone"
    return body


def credentials(password: str = "password") -> str:
    entry = {
        "type": "basic_auth",
        "data": {"prismCentral": {"username": "admin", "password": password}, "prismElements": None},
    }
    return json.dumps([entry])


def secret(name: str = "nutanix-cluster-creds", namespace: str = SPACE, password: str = "password") -> Json:
    meta = {"name": name, "namespace": namespace, "labels": {"cluster.x-k8s.io/provider": "infrastructure-nutanix"}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "stringData": {"credentials": credentials(password)},
    }


def credential(name: str = "nutanix-cluster-identity-cred", of: str = "nutanix-cluster-creds") -> Json:
    ref = {"apiVersion": "v1", "kind": "Secret", "name": of, "namespace": SPACE}
    return k0rdent("Credential", name, {"description": "Nutanix cluster credentials", "identityRef": ref})


class Stage:
    def __init__(self, site: Any, folder: Path) -> None:
        self.site = site
        self.plane = site.plane
        self.client = site.client
        self.wrap: Wrap = lambda client: client  # what controllers have in place of a client
        self._clients: list[HttpClient] = []
        self._hosting = Hosting(site.fleet, site.clock, folder)
        self._runners = Runners()
        self._ranges = ServiceRanges()
        self._services = ServiceOptions(site=ServiceSite(site.network), ranges=self._ranges)

    async def open(self) -> None:
        await self._hosting.load()
        self._hosting.register(self._runners)
        platform = chosen()
        await create_namespaces(self.client, platform.namespaces())
        await create_objects(self.client, platform.objects())
        await self.start()

    async def start(self) -> None:
        plane = self.plane
        plane.manager = manager = Manager(self.wrap(plane.server.client()), clock=self.site.clock)
        install_builtin(plane.server, manager, self._runners, self._services)
        environment = Environment(
            manager.client,
            self.site.dial,
            plane.server,
            charts=ChartSettings(simulated=True),
            runners=self._runners,
            ranges=self._ranges,
        )
        chosen().install(manager, environment)
        await plane.start()

    async def restart(self) -> None:
        await self.plane.stop()
        await self.start()

    # -- a user ------------------------------------------------------------------------------------------------

    async def have(self, *objects: Json) -> None:
        await self.plane.have(*objects)

    async def patch(self, name: str, spec: Json) -> None:
        await self.client.patch(ClusterDeployment, Key(SPACE, name), MergePatch({"spec": spec}))

    async def delete(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(ClusterDeployment, Key(SPACE, name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def management(self) -> Management:
        """Once it is ready."""
        found: Management = await self.plane.until(
            Management,
            Key("", "kcm"),
            lambda obj: condition.is_true(obj.status.conditions, "Ready"),
            60.0,
            what="Ready",
        )
        return found

    async def until(
        self, name: str, predicate: Callable[[ClusterDeployment], bool], what: str, timeout: float = 1200.0
    ) -> ClusterDeployment:
        found: ClusterDeployment = await self.plane.until(
            ClusterDeployment, Key(SPACE, name), predicate, timeout, what=what
        )
        return found

    async def ready(self, name: str, timeout: float = 2400.0) -> ClusterDeployment:
        return await self.until(name, is_ready, "being Ready", timeout)

    async def says(self, name: str, *words: str, kind: str = "Ready", timeout: float = 600.0) -> str:
        """The message of a condition that is not True, once it has all these words."""

        def fits(obj: ClusterDeployment) -> bool:
            found = condition.find(obj.status.conditions, kind) or {}
            said = str(found.get("message"))
            return found.get("status") != "True" and all(each in said for each in words)

        found = await self.until(name, fits, f"{kind} with {words}", timeout)
        return str((condition.find(found.status.conditions, kind) or {}).get("message"))

    async def gone(self, name: str, timeout: float = 2400.0) -> None:
        await self.plane.gone(ClusterDeployment, Key(SPACE, name), timeout)

    async def machines(self, name: str) -> list[Machine]:
        found = (await self.client.list(Machine, Query(namespace=SPACE))).items
        return [each for each in found if each.spec.cluster_name == name]

    async def inside(self, name: str) -> HttpClient:
        """A client of the cluster, with the kubeconfig that clusterctl prints."""
        found = await self.client.get(SECRET, Key(SPACE, f"{name}-kubeconfig"))
        text = base64.b64decode(found["data"]["value"]).decode()
        made = HttpClient(resolve(merge([parse(text, Path("kubeconfig"))])))
        self._clients.append(made)
        return made

    def vms(self) -> list[str]:
        return sorted(each.name for each in self.site.vms())

    async def close(self) -> None:
        for each in self._clients:
            await each.close()


def is_ready(deployment: ClusterDeployment) -> bool:
    found = condition.find(deployment.status.conditions, "Ready") or {}
    current = found.get("observedGeneration") == deployment.metadata.generation
    return bool(found.get("status") == "True" and current)


@asynccontextmanager
async def deployments(*, wrap: Wrap | None = None, harvester: bool = False) -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="homeport-k0rdent-") as folder:
        opened: Any = harvester_site(start=False) if harvester else nutanix_site(start=False)
        async with opened as site:
            stage = Stage(site, Path(folder))
            stage.wrap = wrap or stage.wrap
            try:
                await stage.open()
                yield stage
            finally:
                await stage.close()
