"""Images that Homeport brings to Prism Central: downloaded by it from a URL, or uploaded."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from homeport.api.nutanix.v1beta1 import Identifier
from homeport.capi.platform import ImageOrder, ImageOutcome
from homeport.infra.error import Missing
from homeport.infra.platform.image import CONTENT_MARK, SYSTEM_MARK, UID_MARK, StoredImage, choose, import_error
from homeport.infra.vendor.task import AGAIN_SECONDS, Overdue, Task
from homeport.infra.vendor.upload import Uploads
from homeport.providers.nutanix.client import failed_task
from homeport.providers.nutanix.connection import VENDOR, PrismSession
from homeport.providers.nutanix.prism.record import Image, NewImage
from homeport.providers.nutanix.site import NutanixSite
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

_PROGRESS_SECONDS = 10.0
_ABSENT_SECONDS = 30.0  # lists of Prism Central may be a little old
# Of what is kept.
_TASK, _IMAGE, _ATTEMPT, _UPLOADED, _DELETING = "task", "image", "attempt", "uploaded", "deleting"
_DESCRIPTION = "Made by Homeport"


class NutanixImages:
    def __init__(
        self, connect: Callable[[NutanixSite], Awaitable[PrismSession]], clock: Clock, fence: Callable[[], object]
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._fence = fence
        self._uploads = Uploads()
        self._overdue = Overdue(clock, VENDOR)
        self._progress: dict[str, int] = {}
        self._absent: dict[str, float] = {}  # since when an image that was there is not listed

    async def close(self) -> None:
        await self._uploads.close()

    def forget(self, uid: str) -> None:
        self._uploads.stop(uid)
        self._overdue.forget(uid)
        self._absent.pop(uid, None)
        self._progress.pop(uid, None)

    # -- an image that should exist ----------------------------------------------------------------------------

    async def converge(self, site: NutanixSite, order: ImageOrder) -> ImageOutcome:
        session = await self._connect(site)
        if order.kept.get(_TASK):
            working = await self._follow(session, order)
            if working is not None:
                return working
        images = {each.id: each for each in await session.prism.images()}
        found = choose(map(_stored, images.values()), order)
        if found is None:
            return await self._make(session, site, order)
        self._absent.pop(order.uid, None)
        image = images[found.id]
        if found.failed:
            raise import_error(f"{image.failed}; delete image {image.id} there", order, _where(session))
        order.kept = {**order.kept, _IMAGE: found.id}
        made = found.uid == order.uid
        if made and order.file is not None and image.size_bytes == 0:
            return await self._upload(session, order, image)
        return ImageOutcome(wait=None, id=found.id, made=made, progress=100, **_verification(order, image, made))

    async def _follow(self, session: PrismSession, order: ImageOrder) -> ImageOutcome | None:
        """None: the task is over, and was successful or is forgotten."""
        task_id = str(order.kept[_TASK])
        task = await _read_task(session, task_id)
        if task is not None and task.unfinished:
            session.tasks.follow(task_id, order.uid, order.wake)
            if self._progress.get(order.uid) != task.progress:  # it moves, however long it takes
                self._overdue.forget(order.uid)
            self._progress[order.uid] = task.progress
            doing = "downloads" if order.url else "prepares"
            text = f"{_where(session)} {doing} image {order.name}"
            wait = self._overdue.wait(order.uid, task, "ImageDownloading" if order.url else "ImageUploading", text)
            return ImageOutcome(wait=_sooner(wait), progress=min(task.progress, 99), task=task_id)
        order.kept = {name: value for name, value in order.kept.items() if name != _TASK}
        self._overdue.forget(order.uid)
        if task is not None and task.status == "failed":
            order.kept = {**order.kept, _ATTEMPT: _attempt(order) + 1}  # a repeated request would get the same answer
            raise import_error(task.error, order, _where(session))
        return None

    async def _make(self, session: PrismSession, site: NutanixSite, order: ImageOrder) -> ImageOutcome:
        if order.kept.get(_IMAGE):
            since = self._absent.setdefault(order.uid, self._clock.monotonic())
            if self._clock.monotonic() - since < _ABSENT_SECONDS:
                text = f"image {order.kept[_IMAGE]} is not listed by {_where(session)}: checking again to confirm"
                return ImageOutcome(wait=Wait("ConfirmingAbsence", text, after=_ABSENT_SECONDS))
            order.kept = {_ATTEMPT: _attempt(order) + 1}
        element = await session.lookup.element(_identifier(site.cluster), f"{site.origin.part}.cluster")
        self._fence()
        request_id = str(uuid.uuid5(uuid.UUID(order.uid), f"image {order.content} {_attempt(order)}"))
        task_id = await session.prism.create_image(_new(order, element.id), request_id)
        self._absent.pop(order.uid, None)
        order.kept = {**order.kept, _TASK: task_id}
        session.tasks.follow(task_id, order.uid, order.wake)
        doing = ("ImageDownloading", "downloads") if order.url else ("ImageUploading", "prepares")
        wait = Wait(doing[0], f"{_where(session)} {doing[1]} image {order.name}", after=_PROGRESS_SECONDS)
        return ImageOutcome(wait=wait, progress=0, task=task_id)

    async def _upload(self, session: PrismSession, order: ImageOrder, image: Image) -> ImageOutcome:
        """Starts from the beginning if this process was started since."""
        assert order.file is not None
        known = order.uid in self._uploads
        progress = await self._uploads.state(order.uid)
        if known and progress is None:
            order.kept = {**order.kept, _UPLOADED: image.id}
        if progress is None and order.kept.get(_UPLOADED) != image.id:

            async def send(content: AsyncIterator[bytes]) -> None:
                await session.prism.upload_image(image.id, content, order.sha256)

            self._fence()
            progress = self._uploads.start(order.uid, order.file, send, order.wake)
        share = progress.percent if progress is not None else 99
        text = f"{order.file.path} is being uploaded to {_where(session)} ({share} %)"
        return ImageOutcome(wait=Wait("ImageUploading", text, after=_PROGRESS_SECONDS), id="", progress=share)

    # -- an image that should not exist ------------------------------------------------------------------------

    async def release(self, site: NutanixSite, order: ImageOrder) -> ImageOutcome:
        session = await self._connect(site)
        self._uploads.stop(order.uid)
        task_id = str(order.kept.get(_TASK) or "")
        task = await _read_task(session, task_id) if task_id else None
        if task is not None and task.unfinished:
            session.tasks.follow(task_id, order.uid, order.wake)
            text = f"{_where(session)} works on image {order.name}"
            return ImageOutcome(wait=self._overdue.wait(order.uid, task, "Deleting", text), task=task_id)
        own = [each for each in await session.prism.images() if each.mark(UID_MARK) == order.uid]
        if not own:
            order.kept = {}
            return ImageOutcome(wait=None)
        if task is not None and task.status == "failed" and order.kept.get(_DELETING):
            order.kept = {}
            raise failed_task(task.error, task.codes, f"{_where(session)}: the deletion of image {own[0].name}")
        self._fence()
        try:
            task_id = await session.prism.delete_image(own[0])
        except Missing:
            return ImageOutcome(wait=Wait("Deleting", f"image {own[0].name} is gone", after=1.0))
        order.kept = {_TASK: task_id, _DELETING: True}
        session.tasks.follow(task_id, order.uid, order.wake)
        text = f"{_where(session)} deletes image {own[0].name}"
        return ImageOutcome(wait=Wait("Deleting", text, after=AGAIN_SECONDS), task=task_id)


async def _read_task(session: PrismSession, task_id: str) -> Task | None:
    """As it is now: downloads take long, and an outage should be seen meanwhile."""
    found = await session.prism.tasks([task_id])
    return found[0] if found else None


def _where(session: PrismSession) -> str:
    return f"{VENDOR} {session.prism.address}"


def _attempt(order: ImageOrder) -> int:
    return int(order.kept.get(_ATTEMPT) or 0)


def _identifier(reference: Mapping[str, Any]) -> Identifier:
    return msgspec.convert(dict(reference), Identifier)


def _stored(image: Image) -> StoredImage:
    return StoredImage(
        image.id,
        image.name,
        image.mark(UID_MARK),
        image.mark(CONTENT_MARK),
        image.source,
        image.sha256,
        failed=bool(image.failed),
    )


def _new(order: ImageOrder, cluster_id: str) -> NewImage:
    marks = [f"{UID_MARK}:{order.uid}", f"{CONTENT_MARK}:{order.content}"]
    if order.system:
        marks.append(f"{SYSTEM_MARK}:{order.system}")
    return NewImage(order.name, cluster_id, marks, order.url, order.sha256, order.iso, _DESCRIPTION)


def _verification(order: ImageOrder, image: Image, made: bool) -> dict[str, str]:
    if order.file is not None:
        return {"verified": "Homeport computed the SHA-256 of the file that it uploaded"} if made else {}
    if order.sha256 and image.sha256 == order.sha256:
        return {"verified": "Prism Central verified the SHA-256"}
    if order.sha256:
        return {"unverified": "the image was there already, and Prism Central has no SHA-256 of it"}
    if order.sha512:
        return {"unverified": "Prism Central verifies only SHA-256: set spec.source.sha256"}
    return {}


def _sooner(wait: Wait) -> Wait:
    """So often that users see the progress."""
    return Wait(wait.reason, wait.message, after=_PROGRESS_SECONDS, warning=wait.warning)
