"""How the content of an image comes to Prism Central, whichever version of its API asked for it."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.sim.engine.call import Call
from homeport.sim.engine.download import Fetched
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Image, Task
from homeport.sim.prism.error import exhausted, rejected
from homeport.sim.prism.site import Site

_CHECKSUM = "sha256:"


def start_import(site: Site, call: Call, image: Image) -> Task:
    arguments: dict[str, object] = {"image": msgspec.to_builtins(image), "url": image.source}
    return site.start("kImageCreate", "image-import", arguments, image, call.user)


def perform_import(core: Core, task: Task) -> None:
    image = msgspec.convert(task.arguments["image"], Image)
    _check_room(core, image)
    if image.source and core.downloads is not None:
        found = core.downloads.ask(task.ext_id, image.source, core.on_change)
        core.downloads.forget(task.ext_id)
        assert found is not None, "the task waited for its file"
        image = _filled(image, found)
    core.put(core.world.images, image)


def receive(site: Site, image: Image, upload: Any) -> None:
    """The content of an image that was made without any. `upload`: its size and SHA-256."""
    _check_room(site.core, image)
    size, digest = upload
    site.core.put(site.core.world.images, _filled(image, Fetched(200, size, digest)))


def _filled(image: Image, found: Fetched) -> Image:
    if found.error:
        raise rejected("", f"Failed to import image {image.name}: {found.error}", "IMAGE_IMPORT_FAILED")
    wanted = image.checksum.removeprefix(_CHECKSUM)
    if wanted and found.sha256 and wanted != found.sha256:
        text = f"The checksum of image {image.name} is {found.sha256} and does not match the expected {wanted}."
        raise rejected("", text, "IMAGE_CHECKSUM_MISMATCH")
    return replace(image, size_bytes=found.size)


def _check_room(core: Core, image: Image) -> None:
    placed = image.clusters or tuple(each.ext_id for each in core.world.clusters if not each.central)
    for each in placed:
        if core.disk_full(each):
            name = core.cluster_names(each)[0]
            raise exhausted(f"Not enough space is left on cluster {name} for image {image.name}.")
