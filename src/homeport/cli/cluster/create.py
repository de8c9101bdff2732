"""homeport create"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.app.creation.check import wrong_name
from homeport.app.creation.choice import APIS, CNIS, Choice
from homeport.cli.cluster import question
from homeport.cli.group import Group
from homeport.cli.output import check_folder
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.discovery.candidate import Candidates
    from homeport.capi.platform import Entity
    from homeport.client.protocol import Client, Key

_OPTIONS = (
    click.option("--api", type=click.Choice(APIS), help="Create a Cluster, a TenantCluster or a ClusterDeployment."),
    click.option("--provider", type=click.Choice(["nutanix", "harvester"]), help="Hypervisor (default: nutanix)."),
    click.option("--secret", default="", metavar="NAME", help="Secret with the credentials (cluster-api)."),
    click.option("--credential", default="", metavar="NAME", help="Credential to use (deployment)."),
    click.option("--provider-config", default="", metavar="NAME", help="ProviderConfig to use (tenant)."),
    click.option("--address", default="", metavar="HOST", help="Prism Central (cluster-api, deployment)."),
    click.option("--place", default="", metavar="NAME", help="Cluster of the hypervisor (Prism Element)."),
    click.option("--image", default="", metavar="NAME", help="Image of the machines."),
    click.option("--network", default="", metavar="NAME", help="Network of the machines."),
    click.option("--endpoint", default="", metavar="ADDRESS", help="Free IP address for the API server."),
    click.option(
        "--version", "version", default="", metavar="VERSION", help="Kubernetes version (default: the image's)."
    ),
    click.option("--control-planes", type=click.IntRange(1, 7), help="Control plane machines (default: 1)."),
    click.option("--workers", type=click.IntRange(0), help="Worker machines (default: 2)."),
    click.option("--cpu", type=click.IntRange(1), help="CPUs of a machine (default: 2)."),
    click.option("--memory", default="", help="Memory of a machine (default: 4Gi)."),
    click.option("--disk", default="", help="Disk of a machine (default: 40Gi)."),
    click.option("--cni", type=click.Choice(CNIS), help="Pod network (default: cilium; a deployment brings its own)."),
    click.option("--template", default="", metavar="NAME", help="ClusterTemplate (default: PROVIDER-k0s-hcp)."),
)


@click.group(cls=Group)
def command() -> None:
    """Create a cluster: choose from what the hypervisor has, get a manifest for git, see the plan, apply it."""


def _options(fn: Any) -> Any:
    for decorate in reversed(_OPTIONS):
        fn = decorate(fn)
    return fn


@command.command()
@click.argument("name")
@_options
@click.option(
    "-o", "--output", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the manifest here."
)
@click.option("--plan/--no-plan", "planned", default=True, help="Show the plan and the preflight (default: --plan).")
@click.option("--apply", "applied", is_flag=True, help="Apply the manifest (default: ask on a terminal, else do not).")
@click.option("--dry-run", is_flag=True, help="Let the API server validate the manifest, and write nothing there.")
@dial_options
@located
def cluster(
    where: Where,
    name: str,
    file: Path | None,
    planned: bool,
    applied: bool,
    dry_run: bool,
    proxy: str,
    trust: Path | None,
    **given: Any,
) -> None:
    """Create cluster NAME. On a terminal, the command asks for what the options leave open.

    The manifest is printed, or written to the file of --output. It contains no password: it refers to the Secret,
    Credential or ProviderConfig that you name, which must exist in the namespace. The plan and questions go to stderr.
    """
    if problem := wrong_name(name):
        raise click.UsageError(problem)
    if file is not None:
        check_folder(file)
    asking = on_terminal()
    given = {key: value for key, value in given.items() if value not in (None, "")}
    choice = _first(where, name, given, asking)
    if asking:
        click.echo("Reading what the hypervisor has ...", err=True)
    found = _discover(where, choice, proxy, trust)
    choice = _complete(choice, found, list(given), asking)
    objects = _render(where, choice)
    _write(objects, file)
    if planned and not _planned(where, objects, proxy, trust):
        raise click.ClickException("the plan has problems (see above): nothing was applied")
    if dry_run or applied or (asking and click.confirm("Apply it?", default=False, err=True)):
        _apply(where, objects, dry_run=dry_run)
        if not dry_run:
            click.echo(f"next: homeport describe cluster {name} --watch{where.arguments()}", err=True)


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


# -- the choice ------------------------------------------------------------------------------------------------------


def _first(where: Where, name: str, given: dict[str, Any], asking: bool) -> Choice:
    """What has to be known before the hypervisor can be asked."""
    if "api" not in given:
        if not asking:
            raise click.UsageError("--api is required: cluster-api, tenant or deployment")
        given["api"] = question.ask_api()
    if "provider" not in given and asking and given["api"] != "tenant":
        given["provider"] = question.ask_provider()
    choice = Choice(name=name, namespace=_namespace(where), **given)
    if unused := choice.unused(given):
        raise click.UsageError("; ".join(unused))
    if not asking or not set(choice.missing()) & {"--secret", "--credential", "--provider-config", "--address"}:
        return choice
    return question.ask_source(choice, _candidates(where, choice))


def _candidates(where: Where, choice: Choice) -> Candidates:
    from homeport.app.discovery.candidate import find_candidates

    async def work(client: Client, key: Key) -> Candidates:
        return await find_candidates(client, choice.namespace, choice.provider)

    return ask(where, "", work)


def _namespace(where: Where) -> str:
    from homeport.client.config import ConfigError

    try:
        return where.namespace or where.load().namespace
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def _complete(choice: Choice, found: Sequence[Entity], given: Sequence[str], asking: bool) -> Choice:
    if asking:
        choice = question.ask_place(choice, found)
    image = next((each for each in found if each.kind == "image" and each.name == choice.image), None)
    if image is not None and not choice.version and choice.api == "cluster-api":
        choice = dataclasses.replace(choice, version=image.details.get("kubernetes", ""))
    _check(choice, found)
    if asking:
        choice = question.ask_sizes(question.ask_rest(choice, found), given)
    _check(choice, found)
    if missing := choice.missing():
        raise click.UsageError(f"missing {', '.join(missing)}")
    return choice


# -- the work --------------------------------------------------------------------------------------------------------


def _discover(where: Where, choice: Choice, proxy: str, trust: Path | None) -> Sequence[Entity]:
    from homeport.cli.cluster.discover import read_entities

    if choice.api == "tenant":
        source = {"provider_config": choice.provider_config}
    elif choice.api == "deployment":
        source = {"credential": choice.credential, "provider": choice.provider, "address": choice.address}
    else:
        source = {"secret": choice.secret, "provider": choice.provider, "address": choice.address}
    if not all(source.values()) and not (choice.provider == "harvester" and choice.api != "tenant"):
        return ()  # what is missing is reported with everything else that is
    return read_entities(where, proxy, trust, {key: value or None for key, value in source.items()})[1]


def _check(choice: Choice, found: Sequence[Entity]) -> None:
    from homeport.app.creation.check import wrong

    if problems := wrong(choice, found):
        raise click.ClickException("; ".join(problems))


def _render(where: Where, choice: Choice) -> list[dict[str, Any]]:
    import base64

    from homeport.api.meta import Resource
    from homeport.app.creation.render import render
    from homeport.app.discovery.source import supports
    from homeport.client.protocol import Key as Name
    from homeport.infra.error import ProviderError

    async def read(client: Client, key: Key) -> list[dict[str, Any]]:
        data: dict[str, str] = {}
        if choice.api == "cluster-api":
            found = await client.get(Resource("", "v1", "Secret", "secrets"), Name(choice.namespace, choice.secret))
            data = {k: base64.b64decode(v).decode("utf-8", "replace") for k, v in (found.get("data") or {}).items()}
        return render(choice, supports()[choice.provider], data)

    return ask(where, choice.name, read, ProviderError)


def _write(objects: Sequence[dict[str, Any]], file: Path | None) -> None:
    from homeport.machinery.yaml import dump

    text = "---\n".join(dump(each) for each in objects)
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text)
        click.echo(f"{file} written", err=True)


def _planned(where: Where, objects: Sequence[dict[str, Any]], proxy: str, trust: Path | None) -> bool:
    """Shows it on stderr. Whether nothing stands against the manifest."""
    from msgspec.structs import replace

    from homeport.cli.cluster.plan import lines, rehearse
    from homeport.cli.cluster.preflight import check

    plan = rehearse(where, objects)
    if not plan.refused:
        plan = replace(plan, preflight=check(where, objects, proxy, trust))
    for line in lines(plan):
        click.echo(line.text, err=True)
    return not plan.refused and all(each.ok for each in plan.preflight)


def _apply(where: Where, objects: Sequence[dict[str, Any]], *, dry_run: bool) -> None:
    from homeport.client.protocol import Write
    from homeport.client.restmapper import RestMapper

    async def work(client: Client, key: Key) -> None:
        mapper = RestMapper(client)
        options = Write(field_manager="homeport-create", dry_run=dry_run, field_validation="Strict")
        for each in objects:
            kind = await mapper.find(each["apiVersion"], each["kind"])
            await client.apply(each, options, kind=kind)
            suffix = " (dry run)" if dry_run else ""
            click.echo(f"{each['kind']}/{each['metadata']['name']} applied{suffix}", err=True)

    ask(where, "", work)
