"""Probes of a container: a port that opens, a page that answers, a command that ends well."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from homeport.builtin.workload.page import Page
from homeport.runtime.workload.runner import Running

_ROUNDS = 20  # of the event loop, at most, between a question and its answer


@functools.cache
def _unverified() -> ssl.SSLContext:
    """One for all, and without the system's authorities: reading them takes longer than all the rest of a probe."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as kubelets do
    return context


class Probe:
    """Probes repeatedly. Calls `on_change(good)` with the first verdict and at every change."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        container: Mapping[str, Any],
        address: str,
        running: Running,
        on_change: Callable[[bool], None],
    ) -> None:
        self._spec = spec
        self._container = container
        self._address = address
        self._running = running
        self._on_change = on_change
        self._late = 0.0
        self._page: Page | None = None

    async def run(self, *, once: bool = False) -> None:
        """`once`: until the first good verdict, as startup probes."""
        try:
            await self._run(once=once)
        finally:
            if self._page is not None:
                self._page.close()

    async def _run(self, *, once: bool) -> None:
        await asyncio.sleep(float(self._spec.get("initialDelaySeconds") or 0))
        verdict: bool | None = None
        row = 0  # answers of one kind in a row
        last: bool | None = None
        while True:
            good = await self.ask()
            row = row + 1 if good == last else 1
            last = good
            needed = self._spec.get("successThreshold", 1) if good else self._spec.get("failureThreshold", 3)
            if good != verdict and row >= int(needed):
                verdict = good
                self._on_change(good)
            if once and verdict:
                return
            await self._rest(float(self._spec.get("periodSeconds") or 10))

    async def _rest(self, seconds: float) -> None:
        """Also learns how late this process is: a busy one must not take its own delay for the container's."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.sleep(seconds)
        self._late = max(loop.time() - started - seconds, 0.0)

    async def ask(self) -> bool:
        try:
            async with asyncio.timeout(float(self._spec.get("timeoutSeconds") or 1) + _ROUNDS * self._late):
                return await self._ask()
        except (OSError, TimeoutError, ssl.SSLError, ValueError, EOFError):
            return False

    async def _ask(self) -> bool:
        if command := self._spec.get("exec"):
            return await self._running.probe(command.get("command") or [])
        if target := self._spec.get("httpGet"):
            return await self._get(target)
        target = self._spec.get("tcpSocket") or self._spec.get("grpc") or {}
        _, writer = await asyncio.open_connection(target.get("host") or self._address, self._port(target))
        writer.close()
        return True

    async def _get(self, target: Mapping[str, Any]) -> bool:
        host, port = target.get("host") or self._address, self._port(target)
        if self._page is None:
            self._page = Page(host, port, _unverified() if target.get("scheme") == "HTTPS" else None)
        headers = {"Host": f"{host}:{port}", "User-Agent": "homeport-probe", "Accept": "*/*"}
        headers |= {h["name"]: h["value"] for h in target.get("httpHeaders") or ()}
        return 200 <= await self._page.get(target.get("path") or "/", headers) < 400

    def _port(self, target: Mapping[str, Any]) -> int:
        port = target.get("port")
        for named in self._container.get("ports") or ():
            if named.get("name") == port:
                return int(named["containerPort"])
        return int(port or 0)
