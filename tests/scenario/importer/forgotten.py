"""A cluster whose plane is gone, as if it had been made by hand: its VMs run and carry no mark; and a second plane."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.app.importer.account import Credentials
from homeport.app.importer.operation import Import, Plan, Request
from homeport.app.platform import chosen
from homeport.capi.environment import Environment
from homeport.capi.remote import pki
from homeport.capi.remote.workload import connect_over_http
from homeport.client.protocol import Client, Key
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.definition import establish
from homeport.runtime.testing import plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.sim.prism.core import replace
from scenario.harvester import manifest as harvester_manifest
from scenario.harvester.site import Site as HarvesterSite
from scenario.harvester.site import another_plane, harvester_site
from scenario.nutanix import manifest as nutanix_manifest
from scenario.nutanix.site import Site as NutanixSite
from scenario.nutanix.site import nutanix_site

NAME = "one"
NEW = "old-iron"  # the name under which it is imported
NAMESPACE = "default"


@dataclass
class Forgotten:
    """`site`: the second plane. `workload`: a client of the cluster. `pki`: a copy of its /etc/kubernetes/pki."""

    site: Any
    workload: Client
    pki: Path
    credentials: Credentials

    def importing(self, name: str = NEW, **changes: Any) -> Import:
        request = Request(Key(NAMESPACE, name), changes.pop("credentials", self.credentials), self.pki, **changes)
        return Import(self.site.client, self.workload, request, self.site.clock, self.site.dial)

    async def plan(self, **changes: Any) -> Plan:
        """As a dry run: the connection to the provider ends with it."""
        found = await self.importing(**changes).plan()
        await found.account.importer.close()
        return found

    async def apply(self, **changes: Any) -> list[str]:
        """What was said."""
        said: list[str] = []
        work = self.importing(**changes)
        found = await work.plan()
        try:
            await work.apply(found, said.append)
        finally:
            await found.account.importer.close()
        await work.until_available(600)
        return said


async def _secret(client: Client, name: str) -> dict[str, bytes]:
    found = await client.get(pki.SECRET, Key(NAMESPACE, name))
    return {key: base64.b64decode(text) for key, text in found["data"].items()}


async def write_pki(client: Client, folder: Path) -> Path:
    """The files of a control plane, as the first plane's Secrets have them."""
    for purpose in pki.GENERATED:
        data = await _secret(client, f"{NAME}-{purpose}")
        for path, content in zip(pki.files(purpose, str(folder)), (data["tls.crt"], data["tls.key"]), strict=True):
            write_file(Path(path), content)
    return folder


def write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


async def _connected(client: Client, proxy: str) -> Client:
    return connect_over_http((await _secret(client, f"{NAME}-kubeconfig"))["value"], proxy)


@asynccontextmanager
async def forgotten_on_nutanix(
    folder: Path, control_planes: int = 1, workers: int = 2, **options: Any
) -> AsyncIterator[Forgotten]:
    async with nutanix_site(**options) as first, plane() as p:
        await first.have(*nutanix_manifest.cluster_objects(NAME, control_planes, workers))
        await first.running(NAME, control_planes, workers)
        files = await write_pki(first.client, folder)
        workload = await _connected(first.client, first.dial.proxy)
        await first.plane.stop()
        unmark_prism(first)
        second = NutanixSite(p, first.network, first.fleet, first.prism, first.dial)
        install_hooks(chosen().register(Environment(p.client, second.dial, p.server)), p.server)
        await establish(p.client, *chosen().definitions())
        await second.begin()
        await second.have(nutanix_manifest.secret())
        credentials = Credentials("nutanix", secret="nutanix-credentials", address=nutanix_manifest.ADDRESS)
        try:
            yield Forgotten(second, workload, files, credentials)
        finally:
            await workload.close()
            await p.stop()


def unmark_prism(site: NutanixSite) -> None:
    """What Homeport wrote on the VMs and beside them goes."""
    core = site.prism.core
    for vm in site.prism.world.vms:
        core.put(core.world.vms, replace(vm, attributes=(), categories=(), description="made by hand"))
    for category in list(site.prism.world.categories):
        if category.key == "KubernetesClusterName" and category.value:
            site.prism.world.categories.drop(category.ext_id)


@asynccontextmanager
async def forgotten_on_harvester(
    folder: Path, control_planes: int = 1, workers: int = 2, **options: Any
) -> AsyncIterator[Forgotten]:
    async with harvester_site(**options) as first:
        await first.have(*harvester_manifest.cluster_objects(NAME, control_planes, workers))
        await first.running(NAME, control_planes, workers)
        files = await write_pki(first.client, folder)
        workload = await _connected(first.client, first.dial.proxy)
        await first.plane.stop()
        await unmark_harvester(first)
        async with another_plane(first) as second:
            try:
                credentials = Credentials("harvester", secret="harvester-kubeconfig")
                yield Forgotten(second, workload, files, credentials)
            finally:
                await workload.close()


async def unmark_harvester(site: HarvesterSite) -> None:
    for vm in await site.there(VM):
        kept = {k: v for k, v in (vm.metadata.get("labels") or {}).items() if "homeport" not in k and "x-k8s" not in k}
        body = {**vm, "metadata": {**vm.metadata, "labels": kept}}
        await site.infra.replace(body, kind=VM)
