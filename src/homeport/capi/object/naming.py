"""Names of things that are made: random suffixes, name templates, and names that fit."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from homeport.machinery import gotemplate

MAX_NAME = 63  # what a host name, and so the name of a machine, may have
SUFFIX = 5
_LARGEST = 4096  # of what a template gives before it is cut
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, nothing that looks alike: no words come out by chance
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
    """A name from `{{ .cluster.name }}-{{ .random }}`, a template of Go. `values` is by path, such as `cluster.name`.

    One that is too long is cut and gets the random suffix at its end, whether the template asked for it or not.
    `suffix`: a given one instead of a random one. Raises TemplateError.
    """
    ending = suffix or random_suffix()
    name = _filled(template, {**values, "random": ending})
    if len(name) > limit:
        name = f"{name[: limit - len(ending) - 1].rstrip('-.')}-{ending}"
    if not _NAME.fullmatch(name):
        raise TemplateError(
            f"{template!r} gives {name!r}, which is not a valid name: use lower-case letters, digits, '-' and '.'"
        )
    return name


def _filled(template: str, values: Mapping[str, str]) -> str:
    known: dict[str, Any] = {}
    for path, value in values.items():
        *parents, field = path.split(".")
        at = known
        for parent in parents:
            at = at.setdefault(parent, {})
        at[field] = value
    try:
        return gotemplate.compiled(template, plain=True).render(known, limit=_LARGEST, strict=True)
    except gotemplate.TemplateError as error:
        listed = ", ".join(f"{{{{ .{name} }}}}" for name in sorted(values))
        raise TemplateError(f"{template!r} can't be used: {error}; supported fields: {listed}") from error


def check(template: str, fields: tuple[str, ...], *, random_needed: bool = True) -> str:
    """What is wrong with a template, for admission; '' when it can be used. `fields` are the paths it may use."""
    values = dict.fromkeys(fields, "a")
    try:
        render(template, values)
        always = _filled(template, {**values, "random": "b"}) == _filled(template, {**values, "random": "c"})
    except TemplateError as error:
        return str(error)
    if random_needed and always:
        return f"{template!r} has no {{{{ .random }}}}: all names would be the same"
    return ""
