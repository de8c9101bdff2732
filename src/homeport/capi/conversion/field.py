"""Where a field of the newest version stands in an older one: errors name fields as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from homeport.capi.conversion.codec import DURATION, MOST_SECONDS, TIMEOUTS, parse_seconds
from homeport.capi.conversion.rule import Custom, Each, Move, Rule, Within
from homeport.client.errors import Cause

Json = dict[str, Any]

_ITEM = re.compile(r"(\[[^\]]*\])\.?")
_STEP = re.compile(r"[^.\[\]]+")


def older_field(rules: Sequence[Rule], path: str) -> str:
    """`spec.checks.nodeStartupTimeoutSeconds` > `spec.nodeStartupTimeout`."""
    for rule in reversed(rules):
        if isinstance(rule, Move):
            path = _moved(rule, path)
        elif isinstance(rule, Custom):
            path = rule.renamed.get(path, path)
        elif isinstance(rule, Within) and (rest := _below(path, rule.path)) is not None and rest.startswith("."):
            path = f"{rule.path}.{older_field(rule.rules, rest[1:])}"
        elif isinstance(rule, Each) and (rest := _below(path, rule.path)) is not None:
            item = _ITEM.match(rest)
            if item is not None and item.end() < len(rest):
                path = f"{rule.path}{item[1]}.{older_field(rule.rules, rest[item.end() :])}"
    return path


def _moved(rule: Move, path: str) -> str:
    rest = _below(path, rule.new)
    if rest is None:
        return path
    if rule.codec is TIMEOUTS:
        rest = rest.replace(".timeoutSeconds", ".timeout")
    return rule.old + ("" if rule.codec is DURATION else rest)


def _below(path: str, parent: str) -> str | None:
    """What comes after `parent`, None where the path leads elsewhere."""
    rest = path.removeprefix(parent)
    return rest if path.startswith(parent) and rest[:1] in ("", ".", "[") else None


def unread_durations(rules: Sequence[Rule], new: Json, older: Json) -> Iterator[Cause]:
    """Texts in the older object that are not durations: in the newest version they are the longest one."""
    for path in _longest(new.get("spec"), "spec"):
        try:
            parse_seconds(_value_at(older, older_field(rules, path)))
        except ValueError as error:
            yield Cause("FieldValueInvalid", f"Invalid value: {error}", path)


def _longest(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _longest(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _longest(inner, f"{path}[{number}]")
    elif value == MOST_SECONDS and path.endswith("Seconds"):
        yield path


def _value_at(obj: Any, path: str) -> Any:
    """None if there is nothing at the path (`spec.checks[0].timeoutSeconds`)."""
    for step in _STEP.findall(path):
        if isinstance(obj, list) and step.isdigit() and int(step) < len(obj):
            obj = obj[int(step)]
        elif isinstance(obj, dict):
            obj = obj.get(step)
        else:
            return None
    return obj
