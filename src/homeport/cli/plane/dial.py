"""The options of `homeport up` about the way to what others run: hypervisors and workload clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from homeport.app.settings import SettingsError
from homeport.client.dial import DIRECT, DialOptions

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--proxy",
        metavar="URL",
        default="",
        envvar="HOMEPORT_PROXY",
        help="Connect to hypervisors and workload clusters through this HTTP proxy, such as the one of another "
        "plane's --sim (default: connect directly).",
    ),
    click.option(
        "--trust",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="HOMEPORT_TRUST",
        help="Trust these additional CA certificates (PEM) for connections to hypervisors and workload clusters.",
    ),
)


def options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_dial(proxy: str, trust: Path | None) -> DialOptions:
    """Raises SettingsError."""
    if proxy:
        parts = urlsplit(proxy)
        if parts.scheme != "http" or not parts.hostname:
            raise SettingsError(
                f"--proxy {proxy!r}: expected the URL of an HTTP proxy, for example http://proxy.example:3128"
            )
    return DialOptions(proxy, _read(trust) if trust is not None else b"")


def _read(trust: Path) -> bytes:
    try:
        found = trust.expanduser().read_bytes()
        DIRECT.tls(found)
    except OSError as error:
        raise SettingsError(f"--trust {trust}: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"--trust {trust} contains no valid PEM certificate") from error
    return found


def write_dial(proxy: str, trust: Path | None) -> list[str]:
    """The same options for another process."""
    found = [f"--proxy={proxy}"] if proxy else []
    return [*found, *([f"--trust={trust.expanduser().absolute()}"] if trust else [])]
