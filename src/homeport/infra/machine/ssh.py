"""SSH to machines: the library, and one command on a machine."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.client.dial import DialOptions
from homeport.client.wire.reason import socket_reason
from homeport.client.wire.stream import dial_socket
from homeport.infra.error import Denied, Unreachable

PORT = 22
_SECONDS = 15.0


def library() -> Any:
    """Imported on first use: loading it would slow every start of the plane, and not every plane uses SSH."""
    import asyncssh

    asyncssh.set_log_level("WARNING")
    return asyncssh


async def load_library() -> Any:
    """Not on the event loop, which everything else waits for meanwhile."""
    return await asyncio.to_thread(library)


async def run_command(dial: DialOptions, address: str, user: str, key: bytes, command: str) -> int:
    """Exit code of a command on a machine whose host key nobody knows: send it no secret. Its output is thrown away,
    because a hostile machine could send without end.

    Raises Unreachable, or Denied if the machine does not accept the key.
    """
    ssh = await load_library()
    try:
        async with asyncio.timeout(_SECONDS):
            sock = await dial_socket(dial, address, PORT)
            async with ssh.connect(
                address,
                PORT,
                sock=sock,
                username=user,
                client_keys=[ssh.import_private_key(key)],
                known_hosts=None,
                config=None,
                agent_path=None,
                gss_host=None,
                preferred_auth="publickey",
            ) as connection:
                result = await connection.run(command, check=False, stdout=ssh.DEVNULL, stderr=ssh.DEVNULL)
    except ssh.PermissionDenied:
        raise Denied(f"{address} does not accept the SSH key of user {user}") from None
    except (OSError, ssh.Error, ValueError, TimeoutError) as error:
        why = socket_reason(error) if isinstance(error, OSError) else (str(error)[:200] or "the connection failed")
        raise Unreachable(f"no SSH connection to {address} port {PORT} ({why})") from None
    return -1 if result.exit_status is None else int(result.exit_status)
