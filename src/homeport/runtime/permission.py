"""Whether an account may do something, asked of the API server before it is tried."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from homeport.api.meta import Resource
from homeport.client.errors import Forbidden, MethodNotAllowed, NotFound
from homeport.client.protocol import Client

_GROUP = "authorization.k8s.io"
_ACCESS = Resource(_GROUP, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
_RULES = Resource(_GROUP, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False)
EVERYWHERE = "-"  # no namespace can be called so: what is allowed there is allowed everywhere
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Need:
    verbs: tuple[str, ...]
    resource: Resource
    namespace: str = ""  # '': everywhere
    name: str = ""  # '': all of them

    def __str__(self) -> str:
        what = f"{self.resource.qualified}{f' {self.name}' if self.name else ''}"
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {what}{where}"


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule, for every object or for those with one of the names."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]

    def allows(self, verb: str, need: Need) -> bool:
        return (
            not self.verbs.isdisjoint((verb, "*"))
            and not self.groups.isdisjoint((need.resource.group, "*"))
            and not self.resources.isdisjoint((need.resource.plural, "*"))
            and (not self.names or need.name in self.names)
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """What an account may do in one namespace. Not necessarily everything: authorizers may answer single questions
    only."""

    grants: frozenset[Grant] = frozenset()
    complete: bool = False

    def left(self, need: Need) -> Need | None:
        """The part of the need that no rule allows."""
        verbs = tuple(verb for verb in need.verbs if not any(grant.allows(verb, need) for grant in self.grants))
        return replace(need, verbs=verbs) if verbs else None


def combined(needs: Iterable[Need]) -> list[Need]:
    """The same, with each kind and object once."""
    found: dict[tuple[str, str, str, str], Need] = {}
    for need in needs:
        key = (need.resource.group, need.resource.plural, need.namespace, need.name)
        known = found.setdefault(key, need)
        found[key] = replace(known, verbs=tuple(dict.fromkeys((*known.verbs, *need.verbs))))
    return list(found.values())


async def missing(client: Client, needs: Iterable[Need]) -> list[Need]:
    """Those that the server denies. None, if it does not tell."""
    needs = combined(needs)
    try:
        if len(needs) > _AT_ONCE:  # one question in place of hundreds
            rules = await read_rules(client, EVERYWHERE)
            needs = [left for need in needs if (left := rules.left(need)) is not None]
        return await ask_singly(client, needs)
    except (Forbidden, NotFound, MethodNotAllowed):
        return []  # a server that answers no such questions: we will see


async def ask_singly(client: Client, needs: Iterable[Need]) -> list[Need]:
    """Those that the server denies. Raises ApiError if it does not tell."""
    asking = asyncio.Semaphore(_AT_ONCE)
    return [denied for denied in await asyncio.gather(*(_denied(client, each, asking) for each in needs)) if denied]


async def read_rules(client: Client, namespace: str) -> Rules:
    """Those of a namespace, with those that hold everywhere; of EVERYWHERE, the latter alone. Raises ApiError."""
    body = {**_RULES.type_meta, "spec": {"namespace": namespace}}
    try:
        status = (await client.create(body, kind=_RULES)).get("status") or {}
    except (Forbidden, NotFound, MethodNotAllowed):
        return Rules()
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    grants = (
        Grant(*(frozenset(rule.get(field) or ()) for field in fields)) for rule in status.get("resourceRules") or ()
    )
    return Rules(frozenset(grants), complete=not status.get("incomplete"))


async def _denied(client: Client, need: Need, asking: asyncio.Semaphore) -> Need | None:
    async with asking:
        verbs = tuple([verb for verb in need.verbs if not await _allowed(client, verb, need)])
    return replace(need, verbs=verbs) if verbs else None


async def _allowed(client: Client, verb: str, need: Need) -> bool:
    plural, _, part = need.resource.plural.partition("/")
    asked = {
        "verb": verb,
        "group": need.resource.group,
        "version": need.resource.version,
        "resource": plural,
        **({"subresource": part} if part else {}),
        "namespace": need.namespace,
        "name": need.name,
    }
    body = {**_ACCESS.type_meta, "spec": {"resourceAttributes": asked}}
    answer = await client.create(body, kind=_ACCESS)
    return bool(answer["status"].get("allowed"))
