"""What a manager must be allowed to do on a cluster: asked before it starts, not found out one refusal at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from homeport.client.protocol import Client
from homeport.runtime.event import NEW as EVENT
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Elected, Manager, Sharded

_ACCESS = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
_SELF = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)


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


def needs_of(manager: Manager) -> list[Need]:
    """What it needs itself and for its caches; what reconcilers write, they alone know."""
    found: dict[Need, None] = {}
    match manager.mode:
        case Elected(namespace=namespace, name=name):
            found[Need(("create",), LEASE, namespace)] = None
            found[Need(("get", "update"), LEASE, namespace, name)] = None
        case Sharded(namespace=namespace):
            found[Need(("get", "list", "create", "update"), LEASE, namespace)] = None
    for informer in manager.informers:
        found[Need(("list", "watch"), informer.resource, informer.query.namespace)] = None
    found[Need(("create", "patch"), EVENT)] = None
    return list(found)


async def missing(client: Client, needs: Iterable[Need]) -> list[Need]:
    """Those that the server denies. None, if it does not tell."""
    denied = []
    for need in needs:
        try:
            verbs = [verb for verb in need.verbs if not await _allowed(client, verb, need)]
        except (Forbidden, NotFound, MethodNotAllowed):
            return []  # a server that answers no such questions: we will see
        if verbs:
            denied.append(replace(need, verbs=tuple(verbs)))
    return denied


async def _allowed(client: Client, verb: str, need: Need) -> bool:
    asked = {
        "verb": verb,
        "group": need.resource.group,
        "version": need.resource.version,
        "resource": need.resource.plural,
        "namespace": need.namespace,
        "name": need.name,
    }
    body = {"apiVersion": _ACCESS.api_version, "kind": _ACCESS.kind, "spec": {"resourceAttributes": asked}}
    answer = await client.create(body, kind=_ACCESS)
    return bool(answer["status"].get("allowed"))


async def user_name(client: Client) -> str:
    """As whom the server knows us; '' if it does not tell."""
    with contextlib.suppress(ApiError):
        answer = await client.create({"apiVersion": _SELF.api_version, "kind": _SELF.kind}, kind=_SELF)
        return str(answer["status"]["userInfo"].get("username", ""))
    return ""


def explain(user: str, denied: Sequence[Need]) -> str:
    who = f"user {user!r}" if user else "the user of the kubeconfig"
    listed = "".join(f"\n  {need}" for need in denied)
    return (
        f"{who} lacks permissions that the controllers need:{listed}\nGrant them with a ClusterRole, or use "
        "another user"
    )
