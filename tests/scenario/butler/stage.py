"""Tenant clusters on a simulated Harvester or Nutanix, in virtual time: all controllers, hosted control planes, add-ons.

@virtual
async def test_a_cluster_comes_up():
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop"))
        await stage.ready("shop")
"""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.addons.catalogue.standin import standin_chart
from homeport.api.butler.v1alpha1 import GROUP, VERSION, ProviderConfig, TenantCluster
from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.meta import Resource
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
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.manager import Manager
from homeport.runtime.workload.ranges import ServiceRanges
from homeport.runtime.workload.runner import Runners
from homeport.sim.hosted.hosting import Hosting
from homeport.sim.hosted.site import ServiceSite
from scenario.harvester import manifest as harvester_manifest
from scenario.harvester.site import TOKEN, harvester_site
from scenario.nutanix.site import nutanix_site

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
SECRET = Resource("", "v1", "Secret", "secrets")
SPACE = "default"
Wrap = Callable[[Client], Any]


class Stage:
    def __init__(self, provider: str, site: Any, folder: Path) -> None:
        self.provider = provider
        self.site = site
        self.plane = site.plane
        self.client = site.client
        self.wrap: Wrap = lambda client: client  # what controllers have in place of a client
        self.charts = ChartSettings(simulated=True)
        self._clients: list[HttpClient] = []
        self._hosting = Hosting(site.fleet, site.clock, folder)
        self._runners = Runners()
        self._ranges = ServiceRanges()
        self._services = ServiceOptions(site=ServiceSite(site.network), ranges=self._ranges)

    async def open(self) -> None:
        await self._hosting.load()
        self._hosting.register(self._runners)
        for name in (SYSTEM_NAMESPACE, "butler-tenants"):
            await self.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, kind=NAMESPACE
            )
        await self.have(self.secret(), self.config())
        await self.start()

    async def start(self) -> None:
        plane = self.plane
        plane.manager = manager = Manager(self.wrap(plane.server.client()), clock=self.site.clock)
        install_builtin(plane.server, manager, self._runners, self._services)
        environment = Environment(
            manager.client,
            self.site.dial,
            plane.server,
            charts=self.charts,
            runners=self._runners,
            ranges=self._ranges,
        )
        chosen().install(manager, environment)
        await plane.start()

    async def restart(self) -> None:
        await self.plane.stop()
        await self.start()

    # -- a user ------------------------------------------------------------------------------------------------

    def secret(self) -> dict[str, Any]:
        meta = {"name": "site-credentials", "namespace": SYSTEM_NAMESPACE}
        if self.provider == "harvester":
            ca = self.site.harvester.server.pki.ca_pem
            data = {"kubeconfig": json.dumps(harvester_manifest.kubeconfig(ca, TOKEN))}
        else:
            data = {"NUTANIX_USER": "admin", "NUTANIX_PASSWORD": "password"}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}

    def config(self, **more: Any) -> dict[str, Any]:
        """As the guides have it."""
        ref = {"name": "site-credentials"}
        parts = {
            "harvester": {
                "credentialsRef": ref,
                "namespace": "default",
                "networkName": "default/workloads",
                "imageName": "default/talos-1.9",
            },
            "nutanix": {
                "credentialsRef": ref,
                "prismCentral": {"address": "prism-central.example.com", "port": 9440},
                "cluster": {"name": "cluster-01"},
                "subnet": {"name": "workload-subnet"},
                "image": {"name": "talos-1.9"},
            },
        }
        spec = {"type": self.provider, self.provider: parts[self.provider], **more}
        return butler("ProviderConfig", "site", SYSTEM_NAMESPACE, spec)

    def tenant(self, name: str, **spec: Any) -> dict[str, Any]:
        return butler("TenantCluster", name, SPACE, {"providerConfigRef": {"name": "site"}, **spec})

    async def have(self, *objects: dict[str, Any]) -> None:
        await self.plane.have(*objects)

    async def patch(self, name: str, spec: dict[str, Any]) -> None:
        await self.client.patch(TenantCluster, Key(SPACE, name), MergePatch({"spec": spec}))

    async def configure(self, spec: dict[str, Any]) -> None:
        """Changes the ProviderConfig."""
        await self.client.patch(ProviderConfig, Key(SYSTEM_NAMESPACE, "site"), MergePatch({"spec": spec}))

    async def delete(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(TenantCluster, Key(SPACE, name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def until(self, name: str, predicate: Callable[[TenantCluster], bool], what: str, timeout: float) -> Any:
        return await self.plane.until(TenantCluster, Key(SPACE, name), predicate, timeout, what=what)

    async def ready(self, name: str, timeout: float = 1200.0) -> TenantCluster:
        found: TenantCluster = await self.until(name, is_ready, "being Ready", timeout)
        return found

    async def waits(self, name: str, reason: str, *words: str, kind: str = "Ready", timeout: float = 300.0) -> str:
        """The message of a condition that is False for this reason, once it has all these words."""

        def fits(obj: TenantCluster) -> bool:
            found = condition.find(obj.status.conditions, kind) or {}
            said = str(found.get("message"))
            return found.get("reason") == reason and found.get("status") == "False" and all(w in said for w in words)

        found = await self.until(name, fits, f"{kind}=False because of {reason} with {words}", timeout)
        return str((condition.find(found.status.conditions, kind) or {}).get("message"))

    async def gone(self, name: str, timeout: float = 1200.0) -> None:
        await self.plane.gone(TenantCluster, Key(SPACE, name), timeout)

    async def namespace(self, name: str) -> str:
        found: TenantCluster = await self.client.get(TenantCluster, Key(SPACE, name))
        return found.status.tenant_namespace

    async def machines(self, name: str) -> list[Machine]:
        return list((await self.client.list(Machine, Query(namespace=await self.namespace(name)))).items)

    async def deployment(self, name: str) -> MachineDeployment:
        key = Key(await self.namespace(name), f"{name}-workers")
        found: MachineDeployment = await self.client.get(MachineDeployment, key)
        return found

    async def inside(self, name: str) -> Any:
        """A client of the tenant cluster, with the kubeconfig of its administrator."""
        secret = await self.client.get(SECRET, Key(await self.namespace(name), f"{name}-kubeconfig"))
        text = base64.b64decode(secret["data"]["value"]).decode()
        made = HttpClient(resolve(merge([parse(text, Path("kubeconfig"))])))
        self._clients.append(made)
        return made

    async def close(self) -> None:
        for each in self._clients:
            await each.close()

    async def vms(self) -> list[str]:
        """Names of the VMs at the provider."""
        if self.provider == "harvester":
            return sorted(each.name for each in await self.site.there(VM))
        return sorted(each.name for each in self.site.vms())


def is_ready(tenant: TenantCluster) -> bool:
    found = condition.find(tenant.status.conditions, "Ready") or {}
    current = found.get("observedGeneration") == tenant.metadata.generation
    return bool(found.get("status") == "True" and current and tenant.status.phase == "Ready")


def butler(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": meta, "spec": spec}


def write_charts(folder: Path) -> ChartSettings:
    """The small charts of simulated clusters as files: charts that are not of the catalogue are found, too."""
    for entry in catalogue().values():
        for path, content in standin_chart(entry, entry.newest).items():
            file = folder / entry.chart.name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return ChartSettings(folder=folder, simulated=True)


@asynccontextmanager
async def tenants(
    provider: str = "harvester", *, wrap: Wrap | None = None, any_chart: bool = False
) -> AsyncIterator[Stage]:
    open_site = {"harvester": harvester_site, "nutanix": nutanix_site}[provider]
    with tempfile.TemporaryDirectory(prefix="homeport-tenants-") as folder:
        async with open_site(start=False) as site:  # type: ignore[operator]
            stage = Stage(provider, site, Path(folder))
            stage.wrap = wrap or stage.wrap
            if any_chart:
                stage.charts = write_charts(Path(folder) / "charts")
            try:
                await stage.open()
                yield stage
            finally:
                await stage.close()
