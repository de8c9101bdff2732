"""The saved state of all simulators: written now and then and at the end, read at the next start.

DIR/sim/admin.header   the credential of the admin endpoints
DIR/sim/proxy.port     where the proxy listens: kubeconfigs name it, so it stays
DIR/sim/machine/       machines and workload clusters
DIR/sim/hosted/        datastores of hosted control planes, and the objects that they hold
DIR/sim/web/           certificates of web sites that images are downloaded from
DIR/sim/NAME/          what the simulator NAME keeps
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from homeport.apiserver.auth.file import make_private_dir, write_private


class SimulatorFolder:
    """The folder DIR/sim. Its files hold user data of machines, and that holds keys: they are private."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = folder / "proxy.port"
        make_private_dir(folder)

    def copy(self, target: Path, without: Collection[str]) -> None:
        """All of it but these folders, whose owners copy them themselves."""
        make_private_dir(target)
        top = str(self.folder)
        shutil.copytree(self.folder, target, ignore=lambda at, names: without if at == top else (), dirs_exist_ok=True)

    def forget(self) -> None:
        """Discards machines and clusters. Certificates and the proxy's port stay, because clients know them."""
        for name in ("machine", "hosted"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def proxy_port(self) -> int:
        """0: none was chosen yet."""
        try:
            text = self._port.read_text().strip()
        except OSError:
            return 0
        return int(text) if text.isdigit() and int(text) < 65536 else 0

    def keep_proxy_port(self, port: int) -> None:
        write_private(self._port, f"{port}\n".encode())
