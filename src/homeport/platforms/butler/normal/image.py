"""ImageSync: where an image comes from, and what it is called at the provider."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import ImageSync
from homeport.api.butler.v1alpha1.machine import FactoryRef, ImageSource
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.url import check_url, split

FACTORY = "https://factory.talos.dev"
_COMPRESSED = re.compile(r"\.(xz|gz|zst|bz2|zip|tar)$", re.IGNORECASE)
_EXTENSION = re.compile(r"\.(qcow2|img|raw|iso|vmdk)$", re.IGNORECASE)
_VERSION = re.compile(r"^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.-]+)?$")
_PATH_PART = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
_CONTENT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ImageModel:
    provider: ProviderRef
    factory: FactoryRef | None
    url: str  # '': of the image factory, or of a file
    file: str
    sha256: str
    sha512: str
    format: str
    name: str  # of the image at the provider
    os: str
    delete: bool  # with the ImageSync

    def artifact(self, factory: str) -> str:
        """From where the provider downloads it; '': it is uploaded. `factory`: address of the image factory."""
        ref = self.factory
        if ref is None:
            return self.url
        disk = f"{ref.platform or 'nocloud'}-{ref.arch or 'amd64'}.{self.format}"
        return f"{factory.rstrip('/')}/image/{ref.schematic_id}/{_tag(ref.version)}/{disk}"

    def content(self, sha256: str = "") -> str:
        """The same for the same content, whatever it is called. `sha256`: of the file."""
        ref, digest = self.factory, sha256 or self.sha256
        if ref is not None:
            what = f"talos {ref.schematic_id} {_tag(ref.version)} {self.artifact('')}"
        elif digest or self.sha512:
            what = f"sha256 {digest}" if digest else f"sha512 {self.sha512}"
        else:
            what = f"url {self.url}"
        return hashlib.sha256(what.encode()).hexdigest()[:_CONTENT_LENGTH]


def _tag(version: str) -> str:
    return f"v{version.removeprefix('v')}"


def normal_image_sync(sync: ImageSync) -> Normal[ImageModel]:
    reading, spec = Reading(), sync.spec
    source = spec.source
    if (spec.factory_ref is None) == (source is None):
        reading.missing("spec.factoryRef", "set exactly one of factoryRef and source")
    if source is not None:
        _check_source(reading, source)
    if spec.factory_ref is not None:
        _check_factory(reading, spec.factory_ref)
    if not spec.provider_config_ref.name:
        reading.missing("spec.providerConfigRef", "name the ProviderConfig that the image is for")
    _check_transfer(reading, spec.transfer_mode, bool(source is not None and source.file))
    if spec.format == "raw.xz":
        reading.fault("spec.format", '"raw.xz": providers do not decompress images; use qcow2 or raw')
    os = spec.os or ("talos" if spec.factory_ref else "")
    return reading.result(
        lambda: ImageModel(
            provider=spec.provider_config_ref,
            factory=spec.factory_ref,
            url=source.url if source else "",
            file=source.file if source else "",
            sha256=source.sha256 if source else "",
            sha512=source.sha512 if source else "",
            format=_format(spec.format, source),
            name=spec.display_name or _name(spec.factory_ref, source, os),
            os=os,
            delete=spec.deletion_policy == "Delete",
        )
    )


def _check_source(reading: Reading, source: ImageSource) -> None:
    if bool(source.url) == bool(source.file):
        reading.missing("spec.source.url", "set exactly one of url and file")
    for field, text in (("url", split(source.url).path), ("file", source.file)):
        if _COMPRESSED.search(text):
            reading.fault(f"spec.source.{field}", f'"{text}": providers do not decompress images; use qcow2 or raw')
    check_url(reading, "spec.source.url", source.url)


def _check_factory(reading: Reading, ref: FactoryRef) -> None:
    if not _VERSION.match(ref.version):
        reading.fault("spec.factoryRef.version", f'invalid version "{ref.version}": expected for example v1.9.3')
    for field, text in (("schematicID", ref.schematic_id), ("platform", ref.platform)):
        if text and not _PATH_PART.match(text):
            reading.fault(f"spec.factoryRef.{field}", f'"{text}": use letters, digits and hyphens')


def _check_transfer(reading: Reading, mode: str, file: bool) -> None:
    if file and mode == "direct":
        reading.fault("spec.transferMode", '"direct": the provider cannot read a file of this machine; use proxy')
    if not file and mode == "proxy":
        reading.fault(
            "spec.transferMode",
            '"proxy": Homeport uploads files alone. Use direct, or download the image into the folder images of the '
            "data directory and set spec.source.file",
        )


def _format(given: str, source: ImageSource | None) -> str:
    path = (split(source.url).path or source.file) if source is not None else ""
    return given or ("iso" if path.lower().endswith(".iso") else "qcow2")


def _name(ref: FactoryRef | None, source: ImageSource | None, os: str) -> str:
    """With the operating system in it: users and Homeport tell by the name what an image is for."""
    if ref is not None:
        disk = f"{ref.platform or 'nocloud'}-{ref.arch or 'amd64'}"
        return f"talos-{_tag(ref.version)}-{disk}-{ref.schematic_id[:8]}"
    path = (split(source.url).path or source.file) if source is not None else ""
    stem = _EXTENSION.sub("", path.rstrip("/").rpartition("/")[2]) or "image"
    return stem if not os or os.lower() in stem.lower() else f"{os}-{stem}"
