"""Port 22 of a simulated machine: a real SSH server, with the keys on the machine's disk and its simulated programs."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from homeport.runtime.clock import Clock
from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.shell.program import TOOLS
from homeport.sim.machine.shell.shell import Ran, Shell

PORT = 22
Spawn = Callable[[Coroutine[Any, Any, None], str], object]


def keys_path(user: str) -> str:
    return f"{_home(user)}/.ssh/authorized_keys"


class Sshd:
    """Commands run with the tools that every image has. `spawn` runs connections, and ends them with the machine."""

    def __init__(self, ident: str, disk: Disk, clock: Clock, spawn: Spawn) -> None:
        self._ident = ident
        self._disk = disk
        self._clock = clock
        self._spawn = spawn

    async def accept(self, sock: socket.socket, source: str) -> None:
        del source
        ssh = await asyncio.to_thread(_library)
        self._spawn(self._serve(ssh, sock), f"sshd of {self._ident}")

    async def _serve(self, ssh: Any, sock: socket.socket) -> None:
        try:
            connection = await ssh.run_server(
                sock,
                config=None,
                server_factory=lambda: _server(ssh, self._disk),
                server_host_keys=[ssh.import_private_key(_host_key(self._ident))],
                process_factory=self._session,
                gss_host=None,
                encoding="utf-8",
                login_timeout=30,
            )
        except (OSError, ssh.Error):
            sock.close()
            return
        try:
            await connection.wait_closed()
        finally:
            connection.abort()

    async def _session(self, process: Any) -> None:
        user, console = str(process.get_extra_info("username")), Console(self._clock)
        ran = Ran(1)
        if process.command:
            environment = {"HOME": _home(user), "USER": user, "PATH": "/usr/bin"}
            ran = await Shell(self._disk, console, TOOLS, environment).run(process.command)
        else:
            console.say("this simulated machine has no interactive shell: give a command")
        process.stdout.write(ran.out)
        process.stderr.write("".join(f"{line}\n" for line in console.lines()))
        process.exit(ran.code)


def _home(user: str) -> str:
    return "/root" if user == "root" else f"/home/{user}"


def _library() -> Any:
    """Loaded with the first connection: it takes a while, and most simulations have none."""
    import asyncssh

    asyncssh.set_log_level("ERROR")
    return asyncssh


def _server(ssh: Any, disk: Disk) -> Any:
    class Server(ssh.SSHServer):  # type: ignore[misc]
        def connection_made(self, conn: Any) -> None:
            self._conn = conn

        def begin_auth(self, username: str) -> bool:
            text = disk.text(keys_path(username)) or ""
            try:
                self._conn.set_authorized_keys(ssh.import_authorized_keys(text))
            except ValueError:  # no key that it can read
                self._conn.set_authorized_keys(ssh.import_authorized_keys(""))
            return True

    return Server()


def _host_key(ident: str) -> bytes:
    """The same after every restart, as on a real disk."""
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"ssh host key of {ident}".encode()).digest())
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
