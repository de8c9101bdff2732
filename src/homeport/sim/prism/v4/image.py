"""vmm: images."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import GIB, Image, Task
from homeport.sim.prism.error import Refusal, unserved
from homeport.sim.prism.imageimport import start_import
from homeport.sim.prism.rule import check_image, guess_os
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json
from homeport.sim.prism.v4.reading import readers

NS: Final = "vmm.v4.content"
IMAGES: Final = "/api/vmm/{v}/content/images"
LISTING: Final = envelope.listing(
    f"{NS}.Image",
    """categoryExtIds checksum clusterLocationExtIds contentRepositoryExtId contentRepositoryName createTime
        description extId isSharedWithAllProjects lastUpdateTime links name ownerExtId ownerName
        placementPolicyStatus projectExtId sizeBytes source tenantId type""",
)


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_images, create_image, get_image, update_image, delete_image)
    one = envelope.add_entity_routes(routes, IMAGES, f"{NS}.Image", "images", handlers)
    routes.add("GET", f"{one}/file", image_file, f"{NS}.GetImageFileApiResponse", table="images")


def image_view(site: Site, d: Dialect, image: Image) -> Json:
    everywhere = [cluster.ext_id for cluster in site.world.clusters if not cluster.central]
    source = d.typed(f"{NS}.UrlSource", {"url": image.source}) if image.source else None
    checksum = None
    if image.checksum.startswith("sha256:"):
        checksum = d.typed(f"{NS}.ImageSha256Checksum", {"hexDigest": image.checksum[7:]})
    fields: dict[str, Any] = {
        "extId": image.ext_id,
        "name": image.name,
        "description": image.description or None,
        "type": image.type,
        "sizeBytes": image.size_bytes,
        "categoryExtIds": list(image.categories) or None,
        "clusterLocationExtIds": list(image.clusters) or everywhere,
        "createTime": envelope.time_text(image.created) or "2025-01-01T00:00:00.000000Z",
        "lastUpdateTime": envelope.time_text(image.updated) or "2025-01-01T00:00:00.000000Z",
        "ownerExtId": image.owner or "00000000-0000-0000-0000-000000000000",
        **envelope.one_of("source", source),
        **envelope.one_of("checksum", checksum),
    }
    return d.typed(f"{NS}.Image", fields)


list_images, get_image = readers(lambda world: world.images, LISTING, image_view)


def read_image(core: Core, body: Body, owner: str) -> Image:
    source = body.object("source")
    checksum = body.object("checksum")
    digest = checksum.text("hexDigest") if checksum is not None else ""
    return Image(
        ext_id=core.new_id(),
        name=body.required_text("name"),
        description=body.text("description"),
        type=body.text("type", "DISK_IMAGE", choices=("DISK_IMAGE", "ISO_IMAGE")),  # type: ignore[arg-type]
        size_bytes=body.integer("sizeBytes") or 10 * GIB,
        source=source.text("url") if source is not None else "",
        clusters=body.texts("clusterLocationExtIds"),
        categories=body.texts("categoryExtIds"),
        checksum=f"sha256:{digest}" if len(digest) == 64 else "",
        os=guess_os(body.text("name")),
        owner=owner,
    )


def create_image(site: Site, call: Call) -> Answer:
    owner = site.world.user(call.user)
    image = read_image(site.core, Body(call.body), owner.ext_id if owner else "")
    check_image(site, image)
    task = start_import(site, call, image)
    return envelope.accepted(call, f"{NS}.CreateImageApiResponse", task.ext_id)


def update_image(site: Site, call: Call) -> Answer:
    image = site.find(site.world.images, call.params["extId"])
    envelope.check_match(call, image)
    body = Body(call.body)
    after = replace(
        image,
        name=body.text("name", image.name),
        description=body.text("description", image.description),
        categories=body.texts("categoryExtIds") if body.has("categoryExtIds") else image.categories,
    )
    check_image(site, after)
    task = site.start("kImageUpdate", "image-put", {"image": msgspec.to_builtins(after)}, after, call.user)
    return envelope.accepted(call, f"{NS}.UpdateImageApiResponse", task.ext_id)


def delete_image(site: Site, call: Call) -> Answer:
    image = site.find(site.world.images, call.params["extId"])
    task = site.start("kImageDelete", "image-drop", {"image": image.ext_id}, image, call.user)
    return envelope.accepted(call, f"{NS}.DeleteImageApiResponse", task.ext_id)


def image_file(site: Site, call: Call) -> Answer:
    site.find(site.world.images, call.params["extId"])
    raise unserved("The content of images")


def perform_put(core: Core, task: Task) -> None:
    core.put(core.world.images, msgspec.convert(task.arguments["image"], Image))


def perform_drop(core: Core, task: Task) -> None:
    if core.drop(core.world.images, task.arguments["image"]) is None:
        raise Refusal(404, f"The image {task.arguments['image']} no longer exists.", "VMM-20005", "ENTITY_NOT_FOUND")
