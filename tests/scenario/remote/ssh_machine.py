"""A small machine with a real SSH server on loopback: commands run in a real shell, below a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh

from homeport.providers.remote.script import FOLDER

BOOT_ID = "/proc/sys/kernel/random/boot_id"
# Programs that the machine has instead of the real ones. k0s notes how it was called.
_PROGRAMS = {
    "id": "#!/bin/sh\ncat ROOT/uid\n",
    "sudo": '#!/bin/sh\n[ -e ROOT/sudo ] || { echo "sudo: a password is required" >&2; exit 1; }\nshift\necho 0 > ROOT/uid\nexec "$@"\n',
    "k0s": '#!/bin/sh\necho "k0s $*" >> ROOT/calls\n[ ! -e "ROOT/fail-$1" ]\n',
}


class SshMachine:
    """`root`: what stands in for the root of its file system."""

    def __init__(self, root: Path, user_key: Any) -> None:
        self.root = root
        self.user_key = user_key
        self.port = 0
        self._server: Any = None
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        (root / "bin").mkdir(parents=True)
        for name, text in _PROGRAMS.items():
            path = root / "bin" / name
            path.write_text(text.replace("ROOT", str(root)))
            path.chmod(0o755)
        self.write("uid", "0")
        self.reboot()

    @property
    def folder(self) -> Path:
        """What Homeport keeps on the machine."""
        return self.root / FOLDER.lstrip("/")

    @property
    def calls(self) -> list[str]:
        """What k0s was called with."""
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def host_key(self) -> str:
        return " ".join(self._host_key.export_public_key().decode().split()[:2])

    @property
    def sessions(self) -> int:
        path = self.root / "sessions"
        return len(path.read_text()) if path.exists() else 0

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def reboot(self) -> None:
        """All that runs is gone; files stay."""
        for path in self.folder.glob("*.pid") if self.folder.exists() else ():
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.killpg(int(path.read_text().split()[0]), signal.SIGKILL)
        self.write("boot_id", str(uuid.uuid4()))

    def reinstall(self) -> None:
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")

    async def start(self) -> None:
        self._server = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_host_keys=[self._host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(self.user_key.export_public_key().decode()),
            process_factory=self._session,
            gss_host=None,
            encoding="utf-8",
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _session(self, process: Any) -> None:
        self.write("sessions", "." * (self.sessions + 1))
        script = await process.stdin.read()
        for path in (FOLDER, BOOT_ID):
            script = script.replace(path, str(self.root / ("boot_id" if path == BOOT_ID else path.lstrip("/"))))
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(self.root)}
        shell = await asyncio.create_subprocess_shell(
            process.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        output, errors = await shell.communicate(script.encode())
        process.stdout.write(output.decode())
        process.stderr.write(errors.decode())
        process.exit(shell.returncode or 0)


@asynccontextmanager
async def ssh_machines(
    folder: Path, count: int = 1, server: type[SshMachine] = SshMachine
) -> AsyncIterator[list[SshMachine]]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    made = [server(folder / f"machine-{number}", key) for number in range(count)]
    for each in made:
        await each.start()
    try:
        yield made
    finally:
        for each in made:
            each.reboot()
            await each.stop()
