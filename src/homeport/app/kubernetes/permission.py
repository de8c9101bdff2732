"""What a manager must be allowed to do on a cluster: asked before it starts, not found out one refusal at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from homeport.api.meta import Resource
from homeport.client.errors import ApiError
from homeport.client.protocol import Client
from homeport.runtime.event import NEW as EVENT
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Elected, Manager, Sharded
from homeport.runtime.permission import Need

_SELF = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)


def needs_of(manager: Manager) -> list[Need]:
    """What it needs itself and for its caches; what reconcilers write, they alone know."""
    found: dict[Need, None] = {}
    match manager.mode:
        case Elected(namespace=namespace, name=name):
            found[Need(("create",), LEASE, namespace)] = None
            found[Need(("get", "update"), LEASE, namespace, name)] = None
        case Sharded(namespace=namespace):
            found[Need(("get", "list", "create", "update", "delete"), LEASE, namespace)] = None
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
    listed = "".join(f"\n  {need}" for need in denied)
    return (
        f"{who} lacks permissions that the controllers need:{listed}\nGrant them with a ClusterRole, or use "
        "another user"
    )
