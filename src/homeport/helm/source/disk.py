"""Charts on disk, for sites without a network: a folder, an archive, or a folder of archives. And the cache."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

from homeport.helm.errors import SourceError
from homeport.helm.source.version import choose_version
from homeport.machinery.chart import ChartError, unpack, without_ignored

_MOST_FILES: Final = 20_000
_LARGEST_BYTES: Final = 100 << 20
_MOST_ARCHIVES: Final = 256
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


async def read_chart(path: Path, chart: str, version: str) -> tuple[dict[str, bytes], bytes | None, Path]:
    """The files of the chart, the archive that they come from if it is one, and its path."""
    return await asyncio.to_thread(_read, path, chart, version)


async def read_bytes(path: Path) -> bytes | None:
    """None if there is no such file."""

    def read() -> bytes | None:
        try:
            return _content(path)
        except FileNotFoundError:
            return None

    return await asyncio.to_thread(read)


def _read(path: Path, chart: str, version: str) -> tuple[dict[str, bytes], bytes | None, Path]:
    try:
        if path.is_dir() and not (path / "Chart.yaml").exists():
            path = _chosen(path, chart, version)
        if path.is_dir():
            return without_ignored(_folder(path)), None, path
        content = _content(path)
    except FileNotFoundError:
        raise SourceError(f"chart {path} does not exist") from None
    except OSError as error:
        raise SourceError(f"chart {path} can't be read: {error.strerror}") from None
    except ChartError as error:
        raise SourceError(f"chart {path}: {error}") from None
    return unpacked(content, str(path)), content, path


def _content(path: Path) -> bytes:
    """A device has no end, and a pipe may have no other side."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"chart {path} is neither a file nor a folder")
    if found.st_size > _LARGEST_BYTES:
        raise SourceError(f"chart {path} is larger than {_LARGEST_BYTES >> 20} MiB")
    return path.read_bytes()


def unpacked(content: bytes, where: str) -> dict[str, bytes]:
    try:
        return unpack(content)
    except ChartError as error:
        raise SourceError(f"{where}: {error}") from None


def _chosen(folder: Path, chart: str, version: str) -> Path:
    """Of archives named chart-1.2.3.tgz; without any, a folder named after the chart."""
    if not chart:
        raise SourceError(f"chart {folder}: Chart.yaml is missing; is this the chart's own folder?")
    if "/" in chart or chart in (".", ".."):
        raise SourceError(f"chart {chart!r}: in a folder of charts, a chart has a name, not a path")
    found = {each.name[len(chart) + 1 : -4]: each for each in folder.glob(f"{_escaped(chart)}-*.tgz")}
    if not found and (folder / chart / "Chart.yaml").exists():
        return folder / chart
    if not found:
        raise SourceError(f"folder {folder} holds no archive of chart {chart}: expected {chart}-VERSION.tgz")
    return found[choose_version(found, version, f"folder {folder} chart {chart}")]


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)


def _folder(root: Path) -> dict[str, bytes]:
    """Links are followed within the chart only: a chart can't bring in other files of the machine."""
    files: dict[str, bytes] = {}
    size = 0
    inside = root.resolve()
    for path in sorted(root.rglob("*")):
        if path.is_dir() and path.is_symlink():  # left out in silence, its templates would be missing
            raise SourceError(f"chart {root}: {path.relative_to(root)} is a link to a folder: copy the folder there")
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(inside):
            raise SourceError(f"chart {root}: {path.relative_to(root)} leads out of the chart's folder")
        size += path.stat().st_size
        if len(files) >= _MOST_FILES or size > _LARGEST_BYTES:
            raise SourceError(f"chart {root}: more than {_MOST_FILES} files or {_LARGEST_BYTES >> 20} MiB")
        files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


class Cache:
    """Archives by digest, readable by their owner alone. What does not fit its digest is removed.

    Of more than `_MOST_ARCHIVES` the oldest are removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, digest: str) -> bytes | None:
        if not _DIGEST.fullmatch(digest):
            return None
        content = await read_bytes(self._path(digest))
        if content is not None and digest_of(content) != digest:
            await asyncio.to_thread(self._path(digest).unlink, True)
            return None
        return content

    async def put(self, content: bytes) -> None:
        await asyncio.to_thread(self._put, content)

    def _put(self, content: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=self._folder)  # 0600 from the start
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, self._path(digest_of(content)))
            self._prune()
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _prune(self) -> None:
        kept = sorted(self._folder.glob("sha256-*.tgz"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_MOST_ARCHIVES]:
            path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest.replace(':', '-')}.tgz"
