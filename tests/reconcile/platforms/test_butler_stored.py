"""Kinds that are only stored say so in their status."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import IdentityProvider, LoadBalancerRequest, Workspace, WorkspaceTemplate
from homeport.client.protocol import Key
from homeport.machinery.condition import find
from homeport.platforms.butler import stored
from reconcile.platforms.butler_kit import butler, butler_plane

OIDC = {
    "type": "oidc",
    "oidc": {
        "issuer": "https://login.example.com",
        "clientID": "butler",
        "clientSecretRef": {"name": "oidc"},
        "redirectURL": "https://butler.example.com/callback",
    },
}
EXAMPLES: list[tuple[Any, dict[str, Any]]] = [
    (IdentityProvider, OIDC),
    (LoadBalancerRequest, {"clusterName": "harbour", "providerConfigRef": {"name": "nutanix-prod"}}),
    (Workspace, {"clusterRef": {"name": "harbour"}, "owner": "ada@example.com", "image": "workspace:1"}),
    (WorkspaceTemplate, {"displayName": "Python", "template": {"image": "workspace:1"}}),
]


@pytest.mark.parametrize(("kind", "spec"), EXAMPLES, ids=lambda each: getattr(each, "__name__", ""))
async def test_an_object_that_is_only_stored_says_so(kind: Any, spec: dict[str, Any]) -> None:
    at = kind.__resource__
    key = Key("default" if at.namespaced else "", "a")
    async with butler_plane(stored.install) as p:
        meta = {"namespace": "default"} if at.namespaced else {}
        await p.client.create(butler(at.kind, "a", spec, **meta), kind=at)
        found = await p.until(kind, key, lambda each: find(each.status.conditions, "Ready") is not None, timeout=30)
        ready = find(found.status.conditions, "Ready")
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("False", "NotActedOn")
        assert f"stores {at.kind} objects and does not act on them" in ready["message"]
        assert found.status.observed_generation == 1
        assert (await p.client.get(at, key))["spec"] == spec
        await p.client.delete(at, key)
        await p.gone(kind, key, timeout=30)
