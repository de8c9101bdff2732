"""Chart archives: a compressed tar with one folder at its top."""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import zlib
from typing import Final

from homeport.machinery.chart.error import ChartError

LARGEST_FILE: Final = 5 << 20
LARGEST_CHART: Final = 100 << 20
_MOST_FILES: Final = 20_000
_DRIVE: Final = re.compile(r"[A-Za-z]:/")
BOM: Final = b"\xef\xbb\xbf"


def unpack(archive: bytes, limit: int = LARGEST_CHART) -> dict[str, bytes]:
    """The files of a .tgz by their paths below its top folder. Unpacked, it has at most `limit` bytes.

    Raises ChartError.
    """
    files: dict[str, bytes] = {}
    try:
        with (
            gzip.GzipFile(fileobj=io.BytesIO(archive)) as plain,
            tarfile.open(fileobj=_Bounded(plain, limit), mode="r|") as tar,
        ):
            for member in tar:
                if not member.isfile():
                    continue
                path = _path(member.name)
                if member.size > LARGEST_FILE:
                    raise ChartError(f"chart archive: file {path!r} is larger than {LARGEST_FILE} bytes")
                content = tar.extractfile(member)
                files[path] = content.read().removeprefix(BOM) if content is not None else b""
                if len(files) > _MOST_FILES:
                    raise ChartError(f"chart archive: it has more than {_MOST_FILES} files")
    except ChartError:
        raise
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, OverflowError) as error:
        raise ChartError(f"chart archive: expected a gzip-compressed tar file (.tgz): {error}") from error
    if not files:
        raise ChartError("chart archive: it has no files")
    return files


class _Bounded(io.RawIOBase):
    """Stops reading before a small archive fills the memory."""

    def __init__(self, source: gzip.GzipFile, limit: int) -> None:
        self._source = source
        self._left = limit

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part = self._source.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._left -= len(part)
        if self._left < 0:
            raise ChartError(f"chart archive: unpacked, a chart is larger than {LARGEST_CHART} bytes")
        return part


def _path(name: str) -> str:
    """Below the top folder; archives made on Windows may have backslashes."""
    top, _, rest = (name.replace("\\", "/") if "\\" in name else name).partition("/")
    if top == "Chart.yaml" and not rest:
        raise ChartError("chart archive: Chart.yaml is not in a folder; make the archive with 'helm package'")
    if rest.startswith("/"):
        raise ChartError(f"chart archive: {name!r} is an absolute path")
    path = posixpath.normpath(rest) if rest else "."
    if path == "." or path.startswith("..") or _DRIVE.match(path):
        raise ChartError(f"chart archive: {name!r} is outside of the chart's folder")
    return path
