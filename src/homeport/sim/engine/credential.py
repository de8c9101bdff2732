"""The credential of a simulator's admin endpoint: a header in a file that its owner alone reads.

`curl -H @FILE` sends it, so it stands neither in a URL nor in the arguments of a process.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from homeport.apiserver.auth.file import make_private_dir, tighten, write_private

FILE = "admin.header"
_PREFIX = "Authorization: Bearer "
_SHORTEST = 32


@dataclass(frozen=True, slots=True)
class AdminCredential:
    """Kept over restarts, so that scripts go on working."""

    path: Path
    token: str = field(repr=False)

    @classmethod
    def ensure(cls, folder: Path) -> AdminCredential:
        """The one in the folder; made when there is none, or none that can be used."""
        make_private_dir(folder)
        path = folder / FILE
        try:
            token = path.read_text().strip().removeprefix(_PREFIX)
            tighten(path)
        except (OSError, UnicodeDecodeError):
            token = ""
        if len(token) < _SHORTEST or not token.isascii():
            token = secrets.token_urlsafe(32)
            write_private(path, f"{_PREFIX}{token}\n".encode())
        return cls(path, token)

    def admits(self, header: str) -> bool:
        """Whether the value of a request's Authorization header is this one."""
        scheme, _, token = header.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self.token.encode())
