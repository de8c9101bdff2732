"""The same small machine with OpenSSH's sshd, where that is installed."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
from pathlib import Path
from typing import Any

from homeport.providers.remote.script import FOLDER
from realkube import free_port
from scenario.remote.ssh_machine import BOOT_ID, SshMachine

_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {root}/ssh/host_key
AuthorizedKeysFile {root}/ssh/authorized_keys
AuthenticationMethods publickey
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
LogLevel VERBOSE
AllowUsers {user}
ForceCommand {root}/ssh/session
"""
# Paths of the machine lead below its folder.
_SESSION = """#!/bin/sh
printf . >> {root}/sessions
PATH={root}/bin:{path} HOME={root}
export PATH HOME
sed -e 's#{folder}#{root}{folder}#g' -e 's#{boot}#{root}/boot_id#g' | sh -c "$SSH_ORIGINAL_COMMAND"
"""


def find_sshd() -> str:
    """The path of sshd; '' if it is not installed, or can't let root in because this is not root."""
    if os.geteuid() != 0:
        return ""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd needs it
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


class OpenSshMachine(SshMachine):
    def __init__(self, root: Path, user_key: Any) -> None:
        super().__init__(root, user_key)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.port = self.port or free_port()
        self._write_files()
        command = (find_sshd(), "-D", "-e", "-f", str(self.root / "ssh" / "sshd_config"))
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        assert self._process.stderr is not None
        said = b""
        while b"listening on" not in said:
            line = await self._process.stderr.readline()
            assert line, f"sshd ended: {said.decode()}"
            said += line
        self._reading = asyncio.create_task(self._process.stderr.read())

    def _write_files(self) -> None:
        known = {
            "port": self.port,
            "root": self.root,
            "user": getpass.getuser(),
            "path": os.environ["PATH"],
            "folder": FOLDER,
            "boot": BOOT_ID,
        }
        self.write("ssh/sshd_config", _CONFIG.format(**known))
        self.write("ssh/session", _SESSION.format(**known))
        (self.root / "ssh" / "session").chmod(0o755)
        self.write("ssh/authorized_keys", self.user_key.export_public_key().decode())
        path = self.root / "ssh" / "host_key"
        path.touch(mode=0o600)
        path.write_bytes(self._host_key.export_private_key())

    async def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()
        await self._reading
