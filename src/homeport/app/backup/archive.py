"""A backup as one file: the database, the keys without which its Secrets can't be read, the simulated site, and the
volumes of Pods that ran as processes.

The archive is a plain tar: `state.db`, `pki/*`, `sim/*` where simulators ran beside the plane, `volumes/*` where Pods
did, and a `homeport.json` that says what it is and has the digest of each file. It gives full access to the plane, so
its mode is 0600.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import write_private
from homeport.app.settings import simulated_before
from homeport.store import Restored, StoreDamaged, restore, verify

_FORMAT = 1
# Certificates and tokens that are issued again on the host that restores the backup.
_LEAF_FILES = ("server.pem", "admin.pem", "admin.header")
_PREPARED = ".tmp"  # etcd prepares the next 64 MiB of its log in such a file
_NEEDED_KEYS = ("ca.crt", "ca.key", "sa.key", "secrets.key")


class ArchiveError(Exception):
    """The file is not a Homeport backup, or it is damaged."""


class Manifest(msgspec.Struct, rename="camel"):
    format: int
    version: str
    created: float
    digests: dict[str, str] = {}  # SHA-256 by name; older archives have none


def write_archive(
    database: Path,
    pki: Path,
    target: Path,
    *,
    version: str,
    simulated: Path | None = None,
    volumes: Path | None = None,
) -> None:
    """Packs a copied database with the keys, and the folders of the simulators and of volumes. Appears under its name
    only when complete."""
    partial = target.with_name(target.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                digests = {}
                for name, path in _members(database, pki, simulated, volumes):
                    digests[name] = _add(tar, name, path)
                manifest = msgspec.json.encode(Manifest(_FORMAT, version, time.time(), digests))
                info = tarfile.TarInfo("homeport.json")
                info.size, info.mode = len(manifest), 0o600
                tar.addfile(info, io.BytesIO(manifest))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _members(database: Path, pki: Path, simulated: Path | None, volumes: Path | None) -> Iterator[tuple[str, Path]]:
    yield "state.db", database
    for path in sorted(pki.iterdir()):
        if path.is_file() and path.name not in _LEAF_FILES:
            yield f"pki/{path.name}", path
    for path in sorted(simulated.rglob("*")) if simulated is not None else ():
        if path.is_file() and path.name not in _LEAF_FILES:
            yield f"sim/{path.relative_to(simulated)}", path  # type: ignore[arg-type]
    for path in sorted(volumes.rglob("*")) if volumes is not None else ():
        if path.is_file() and path.suffix != _PREPARED:
            yield f"volumes/{path.relative_to(volumes)}", path  # type: ignore[arg-type]


def _add(tar: tarfile.TarFile, name: str, path: Path) -> str:
    """Adds a file and gives its digest. One open file for both: simulators replace theirs while they run."""
    with path.open("rb") as file:
        digest = _digest(file)
        file.seek(0)
        tar.addfile(_anonymous(tar.gettarinfo(arcname=name, fileobj=file)), file)
    return digest


def _digest(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def restore_archive(
    archive: Path, database: Path, pki: Path, simulated: Path | None = None, volumes: Path | None = None
) -> Restored:
    """Puts the archive's database and keys in place. What was there is kept aside; nothing changes on an error.

    Everything in the archive is checked before the first directory is made for it. A simulated site of the archive goes
    to the folder `simulated`, unless there is one: a site goes on when its plane is restored, as a real one does. So do
    volumes, in `volumes`: datastores that are younger than the archive know of workers that it does not know.
    """
    with tempfile.TemporaryDirectory(prefix="homeport-restore-") as folder:
        unpacked = Path(folder)
        _unpack(archive, unpacked)
        _check(archive, unpacked)
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # private from its first file on
        folders: list[tuple[Path, Path]] = []
        if simulated is not None and not simulated_before(simulated):
            folders += _stage(unpacked / "sim", simulated)
        if volumes is not None and not any(volumes.glob("*")):
            folders += _stage(unpacked / "volumes", volumes)
        restored = restore(unpacked / "state.db", database)
        _replace_keys(unpacked / "pki", pki)
        for staged, place in folders:
            if place.exists():  # of a plane that has simulated nothing yet
                place.rename(_aside(place))
            staged.rename(place)
        return restored


def _stage(found: Path, place: Path) -> list[tuple[Path, Path]]:
    """The content of a folder, complete, beside its place; none if the archive has none."""
    if not found.is_dir():
        return []
    staged = place.with_name(f"{place.name}.restoring")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(mode=0o700, parents=True)
    for path in sorted(found.rglob("*")):
        inside = staged / path.relative_to(found)
        if path.is_dir():
            inside.mkdir(mode=0o700)
        else:
            write_private(inside, path.read_bytes())
    return [(staged, place)]


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive, "r:") as tar:
            tar.extractall(folder, filter="data")
    except FileNotFoundError as error:
        raise ArchiveError(f"{archive}: no such file: check the path") from error
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:  # no fault of the archive: a full disk, missing permissions
            raise
        raise _damaged(archive, str(error).partition("\n")[0]) from error


def _check(archive: Path, folder: Path) -> None:
    try:
        manifest = msgspec.json.decode((folder / "homeport.json").read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise _damaged(archive, "homeport.json is missing") from error
    except msgspec.DecodeError as error:
        raise _damaged(archive, f"homeport.json: {error}") from error
    if manifest.format > _FORMAT:
        raise ArchiveError(f"{archive}: written by a newer Homeport ({manifest.version}): restore it with that version")
    for name in sorted({"state.db", *(f"pki/{each}" for each in _NEEDED_KEYS), *manifest.digests}):
        if not (folder / name).is_file():
            raise _damaged(archive, f"{name} is missing")
        with (folder / name).open("rb") as file:
            if name in manifest.digests and _digest(file) != manifest.digests[name]:
                raise _damaged(archive, f"{name} has changed since it was written")
    try:
        verify(folder / "state.db")
    except StoreDamaged as error:
        raise _damaged(archive, f"state.db: {error.problem}") from error


def _damaged(archive: Path, what: str) -> ArchiveError:
    return ArchiveError(f"{archive}: not a backup made by 'homeport backup', or damaged ({what}): use another backup")


def _replace_keys(new: Path, pki: Path) -> None:
    if pki.exists():
        pki.rename(_aside(pki))
    staged = pki.with_name("pki.restoring")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(mode=0o700, parents=True)
    for path in new.iterdir():
        write_private(staged / path.name, path.read_bytes())
    staged.rename(pki)


def _aside(path: Path) -> Path:
    """A free name to keep what was there under."""
    first = path.with_name(f"{path.name}.replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    aside, number = first, 1
    while aside.exists():
        number += 1
        aside = first.with_name(f"{first.name}-{number}")
    return aside
