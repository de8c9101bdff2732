"""A backup as one file: the database, the keys without which its Secrets can't be read, and the simulated site.

The archive is a plain tar: `state.db`, `pki/*`, `sim/*` where simulators ran beside the plane, and a `homeport.json`
that says what it is. Whoever has it has the plane, so it is written with mode 0600.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import time
from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import write_private
from homeport.app.settings import simulated_before
from homeport.store import Restored, restore

_FORMAT = 1
# Issued anew for whichever host it is restored on.
_LEAF_FILES = ("server.pem", "admin.pem", "admin.header")


class ArchiveError(Exception):
    """The file is no backup of ours, or a broken one."""


class Manifest(msgspec.Struct, rename="camel"):
    format: int
    version: str
    created: float


def write_archive(database: Path, pki: Path, target: Path, *, version: str, simulated: Path | None = None) -> None:
    """Packs a copied database with the keys, and the folder of the simulators. Appears under its name only when
    complete."""
    partial = target.with_name(target.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                manifest = msgspec.json.encode(Manifest(_FORMAT, version, time.time()))
                info = tarfile.TarInfo("homeport.json")
                info.size, info.mode = len(manifest), 0o600
                tar.addfile(info, io.BytesIO(manifest))
                tar.add(database, "state.db", filter=_anonymous)
                for path in sorted(pki.iterdir()):
                    if path.is_file() and path.name not in _LEAF_FILES:
                        tar.add(path, f"pki/{path.name}", filter=_anonymous)
                if simulated is not None:
                    _add_site(tar, simulated)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _add_site(tar: tarfile.TarFile, simulated: Path) -> None:
    for path in sorted(simulated.rglob("*")):
        if path.is_file() and path.name not in _LEAF_FILES:
            tar.add(path, f"sim/{path.relative_to(simulated)}", filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def restore_archive(archive: Path, database: Path, pki: Path, simulated: Path | None = None) -> Restored:
    """Puts the archive's database and keys in place. What was there is kept aside; nothing changes on an error.

    A simulated site of the archive goes to the folder `simulated`, unless there is one: a site goes on when its plane
    is restored, as a real one does.
    """
    with tempfile.TemporaryDirectory(prefix="homeport-restore-") as folder:
        unpacked = Path(folder)
        _unpack(archive, unpacked)
        staged = _stage_site(unpacked / "sim", simulated) if simulated is not None else None
        restored = restore(unpacked / "state.db", database)
        _replace_keys(unpacked / "pki", pki)
        if staged is not None and simulated is not None:
            if simulated.exists():  # of a plane that has simulated nothing yet
                simulated.rename(_aside(simulated))
            staged.rename(simulated)
        return restored


def _stage_site(found: Path, simulated: Path) -> Path | None:
    """Beside its place, complete; None if it is not needed."""
    if not found.is_dir() or simulated_before(simulated):
        return None
    staged = simulated.with_name(f"{simulated.name}.restoring")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(mode=0o700, parents=True)
    for path in sorted(found.rglob("*")):
        place = staged / path.relative_to(found)
        if path.is_dir():
            place.mkdir(mode=0o700)
        else:
            write_private(place, path.read_bytes())
    return staged


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except FileNotFoundError as error:
        raise ArchiveError(f"{archive}: there is no such file") from error
    except (tarfile.TarError, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno:  # no fault of the archive: a full disk, missing permissions
            raise
        why = str(error).partition("\n")[0]
        raise ArchiveError(f"{archive}: not a backup made by 'homeport backup', or a truncated one ({why})") from error
    try:
        manifest = msgspec.json.decode((folder / "homeport.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise ArchiveError(f"{archive}: not a backup made by 'homeport backup': homeport.json is missing") from error
    if manifest.format > _FORMAT:
        raise ArchiveError(f"{archive}: written by a newer Homeport ({manifest.version}): restore it with that one")
    for part in ("state.db", "pki"):
        if not (folder / part).exists():
            raise ArchiveError(f"{archive}: {part} is missing in it: the backup is incomplete, use another one")


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
