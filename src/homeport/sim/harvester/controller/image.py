"""VirtualMachineImages: checked, downloaded in steps, given a StorageClass; or failed, retried, and given up."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from homeport.sim.engine.download import Fetched
from homeport.sim.engine.fault import ImportFailure
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import IMAGE, STORAGE_CLASS, Json
from homeport.sim.harvester.object import condition, is_true, key_of, leaving, status_of
from homeport.sim.harvester.world import Download

IMAGE_ID = "harvesterhci.io/imageId"
FINALIZER = "wrangler.cattle.io/vm-image-controller"
_STEPS = 5
_LOOK_SECONDS = 0.5  # while a file is being fetched
_PARAMETERS = {"numberOfReplicas": "3", "staleReplicaTimeout": "30", "migratable": "true"}


class ImportFailed(Exception):
    """Why an image can't be imported. `progress`: how far it was; None: it did not start."""

    def __init__(self, message: str, progress: int | None = None) -> None:
        super().__init__(message)
        self.progress = progress


class Images:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def settle(self, key: str) -> float | None:
        image = self._core.mirror.get(IMAGE, key)
        if image is None:
            return None
        if leaving(image):
            await self._release(image)
            return None
        if is_true(image, "Imported") or is_true(image, "RetryLimitExceeded"):
            return None
        if image["spec"].get("sourceType", "download") not in ("download", "restore"):
            return None if condition(image, "Initialized") else await self._initialize(image)
        return await self._import(image)

    async def _import(self, image: Json) -> float | None:
        begins = _begins(image)
        if begins and (failed_at := status_of(image).get("lastFailedTime", "")):
            wait = self._core.seconds_until(failed_at, self._core.pace.retry)
            if wait > 0:
                return wait
        try:
            return await (self._initialize(image) if begins else self._download(image))
        except ImportFailed as failure:
            await self._fail(image, failure)
            return self._core.pace.retry

    async def _initialize(self, image: Json) -> float | None:
        for _, fault in self._core.faults.strike(self._core.subject(image, "image"), ImportFailure):
            raise ImportFailed(fault.message)
        download = self.download_of(image)
        if download is None:
            return _LOOK_SECONDS
        if not 200 <= download.status < 400:
            told = f"got {download.status} status code from {image['spec'].get('url', '')}"
            raise ImportFailed(download.message or told)
        name = await self._hold_class(image)
        size = {"size": download.size_bytes} if image["spec"].get("url") else {}
        await self._write(
            image,
            {"appliedUrl": image["spec"].get("url", ""), "storageClassName": name, "progress": 0, **size},
            Initialized=("True", "Initialized", ""),
            Imported=("Unknown", "Importing", ""),
        )
        return 0.0

    async def _download(self, image: Json) -> float | None:
        core, status = self._core, status_of(image)
        download = self.download_of(image)
        if download is None:  # it was fetched before a restart
            return _LOOK_SECONDS
        seconds = core.pace.download
        began = condition(image, "Initialized").get("lastUpdateTime") or core.stamp
        passed = seconds - core.seconds_until(began, seconds) if seconds else 0.0
        share = passed / seconds if seconds else 1.0
        progress = min(100, int(share * _STEPS) * (100 // _STEPS))
        if download.fails_at is not None and progress >= download.fails_at:
            raise ImportFailed(download.message or "failed to download the file: unexpected EOF", download.fails_at)
        if progress >= 100:
            self._check_sum(image)
            await self.finish(image, download.size_bytes, download.virtual_size_bytes)
            return None
        if progress != status.get("progress"):
            await self._write(image, {"progress": progress}, Imported=("Unknown", "Importing", ""))
        return seconds * (int(share * _STEPS) + 1) / _STEPS - passed

    async def finish(self, image: Json, size: int, virtual_size: int) -> None:
        """Imported: VMs can boot from it."""
        await self._write(
            image,
            {
                "appliedUrl": image["spec"].get("url", ""),
                "storageClassName": await self._hold_class(image),
                "progress": 100,
                "size": size,
                "virtualSize": virtual_size or size,
            },
            Initialized=("True", "Initialized", ""),
            Imported=("True", "Imported", ""),
            RetryLimitExceeded=("False", "", ""),
        )

    async def _fail(self, image: Json, failure: ImportFailed) -> None:
        """The next attempt starts from the beginning, with a class of its own."""
        failed, retry = status_of(image).get("failed", 0) + 1, image["spec"].get("retry", 3)
        message = f"failed due to error: {failure}"
        if failed > 1:
            message = f"retry attempted {failed - 1}/{retry} {message}"
        over = failed > retry
        stage = "Initialized" if failure.progress is None else "Imported"
        conditions: dict[str, tuple[str, str, str]] = {"RetryLimitExceeded": ("True" if over else "False", "", message)}
        if over:
            conditions[stage] = ("False", "", message)
        await self._drop_class(image)
        status = {"failed": failed, "lastFailedTime": self._core.stamp, "progress": failure.progress or 0}
        await self._write(image, status, **conditions)

    # -- the class -----------------------------------------------------------------------------------------------

    def class_name(self, image: Json) -> str:
        """A class that exists under either name is kept; a new one is named as this release does."""
        meta = image["metadata"]
        if image["spec"].get("backend") == "cdi":
            return str(image["spec"].get("targetStorageClassName", ""))
        new, old = f"lh-{meta['uid']}", f"longhorn-{meta['name']}"
        for name in (new, old):
            if self._core.mirror.get(STORAGE_CLASS, name) is not None:
                return name
        return new if self._core.world.classes_by_uid else old

    async def _hold_class(self, image: Json) -> str:
        name = self.class_name(image)
        if image["spec"].get("backend") == "cdi" or self._core.mirror.get(STORAGE_CLASS, name) is not None:
            return name
        parameters = image["spec"].get("storageClassParameters") or _PARAMETERS
        made = {
            "metadata": {"name": name, "annotations": {IMAGE_ID: str(key_of(image))}},
            "provisioner": "driver.longhorn.io",
            "parameters": {**parameters, "backingImage": backing_image(image)},
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
        }
        await self._core.create(made, STORAGE_CLASS)
        return name

    async def _drop_class(self, image: Json) -> None:
        if image["spec"].get("backend") == "cdi":
            return
        found = self._core.mirror.get(STORAGE_CLASS, self.class_name(image))
        if found is not None:
            await self._core.delete(STORAGE_CLASS, found)

    async def _release(self, image: Json) -> None:
        await self._drop_class(image)
        kept = [each for each in image["metadata"].get("finalizers") or () if each != FINALIZER]
        await self._core.patch(IMAGE, image, {"metadata": {"finalizers": kept}})

    # -- facts and writing ---------------------------------------------------------------------------------------

    def download_of(self, image: Json) -> Download | None:
        """What the network has at the image's URL; None while that is being found out."""
        url = str(image["spec"].get("url", ""))
        known = find_download(self._core.world.downloads, url)
        if known.url != "*" or not url or self._core.downloads is None:
            return known
        found = self._fetched(image)
        if found is None:
            return None
        return Download(url="*", status=found.status or 503, size_bytes=found.size, message=found.error)

    def _fetched(self, image: Json) -> Fetched | None:
        downloads, status = self._core.downloads, status_of(image)
        assert downloads is not None
        key = f"{image['metadata']['uid']}/{status.get('failed', 0)}"  # each attempt fetches the file again
        return downloads.ask(key, str(image["spec"].get("url", "")), lambda: None)

    def _check_sum(self, image: Json) -> None:
        wanted = image["spec"].get("checksum", "")
        found = self._fetched(image) if wanted and self._core.downloads is not None else None
        if found is not None and found.sha512 and found.sha512 != wanted:
            raise ImportFailed(f"the actual checksum {found.sha512} doesn't match the expected checksum {wanted}", 99)

    async def _write(self, image: Json, status: Json, **conditions: tuple[str, str, str]) -> None:
        """These kinds have no status subresource: the status is written with the object."""
        now = self._core.stamp
        found: list[Json] = list(status_of(image).get("conditions") or ())
        for name, (state, reason, message) in conditions.items():
            found = _with(found, now, name, state, reason, message)
        patch: Json = {"status": {**status, "conditions": found}}
        if FINALIZER not in (image["metadata"].get("finalizers") or ()):
            patch["metadata"] = {"finalizers": [*(image["metadata"].get("finalizers") or ()), FINALIZER]}
        await self._core.patch(IMAGE, image, patch)


def _begins(image: Json) -> bool:
    """Whether an attempt is to begin: none has, or the last one failed after it began."""
    if not is_true(image, "Initialized"):
        return True
    failed_at = status_of(image).get("lastFailedTime", "")
    return bool(failed_at) and failed_at >= condition(image, "Initialized")["lastUpdateTime"]


def backing_image(image: Json) -> str:
    return f"vmi-{image['metadata']['uid']}"


def find_download(known: tuple[Download, ...], url: str) -> Download:
    return next((each for each in known if fnmatchcase(url, each.url)), Download(url="*"))


def _with(conditions: list[Json], now: str, name: str, state: str, reason: str, message: str) -> list[Json]:
    made: dict[str, Any] = {"type": name, "status": state, "lastUpdateTime": now}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return [*(each for each in conditions if each["type"] != name), made]
