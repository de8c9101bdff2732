"""Images that Homeport brings to Harvester: VirtualMachineImages that Harvester downloads."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.platform import ImageOrder, ImageOutcome
from homeport.infra.error import Misconfigured, Taken
from homeport.infra.platform.image import StoredImage, choose, import_error, leftovers
from homeport.machinery import condition
from homeport.providers.harvester.image import display_name
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import IMAGE
from homeport.providers.harvester.site import HarvesterSite
from homeport.runtime.outcome import Wait

UID_LABEL = "infrastructure.homeport.dev/image-uid"
CONTENT_LABEL = "infrastructure.homeport.dev/image-content"
OS_LABEL = "harvesterhci.io/os-type"
_PROGRESS_SECONDS = 10.0
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")
_LONGEST_NAME = 54
_IMAGE = "image"  # of what is kept


class HarvesterImages:
    def __init__(
        self, connect: Callable[[HarvesterSite], Awaitable[HarvesterSession]], fence: Callable[[], object]
    ) -> None:
        self._connect = connect
        self._fence = fence

    def forget(self, uid: str) -> None:
        del uid  # nothing is begun here

    async def converge(self, site: HarvesterSite, order: ImageOrder) -> ImageOutcome:
        _check(order)
        session = await self._served(site)
        images = {_id(each): each for each in await session.list(IMAGE, site.namespace)}
        stored = [_stored(each) for each in images.values()]
        for each in leftovers(stored, order):
            self._fence()
            await session.delete(IMAGE, images[each.id])
        found = choose(stored, order)
        if found is None:
            self._fence()
            await self._create(session, site.namespace, order)
            return _downloading(order, session, 0)
        image, made = images[found.id], found.uid == order.uid
        order.kept = {_IMAGE: found.id}
        if found.failed:
            await self._retry(session, image, order)
        status = image.get("status") or {}
        if not condition.is_true(status.get("conditions") or [], "Imported"):
            return _downloading(order, session, int(status.get("progress") or 0))
        return ImageOutcome(wait=None, id=found.id, made=made, progress=100, **_verification(order, image, made))

    async def release(self, site: HarvesterSite, order: ImageOrder) -> ImageOutcome:
        session = await self._served(site)
        own = [each for each in await session.list(IMAGE, site.namespace) if _label(each, UID_LABEL) == order.uid]
        if not own:
            return ImageOutcome(wait=None)
        self._fence()
        for each in own:
            if not each.metadata.get("deletionTimestamp"):
                await session.delete(IMAGE, each)
        return ImageOutcome(wait=Wait("Deleting", f"Harvester deletes image {_id(own[0])}", after=_PROGRESS_SECONDS))

    async def _served(self, site: HarvesterSite) -> HarvesterSession:
        session = await self._connect(site)
        if not session.harvester:
            raise Misconfigured(
                f"{session.access.server} is KubeVirt without Harvester, which has no images: name a container image "
                "or a DataVolume in the ProviderConfig instead"
            )
        return session

    async def _create(self, session: HarvesterSession, namespace: str, order: ImageOrder) -> None:
        try:
            await session.create(IMAGE, _manifest(namespace, order))
        except Taken:
            # By this very request, repeated, or by another object with the same content: the next look tells.
            return

    async def _retry(self, session: HarvesterSession, image: Unstructured, order: ImageOrder) -> None:
        """Harvester has given up for good: the image is deleted, so that the next attempt makes it again."""
        text = _failure(image)
        if not image.metadata.get("deletionTimestamp"):
            self._fence()
            await session.delete(IMAGE, image)
        raise import_error(text, order, f"Harvester {session.access.server}")


def _check(order: ImageOrder) -> None:
    if order.file is not None:
        raise Misconfigured(
            "spec.source.file: Harvester accepts files only through its web interface: serve the file with a web "
            "server that Harvester can reach, and set spec.source.url"
        )


def object_name(order: ImageOrder) -> str:
    """With the content in it: the same again for the same content."""
    name = _NOT_IN_NAMES.sub("-", order.name.lower()).strip("-.")[:_LONGEST_NAME].rstrip("-.")
    return f"{name or 'image'}-{order.content[:8]}"


def _manifest(namespace: str, order: ImageOrder) -> dict[str, Any]:
    labels = {UID_LABEL: order.uid, CONTENT_LABEL: order.content}
    if order.system:
        labels[OS_LABEL] = order.system
    spec = {"displayName": order.name, "sourceType": "download", "url": order.url}
    if order.sha512:
        spec["checksum"] = order.sha512
    return {
        **IMAGE.type_meta,
        "metadata": {"name": object_name(order), "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def _id(image: Unstructured) -> str:
    return f"{image.namespace}/{image.name}"


def _label(image: Unstructured, name: str) -> str:
    labels: Mapping[str, str] = image.metadata.get("labels") or {}
    return labels.get(name, "")


def _stored(image: Unstructured) -> StoredImage:
    spec = image.get("spec") or {}
    return StoredImage(
        _id(image),
        display_name(image) or image.name,
        _label(image, UID_LABEL),
        _label(image, CONTENT_LABEL),
        str(spec.get("url") or ""),
        sha512=str(spec.get("checksum") or ""),
        failed=bool(_failure(image)),
    )


def _failure(image: Unstructured) -> str:
    """'' unless Harvester has given up, or somebody deletes the image."""
    conditions = (image.get("status") or {}).get("conditions") or []
    for kind, status in (("RetryLimitExceeded", "True"), ("Imported", "False")):
        found = condition.find(conditions, kind)
        if found is not None and found.get("status") == status:
            return str(found.get("message") or found.get("reason") or "the import failed")
    return "the image is being deleted" if image.metadata.get("deletionTimestamp") else ""


def _downloading(order: ImageOrder, session: HarvesterSession, progress: int) -> ImageOutcome:
    text = f"Harvester {session.access.server} downloads {order.url} ({progress} %)"
    return ImageOutcome(wait=Wait("ImageDownloading", text, after=_PROGRESS_SECONDS), progress=min(progress, 99))


def _verification(order: ImageOrder, image: Unstructured, made: bool) -> dict[str, str]:
    if order.sha512 and (image.get("spec") or {}).get("checksum") == order.sha512:
        return {"verified": "Harvester verified the SHA-512"}
    if order.sha512:
        return {"unverified": "the image was there already, and Harvester has no SHA-512 of it"}
    if order.sha256:
        return {"unverified": "Harvester verifies only SHA-512: set spec.source.sha512"}
    return {}
