"""homeport kubeconfig"""

from __future__ import annotations

import re
import shlex
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
_USUAL = 8 * 3600


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
    metavar="TIME",
    help="How long the kubeconfig of a TenantCluster is valid, from 10m to 24h (default: 8h).",
)
@click.option("--as", "user", default="", metavar="USER", help="Ask for this user (default: yourself).")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the kubeconfig to this file (default: standard output).",
)
@click.option("--merge", is_flag=True, help="Add it to the file of -o (default: ~/.kube/config), which keeps the rest.")
@click.option(
    "--switch", is_flag=True, help="With --merge, make it the current context (default: only if none is set)."
)
def command(
    where: Where, name: str, expires: int | None, user: str, output: Path | None, merge: bool, switch: bool
) -> None:
    """Get a kubeconfig of the cluster NAME.

    Of a TenantCluster it has your name and your role in the team of the cluster; the key is made on this machine. An
    administrator uses --as to get one for a member.

    Of a Cluster or ClusterDeployment it is the administrator's, from the Secret NAME-kubeconfig: you need the right
    to read that Secret.
    """
    from homeport.app.tree.read import NoCluster

    if switch and not merge:
        raise click.UsageError("--switch is for --merge")
    acting = _Acting(where.data, where.data_named, where.kubeconfig, where.context, where.namespace, user)
    found = ask(acting, name, lambda client, key: _kubeconfig(client, key, expires), NoCluster)
    if output is None and not merge:
        click.echo(found.decode(), nl=False)
        return
    file = output or Path("~/.kube/config").expanduser()
    try:
        click.echo(_stored(file, found, merge=merge, switch=switch, usual=output is None))
    except OSError as error:
        raise click.ClickException(f"-o {file}: can't be written: {error.strerror}") from error


def _stored(file: Path, found: bytes, *, merge: bool, switch: bool, usual: bool) -> str:
    from homeport.client.config import ConfigError
    from homeport.client.merge import merge_file, write_private

    if not merge:
        write_private(file, found)
        return f"wrote {file}"
    if usual:
        file.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        context = merge_file(file, found, switch=switch)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    named = "" if usual else f" --kubeconfig {shlex.quote(str(file))}"
    return f"merged into {file}\nnext: kubectl{named} --context {shlex.quote(context)} get nodes"


async def _kubeconfig(client: Client, key: Key, expires: int | None) -> bytes:
    from homeport.app.tree.read import Reader
    from homeport.client.errors import Forbidden, NotFound
    from homeport.platforms.butler.kubeconfig.issue import RefusedRequest
    from homeport.platforms.butler.kubeconfig.request import request_kubeconfig

    try:
        return await request_kubeconfig(client, key, expires or _USUAL)
    except RefusedRequest as error:
        raise click.ClickException(f"{error}{await _other_way(client, key)}") from None
    except (NotFound, Forbidden):
        [root] = (await Reader(client).read(key)).roots  # tells names that are near, if there is no such cluster
        kind = str(root["kind"]) if (root.namespace, root.name) == (key.namespace, key.name) else "Cluster"
        if kind == "TenantCluster":
            raise
    if expires is not None:
        raise click.UsageError(f"--expires is for TenantClusters: {kind} {key} has the kubeconfig of its administrator")
    return await _administrator(client, key, kind)


async def _other_way(client: Client, key: Key) -> str:
    """To be put behind a refusal: how an administrator of the plane gets into the cluster."""
    from homeport.api.butler.v1alpha1 import TenantCluster

    home = (await client.get(TenantCluster, key)).status.tenant_namespace
    return f". If you may read its Secrets: homeport kubeconfig {key.name} -n {home}" if home else ""


async def _administrator(client: Client, key: Key, kind: str) -> bytes:
    from homeport.capi.remote.kubeconfig import secret_key, value
    from homeport.capi.remote.pki import SECRET
    from homeport.client.errors import Forbidden, NotFound

    try:
        return value(await client.get(SECRET, secret_key(key)))
    except NotFound:
        raise click.ClickException(
            f"{kind} {key} has no kubeconfig yet: Secret {key.name}-kubeconfig does not exist. "
            f"See: homeport describe cluster {key.name} -n {key.namespace}"
        ) from None
    except Forbidden:
        raise click.ClickException(
            f"{kind} {key}: you may not read Secret {key.name}-kubeconfig in namespace {key.namespace}, which has the "
            "kubeconfig of the administrator. Ask for the right to get this Secret"
        ) from None
