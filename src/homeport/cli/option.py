"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

data = click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("~/.homeport"),
    show_default=True,
    envvar="HOMEPORT_DATA",
    help="Use the plane whose database, keys and kubeconfig are in DIR.",
)

context = click.option(
    "--context", metavar="NAME", default="", help="Use this kubeconfig context (default: the current one)."
)

health = click.option(
    "--health",
    metavar="HOST:PORT",
    default="",
    help="Serve /healthz, /readyz and /metrics at this address (default: not served).",
)

log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Log messages of this level and above.",
)

without = click.option(
    "--without", metavar="COMPONENT", multiple=True, help="Leave out a component, for example nutanix or ccm."
)

FILE = click.Path(path_type=Path, dir_okay=False)

admin_port = click.option(
    "--admin-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Serve the admin endpoint on this port (default: a free port).",
)

world = click.option(
    "--world",
    metavar="FILE",
    type=FILE,
    help="Load the initial state from this YAML file (default: the built-in world).",
)

faults = click.option("--faults", metavar="FILE", type=FILE, help="Inject the faults in this YAML file.")
