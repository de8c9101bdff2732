"""Charts as archives. Pure."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """The same files make the same bytes, whenever they are packed."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(files[path]), 0o644
            tar.addfile(entry, io.BytesIO(files[path]))
    return packed.getvalue()
