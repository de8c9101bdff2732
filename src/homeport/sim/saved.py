"""The world of a simulator on disk: FOLDER/world.json, with the digest of the file that it was created from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.sim.simulator import SimulatorError

W = TypeVar("W", bound=msgspec.Struct)


class SavedWorld(msgspec.Struct, Generic[W], frozen=True):
    world: W
    began: str = ""  # digest of the file that the world was created from; '' is the built-in world


class WorldStore(Generic[W]):
    """The file holds user data of machines, and that holds keys: it is private."""

    def __init__(self, folder: Path, kind: type[W]) -> None:
        self._folder = folder
        self._file = folder / "world.json"
        self._kind = kind
        make_private_dir(folder)

    def read(self, source: Path | None, beginning: W) -> SavedWorld[W]:
        """The saved world, or `beginning`, which `source` holds. Raises SimulatorError if another file was used."""
        began = hashlib.sha256(source.read_bytes()).hexdigest() if source is not None else ""
        try:
            saved: SavedWorld[W] = msgspec.json.decode(self._file.read_bytes(), type=SavedWorld[self._kind])  # type: ignore[name-defined]
        except FileNotFoundError:
            return SavedWorld(beginning, began)
        except (OSError, msgspec.DecodeError) as error:
            raise SimulatorError(f"{self._file}: can't be read ({error}); --sim-reset starts a new world") from error
        if source is not None and began != saved.began:
            raise SimulatorError(
                f"--sim-world {source}: {self._folder} was created with a different --sim-world; "
                "leave the option out to continue with it, or start again with --sim-reset"
            )
        return saved

    def write(self, saved: SavedWorld[W]) -> None:
        write_private(self._file, msgspec.json.encode(saved))

    def discard(self) -> None:
        self._file.unlink(missing_ok=True)
