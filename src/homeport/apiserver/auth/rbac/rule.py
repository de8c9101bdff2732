"""RBAC rules: what one allows, whether some rules cover others, and how they are written in messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

ALL = "*"
Texts = tuple[str, ...]


class Rule(NamedTuple):
    verbs: Texts = ()
    groups: Texts = ()
    resources: Texts = ()
    names: Texts = ()
    urls: Texts = ()

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Rule:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(raw.get(field) or ()) for field in fields))

    def as_dict(self) -> dict[str, list[str]]:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return {field: list(values) for field, values in zip(fields, self, strict=True) if values}

    def allows(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule speaks of this kind of request. `names` is left to the caller."""
        return _has(self.verbs, verb) and _has(self.groups, group) and self._has_resource(resource, subresource)

    def _has_resource(self, resource: str, subresource: str) -> bool:
        combined = f"{resource}/{subresource}" if subresource else resource
        if ALL in self.resources or combined in self.resources:
            return True
        return bool(subresource) and f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        return _has(self.verbs, verb) and any(_url_covers(url, path) for url in self.urls)

    def covers(self, part: Rule) -> bool:
        """Whether everything that `part` allows is allowed by this rule alone."""
        if part.urls:
            urls = all(any(_url_covers(mine, url) for mine in self.urls) for url in part.urls)
            return urls and _covers(self.verbs, part.verbs)
        return (
            _covers(self.verbs, part.verbs)
            and _covers(self.groups, part.groups)
            and all(self._covers_resource(resource) for resource in part.resources)
            and (not self.names or (bool(part.names) and set(part.names) <= set(self.names)))
        )

    def _covers_resource(self, text: str) -> bool:
        resource, _, subresource = text.partition("/")
        return self._has_resource(resource, subresource)

    def parts(self) -> Iterator[Rule]:
        """The same permissions as rules of one verb, group, resource and name each."""
        for group, resource, verb in product(self.groups, self.resources, self.verbs):
            if not self.names:
                yield Rule((verb,), (group,), (resource,))
            for name in self.names:
                yield Rule((verb,), (group,), (resource,), (name,))
        for url, verb in product(self.urls, self.verbs):
            yield Rule((verb,), urls=(url,))

    def __str__(self) -> str:
        fields = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in fields if values) + "}"


EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), urls=(ALL,)))


def parse_rules(obj: Mapping[str, Any]) -> tuple[Rule, ...]:
    return tuple(Rule.parse(raw) for raw in obj.get("rules") or ())


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of `wanted` that no rule of `held` covers."""
    lacking: dict[Rule, None] = {}
    for part in (part for rule in wanted for part in rule.parts()):
        if not any(rule.covers(part) for rule in held):
            lacking[part] = None
    return list(lacking)


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Single-verb rules on the same thing drawn together, in the order of their text."""
    verbs: dict[Rule, list[str]] = {}
    for rule in rules:
        found = verbs.setdefault(rule._replace(verbs=()), [])
        found += [verb for verb in rule.verbs if verb not in found]
    return sorted((rule._replace(verbs=tuple(found)) for rule, found in verbs.items()), key=str)


def quoted(values: Iterable[str]) -> str:
    """A list of strings as Go's %q shows it: `["a" "b"]`."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _has(values: Texts, wanted: str) -> bool:
    return wanted in values or ALL in values


def _covers(values: Texts, wanted: Texts) -> bool:
    return ALL in values or set(wanted) <= set(values)


def _url_covers(pattern: str, path: str) -> bool:
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))
