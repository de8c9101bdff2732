"""homeport init"""

from __future__ import annotations

from typing import Any

import click

from homeport.cli.charts.chartoption import valued
from homeport.cli.where import Where, ask, located


@click.command()
@valued
@located
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=300.0, help="Seconds to wait for the plane (default: 300)."
)
def command(where: Where, values: dict[str, Any], timeout: float) -> None:
    """Set up a running plane for k0rdent: the equivalent of `helm install kcm`, with the same values.

    They are stored in Management kcm (spec.core.kcm.config). Waits until it is Ready. Run it again with other values.
    """
    from homeport.platforms.k0rdent.setup import SetupError, set_up

    found = ask(where, "kcm", lambda client, key: set_up(client, values, timeout), SetupError)
    click.echo(f"management/kcm is ready (release {found.status.release})")
    click.echo(f"providers: {', '.join(sorted(found.status.components))}")
