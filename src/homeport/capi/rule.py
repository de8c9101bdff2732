"""A permission that a component's controllers need on the cluster that they run on, as a rule of a ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DEFINED = ("<defined>",)  # as resources: all kinds of the group that any component defines
DEFINED_STATUS = ("<defined>/status",)  # the status of those that have one
CLUSTER_STATUS = ("<defined>clusters/status",)  # the status of those that stand for clusters
# Of kinds that another component may bring: read, made from templates, and removed again.
CONTRACT = ("get", "list", "watch", "create", "patch", "delete")
# Server-side apply creates what is missing, so an API server asks for both.
APPLY = ("create", "patch")
# Of objects that a component makes, keeps as they should be, and removes.
OWN = ("get", "create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Rule:
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()  # empty: all objects

    def render(self) -> dict[str, Any]:
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs), **named}


_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """The same permissions with each resource once, sorted: resources with equal verbs share a rule."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for rule in rules:
        for resource in rule.resources:
            verbs.setdefault((rule.group, resource, rule.names), set()).update(rule.verbs)
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), found in sorted(verbs.items()):
        together.setdefault((group, ordered(found - _covered(verbs, group, resource, names)), names), []).append(
            resource
        )
    return [Rule(group, tuple(names), said, only) for (group, said, only), names in together.items() if said]


def _covered(
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]], group: str, resource: str, names: tuple[str, ...]
) -> set[str]:
    """What a rule for all objects of the resource grants already."""
    return verbs.get((group, resource, ()), set()) if names else set()


def ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    """As people expect them: get, list, watch, then what changes something."""
    return tuple(sorted(verbs, key=lambda verb: (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)))
