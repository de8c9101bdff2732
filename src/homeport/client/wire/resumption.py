"""TLS sessions that are resumed: a second connection to the same server costs less than half of the first."""

from __future__ import annotations

import ssl
import time
from typing import Any

from homeport.client.wire.small_read import SmallReads


class _Connection(SmallReads):
    """Servers send what a session is resumed with after the handshake, so that it comes with the first read."""

    _noted = False

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        found = super().read(len, buffer)
        if not self._noted:
            self._noted = True
            context = self.context
            if isinstance(context, ResumingContext):
                context.note(self)
        return found


class ResumingContext(ssl.SSLContext):
    """For clients. Sessions are kept by the name that the certificate is valid for.

    Whoever drops a context calls `forget_sessions`: a session refers to its context, and both together would stay until
    the garbage collector looks at old objects, which it hardly ever does. They take 20 KiB, most of it in OpenSSL.
    """

    sslobject_class = _Connection
    # So long after the certificate of a server was verified, it is verified again: sessions may be good for days.
    verified_seconds = 300.0
    _sessions: dict[str, tuple[ssl.SSLSession, float]]

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        if session is None and isinstance(server_hostname, str):
            session = self._known(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def forget_sessions(self) -> None:
        self.__dict__.get("_sessions", {}).clear()

    def _known(self, server: str) -> ssl.SSLSession | None:
        session, verified = self.__dict__.get("_sessions", {}).get(server, (None, 0.0))
        return session if time.monotonic() - verified < self.verified_seconds else None

    def note(self, connection: ssl.SSLObject) -> None:
        server, known = connection.server_hostname, self.__dict__.setdefault("_sessions", {})
        if server is None or (connection.session_reused and server in known):
            return  # the known one works, and copying another takes as long as a third of the handshake
        session = connection.session
        if session is not None and session.has_ticket:
            known[server] = session, time.monotonic()


def forget_sessions(context: object) -> None:
    """Of a context that is not used for new connections any more. Others than those that resume have none."""
    if isinstance(context, ResumingContext):
        context.forget_sessions()
