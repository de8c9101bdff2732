"""User data as machines get it: what the vendor knows about the machine is filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence

_JINJA_HEADER = re.compile(rb"\A##\s*template:\s*jinja\s*\n")
_HOSTNAME = re.compile(rb"\{\{\s*ds\.meta_data\.(?:hostname|local_hostname)\s*\}\}")
_INSTANCE_ID = re.compile(rb"\{\{\s*(?:ds\.meta_data|v1)\.instance_id\s*\}\}")
_KEYS = re.compile(r"^ssh_authorized_keys:[ \t]*\n(?P<indent>[ \t]*)-", re.MULTILINE)


def render_user_data(data: bytes, name: str, instance_id: str = "") -> bytes:
    """Some platforms refuse user data that does not begin with #cloud-config: a template that only asks for the host's
    name, or for its `instance_id` where that is known here, is filled in and stops being one."""
    if not _JINJA_HEADER.match(data):
        return data
    filled = _HOSTNAME.sub(name.encode(), data)
    if instance_id:
        filled = _INSTANCE_ID.sub(instance_id.encode(), filled)
    rest = _JINJA_HEADER.sub(b"", filled, count=1)
    return data if b"{{" in rest or b"{%" in rest else rest


def is_cloud_config(data: bytes) -> bool:
    return b"#cloud-config" in data[:200]


def with_keys(data: bytes, keys: Sequence[str]) -> bytes:
    """Cloud-config whose default user may be logged in to with these public keys; other formats stay as they are.

    Inserted as text: parsing and rewriting a template would change its expressions.
    """
    if not keys or not is_cloud_config(data):
        return data
    text = data.decode("utf-8", errors="replace")
    found = _KEYS.search(text)
    indent = found.group("indent") if found else ""
    lines = "".join(f"{indent}- {key.strip()}\n" for key in keys)
    if found is not None:
        start = found.start("indent")
        return (text[:start] + lines + text[start:]).encode()
    return f"{text.rstrip(chr(10))}\nssh_authorized_keys:\n{lines}".encode()
