"""What a manager must be allowed to do on a cluster: asked before it starts, not found out one refusal at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from homeport.api.meta import Resource
from homeport.capi.rule import ordered
from homeport.client.errors import ApiError
from homeport.client.protocol import Client
from homeport.runtime.event import NEW as EVENT
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Elected, Manager, Sharded
from homeport.runtime.permission import Need

_SELF = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)


def needs_of(manager: Manager) -> list[Need]:
    """What it needs itself and for its caches; what reconcilers write is in the rules of their components."""
    found: dict[Need, None] = {}
    match manager.mode:
        case Elected(namespace=namespace, name=name):
            found[Need(("create",), LEASE, namespace)] = None
            found[Need(("get", "update"), LEASE, namespace, name)] = None
        case Sharded(namespace=namespace):
            found[Need(("get", "list", "create", "update", "delete"), LEASE, namespace)] = None
    if manager.common is not None:
        key = manager.common.key
        found[Need(("create",), LEASE, key.namespace)] = None
        found[Need(("get", "update"), LEASE, key.namespace, key.name)] = None
    found |= {Need(("get", "watch"), LEASE, each.namespace, each.name): None for each in manager.before}
    if manager.common is not None:
        found |= {Need(("get",), LEASE, each.namespace, each.name): None for each in manager.common.leases}
    for informer in manager.informers:
        found[Need(("list", "watch"), informer.resource, informer.query.namespace)] = None
    found[Need(("create", "patch"), EVENT)] = None
    return list(found)


async def user_name(client: Client) -> str:
    """As whom the server knows us; '' if it does not tell."""
    with contextlib.suppress(ApiError):
        answer = await client.create({**_SELF.type_meta}, kind=_SELF)
        return str(answer["status"]["userInfo"].get("username", ""))
    return ""


def explain(user: str, denied: Sequence[Need]) -> str:
    who = f"user {user!r}" if user else "the user of the kubeconfig"
    listed = "".join(f"\n  {line}" for line in _lines(denied))
    return (
        f"{who} lacks permissions that the controllers need:{listed}\nUse another user, grant these with a "
        "ClusterRole, or run 'homeport install', which creates a ServiceAccount with all of them (repeat it after an "
        "update)"
    )


def _lines(denied: Sequence[Need]) -> list[str]:
    """Kinds for which the same is missing share a line."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for need in denied:
        where = f" in namespace {need.namespace}" if need.namespace else ""
        named = f"{need.resource.qualified}{f' {need.name}' if need.name else ''}"
        kinds.setdefault((", ".join(ordered(need.verbs)), where, need.resource.group), []).append(named)
    return [f"{verbs} {', '.join(found)}{where}" for (verbs, where, _), found in kinds.items()]
