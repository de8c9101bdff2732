"""SSH connections: one for each look at a machine, closed when the look is over. Errors are ProviderErrors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from homeport.client.wire.reason import socket_reason
from homeport.infra.error import Denied, Misconfigured, Unreachable
from homeport.infra.machine.ssh import library, load_library
from homeport.providers.remote.target import Target

_CONNECT_SECONDS = 15.0
_COMMAND_SECONDS = 60.0
_SUDO = ("sudo:", "a password is required", "sudoers", "no tty present")


@dataclass(frozen=True, slots=True)
class Credentials:
    """`known_hosts`: of the user, in OpenSSH's format. `host_key`: the one that was recorded."""

    key: str = field(repr=False)
    secret: str  # namespace/name, for messages
    known_hosts: str = ""
    host_key: str = ""


class Connection:
    """Runs scripts on one machine, as root."""

    def __init__(self, connection: Any, target: Target) -> None:
        self._connection = connection
        self._target = target

    async def run(self, script: str, *, expect: tuple[int, ...] = (0,)) -> tuple[int, str]:
        """Exit code and output. Raises Unreachable if the machine does not answer in time."""
        command = "sudo -n sh -s" if self._target.use_sudo else "sh -s"
        ssh = library()
        try:
            async with asyncio.timeout(_COMMAND_SECONDS):
                result = await self._connection.run(command, input=script, check=False)
        except (OSError, ssh.Error, TimeoutError) as error:
            raise Unreachable(f"{self._target}: the SSH connection broke ({_short(error)}): trying again") from None
        code = -1 if result.exit_status is None else int(result.exit_status)
        if code in expect:
            return code, str(result.stdout or "")
        said = str(result.stderr or "").strip()
        if self._target.use_sudo and any(each in said for each in _SUDO):
            raise Denied(
                f"{self._target}: user {self._target.user} may not run sudo without a password: add the line "
                f"'{self._target.user} ALL=(ALL) NOPASSWD: ALL' to a file in /etc/sudoers.d of the machine"
            )
        last = said.splitlines()[-1][:200] if said else "no message"
        raise Unreachable(f"{self._target}: a command failed with exit code {code} ({last}): trying again")


@asynccontextmanager
async def connected(target: Target, credentials: Credentials) -> AsyncIterator[Connection]:
    ssh = await load_library()
    try:
        key = ssh.import_private_key(credentials.key)
    except (ssh.KeyImportError, ValueError):
        raise Misconfigured(
            f"{target}: Secret {credentials.secret}: key `value` is not an SSH private key without a passphrase"
        ) from None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            connection = await ssh.connect(
                target.address,
                target.port,
                username=target.user,
                client_keys=[key],
                known_hosts=_trusted(credentials, target),
                config=None,
                agent_path=None,
                gss_host=None,
                preferred_auth="publickey",
                keepalive_interval=15,
            )
    except (OSError, ssh.Error, TimeoutError) as error:
        raise _failure(error, target, credentials) from None
    try:
        yield Connection(connection, target)
    finally:
        connection.close()
        await connection.wait_closed()


async def host_key_of(target: Target) -> str:
    """The key that the machine shows to everybody, before anything is sent to it."""
    ssh = await load_library()
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            key = await ssh.get_server_host_key(target.address, target.port, config=None)
    except (OSError, ssh.Error, TimeoutError) as error:
        raise _failure(error, target, None) from None
    if key is None:
        raise Unreachable(f"{target}: the machine shows no SSH host key: check its sshd")
    return " ".join(key.export_public_key().decode("ascii").split()[:2])


def _trusted(credentials: Credentials, target: Target) -> Any:
    ssh = library()
    try:
        if credentials.known_hosts:
            return ssh.import_known_hosts(credentials.known_hosts)
        return ([ssh.import_public_key(credentials.host_key)], [], [])
    except (ssh.KeyImportError, ValueError):
        where = f"Secret {credentials.secret}: key `known_hosts`" if credentials.known_hosts else target.host_key_place
        raise Misconfigured(f"{target}: {where} is not valid: expected keys in the form of OpenSSH") from None


def _failure(error: Exception, target: Target, credentials: Credentials | None) -> Exception:
    ssh = library()
    if isinstance(error, ssh.HostKeyNotVerifiable) and credentials is not None:
        if credentials.known_hosts:
            cure = f"add its key to `known_hosts` of Secret {credentials.secret} if the machine is the right one"
            return Denied(f"{target}: the SSH host key of the machine is not among the known ones: {cure}")
        return Denied(
            f"{target}: the SSH host key of the machine is not the recorded one: another machine may answer in its "
            f"place. If the machine was reinstalled, write its new key into {target.host_key_place}"
        )
    if isinstance(error, ssh.PermissionDenied) and credentials is not None:
        return Denied(
            f"{target}: the machine refuses user {target.user} with the SSH key of Secret {credentials.secret}: "
            f"add the public key to ~{target.user}/.ssh/authorized_keys"
        )
    text = f"{target}: no SSH connection ({_short(error)})"
    return Unreachable(f"{text}: check that the machine is on and that port {target.port} is reachable")


def _short(error: Exception) -> str:
    return socket_reason(error) if isinstance(error, OSError) else (str(error)[:200] or "the connection failed")
