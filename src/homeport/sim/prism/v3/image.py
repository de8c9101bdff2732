"""Images in v3."""

from __future__ import annotations

from typing import Any

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import GIB, Image
from homeport.sim.prism.error import rejected
from homeport.sim.prism.imageimport import receive, start_import
from homeport.sim.prism.rule import check_image, guess_os
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import Json


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_images, create_image, get_image, update_image, delete_image)
    envelope.add_entity_routes(routes, "images", handlers)
    routes.add("PUT", f"{envelope.BASE}/images/{{uuid}}/file", upload_image, table="images", param="uuid")


def image_view(site: Site, image: Image) -> Json:
    resources: Json = {"image_type": image.type, "architecture": "X86_64"}
    if image.source:
        resources["source_uri"] = image.source
    if image.checksum.startswith("sha256:"):
        resources["checksum"] = {"checksum_algorithm": "SHA_256", "checksum_value": image.checksum[7:]}
    spec: Json = {"name": image.name, "resources": resources}
    if image.description:
        spec["description"] = image.description
    placed = list(image.clusters) or [each.ext_id for each in site.world.clusters if not each.central]
    status = {
        **spec,
        "state": "COMPLETE",
        "resources": {
            **resources,
            "size_bytes": image.size_bytes,
            "current_cluster_reference_list": [envelope.reference("cluster", each) for each in placed],
        },
    }
    return envelope.entity_view(
        envelope.metadata(site, "image", image, **envelope.categories(site, image.categories)), spec, status
    )


def list_images(site: Site, call: Call) -> Answer:
    def values(image: Image) -> Json:
        return {**envelope.named(image), "image_type": image.type}

    return envelope.listed(call, "image", tuple(site.world.images), lambda each: image_view(site, each), values)


def get_image(site: Site, call: Call) -> Answer:
    return Answer(200, image_view(site, site.find(site.world.images, call.params["uuid"])))


def _read_image(before: Image, spec: Body, resources: Body) -> Image:
    kind: Any = resources.text("image_type", before.type, choices=("DISK_IMAGE", "ISO_IMAGE"))
    return replace(
        before,
        name=spec.required_text("name"),
        description=spec.text("description"),
        type=kind,
        source=resources.text("source_uri", before.source),
    )


def create_image(site: Site, call: Call) -> Answer:
    spec, _, resources = envelope.spec_of(call)
    image = _read_image(Image(ext_id=site.core.new_id(), name="", size_bytes=10 * GIB), spec, resources)
    image = replace(image, os=guess_os(image.name))
    given = resources.object("checksum")
    if given is not None:
        given.text("checksum_algorithm", choices=("SHA_1", "SHA_256"))
        value = given.text("checksum_value")
        image = replace(image, checksum=f"sha256:{value}" if len(value) == 64 else "")
    if not image.source:
        image = replace(image, size_bytes=0)  # until its content is uploaded
    task = start_import(site, call, image)
    return envelope.pending("image", image.ext_id, 0, spec.value, task.ext_id)


def upload_image(site: Site, call: Call) -> Answer:
    image = site.find(site.world.images, call.params["uuid"])
    if call.upload is None:
        raise rejected("", "The body must be of the type application/octet-stream.")
    receive(site, image, call.upload)
    return Answer(200, {})


def update_image(site: Site, call: Call) -> Answer:
    before = site.find(site.world.images, call.params["uuid"])
    spec, meta, resources = envelope.spec_of(call)
    envelope.check_version(before.version - 1, meta)
    image = _read_image(before, spec, resources)
    check_image(site, image)
    return envelope.put(site, call, "image", image, spec, before.version - 1)


def delete_image(site: Site, call: Call) -> Answer:
    image = site.find(site.world.images, call.params["uuid"])
    return envelope.deleting(site.start("kImageDelete", "image-drop", {"image": image.ext_id}, image, call.user).ext_id)
