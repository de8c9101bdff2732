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
_NOWHERE = "-"  # no namespace can be called so: what is allowed there is allowed everywhere
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
class _Grant:
    """A rule that holds everywhere."""

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
    needs, asking = combined(needs), asyncio.Semaphore(_AT_ONCE)
    try:
        if len(needs) > _AT_ONCE:  # one question in place of hundreds
            grants = await _grants(client)
            needs = [left for need in needs if (left := _left(need, grants)) is not None]
        return [denied for denied in await asyncio.gather(*(_denied(client, each, asking) for each in needs)) if denied]
    except (Forbidden, NotFound, MethodNotAllowed):
        return []  # a server that answers no such questions: we will see


async def _grants(client: Client) -> list[_Grant]:
    """Not necessarily all: authorizers may answer single questions only."""
    body = {**_RULES.type_meta, "spec": {"namespace": _NOWHERE}}
    try:
        status = (await client.create(body, kind=_RULES)).get("status") or {}
    except (Forbidden, NotFound, MethodNotAllowed):
        return []
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    return [
        _Grant(*(frozenset(rule.get(field) or ()) for field in fields)) for rule in status.get("resourceRules") or ()
    ]


def _left(need: Need, grants: Iterable[_Grant]) -> Need | None:
    verbs = tuple(verb for verb in need.verbs if not any(grant.allows(verb, need) for grant in grants))
    return replace(need, verbs=verbs) if verbs else None


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
