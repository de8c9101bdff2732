"""Where a field of the newest version stands in an older one: errors name fields as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homeport.capi.conversion.codec import DURATION, TIMEOUTS
from homeport.capi.conversion.rule import Each, Move, Rule, Within

_ITEM = re.compile(r"(\[[^\]]*\])\.?")


def older_field(rules: Sequence[Rule], path: str) -> str:
    """`spec.checks.nodeStartupTimeoutSeconds` > `spec.nodeStartupTimeout`."""
    for rule in reversed(rules):
        if isinstance(rule, Move):
            path = _moved(rule, path)
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
