"""Images of platforms: which image at the vendor is the one that is asked for, and why an import failed. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from homeport.capi.platform import ImageOrder
from homeport.infra.error import Exhausted, Misconfigured, Missing, ProviderError, Rejected, Taken, Unreachable

# Marks `key:value` or labels at the vendor.
UID_MARK = "homeport-image"
CONTENT_MARK = "homeport-content"
SYSTEM_MARK = "homeport-system"

_NOT_THERE = re.compile(r"\b(404|410|403|401)\b|not found|no such host|NXDOMAIN", re.IGNORECASE)
_CHECKSUM = re.compile(r"checksum", re.IGNORECASE)
_NO_ROOM = re.compile(r"no space|not enough|insufficient|disk is full|out of space|exceed", re.IGNORECASE)
_NO_TRUST = re.compile(r"x509|certificate|\bTLS\b|\bSSL\b", re.IGNORECASE)
_NO_ANSWER = re.compile(r"could not download|timeout|timed out|connection|\b50[0-4]\b|\bEOF\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image that the vendor has. Marks are '' on images that others made."""

    id: str
    name: str
    uid: str = ""
    content: str = ""
    url: str = ""
    sha256: str = ""
    sha512: str = ""
    failed: bool = False


def choose(images: Iterable[StoredImage], order: ImageOrder) -> StoredImage | None:
    """Its own image, otherwise one with the same content. None: it has to be made. Raises Taken.

    Images whose import failed are nobody's choice, except the order's own.
    """
    found = [*images]
    own = [each for each in found if each.uid == order.uid and each.content == order.content]
    same = [each for each in found if not each.failed and _same(each, order)]
    for each in sorted(own, key=lambda image: image.failed) + sorted(same, key=lambda image: image.id):
        return each
    for each in found:
        if each.name.lower() == order.name.lower() and each.uid != order.uid:
            raise Taken(
                f"an image with the name {each.name} and other content exists ({each.id}): set spec.displayName to "
                "another name, or delete that image"
            )
    return None


def _same(image: StoredImage, order: ImageOrder) -> bool:
    if image.content:
        return image.content == order.content
    if any(given and have and given != have for given, have in _sums(image, order)):
        return False
    if any(given and given == have for given, have in _sums(image, order)):
        return True
    return bool(order.url) and image.url == order.url


def _sums(image: StoredImage, order: ImageOrder) -> tuple[tuple[str, str], ...]:
    return (order.sha256, image.sha256), (order.sha512, image.sha512)


def leftovers(images: Iterable[StoredImage], order: ImageOrder) -> list[StoredImage]:
    """Those that were made for the order before it asked for other content, and never became usable."""
    return [each for each in images if each.uid == order.uid and each.failed and each.content != order.content]


def import_error(text: str, order: ImageOrder, where: str) -> ProviderError:
    """Why the vendor could not import an image, with the cure. `where`: the vendor and its address."""
    told = text.strip().rstrip(".") or "the vendor gave no reason"
    source = order.url or "the file"
    if _CHECKSUM.search(told):
        return Misconfigured(
            f"{where}: {told}. The file at {source} is not the expected one: correct the checksum in spec.source, or "
            "the URL"
        )
    if _NO_ROOM.search(told):
        return Exhausted(f"{where}: {told}. Free storage space there; the import is tried again automatically")
    if _NOT_THERE.search(told):
        return Missing(
            f"{where} could not download {source}: {told}. Correct the URL, version or schematic, or check that the "
            "file may be read without a login"
        )
    if _NO_TRUST.search(told):
        return Misconfigured(
            f"{where} could not download {source}: {told}. Give the server a certificate of a CA that is trusted "
            "there, or set spec.source to a URL of a server that has one"
        )
    if _NO_ANSWER.search(told):
        return Unreachable(
            f"{where} could not download {source}: {told}. Check that it can reach this address; it is tried again"
        )
    return Rejected(f"{where}: the import of {source} failed: {told}")
