"""Git repositories over SSH: with a server of asyncssh, and with OpenSSH's where that is installed."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from homeport.helm.errors import SourceError
from homeport.helm.source.git import GitAccount, GitAddress, fetch_tree
from realkube import free_port
from scenario.remote.openssh_machine import find_sshd
from unit.platforms.k0rdent.git_server import GitServer

_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {root}/host_key
AuthorizedKeysFile {root}/authorized_keys
AuthenticationMethods publickey
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
"""

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="git needs the program ssh")


@dataclass
class SshServer:
    repository: GitServer
    port: int
    user_key: Any
    host_key: Any

    @property
    def url(self) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.repository.root}/demo"

    def account(self, **other: str) -> GitAccount:
        public = " ".join(self.host_key.export_public_key().decode().split()[:2])
        data = {
            "identity": self.user_key.export_private_key().decode(),
            "known_hosts": f"[127.0.0.1]:{self.port} {public}\n",
        }
        return GitAccount.parse({**data, **other})


async def _pump(source: Any, target: Any) -> None:
    while data := await source.read(1 << 16):
        target.write(data)
        await target.drain()


@asynccontextmanager
async def _asyncssh(root: Path, port: int, user_key: Any, host_key: Any) -> AsyncIterator[None]:
    async def session(process: Any) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        pipes: dict[str, Any] = {
            "stdin": asyncio.subprocess.PIPE,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
        }
        shell = await asyncio.create_subprocess_shell(process.command, env=environment, **pipes)
        assert shell.stdin is not None
        given = asyncio.create_task(_pump(process.stdin, shell.stdin))
        await asyncio.gather(_pump(shell.stdout, process.stdout), _pump(shell.stderr, process.stderr))
        given.cancel()
        await asyncio.wait([given])
        shell.stdin.close()
        process.exit(await shell.wait())

    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(user_key.export_public_key().decode()),
        process_factory=session,
        gss_host=None,
        encoding=None,
    )
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def _openssh(root: Path, port: int, user_key: Any, host_key: Any) -> AsyncIterator[None]:
    (root / "sshd_config").write_text(_CONFIG.format(port=port, root=root))
    (root / "authorized_keys").write_bytes(user_key.export_public_key())
    (root / "host_key").touch(mode=0o600)
    (root / "host_key").write_bytes(host_key.export_private_key())
    command = (find_sshd(), "-D", "-e", "-f", str(root / "sshd_config"))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    said = b""
    while b"listening on" not in said:
        line = await process.stderr.readline()
        assert line, f"sshd ended: {said.decode()}"
        said += line
    reading = asyncio.create_task(process.stderr.read())
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
        await reading


SERVERS = [
    pytest.param(_asyncssh, id="asyncssh"),
    pytest.param(
        _openssh, id="openssh", marks=pytest.mark.skipif(not find_sshd(), reason="sshd is not installed, or not root")
    ),
]


@asynccontextmanager
async def served(start: Any, root: Path) -> AsyncIterator[SshServer]:
    repository = GitServer(root)
    (root / "demo").mkdir()
    repository.git("init", "-q", "-b", "main")
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(2)]
    port = free_port()
    async with start(root, port, *keys):
        yield SshServer(repository, port, *keys)


@pytest.mark.parametrize("start", SERVERS)
async def test_a_repository_is_read_with_the_key_of_its_secret(start: Any, tmp_path: Path) -> None:
    async with served(start, tmp_path) as server:
        first = server.repository.commit(note="1", deep__er="x")
        server.repository.git("tag", "v1.0.0")
        second = server.repository.commit(note="2")
        tree = await fetch_tree(GitAddress(server.url), server.account())
        assert (tree.commit, tree.files) == (second, {"note": b"2", "deep/er": b"x"})
        for address in (GitAddress(server.url, semver="1.x"), GitAddress(server.url, commit=first)):
            assert (await fetch_tree(address, server.account())).commit == first


@pytest.mark.parametrize("start", SERVERS)
async def test_another_host_key_and_another_user_key_are_refused(start: Any, tmp_path: Path) -> None:
    async with served(start, tmp_path) as server:
        server.repository.commit(note="1")
        other = asyncssh.generate_private_key("ssh-ed25519")
        public = " ".join(other.export_public_key().decode().split()[:2])
        hosts = f"[127.0.0.1]:{server.port} {public}\n"
        with pytest.raises(SourceError, match=r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed"):
            await fetch_tree(GitAddress(server.url), server.account(known_hosts=hosts))
        with pytest.raises(SourceError, match="Host key verification failed"):
            await fetch_tree(GitAddress(server.url), server.account(known_hosts="# nobody\n"))
        with pytest.raises(SourceError, match="Permission denied"):
            await fetch_tree(GitAddress(server.url), server.account(identity=other.export_private_key().decode()))
        with pytest.raises(SourceError, match="the Secret needs an SSH private key at `identity`, and `known_hosts`"):
            await fetch_tree(GitAddress(server.url), server.account(known_hosts=""))
