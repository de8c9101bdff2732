"""Exec plugins of kubeconfig files: a program prints an ExecCredential with a token, a certificate, or both."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from homeport.client.credential import Certificate
from homeport.client.errors import Unauthorized

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
TIMEOUT_SECONDS = 60.0
# A token that ends while a request is on its way would be refused; ask a little earlier.
LEAD = datetime.timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Command:
    """What a kubeconfig says about the program. `where` names the user entry for messages."""

    where: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)  # given to the program if it asked for it


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True, slots=True)
class _Answer:
    authorization: str = field(repr=False)
    cert: Certificate | None
    expires: datetime.datetime | None


class ExecPlugin:
    """Runs the program when there is no credential yet, when it has expired, and when the server refused it."""

    def __init__(
        self,
        command: Command,
        cert: Certificate | None = None,
        *,
        now: Callable[[], datetime.datetime] = _utc_now,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.command = command
        self._cert = cert
        self._now = now
        self._timeout = timeout
        self._answer: _Answer | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ExecPlugin({self.command.command!r})"

    async def header(self) -> str:
        answer = self._fresh()
        if answer is None:
            async with self._lock:  # many requests at once run the program once
                answer = self._fresh()
                if answer is None:
                    answer = self._answer = await self._run()
        return answer.authorization

    def certificate(self) -> Certificate | None:
        return (self._answer.cert if self._answer else None) or self._cert

    def renew(self) -> bool:
        self._answer = None
        return True

    def _fresh(self) -> _Answer | None:
        answer = self._answer
        if answer is not None and answer.expires is not None and self._now() >= answer.expires - LEAD:
            return None
        return answer

    async def _run(self) -> _Answer:
        command = self.command
        info: dict[str, Any] = {"interactive": False}
        if command.cluster is not None:
            info["cluster"] = command.cluster
        ask = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": info}
        environment = {**os.environ, **dict(command.env), "KUBERNETES_EXEC_INFO": orjson.dumps(ask).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                command.command,
                *command.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            hint = f"; {command.install_hint.strip()}" if command.install_hint else ""
            raise Unauthorized(f"{command.where}: can't run {command.command!r}: {error.strerror}{hint}") from None
        return self._parse(await self._output(process))

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        command = self.command
        try:
            out, err = await asyncio.wait_for(process.communicate(), self._timeout)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise Unauthorized(
                    f"{command.where}: {command.command!r} gave no credential within {self._timeout:g} s"
                ) from None
            raise
        if process.returncode:
            said = err.decode(errors="replace").strip()[-400:]
            raise Unauthorized(
                f"{command.where}: {command.command!r} failed with exit code {process.returncode}"
                + (f": {said}" if said else "")
            )
        return out

    def _parse(self, out: bytes) -> _Answer:
        where = f"{self.command.where}: {self.command.command!r}"
        try:
            answer = orjson.loads(out)
        except orjson.JSONDecodeError:
            raise Unauthorized(f"{where} printed no JSON (an ExecCredential is expected)") from None
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
            raise Unauthorized(f"{where} printed no ExecCredential")
        if answer.get("apiVersion") != self.command.api_version:
            raise Unauthorized(
                f"{where} answered in apiVersion {answer.get('apiVersion')!r}, "
                f"the kubeconfig asks for {self.command.api_version!r}"
            )
        status = answer.get("status")
        if not isinstance(status, dict):
            raise Unauthorized(f"{where} printed an ExecCredential without status")
        return _Answer(*_secrets(where, status), _expiry(where, status.get("expirationTimestamp")))


def _secrets(where: str, status: Mapping[str, Any]) -> tuple[str, Certificate | None]:
    token = status.get("token") or ""
    cert, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
    if not all(isinstance(text, str) for text in (token, cert, key)):
        raise Unauthorized(f"{where}: status.token, clientCertificateData and clientKeyData must be strings")
    if bool(cert) != bool(key):
        raise Unauthorized(f"{where}: status.clientCertificateData and status.clientKeyData come only together")
    if not token and not cert:
        raise Unauthorized(f"{where}: status has neither a token nor a client certificate")
    return (f"Bearer {token}" if token else ""), (Certificate(cert.encode(), key.encode()) if cert else None)


def _expiry(where: str, text: Any) -> datetime.datetime | None:
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise Unauthorized(f"{where}: status.expirationTimestamp is not an RFC 3339 time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
