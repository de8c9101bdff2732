"""Files of Git repositories, through the program git: one commit, without history, working tree or hooks.

Credentials reach git through files that only this process may read: never through its arguments or an address.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from homeport.helm.errors import SourceError
from homeport.helm.source.version import choose_version

_SECONDS: Final = 60.0
_LARGEST_BYTES: Final = 50 << 20
_MOST_FILES: Final = 20_000
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@-]*")  # no option, no pattern, no second side of a refspec
_ASK: Final = """\
#!/bin/sh
case "$1" in Username*) cat "$HOMEPORT_GIT_FILES/username" ;; *) cat "$HOMEPORT_GIT_FILES/password" ;; esac
"""


@dataclass(frozen=True, slots=True)
class GitAddress:
    """A repository and what is meant of it: the first of commit, name, semver, tag and branch that is set."""

    url: str
    branch: str = ""
    tag: str = ""
    semver: str = ""
    name: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class GitAccount:
    """What a Secret has for a repository, by the keys that Flux reads."""

    username: str = ""
    password: str = ""
    token: str = ""
    identity: str = ""  # private key for SSH
    known_hosts: str = ""
    authority: str = ""  # CA certificates, PEM

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> GitAccount:
        return cls(
            data.get("username", ""),
            data.get("password", ""),
            data.get("bearerToken", ""),
            data.get("identity", ""),
            data.get("known_hosts", ""),
            data.get("ca.crt") or data.get("caFile", ""),
        )

    @property
    def secret(self) -> bool:
        return bool(self.username or self.password or self.token)


@dataclass(frozen=True, slots=True)
class GitTree:
    """The files of one commit, by path. Links and submodules are left out."""

    commit: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def below(self, path: str, where: str) -> dict[str, bytes]:
        """Of one folder, by their paths in it."""
        folder = "/".join(part for part in path.split("/") if part not in ("", "."))
        if ".." in folder.split("/"):
            raise SourceError(f"{where}: path {path!r} leads out of the repository")
        found = {
            name[len(folder) + 1 if folder else 0 :]: content
            for name, content in self.files.items()
            if not folder or name.startswith(f"{folder}/")
        }
        if not found:
            raise SourceError(f"{where}: commit {self.commit[:12]} has no folder {folder or '.'} with files")
        return found


def check_address(address: GitAddress, account: GitAccount) -> None:
    """Raises SourceError."""
    url, parts = address.url, urlsplit(address.url)
    if parts.scheme not in ("https", "ssh") and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise SourceError(f"{url}: only https:// and ssh:// are possible: the content decides what runs in clusters")
    if parts.password or (parts.username and parts.scheme != "ssh"):
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise SourceError(f"{shown}: the address has an account in it: put it into a Secret, and name it in secretRef")
    if parts.scheme == "ssh" and not (account.identity and account.known_hosts):
        raise SourceError(f"{url}: the Secret needs an SSH private key at `identity`, and `known_hosts`")
    for value in (address.branch, address.tag, address.name):
        if value and not _REF.fullmatch(value):
            raise SourceError(f"{url}: ref: {value!r} is not the name of a branch, a tag or a reference")
    if address.commit and not _COMMIT.fullmatch(address.commit):
        raise SourceError(f"{url}: ref.commit: {address.commit!r} is not a commit: expected 40 hexadecimal digits")


async def fetch_tree(address: GitAddress, account: GitAccount, seconds: float = _SECONDS) -> GitTree:
    """Raises SourceError, whose text has no secret in it."""
    check_address(address, account)
    program = shutil.which("git")
    if program is None:
        raise SourceError(
            f"{address.url}: the program git is not installed on the machine of the plane: install it, or use a "
            "HelmRepository, an OCIRepository, a ConfigMap or a Secret"
        )
    try:
        async with asyncio.timeout(seconds):
            async with _prepared(program, address.url, account) as git:
                return await _fetch(git, address)
    except TimeoutError:
        raise SourceError(f"{address.url}: git did not finish within {seconds:g} s") from None


class _Git:
    """The program, in an empty repository of its own."""

    def __init__(self, program: str, url: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self.url = url
        self._folder = folder
        self._environment = dict(environment)

    async def run(self, *arguments: str, given: bytes = b"") -> bytes:
        code, out, err = await self.attempt(*arguments, given=given)
        if code:
            said = " ".join(err.decode(errors="replace").split())
            raise SourceError(f"{self.url}: git {arguments[0]}: {said[-500:] or f'exit code {code}'}")
        return out

    async def attempt(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            cwd=self._folder,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await process.communicate(given)
        except BaseException:
            _end(process)
            await process.wait()
            raise
        return process.returncode or 0, out, err


def _end(process: asyncio.subprocess.Process) -> None:
    """With the programs that it started: ssh, and git's own ones for HTTP."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return


@asynccontextmanager
async def _prepared(program: str, url: str, account: GitAccount) -> AsyncIterator[_Git]:
    with tempfile.TemporaryDirectory(prefix="homeport-git-") as name:  # mode 0700
        folder = Path(name)
        await asyncio.to_thread(_write, folder, url, account)
        repository = folder / "repository"
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(folder / "config"),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": urlsplit(url).scheme,
            "GIT_ASKPASS": str(folder / "ask"),
            "HOMEPORT_GIT_FILES": str(folder),
            "GIT_SSH_COMMAND": (
                f"ssh -F /dev/null -i {folder}/identity -o IdentitiesOnly=yes -o BatchMode=yes "
                f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={folder}/known_hosts "
                "-o GlobalKnownHostsFile=/dev/null"
            ),
        }
        git = _Git(program, url, repository, environment)
        await git.run("init", "-q", "--bare", "--template=")  # without a template there are no hooks
        yield git


def _write(folder: Path, url: str, account: GitAccount) -> None:
    (folder / "repository").mkdir()
    files = {"username": account.username or "git", "password": account.password}
    files |= {"identity": account.identity.rstrip("\n") + "\n", "known_hosts": account.known_hosts}
    lines = ["[core]", "hooksPath = /dev/null", "[credential]", "helper =", "[fetch]", "fsckObjects = true"]
    lines += ["[gc]", "auto = 0", "[http]"]
    if account.secret:
        lines.append("followRedirects = false")  # an account is for the host that the address names
    if account.authority:
        files["authority"] = account.authority
        lines.append(f"sslCAInfo = {folder}/authority")
    if account.token:
        lines += [f'[http "{url}"]', f'extraHeader = "Authorization: Bearer {_quoted(account.token)}"']
    files["config"] = "\n".join(lines) + "\n"
    for name, content in files.items():
        _private(folder / name, content, 0o600)
    _private(folder / "ask", _ASK, 0o700)


def _private(path: Path, content: str, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(content)


def _quoted(text: str) -> str:
    if any(each in text for each in "\r\n\0"):
        raise SourceError("bearerToken of the Secret has a line break in it")
    return text.replace("\\", "\\\\").replace('"', '\\"')


async def _fetch(git: _Git, address: GitAddress) -> GitTree:
    if address.commit:
        await _fetch_commit(git, address)
        wanted = address.commit
    else:
        await git.run("fetch", "-q", "--depth=1", "--no-tags", "--", git.url, await _reference(git, address))
        wanted = "FETCH_HEAD"
    commit = (await git.run("rev-parse", "--verify", "-q", f"{wanted}^{{commit}}")).decode().strip()
    return GitTree(commit, await _files(git, commit))


async def _fetch_commit(git: _Git, address: GitAddress) -> None:
    """Not every server hands out a commit by its name: then it is looked for on the branch."""
    code, _, _ = await git.attempt("fetch", "-q", "--depth=1", "--no-tags", "--", git.url, address.commit)
    if code == 0:
        return
    branch = f"refs/heads/{address.branch}" if address.branch else "refs/heads/*"
    await git.run("fetch", "-q", "--no-tags", "--", git.url, f"+{branch}:refs/found/{address.branch or '*'}")
    code, _, _ = await git.attempt("cat-file", "-e", f"{address.commit}^{{commit}}")
    if code:
        where = f"branch {address.branch}" if address.branch else "any branch"
        raise SourceError(f"{git.url}: ref.commit: {address.commit} is not on {where}")


async def _reference(git: _Git, address: GitAddress) -> str:
    if address.name:
        return address.name
    if address.semver:
        listed = (await git.run("ls-remote", "--tags", "--refs", "--", git.url)).decode(errors="replace")
        tags = [line.partition("\trefs/tags/")[2] for line in listed.splitlines()]
        chosen = choose_version(
            [each for each in tags if _REF.fullmatch(each)], address.semver, f"{git.url}: ref.semver"
        )
        return f"refs/tags/{chosen}"
    if address.tag:
        return f"refs/tags/{address.tag}"
    return f"refs/heads/{address.branch}" if address.branch else "HEAD"


async def _files(git: _Git, commit: str) -> dict[str, bytes]:
    listed = await git.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    found: list[tuple[str, str, int]] = []
    for line in listed.decode(errors="surrogateescape").split("\0"):
        about, _, path = line.partition("\t")
        parts = about.split()
        if len(parts) == 4 and parts[0].startswith("100"):  # a file; links are 120000, submodules 160000
            found.append((path, parts[2], int(parts[3])))
    if len(found) > _MOST_FILES or sum(size for _, _, size in found) > _LARGEST_BYTES:
        raise SourceError(
            f"{git.url}: it is too large: at most {_MOST_FILES} files and {_LARGEST_BYTES >> 20} MiB are read"
        )
    names = "".join(f"{name}\n" for _, name, _ in found).encode()
    return _contents(await git.run("cat-file", "--batch", given=names), found) if found else {}


def _contents(batch: bytes, listed: Sequence[tuple[str, str, int]]) -> dict[str, bytes]:
    """`NAME blob SIZE`, a line break, the content and another line break, for each file."""
    made, at = {}, 0
    for path, _, size in listed:
        start = batch.index(b"\n", at) + 1
        made[path] = batch[start : start + size]
        at = start + size + 1
    return made


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
