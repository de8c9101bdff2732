"""Options of `homeport up` that a data directory remembers: where it listened, and what was simulated."""

from __future__ import annotations

from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import write_private

_FILE = "up.json"


class Earlier(msgspec.Struct, frozen=True):
    """As they were at the last start."""

    listen: str = ""
    simulators: tuple[str, ...] = ()
    dashboard: int = 0  # the port; 0: none was served yet


def read_earlier(data: Path) -> Earlier:
    """Empty for a new directory, and for one whose file can't be read: the options then have their defaults."""
    try:
        return msgspec.json.decode((data / _FILE).read_bytes(), type=Earlier)
    except (OSError, msgspec.DecodeError):
        return Earlier()


def write_earlier(data: Path, earlier: Earlier) -> None:
    if earlier != read_earlier(data):
        write_private(data / _FILE, msgspec.json.encode(earlier))
