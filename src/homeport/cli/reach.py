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
    from homeport.app.settings import SettingsError
    from homeport.cli.plane.dial import read_dial as parse

    if not proxy and trust is None:
        proxy, trust = await _simulated(client)
    try:
        return parse(proxy, trust)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


async def _simulated(client: Client) -> tuple[str, Path | None]:
    import msgspec

    from homeport.app.plane.instance import STATUS_PATH
    from homeport.app.report.description import Description
    from homeport.client.errors import ApiError

    try:
        answer = await cast(Any, client).raw("POST", STATUS_PATH)
        found = msgspec.convert(answer.json(), Description, strict=False) if answer.status == 200 else None
    except (ApiError, msgspec.ValidationError):
        return "", None
    if found is None or not found.simulators or not found.simulators[0].proxy:
        return "", None
    return found.simulators[0].proxy, Path(found.simulators[0].authority)
