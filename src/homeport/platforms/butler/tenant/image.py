"""Which image workers boot from: ProviderConfigs often name that of the management cluster, which is Talos. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homeport.capi.version import is_valid, parse

_KUBERNETES = re.compile(r"(?:kube|kubernetes|k8s)[a-z]*[-_]?v?(\d+\.\d+\.\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the provider has. `os` '': unknown. `id`: as machines name it; '': by its name."""

    name: str
    os: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """`name` '': no image fits, and `message` tells what to do."""

    name: str
    message: str


def choose_image(
    images: Sequence[Image], os: str, version: str, *, given: str = "", configured: str = "", kept: str = ""
) -> Choice:
    """`given`: of the TenantCluster; `configured`: of the ProviderConfig; `kept`: of the workers that exist."""
    known = {key: each for each in images for key in (each.id, each.name) if key}
    if given:
        return _given(known, given, os)
    if configured and configured in known and _fits(known[configured], os, version) and kept in ("", configured):
        return Choice(configured, f"workers use image {configured} of the ProviderConfig")
    fitting = sorted((each.name for each in images if _fits(each, os, version)), key=lambda name: _rank(name, version))
    if kept and _fits(Image(kept, _os_of(known, kept) or os), os, version):
        fitting = [kept]
    if not fitting:
        return Choice("", _none_fits(images, os, version, configured))
    return Choice(fitting[0], _said(known, fitting[0], os, configured))


def _said(known: dict[str, Image], found: str, os: str, configured: str) -> str:
    if not configured:
        return f"workers use image {found}, which is {os}; the ProviderConfig names no image"
    other = _os_of(known, configured) or "not known to fit"
    return f"workers use image {found}, which is {os}; image {configured} of the ProviderConfig is {other}"


def _fits(image: Image, os: str, version: str) -> bool:
    """An image with another version of Kubernetes does not: its programs would stay."""
    return image.os == os and _rank(image.name, version)[0] < 2


def _given(known: dict[str, Image], given: str, os: str) -> Choice:
    found = known.get(given)
    if found is not None and found.os and found.os != os:
        field = "spec.workers.machineTemplate.os"
        message = f"{field}.imageRef: image {given} is {found.os}, and {field}.type is {os}: change one of them"
        return Choice("", message)
    return Choice(given, f"workers use image {given} of the TenantCluster")


def _os_of(known: dict[str, Image], name: str) -> str:
    found = known.get(name)
    return found.os if found is not None else ""


def _rank(name: str, version: str) -> tuple[int, int, str]:
    """The image with this very version of Kubernetes, then those without any, which get it when they boot."""
    found = _KUBERNETES.search(name)
    if found is None:
        return (1, len(name), name)
    same = is_valid(found.group(1)) and parse(found.group(1)).key == parse(version).key
    return (0 if same else 2, len(name), name)


def _none_fits(images: Sequence[Image], os: str, version: str, configured: str) -> str:
    named = f"image {configured} of the ProviderConfig does not fit, and " if configured else ""
    listed = ", ".join(sorted(f"{each.name} ({each.os or 'unknown'})" for each in images)[:8]) or "none"
    example = ", for example rocky-9-cloud" if os == "rocky" else ""
    return (
        f"workers run {os} with Kubernetes {version}: {named}the provider has no image for that (it has: {listed}). "
        f"Upload one{example}, or name an image in spec.workers.machineTemplate.os.imageRef"
    )
