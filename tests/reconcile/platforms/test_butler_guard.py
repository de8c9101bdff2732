"""Who may write what is installed in the management cluster."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import AddonDefinition, ManagementAddon
from homeport.api.meta import Unstructured
from homeport.apiserver.request import User
from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch
from homeport.platforms.butler.addon import guard
from homeport.platforms.butler.team.role import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CLUSTER_ROLES, platform_role
from reconcile.platforms.butler_kit import butler, butler_plane

RBAC = "rbac.authorization.k8s.io"
DEFINITION = {
    "displayName": "house",
    "description": "An add-on of the house",
    "category": "other",
    "chart": {"repository": "https://charts.example.com", "name": "house", "defaultVersion": "1.0.0"},
}
MARK = {guard.MANAGEMENT_LABEL: "true"}


def bound(user: str, role: str) -> Unstructured:
    subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    meta = {"name": user}
    return Unstructured(
        apiVersion=f"{RBAC}/v1", kind="ClusterRoleBinding", metadata=meta, roleRef=ref, subjects=[subject]
    )


async def test_only_somebody_who_may_do_everything_decides_what_the_management_cluster_runs() -> None:
    async with butler_plane() as p:
        guard.join(p.server)
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": platform_role("admin")}}
        await p.client.create(Unstructured({**role, "rules": CLUSTER_ROLES[platform_role("admin")]}), kind=CLUSTER_ROLE)
        await p.client.create(bound("ann", platform_role("admin")), kind=CLUSTER_ROLE_BINDING)
        await p.client.create(bound("root", "cluster-admin"), kind=CLUSTER_ROLE_BINDING)
        ann, root = (p.server.client(User(name, ("system:authenticated",))) for name in ("ann", "root"))
        addon: Any = butler("ManagementAddon", "metrics", {"addon": "metrics-server"})
        marked: Any = butler("AddonDefinition", "ours", DEFINITION, labels=MARK)

        for body, kind in ((addon, ManagementAddon), (marked, AddonDefinition)):
            with pytest.raises(Forbidden, match=r"only somebody with the verb \* on \* may write it"):
                await ann.create(body, kind=kind.__resource__)
            await root.create(body, kind=kind.__resource__)
            key = Key("", body["metadata"]["name"])
            with pytest.raises(Forbidden):
                await ann.patch(kind.__resource__, key, MergePatch({"metadata": {"labels": None}}))
            with pytest.raises(Forbidden):
                await ann.delete(kind.__resource__, key)
        # Those of tenant clusters are theirs, as long as they are not marked.
        await ann.create(butler("AddonDefinition", "house", DEFINITION), kind=AddonDefinition.__resource__)
        patch = MergePatch({"metadata": {"labels": MARK}})
        with pytest.raises(Forbidden):
            await ann.patch(AddonDefinition.__resource__, Key("", "house"), patch)
        await ann.delete(AddonDefinition.__resource__, Key("", "house"))


def test_the_policy_of_another_kubernetes_that_somebody_changed_is_noticed() -> None:
    wanted = guard.render_policy()
    rule = {**wanted["spec"]["matchConstraints"]["resourceRules"][0], "scope": "*"}
    stored = {
        **wanted,
        "spec": {**wanted["spec"], "matchConstraints": {"resourceRules": [rule], "matchPolicy": "Equivalent"}},
    }
    assert not guard.differs(Unstructured(stored), wanted)  # defaults of the API server
    audit = {**guard.render_binding()["spec"], "validationActions": ["Audit"]}
    assert guard.differs(Unstructured({**guard.render_binding(), "spec": audit}), guard.render_binding())
