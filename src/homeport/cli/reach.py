"""How commands reach hypervisors: options, the network of a simulation, and where credentials come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from homeport.cli.plane.dial import options as dial_options

if TYPE_CHECKING:
    from homeport.client.dial import DialOptions
    from homeport.client.protocol import Client

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = (
    click.option(
        "--provider-config",
        metavar="NAME",
        default="",
        help="Use the credentials of this ProviderConfig (default: the only one).",
    ),
    click.option("--cluster", metavar="NAME", default="", help="Use the credentials of this Cluster."),
    click.option("--credential", metavar="NAME", default="", help="Use the Secret of this Credential."),
    click.option("--secret", metavar="NAME", default="", help="Use this Secret."),
    click.option(
        "--provider",
        type=click.Choice(["nutanix", "harvester"]),
        default=None,
        help="Provider of a Credential or Secret (default: detected from its keys).",
    ),
    click.option("--address", metavar="HOST", default="", help="Prism Central of a Credential or Secret."),
)


def source_options(fn: F) -> F:
    """Where the credentials come from, and --proxy and --trust."""
    made: Any = dial_options(fn)
    for decorate in reversed(_SOURCES):
        made = decorate(made)
    return cast(F, made)


async def read_dial(client: Client, proxy: str, trust: Path | None) -> DialOptions:
    """As the options say; without any, through the network of the plane's simulators if it has some."""
    from homeport.app.discovery.dial import simulated_dial
    from homeport.app.settings import SettingsError
    from homeport.cli.plane.dial import read_dial as parse

    if not proxy and trust is None:
        return await simulated_dial(cast(Any, client))
    try:
        return parse(proxy, trust)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
