"""The questions of `homeport create cluster`: each with what there is to choose from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from homeport.app.creation.check import wrong
from homeport.app.creation.choice import APIS, Choice
from homeport.capi.version import is_valid, parse

if TYPE_CHECKING:
    from homeport.app.discovery.candidate import Candidates
    from homeport.capi.platform import Entity

PROVIDERS = ("nutanix", "harvester")
_QUESTIONS = {
    "secret": "Secret with the credentials of the hypervisor",
    "credential": "Credential",
    "provider_config": "ProviderConfig, as [NAMESPACE/]NAME",
    "address": "Address of Prism Central, as HOST or HOST:PORT",
    "place": "Cluster of the hypervisor (Prism Element)",
    "image": "Image of the machines",
    "network": "Network of the machines",
    "version": "Kubernetes version, for example v1.33.4",
    "endpoint": "Free IP address for the API server",
}
_SIZES = {
    "control_planes": ("Control plane machines", click.IntRange(1, 7)),
    "workers": ("Worker machines", click.IntRange(0)),
    "cpu": ("CPUs of a machine", click.IntRange(1)),
    "memory": ("Memory of a machine", click.STRING),
    "disk": ("Disk of a machine", click.STRING),
}
_SECRETS = {
    "nutanix": (
        "credentials="
        """'[{"type":"basic_auth","data":{"prismCentral":{"username":"USER","password":"PASSWORD"}}}]'"""
    ),
    "harvester": 'kubeconfig="$(cat HARVESTER-KUBECONFIG)"',
}


def ask_api() -> str:
    return str(click.prompt("API", type=click.Choice(APIS), default="cluster-api", err=True))


def ask_provider() -> str:
    return str(click.prompt("Provider", type=click.Choice(PROVIDERS), default="nutanix", err=True))


def ask_source(choice: Choice, candidates: Candidates) -> Choice:
    """What leads to the hypervisor: an object of the plane, and the address of Prism Central."""
    for name in ("secret", "credential", "provider_config"):
        if name in choice.needed() and not getattr(choice, name):
            choice = _with(choice, name, _source(choice, name, getattr(candidates, name)))
    if "address" in choice.needed() and not choice.address:
        choice = _with(choice, "address", _typed(choice, "address", (), next(iter(candidates.address), None)))
    return choice


def _source(choice: Choice, name: str, there: Sequence[str] | None) -> str:
    if there is None:
        return _typed(choice, name, ())
    if not there:
        raise click.ClickException(_nothing(choice, name))
    for number, each in enumerate(there, 1):
        click.echo(f"  {number}. {each}", err=True)
    chosen = click.prompt(_QUESTIONS[name], type=click.IntRange(1, len(there)), default=1, err=True)
    return there[int(chosen) - 1]


def _nothing(choice: Choice, name: str) -> str:
    """What to create first."""
    if name == "secret":
        command = f"kubectl create secret generic {choice.provider} -n {choice.namespace} --from-literal="
        found = f"no Secret in namespace {choice.namespace} has credentials for {choice.provider}"
        return f"{found}: create one and run this command again, for example\n  {command}{_SECRETS[choice.provider]}"
    kind = {"credential": "Credential", "provider_config": "ProviderConfig"}[name]
    where = f" in namespace {choice.namespace}" if name == "credential" else ""
    return f"there is no {kind}{where}: create one first (kubectl explain {kind.lower()}.spec), or choose another --api"


def ask_place(choice: Choice, found: Sequence[Entity]) -> Choice:
    """What the hypervisor has: its cluster, image and network."""
    for name in ("place", "image", "network"):
        if name in choice.needed() and not getattr(choice, name):
            kind = {"place": "cluster"}.get(name, name)
            listed = [each for each in found if each.kind == kind and each.usable and _fits(each, choice)]
            choice = _with(choice, name, _pick(name, listed) if listed else _typed(choice, name, found))
    return choice


def ask_rest(choice: Choice, found: Sequence[Entity]) -> Choice:
    for name in ("version", "endpoint"):
        if name in choice.needed() and not getattr(choice, name):
            choice = _with(choice, name, _typed(choice, name, found))
    return choice


def ask_sizes(choice: Choice, given: Sequence[str]) -> Choice:
    """Those that no option gives."""
    for name, (question, type_) in _SIZES.items():
        if name in given:
            continue
        while True:
            asked = _with(choice, name, click.prompt(question, type=type_, default=getattr(choice, name), err=True))
            if not (problems := wrong(asked, ())):
                break
            click.echo(f"Error: {'; '.join(problems)}", err=True)
        choice = asked
    return choice


def _typed(choice: Choice, name: str, found: Sequence[Entity], default: str | None = None) -> str:
    """Asks again until the answer fits what is known: later, all answers would be lost."""

    def accept(text: str) -> str:
        text = text.strip()
        problems = wrong(_with(choice, name, text), found)
        if problems or not text:
            raise click.UsageError("; ".join(problems) or "an answer is needed; Ctrl-C to give up")
        return text

    if name == "endpoint" and (hint := _network_hint(choice, found)):
        click.echo(f"  {hint}", err=True)
    return str(click.prompt(_QUESTIONS[name], default=default, value_proc=accept, err=True))


def _network_hint(choice: Choice, found: Sequence[Entity]) -> str:
    """Where in the network a free address can be."""
    network = next((each for each in found if each.kind == "network" and each.name == choice.network), None)
    if network is None or not network.details.get("cidr"):
        return ""
    pools = network.details.get("pools")
    return f"{network.name} is {network.details['cidr']}" + (f"; choose an address outside of {pools}" if pools else "")


def _fits(entity: Entity, choice: Choice) -> bool:
    return entity.kind == "cluster" or not choice.place or not entity.place or choice.place in entity.place.split(", ")


def _pick(name: str, listed: Sequence[Entity]) -> str:
    for number, each in enumerate(listed, 1):
        details = ", ".join(f"{key} {value}" for key, value in each.details.items())
        click.echo(f"  {number}. {each.name}" + (f"  ({details})" if details else ""), err=True)
    first = _newest(listed) + 1
    chosen = click.prompt(_QUESTIONS[name], type=click.IntRange(1, len(listed)), default=first, err=True)
    return listed[chosen - 1].name


def _newest(listed: Sequence[Entity]) -> int:
    """The first image with the newest Kubernetes. Of images without it, and of other things, simply the first."""
    known = {n: each.details.get("kubernetes", "") for n, each in enumerate(listed)}
    numbers = [n for n, version in known.items() if is_valid(version)]
    return max(numbers, key=lambda n: (parse(known[n]), -n), default=0)


def _with(choice: Choice, name: str, value: object) -> Choice:
    answer: dict[str, Any] = {name: value}
    return dataclasses.replace(choice, **answer)
