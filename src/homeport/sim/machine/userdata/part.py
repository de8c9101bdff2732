"""User data as a machine finds it, taken apart: gzip, base64, MIME parts, templates, and what kind of data each is."""

from __future__ import annotations

import base64
import binascii
import email
import email.message
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from homeport.sim.machine import yaml
from homeport.sim.machine.userdata.jinja import TemplateError, render
from homeport.sim.machine.userdata.merge import merged

Json = dict[str, Any]
Kind = Literal["none", "cloud-init", "ignition", "talos", "unknown"]

_GZIP = b"\x1f\x8b"
_EXPANDED_BYTES = 64 * 1024 * 1024
_JINJA = "## template: jinja"
_BY_HEADER = (
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config", "text/cloud-config"),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#include", "text/x-include-url"),
    ("#part-handler", "text/part-handler"),
    ("#!", "text/x-shellscript"),
)
_PLAIN = ("text/plain", "text/x-not-multipart", "application/octet-stream", "application/x-gzip", "application/gzip")


@dataclass(frozen=True, slots=True)
class Part:
    content_type: str
    body: str
    merge: str = ""  # header X-Merge-Type


@dataclass(slots=True)
class UserData:
    """The parsed user data of a machine. `warnings` are printed on its console for parts that it can't use."""

    kind: Kind
    config: Json = field(default_factory=dict)  # cloud-config of all parts, or the Ignition or Talos document
    scripts: list[str] = field(default_factory=list)
    boothooks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse_user_data(raw: bytes, instance: Mapping[str, Any] | None = None) -> UserData:
    """Reads user data as cloud-init, Ignition or Talos would. `instance` is what templates may refer to."""
    data = unpacked(raw)
    if not data.strip():
        return UserData("none")
    text = data.decode("utf-8", "replace")
    other = _other_format(text)
    if other is not None:
        return other
    found = UserData("cloud-init")
    known = False
    for part in _parts(text, found.warnings):
        known = _take(found, part, instance or {}) or known
    if not known:
        found.kind = "unknown"
    return found


def unpacked(raw: bytes) -> bytes:
    """Without gzip and base64, however often they were put around it."""
    for _ in range(4):
        if raw.startswith(_GZIP):
            raw = gunzip(raw)
            continue
        decoded = _base64(raw)
        if decoded is None:
            return raw
        raw = decoded
    return raw


def gunzip(raw: bytes) -> bytes:
    """Raises ValueError for what is damaged, or too large for any machine."""
    expander = zlib.decompressobj(wbits=31)
    try:
        data = expander.decompress(raw, _EXPANDED_BYTES)
    except zlib.error as broken:
        raise ValueError(f"gzip data is damaged ({broken})") from broken
    if not expander.eof:
        raise ValueError("gzip data is cut short or larger than 64 MiB")
    return data


def _base64(raw: bytes) -> bytes | None:
    """None for anything but base64. Text that a machine could use has characters that base64 has not."""
    joined = b"".join(raw.split())
    if not joined or len(joined) % 4:
        return None
    try:
        return base64.b64decode(joined, validate=True)
    except binascii.Error:
        return None


# -- what is not for cloud-init ------------------------------------------------------------------------------------


def _other_format(text: str) -> UserData | None:
    if text.lstrip().startswith("{"):
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        if isinstance(document, dict) and isinstance(document.get("ignition"), dict):
            return UserData("ignition", document)
        return None
    if text.startswith(("#", "Content-Type:", "MIME-Version:", "From ")) and not text.startswith("# "):
        return None
    return _talos(text)


def _talos(text: str) -> UserData | None:
    """A machine config: `machine` and `cluster` beside `version: v1alpha1`; other documents may follow it."""
    if "machine:" not in text:
        return None
    try:
        documents = [each for each in yaml.load_all(text) if isinstance(each, dict)]
    except yaml.YAMLError:
        return None
    for document in documents:
        if document.get("version") == "v1alpha1" and isinstance(document.get("machine"), dict):
            return UserData("talos", document)
    return None


# -- parts ---------------------------------------------------------------------------------------------------------


def _parts(text: str, warnings: list[str]) -> Iterator[Part]:
    head = text.lstrip()
    if not head[:64].lower().startswith(("content-type: multipart", "mime-version:", "from ")):
        yield Part(_kind_of(text, "text/plain"), text)
        return
    message = email.message_from_string(head)
    for piece in message.walk():
        if piece.is_multipart():
            continue
        yield from _opened(piece, warnings)


def _opened(piece: email.message.Message, warnings: list[str]) -> Iterator[Part]:
    payload = piece.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else str(piece.get_payload()).encode()
    name = piece.get_filename() or "part"
    try:
        if raw.startswith(_GZIP):
            raw = gunzip(raw)
        body = raw.decode("utf-8")
    except ValueError as broken:
        warnings.append(f"Failed to decode {name}: {broken}")
        return
    yield Part(
        _kind_of(body, piece.get_content_type()), body, str(piece.get("X-Merge-Type") or piece.get("Merge-Type") or "")
    )


def _kind_of(body: str, declared: str) -> str:
    """A header line says more than a general content type does."""
    start = body.lstrip()
    if start.lower().startswith(_JINJA):
        return "text/jinja2"
    if declared not in _PLAIN:
        return declared
    for header, content_type in _BY_HEADER:
        if start.startswith(header):
            return content_type
    return declared


def _take(found: UserData, part: Part, instance: Mapping[str, Any]) -> bool:
    """Puts a part where it belongs; False if it is nothing that cloud-init knows."""
    body, content_type = part.body, part.content_type
    if content_type == "text/jinja2":
        body = body.lstrip().partition("\n")[2]
        try:
            body = render(body, instance)
        except TemplateError as broken:
            found.warnings.append(f"Unable to render jinja template of user data: {broken}")
            return True
        content_type = _kind_of(body, "text/plain")
    if content_type == "text/cloud-config":
        _add_config(found, body, part.merge)
    elif content_type == "text/cloud-config-archive":
        return _take_archive(found, body, instance)
    elif content_type == "text/x-shellscript":
        found.scripts.append(body)
    elif content_type == "text/cloud-boothook":
        found.boothooks.append(body.lstrip().partition("\n")[2])
    elif content_type in ("text/x-include-url", "text/part-handler"):
        found.warnings.append(f"{content_type} is not carried out here")
    else:
        shown = body.lstrip()[:40].splitlines()
        found.warnings.append(f"Unhandled non-multipart ({content_type}) userdata: '{shown[0] if shown else ''}...'")
        return False
    return True


def _take_archive(found: UserData, body: str, instance: Mapping[str, Any]) -> bool:
    entries = _load(body, found.warnings)
    for entry in entries if isinstance(entries, list) else ():
        content = entry if isinstance(entry, str) else str(entry.get("content", ""))
        declared = "text/plain" if isinstance(entry, str) else str(entry.get("type", "text/plain"))
        _take(found, Part(_kind_of(content, declared), content), instance)
    return True


def _add_config(found: UserData, body: str, merge: str) -> None:
    config = _load(body, found.warnings)
    if config is None:
        return
    if not isinstance(config, dict):
        found.warnings.append(f"Failed at merging in cloud config part: not a mapping but {type(config).__name__}")
        return
    how = config.pop("merge_how", config.pop("merge_type", merge))
    found.config = merged(found.config, config, how)


def _load(body: str, warnings: list[str]) -> Any:
    try:
        return yaml.load(body)
    except yaml.YAMLError as broken:
        text = " ".join(str(broken).split())
        warnings.append(f"Failed loading yaml blob. Invalid format: {text}")
        return None
