"""The question `may this user do that?`, its answer, and the words of a refusal."""

from __future__ import annotations

from typing import NamedTuple

from homeport.apiserver.request import User
from homeport.client.errors import Forbidden


class Attributes(NamedTuple):
    """What a user wants to do: on a resource, or (if `path` is set) on a non-resource path."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


def describe(a: Attributes) -> str:
    """`User "x" cannot list resource "machines" in API group "cluster.x-k8s.io" in the namespace "default"`."""
    who = f'User "{a.user.name}" cannot {a.verb}'
    if a.path:
        return f'{who} path "{a.path}"'
    resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
    where = f'in the namespace "{a.namespace}"' if a.namespace else "at the cluster scope"
    return f'{who} resource "{resource}" in API group "{a.group}" {where}'


def forbidden(a: Attributes, reason: str = "") -> Forbidden:
    """The error for a refused request, worded as Kubernetes words it."""
    text = f"{describe(a)}: {reason}" if reason else describe(a)
    return refusal(a.group, "" if a.path else a.resource, a.name, text)


def refusal(group: str, resource: str, name: str, why: str) -> Forbidden:
    """`machines.cluster.x-k8s.io "a" is forbidden: <why>`; without a resource `forbidden: <why>`."""
    if not resource:
        return Forbidden(f"forbidden: {why}")
    qualified = f"{resource}.{group}" if group else resource
    named = f'{qualified} "{name}"' if name else qualified
    return Forbidden(f"{named} is forbidden: {why}", group=group, kind=resource, name=name)
