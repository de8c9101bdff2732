"""Whether choices fit each other and what the hypervisor has. Pure."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Sequence

from homeport.app.creation.choice import Choice
from homeport.capi.platform import Entity
from homeport.capi.version import is_valid
from homeport.machinery.quantity import is_quantity, parse_quantity

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


def wrong_name(name: str) -> str:
    """What is wrong with the name of a cluster, which is part of the names of its machines; '': nothing."""
    if _NAME.fullmatch(name):
        return ""
    form = "lower-case letters, digits and '-', at most 63, starting with a letter and ending with a letter or digit"
    return f"NAME {name!r}: expected {form}, for example harbour-1"


def wrong(choice: Choice, found: Sequence[Entity]) -> list[str]:
    """Sentences that name the option; empty if everything fits. `found` empty: nothing is known of the hypervisor."""
    problems = [*_named(choice, found), *_version(choice), *_endpoint(choice, found), *_sizes(choice)]
    image = next((each for each in found if each.kind == "image" and each.name == choice.image), None)
    if image is not None and not image.usable:
        problems.append(f"--image {choice.image}: machines can't boot from it: it is an installer or not complete")
    held = image.details.get("kubernetes", "") if image is not None else ""
    if choice.api == "cluster-api" and held and choice.version and held != choice.version:
        problems.append(f"--version {choice.version}: image {choice.image} contains Kubernetes {held}")
    return problems


def _named(choice: Choice, found: Sequence[Entity]) -> Iterable[str]:
    for option, kind, value in (
        ("--place", "cluster", choice.place),
        ("--image", "image", choice.image),
        ("--network", "network", choice.network),
    ):
        names = [each.name for each in found if each.kind == kind and _at(each, choice.place, kind)]
        if value and names and value not in names:
            near = difflib.get_close_matches(value, names, n=3, cutoff=0.4) or names[:5]
            yield f"{option} {value}: not found; there are {', '.join(near)}"


def _at(entity: Entity, place: str, kind: str) -> bool:
    return kind == "cluster" or not place or not entity.place or place in entity.place.split(", ")


def _version(choice: Choice) -> Iterable[str]:
    if choice.api == "cluster-api" and choice.version and not is_valid(choice.version):
        yield f"--version {choice.version}: not a Kubernetes version; expected for example v1.33.4"


def _sizes(choice: Choice) -> Iterable[str]:
    for option, value in (("--memory", choice.memory), ("--disk", choice.disk)):
        if not is_quantity(value) or parse_quantity(value).value <= 0:
            yield f"{option} {value}: not a quantity; expected for example 4Gi"


def _endpoint(choice: Choice, found: Sequence[Entity]) -> Iterable[str]:
    if not choice.endpoint:
        return
    try:
        address = ipaddress.ip_address(choice.endpoint)
    except ValueError:
        yield f"--endpoint {choice.endpoint}: not an IP address"
        return
    network = next((each for each in found if each.kind == "network" and each.name == choice.network), None)
    cidr = network.details.get("cidr", "") if network is not None else ""
    if choice.api == "cluster-api" and cidr and address not in ipaddress.ip_network(cidr, strict=False):
        yield f"--endpoint {choice.endpoint}: outside of network {choice.network} ({cidr})"
