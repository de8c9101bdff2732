"""Converters of providers' kinds, as hooks."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.meta import Object
from homeport.capi.conversion import unknown_versions
from homeport.capi.conversion.converter import Converter
from homeport.capi.conversion.rule import Rule
from homeport.runtime.webhook.hook import Hooks

# The versions of each kind, oldest first, and the rules between the older ones and the newest.
Conversions = Sequence[tuple[tuple[type[Object], ...], list[Rule]]]


def converters_of(kinds: Conversions) -> dict[tuple[str, str], Converter]:
    """(group, kind) > converter."""
    return {
        (versions[-1].__resource__.group, versions[-1].__resource__.kind): Converter(versions, rules, unknown_versions)
        for versions, rules in kinds
    }


def register_conversions(hooks: Hooks, kinds: Conversions) -> None:
    made = converters_of(kinds)
    for versions, _ in kinds:
        newest = versions[-1]
        at = newest.__resource__
        hooks.convert(at.group, at.kind, made[at.group, at.kind])
        hooks.check_converted(newest, made[at.group, at.kind])
