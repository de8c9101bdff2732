"""homeport image"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.cli.cluster.discover import as_dict, read_entities
from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.reach import source_options
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.capi.platform import Entity
    from homeport.client.protocol import Client, Key


@click.group(cls=Group)
def command() -> None:
    """List the images of a hypervisor, and bring more there."""


@command.command("list")
@source_options
@listing_option
@located
def list_(where: Where, output: str | None, proxy: str, trust: Path | None, **source: str | None) -> None:
    """List images with their operating system and Kubernetes version, as far as the name of the image tells them."""
    _, found = read_entities(where, proxy, trust, source)
    images = [each for each in found if each.kind == "image"]
    print_found(
        output,
        [as_dict(each) for each in images],
        (("image", each.name) for each in images),
        lambda wide: print_table(_rows(images, wide=wide)),
    )


def _rows(images: Sequence[Entity], *, wide: bool) -> Iterator[tuple[str, ...]]:
    yield ("NAME", "OS", "KUBERNETES", "SIZE", "USABLE", *(("CLUSTER", "ID") if wide else ()))
    for each in images:
        known = [each.details.get(name, "-") for name in ("system", "kubernetes", "size")]
        usable = "yes" if each.usable else "no: ISO installer" if each.details.get("type") == "iso" else "no"
        yield (each.name, *known, usable, *((each.place or "all", each.id) if wide else ()))


@command.command()
@click.argument("name")
@click.option("--url", default="", help="Let the provider download the image from this URL.")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Upload this file (Nutanix only; the plane must run on this machine).",
)
@click.option("--sha256", default="", help="Checksum that Nutanix verifies (default: not verified).")
@click.option("--sha512", default="", help="Checksum that Harvester verifies (default: not verified).")
@click.option(
    "--provider-config", metavar="[NAMESPACE/]NAME", required=True, help="Bring the image to this ProviderConfig."
)
@click.option("--wait/--no-wait", default=True, help="Wait until machines can use the image (default: --wait).")
@located
def upload(
    where: Where, name: str, url: str, file: Path | None, sha256: str, sha512: str, provider_config: str, wait: bool
) -> None:
    """Bring an image to a hypervisor under the name NAME.

    The command creates an ImageSync, whose controller downloads or uploads the image and keeps it there. Repeat the
    command safely: an image with the same content is used again.
    """
    from homeport.api.butler.v1alpha1 import ProviderConfig
    from homeport.app.discovery.upload import UploadFailed, follow_image, hold_image
    from homeport.client.protocol import Key as Name
    from homeport.platforms.butler.name import SYSTEM_NAMESPACE

    if bool(url) == (file is not None):
        raise click.UsageError("use either --url or --file")
    if url and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--url {url}: expected http://... or https://...")
    space, _, config = provider_config.rpartition("/")
    at = Name(space or where.namespace or SYSTEM_NAMESPACE, config)
    source = {"url": url} if file is None else {"file": _staged(where, file)}
    source |= {key: value for key, value in (("sha256", sha256), ("sha512", sha512)) if value}
    key = Name(at.namespace, re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-."))

    async def work(client: Client, _: Key) -> None:
        await client.get(ProviderConfig, at)  # before anything is created
        await hold_image(client, key, at, source, name)
        said: set[str] = set()
        if not wait:
            return
        async for sync in follow_image(client, key):
            percent = "" if sync.status.progress is None else f" {sync.status.progress}%"
            trouble = f": {sync.status.failure_message}" if sync.status.failure_message else ""
            text = f"ImageSync {key}: {sync.status.phase or 'Pending'}{percent}{trouble}"
            if text not in said:
                click.echo(text)
            said.add(text)

    ask(where, name, work, UploadFailed)
    if not wait:
        click.echo(f"ImageSync {key} created")
        click.echo(f"next: kubectl wait --for=condition=Ready imagesync/{key.name} -n {key.namespace}")


def _staged(where: Where, file: Path) -> str:
    from homeport.app.discovery.upload import stage_file
    from homeport.app.settings import Settings

    if where.kubeconfig is not None or where.from_environment:
        raise click.UsageError("--file needs a plane on this machine: use --data instead of a kubeconfig, or use --url")
    return stage_file(file, Settings.make(where.data).images)
