"""homeport kubeconfig"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.config import Config
    from homeport.client.protocol import Client, Key

_UNITS = {"h": 3600, "m": 60, "s": 1}
_SHORTEST = 600  # Kubernetes refuses requests for less
_LONGEST = 24 * 3600


class _Duration(click.ParamType[int]):
    """90m, 8h"""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        parts = re.findall(r"(\d+)([hms])", str(value))
        if not parts or "".join(number + unit for number, unit in parts) != str(value):
            self.fail(f"{value!r}: expected for example 8h or 90m", param, ctx)
        found = sum(int(number) * _UNITS[unit] for number, unit in parts)
        if not _SHORTEST <= found <= _LONGEST:
            self.fail(f"{value!r}: must be from 10m to 24h", param, ctx)
        return found


@dataclass(frozen=True, slots=True)
class _Acting(Where):
    user: str = ""

    def load(self) -> Config:
        from homeport.client.config import Impersonation

        # Not super(): a dataclass with slots is made a second time, which super() without arguments does not know.
        config = Where.load(self)
        return replace(config, impersonate=Impersonation(user=self.user)) if self.user else config


@click.command()
@located
@click.argument("name")
@click.option(
    "--expires",
    type=_Duration(),
    default="8h",
    metavar="TIME",
    help="How long the kubeconfig is valid, from 10m to 24h (default: 8h).",
)
@click.option("--as", "user", default="", metavar="USER", help="Ask for this user (default: yourself).")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the kubeconfig to this file (default: standard output).",
)
def command(where: Where, name: str, expires: int, user: str, output: Path | None) -> None:
    """Get a kubeconfig of the tenant cluster NAME for yourself.

    It has your name and your role in the team of the cluster. The key is made on this machine. An administrator uses
    --as to get one for a member.
    """
    from homeport.client.errors import NotFound
    from homeport.platforms.butler.kubeconfig.issue import RefusedRequest
    from homeport.platforms.butler.kubeconfig.request import request_kubeconfig

    acting = _Acting(where.data, where.data_named, where.kubeconfig, where.context, where.namespace, user)

    async def work(client: Client, key: Key) -> bytes:
        try:
            return await request_kubeconfig(client, key, expires)
        except NotFound:
            if await _is_cluster(client, key):
                raise click.ClickException(_administrator(key)) from None
            raise

    found = ask(acting, name, work, RefusedRequest)
    if output is None:
        click.echo(found.decode(), nl=False)
        return
    _write(output, found)
    click.echo(f"wrote {output}")


async def _is_cluster(client: Client, key: Key) -> bool:
    from homeport.api.cluster.v1beta2 import Cluster
    from homeport.client.errors import ApiError

    try:
        await client.get(Cluster, key)
    except ApiError:
        return False
    return True


def _administrator(key: Key) -> str:
    """A Cluster without a tenant has one kubeconfig: that of its administrator."""
    read = f"kubectl get secret {key.name}-kubeconfig -n {key.namespace} -o jsonpath='{{.data.value}}' | base64 -d"
    return f"{key.name} is a Cluster, not a TenantCluster. The kubeconfig of its administrator is in a Secret: {read}"


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and only for the user."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
