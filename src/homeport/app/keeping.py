"""What is simulated, on disk: written now and then and at the end, read at the next start.

DIR/sim/admin.header       the credential of the admin endpoint
DIR/sim/proxy.port         where the proxy listens: kubeconfigs name it, so it stays
DIR/sim/prism/world.json   entities, tasks and timers of Prism Central, and the file that the world began with
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.sim.prism.world import WorldFile


class KeepingError(Exception):
    """What was kept can't be used; the text names the file and says what to do."""


class Kept(msgspec.Struct, frozen=True):
    world: WorldFile
    began: str = ""  # digest of the file that the world began with; '' is the built-in one


class Keeping:
    """The folder DIR/sim. Its files hold user data of machines, and that holds keys: they are private."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._world = folder / "prism" / "world.json"
        self._port = folder / "proxy.port"
        make_private_dir(folder)
        make_private_dir(folder / "prism")

    def read(self, source: Path | None, beginning: WorldFile) -> Kept:
        """The world that was kept, or `beginning`, which `source` holds. One that began otherwise is refused."""
        began = hashlib.sha256(source.read_bytes()).hexdigest() if source is not None else ""
        try:
            kept = msgspec.json.decode(self._world.read_bytes(), type=Kept)
        except FileNotFoundError:
            return Kept(beginning, began)
        except (OSError, msgspec.DecodeError) as error:
            raise KeepingError(f"{self._world}: can't be read ({error}); --sim-reset starts a new world") from error
        if source is not None and began != kept.began:
            raise KeepingError(
                f"--sim-world {source}: {self.folder} keeps a simulated world that began otherwise; "
                "leave the option out to go on with it, or start anew with --sim-reset"
            )
        return kept

    def write(self, kept: Kept) -> None:
        write_private(self._world, msgspec.json.encode(kept))

    def copy(self, target: Path) -> None:
        make_private_dir(target)
        shutil.copytree(self.folder, target, dirs_exist_ok=True)

    def forget(self) -> None:
        """The simulated is gone; certificates and the proxy's port stay, because others know them."""
        self._world.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "machine", ignore_errors=True)

    def proxy_port(self) -> int:
        """0: none was chosen yet."""
        try:
            text = self._port.read_text().strip()
        except OSError:
            return 0
        return int(text) if text.isdigit() and int(text) < 65536 else 0

    def keep_proxy_port(self, port: int) -> None:
        write_private(self._port, f"{port}\n".encode())
