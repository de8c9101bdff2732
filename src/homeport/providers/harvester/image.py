"""VirtualMachineImages of Harvester: found by object name or display name, and used once they are imported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Unstructured
from homeport.client.protocol import Key
from homeport.infra.error import Ambiguous, Misconfigured, Missing, ProviderError
from homeport.infra.preflight.near import near
from homeport.machinery import condition
from homeport.runtime.outcome import Wait


@dataclass(frozen=True, slots=True)
class Image:
    """As machines need it. `storage_class`: the one that makes disks from it."""

    key: Key
    display_name: str
    storage_class: str
    virtual_size: int = 0
    url: str = ""

    @property
    def id(self) -> str:
        return f"{self.key.namespace}/{self.key.name}"

    @property
    def for_openstack(self) -> bool:
        """Images of Talos are made for one platform, and named after it."""
        return any("openstack" in text.lower() for text in (self.key.name, self.display_name, self.url))


def parse_name(text: str, namespace: str) -> Key:
    """`namespace/name`, or a name in the given namespace."""
    before, slash, after = text.partition("/")
    return Key(before, after) if slash else Key(namespace, text)


def choose(wanted: Key, images: Sequence[Unstructured], field: str) -> Unstructured:
    """The object of that name, otherwise the one that is displayed under it. Raises Missing or Misconfigured."""
    here = [each for each in images if each.namespace == wanted.namespace]
    for each in here:
        if each.name == wanted.name:
            return each
    shown = [each for each in here if display_name(each) == wanted.name]
    if len(shown) > 1:
        names = sorted(f"{each.namespace}/{each.name}" for each in shown)
        text = f"several images are displayed as {wanted.name!r}: use an object name ({', '.join(names)})"
        raise Ambiguous(f"{field}: {text}", names)
    if not shown:
        raise Missing(f"{field}: image {str(wanted)!r} not found{near(wanted.name, _names(here))}")
    return shown[0]


def _names(images: Iterable[Unstructured]) -> Iterable[str]:
    for each in images:
        yield each.name
        yield display_name(each)


def display_name(image: Unstructured) -> str:
    return str((image.get("spec") or {}).get("displayName") or "")


def _progress(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if status.get("progress"):
        return f"is being imported ({status['progress']} %)"
    if spec.get("sourceType") == "upload":
        return "has no file yet: upload it in the Harvester dashboard, Images"
    return "is being imported"


def ready(image: Unstructured, field: str) -> Image | Wait:
    """Raises Misconfigured for an image that will never be imported."""
    spec, status = image.get("spec") or {}, image.get("status") or {}
    name = f"{image.namespace}/{image.name}"
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    imported, exceeded = condition.find(conditions, "Imported"), condition.find(conditions, "RetryLimitExceeded")
    for each in (exceeded, imported):
        wanted = "True" if each is exceeded else "False"
        if each is not None and each.get("status") == wanted:
            said = each.get("message") or each.get("reason") or "the import failed"
            raise Misconfigured(f"{field}: image {name} was not imported: {said}; correct its URL, or upload it again")
    if imported is None or imported.get("status") != "True":
        failure = (exceeded or {}).get("message")
        tried = f"; the last attempt failed: {failure}" if failure else ""
        return Wait("ImageNotReady", f"{field}: image {name} {_progress(spec, status)}{tried}", after=30.0)
    # Harvester before 1.8.1 named the class after the image, and some releases do not report it.
    storage_class = str(status.get("storageClassName") or f"longhorn-{image.name}")
    return Image(
        Key(image.namespace, image.name),
        display_name(image),
        storage_class,
        int(status.get("virtualSize") or 0),
        str(spec.get("url") or ""),
    )


def image_fact(image: Unstructured) -> tuple[str, str, bool, int]:
    """Its id, its name, whether machines can use it, and its size in bytes."""
    shown = display_name(image) or image.name
    found: Image | Wait | None = None
    with contextlib.suppress(ProviderError):  # of one that will never be imported
        found = ready(image, "")
    usable = isinstance(found, Image) and not shown.lower().endswith(".iso")
    size = found.virtual_size if isinstance(found, Image) else 0
    return f"{image.namespace}/{image.name}", shown, usable, size
