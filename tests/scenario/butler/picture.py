"""Images at a simulated vendor, and the loopback file server that they come from.

async with gallery(open_vendor) as g:
    g.files["/disk.qcow2"] = b"..."
    await g.sync(source={"url": g.url("/disk.qcow2")})
    await g.ready()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from conformance.provider.harvester import HarvesterVendor
from conformance.provider.nutanix import Nutanix
from conformance.provider.vendor import Open
from homeport.api.butler.v1alpha1 import ImageSync
from homeport.api.meta import Unstructured
from homeport.client.protocol import Client, Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.testing import shared_pki
from homeport.sim.engine.download import Downloads
from homeport.sim.engine.fault import Effect, Fault, FullDisk, ImportFailure, Match
from homeport.sim.engine.wire import Listeners
from homeport.sim.harvester.kind import IMAGE
from homeport.sim.network.wire import Fetcher
from homeport.sim.prism.entity import Image
from scenario.butler.infrastructure import NAMESPACE, Infrastructure, butler, infrastructure

Answer = Callable[[BaseRequest], Awaitable[StreamResponse]]

ONE = Key(NAMESPACE, "one")
SCHEMATIC = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"


@dataclass(frozen=True)
class Picture:
    """An image at the vendor."""

    id: str
    name: str
    url: str
    size: int


class Gallery:
    def __init__(self, i: Infrastructure) -> None:
        self.i = i
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, Answer] = {}  # instead of a file
        self.requests: list[str] = []
        self._listeners = Listeners()
        self._port = self._tls_port = 0

    async def open(self) -> None:
        self._port = await self._listeners.serve(self._respond, "127.0.0.1", 0, None)
        self._tls_port = await self._listeners.serve(self._respond, "127.0.0.1", 0, shared_pki().server_context())
        self.core.downloads = Downloads(Fetcher(lambda: "", lambda: b""))

    async def close(self) -> None:
        if self.core.downloads is not None:
            await self.core.downloads.close()
        await self._listeners.close()

    async def _respond(self, request: BaseRequest) -> StreamResponse:
        self.requests.append(request.path)
        if request.path in self.answers:
            return await self.answers[request.path](request)
        found = self.files.get(request.path)
        return Response(status=404) if found is None else Response(body=found)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"

    def untrusted_url(self, path: str) -> str:
        """Of a server whose CA the vendor does not know."""
        return f"https://127.0.0.1:{self._tls_port}{path}"

    @property
    def core(self) -> Any:
        vendor = self.i.vendor
        return vendor.prism.core if isinstance(vendor, Nutanix) else self._harvester.core

    @property
    def _harvester(self) -> Any:
        assert isinstance(self.i.vendor, HarvesterVendor)
        return self.i.vendor.harvester

    @property
    def on_harvester(self) -> bool:
        return isinstance(self.i.vendor, HarvesterVendor)

    # -- what a user writes ------------------------------------------------------------------------------------

    async def sync(self, name: str = "one", **spec: Any) -> None:
        await self.i.plane.have(butler("ImageSync", name, {"providerConfigRef": {"name": "main"}, **spec}))

    async def factory(self, name: str = "one", **spec: Any) -> str:
        """An ImageSync of the image factory, which the file server stands in for. Gives the path of its file."""
        path = f"/image/{SCHEMATIC}/v1.9.3/nocloud-amd64.qcow2"
        self.files.setdefault(path, b"talos" * 1000)
        config = {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "ButlerConfig",
            "metadata": {"name": "butler"},
        }
        if not self.requests and name == "one":
            await self.i.plane.have({**config, "spec": {"imageFactory": {"url": self.url("")}}})
        await self.sync(name, factoryRef={"schematicID": SCHEMATIC, "version": "v1.9.3"}, **spec)
        return path

    async def change(self, spec: dict[str, Any]) -> None:
        await self.i.client.patch(ImageSync, ONE, MergePatch({"spec": spec}))

    # -- looking -----------------------------------------------------------------------------------------------

    async def ready(self, name: str = "one", timeout: float = 1800.0) -> ImageSync:
        return await self.until("Ready", name=name, timeout=timeout)

    async def until(self, phase: str, *words: str, name: str = "one", timeout: float = 1800.0) -> ImageSync:
        def fits(sync: ImageSync) -> bool:
            found = condition.find(sync.status.conditions, "Ready") or {}
            said = f"{found.get('reason')}: {found.get('message')}"
            ready = phase != "Ready" or found.get("status") == "True"
            return sync.status.phase == phase and ready and all(word in said for word in words)

        found: ImageSync = await self.i.plane.until(
            ImageSync, Key(NAMESPACE, name), fits, timeout, what=f"{phase} {words}"
        )
        return found

    def verified(self, sync: ImageSync) -> str:
        found = condition.find(sync.status.conditions, "ChecksumVerified") or {}
        return f"{found.get('status')} {found.get('reason')}: {found.get('message')}"

    def pictures(self, *, new: bool = True) -> list[Picture]:
        """Those that the world did not have at the beginning."""
        vendor = self.i.vendor
        if isinstance(vendor, Nutanix):
            vendor.prism.settle()
            return [
                Picture(each.ext_id, each.name, each.source, each.size_bytes)
                for each in vendor.prism.world.images
                if each.created or not new
            ]
        known = {each.name for each in self._harvester.world.images} if new else set()
        return [_picture(each) for each in self.core.mirror.all(IMAGE) if each["metadata"]["name"] not in known]

    # -- changes by others -------------------------------------------------------------------------------------

    async def plant(self, name: str, url: str) -> str:
        """An image that somebody else made."""
        vendor = self.i.vendor
        if isinstance(vendor, Nutanix):
            core = vendor.prism.core
            return core.put(core.world.images, Image(ext_id=core.new_id(), name=name, source=url)).ext_id
        spec = {"displayName": name, "sourceType": "download", "url": url}
        made = {"metadata": {"name": "planted", "namespace": "default"}, "spec": spec}
        await self._harvester.client(field_manager="somebody").create(
            {"apiVersion": IMAGE.api_version, "kind": IMAGE.kind, **made}, kind=IMAGE
        )
        return "default/planted"

    async def drop(self, picture: Picture) -> None:
        vendor = self.i.vendor
        if isinstance(vendor, Nutanix):
            vendor.prism.core.drop(vendor.prism.world.images, picture.id)
            return
        namespace, _, name = picture.id.partition("/")
        await self._harvester.client(field_manager="somebody").delete(IMAGE, Key(namespace, name))

    def slow(self, seconds: float) -> None:
        self.i.vendor.slow_operations(seconds)
        if self.on_harvester:
            self.core.pace = replace(self.core.pace, download=seconds)

    def fill_disks(self) -> None:
        effect: Effect = ImportFailure("no space left on device") if self.on_harvester else FullDisk()
        self.core.faults.add(Fault(effect, Match()))


def _picture(image: Unstructured | dict[str, Any]) -> Picture:
    meta, spec, status = image["metadata"], image["spec"], image.get("status") or {}
    return Picture(
        f"{meta['namespace']}/{meta['name']}", spec["displayName"], spec.get("url", ""), status.get("size", 0)
    )


@asynccontextmanager
async def gallery(
    open_vendor: Open, *, images: Path | None = None, wrap: Callable[[Client], Any] | None = None
) -> AsyncIterator[Gallery]:
    async with infrastructure(open_vendor, images=images, wrap=wrap) as i:
        made = Gallery(i)
        await made.open()
        try:
            await i.provider()
            yield made
        finally:
            await made.close()
