"""Whether an account may do something, asked of the API server before it is tried."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from homeport.api.meta import Resource
from homeport.client.errors import Forbidden, MethodNotAllowed, NotFound
from homeport.client.protocol import Client

_ACCESS = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


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


# An administrator's: one question in place of hundreds.
_EVERYTHING = Need(("*",), Resource("*", "*", "", "*", False))


async def missing(client: Client, needs: Iterable[Need]) -> list[Need]:
    """Those that the server denies. None, if it does not tell."""
    needs, asking = list(needs), asyncio.Semaphore(_AT_ONCE)
    try:
        if len(needs) > _AT_ONCE and await _allowed(client, "*", _EVERYTHING):
            return []
        return [denied for denied in await asyncio.gather(*(_denied(client, each, asking) for each in needs)) if denied]
    except (Forbidden, NotFound, MethodNotAllowed):
        return []  # a server that answers no such questions: we will see


async def _denied(client: Client, need: Need, asking: asyncio.Semaphore) -> Need | None:
    async with asking:
        verbs = tuple([verb for verb in need.verbs if not await _allowed(client, verb, need)])
    return replace(need, verbs=verbs) if verbs else None


async def _allowed(client: Client, verb: str, need: Need) -> bool:
    asked = {
        "verb": verb,
        "group": need.resource.group,
        "version": need.resource.version,
        "resource": need.resource.plural,
        "namespace": need.namespace,
        "name": need.name,
    }
    body = {**_ACCESS.type_meta, "spec": {"resourceAttributes": asked}}
    answer = await client.create(body, kind=_ACCESS)
    return bool(answer["status"].get("allowed"))
