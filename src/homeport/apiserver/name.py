"""What names and labels may look like, for callers that want one sentence: the first thing that is wrong, or None."""

from __future__ import annotations

from collections.abc import Callable

from homeport.machinery.schema import name as rule

Naming = Callable[[str], str | None]


def _first(wrong: Callable[[str], list[str]]) -> Naming:
    def check(text: str) -> str | None:
        found = wrong(text)
        return found[0] if found else None

    return check


dns_subdomain = _first(rule.dns_subdomain)
dns_label = _first(rule.dns_label)
dns_label_1035 = _first(rule.dns_label_1035)
path_segment = _first(rule.path_segment)
label_key = _first(rule.label_key)
label_value = _first(rule.label_value)
