"""Names of things that are made: random suffixes, name templates, and names that fit."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

MAX_NAME = 63  # what a host name, and so the name of a machine, may have
SUFFIX = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, nothing that looks alike: no words come out by chance
_FIELD = re.compile(r"\{\{-?\s*\.([A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z][A-Za-z0-9]*)*)\s*-?\}\}")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

SET_TEMPLATE = "{{ .machineSet.name }}-{{ .random }}"
CONTROL_PLANE_TEMPLATE = "{{ .kubeadmControlPlane.name }}-{{ .random }}"
TOPOLOGY_TEMPLATE = "{{ .cluster.name }}-{{ .random }}"


class TemplateError(ValueError):
    """A name template that can't be used. The message says what may stand in it."""


def random_suffix(length: int = SUFFIX) -> str:
    """From the random module, so that a seeded run makes the same names."""
    return "".join(random.choices(_ALPHABET, k=length))  # noqa: S311  (names, no secrets)


def simple(prefix: str, *, limit: int = MAX_NAME) -> str:
    """`prefix` and a random suffix, cut so that it fits."""
    return f"{prefix[: limit - SUFFIX - 1]}-{random_suffix()}" if prefix else random_suffix()


def render(template: str, values: Mapping[str, str], *, limit: int = MAX_NAME, suffix: str = "") -> str:
    """A name from `{{ .cluster.name }}-{{ .random }}`. `values` is by path, such as `cluster.name`.

    One that is too long is cut and gets the random suffix at its end, whether the template asked for it or not.
    `suffix`: a given one instead of a random one. Raises TemplateError.
    """
    ending = suffix or random_suffix()
    known = {**values, "random": ending}

    def value(found: re.Match[str]) -> str:
        if found[1] not in known:
            listed = ", ".join(f"{{{{ .{name} }}}}" for name in sorted(known))
            raise TemplateError(f"{found[0]} is not known in {template!r}: use {listed}")
        return known[found[1]]

    name = _FIELD.sub(value, template)
    if "{{" in name or "}}" in name:
        raise TemplateError(f"{template!r} can't be read near '{{{{': only fields like {{{{ .random }}}} can be used")
    if len(name) > limit:
        name = f"{name[: limit - len(ending) - 1].rstrip('-.')}-{ending}"
    if not _NAME.fullmatch(name):
        raise TemplateError(f"{template!r} gives {name!r}, which is no name: lower-case letters, digits, '-' and '.'")
    return name


def check(template: str, fields: tuple[str, ...], *, random_needed: bool = True) -> str:
    """What is wrong with a template, for admission; '' when it can be used. `fields` are the paths it may use."""
    if random_needed and not any(found == "random" for found in _FIELD.findall(template)):
        return f"{template!r} has no {{{{ .random }}}}: every name made from it would be the same"
    try:
        render(template, dict.fromkeys(fields, "a"))
    except TemplateError as error:
        return str(error)
    return ""
