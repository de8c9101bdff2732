"""Images in Prism Central's API v4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.providers.nutanix.prism.record import Image, NewImage, described, marks_in

_CONTENT = "vmm.v4.content"


def read_image(each: Mapping[str, Any]) -> Image:
    digest = str((each.get("checksum") or {}).get("hexDigest") or "")
    return Image(
        each["extId"],
        each.get("name", ""),
        "iso" if each.get("type") == "ISO_IMAGE" else "disk",
        each.get("createTime", ""),
        int(each.get("sizeBytes") or 0),
        tuple(each.get("clusterLocationExtIds") or ()),
        marks_in(each.get("description")),
        str((each.get("source") or {}).get("url") or ""),
        digest if len(digest) == 64 else "",  # SHA-1 has 40
    )


def render_image(image: NewImage) -> dict[str, Any]:
    made: dict[str, Any] = {
        "$objectType": f"{_CONTENT}.Image",
        "name": image.name,
        "description": described(image.description, image.marks),
        "type": "ISO_IMAGE" if image.iso else "DISK_IMAGE",
        "source": {"$objectType": f"{_CONTENT}.UrlSource", "url": image.source},
    }
    if image.sha256:
        made["checksum"] = {"$objectType": f"{_CONTENT}.ImageSha256Checksum", "hexDigest": image.sha256}
    if image.cluster_id:
        made["clusterLocationExtIds"] = [image.cluster_id]
    return made
