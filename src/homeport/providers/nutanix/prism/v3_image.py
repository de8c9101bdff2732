"""Images in Prism Central's API v3. Its upload of files serves newer releases, too: v4 has none of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from homeport.infra.error import Unreachable
from homeport.infra.vendor.trouble import Quota
from homeport.providers.nutanix.client import Client
from homeport.providers.nutanix.prism.record import Image, NewImage, described, marks_in

ROOT = "/api/nutanix/v3"


def uuid_of(entity: Mapping[str, Any]) -> str:
    return str(entity["metadata"].get("uuid", ""))


def name_of(entity: Mapping[str, Any]) -> str:
    for part in ("spec", "status"):
        if (entity.get(part) or {}).get("name"):
            return str(entity[part]["name"])
    return str(entity["metadata"].get("name", ""))


def read_image(each: Mapping[str, Any]) -> Image:
    spec, status = each.get("spec") or {}, each.get("status") or {}
    resources = status.get("resources") or {}
    checksum = resources.get("checksum") or {}
    return Image(
        uuid_of(each),
        name_of(each),
        "iso" if resources.get("image_type") == "ISO_IMAGE" else "disk",
        each["metadata"].get("creation_time", ""),
        int(resources.get("size_bytes") or 0),
        marks=marks_in(spec.get("description") or status.get("description")),
        source=str(resources.get("source_uri") or ""),
        sha256=str(checksum.get("checksum_value") or "") if checksum.get("checksum_algorithm") == "SHA_256" else "",
        failed=_failure(status) if status.get("state") == "ERROR" else "",
    )


def _failure(status: Mapping[str, Any]) -> str:
    texts = [str(each.get("message") or "") for each in status.get("message_list") or ()]
    return "; ".join(filter(None, texts)) or "its state is ERROR"


async def create_image(client: Client, image: NewImage, request_id: str) -> str:
    resources: dict[str, Any] = {"image_type": "ISO_IMAGE" if image.iso else "DISK_IMAGE"}
    if image.source:
        resources["source_uri"] = image.source
    if image.sha256 and image.source:
        resources["checksum"] = {"checksum_algorithm": "SHA_256", "checksum_value": image.sha256}
    if image.cluster_id:
        resources["initial_placement_ref_list"] = [{"kind": "cluster", "uuid": image.cluster_id}]
    spec = {"name": image.name, "description": described(image.description, image.marks), "resources": resources}
    body = {"api_version": "3.1", "metadata": {"kind": "image"}, "spec": spec}
    what = f"image {image.name}"
    reply = await client.call("POST", f"{ROOT}/images", body=body, request_id=request_id, what=what)
    return task_of(reply.body)


async def upload_image(client: Client, image_id: str, content: AsyncIterator[bytes], sha256: str) -> None:
    headers = {"X-Nutanix-Checksum-Type": "SHA_256", "X-Nutanix-Checksum-Bytes": sha256} if sha256 else {}
    await client.upload(f"{ROOT}/images/{image_id}/file", content, headers, what=f"image {image_id}")


def task_of(body: Any) -> str:
    found = ((body.get("status") or {}).get("execution_context") or {}).get("task_uuid")
    found = found[0] if isinstance(found, list) and found else found
    if not found:
        raise Unreachable("Prism Central accepted a request but returned no task")
    return str(found)


_PROJECT_UNITS = {"MEMORY": ("GiB", 2**30), "STORAGE": ("GiB", 2**30)}


def quotas(project: Mapping[str, Any]) -> tuple[Quota, ...]:
    """The limits of a project and what its machines use of them; 0 means no limit."""
    resources = (project.get("status") or {}).get("resources") or {}
    found: list[Quota] = []
    for each in (resources.get("resource_domain") or {}).get("resources") or ():
        kind, limit = str(each.get("resource_type") or ""), float(each.get("limit") or 0)
        unit, factor = _PROJECT_UNITS.get(kind, ("", 1))
        if limit:
            found.append(Quota(kind.lower(), limit / factor, float(each.get("value") or 0) / factor, unit))
    return tuple(found)
