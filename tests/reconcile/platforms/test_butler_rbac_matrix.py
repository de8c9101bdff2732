"""Every role against every verb and resource, in every place: what is not in the table is refused.

The API server's own authorizer answers, from the objects that the controllers wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import GROUP, Team, TenantCluster, User
from homeport.api.meta import Resource
from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch, Query
from homeport.platforms.butler.definition import KINDS
from homeport.platforms.butler.team.reconciler import NAMESPACE, TeamReconciler
from homeport.platforms.butler.team.user import UserReconciler
from homeport.runtime.testing import Plane
from reconcile.platforms.butler_kit import butler, butler_plane
from reconcile.platforms.test_butler_team import ready

REVIEW = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
VERBS = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "administer",
]
READ = "get list watch"
CAPI = "cluster.x-k8s.io"
# Everything of Butler, and what an intruder would like to have.
RESOURCES = [
    *((GROUP, each.__resource__.plural) for each in KINDS),
    (GROUP, "tenantclusters/scale"),
    (GROUP, "tenantclusters/status"),
    (GROUP, "tenantclusters/finalizers"),
    (GROUP, "teams/status"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "users"),
    ("", "groups"),
    ("apps", "deployments"),
    (CAPI, "clusters"),
    (CAPI, "machines"),
    ("infrastructure.cluster.x-k8s.io", "nutanixmachines"),
    ("steward.butlerlabs.dev", "tenantcontrolplanes"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("certificates.k8s.io", "certificatesigningrequests/approval"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
]
CLUSTER = ""
PLACES = ("harbour", "dock", "butler-system", "own-1", "theirs-1", "default", CLUSTER)

Grants = dict[str, str]  # resource > verbs
_OWN = "imagesyncs ipallocations machinerequests networkpools providerconfigs tenantaddons tenantclusters workspaces"
VIEWER: Grants = {
    **dict.fromkeys(f"{_OWN} workspacetemplates".split(), READ),
    "tenantclusters/scale": "get",
    "events": READ,
}
OPERATOR: Grants = {
    **VIEWER,
    "tenantclusters": f"{READ} create update patch",
    "tenantclusters/scale": "get update patch",
    "tenantaddons": f"{READ} create update patch delete",
}
ADMIN: Grants = {
    **OPERATOR,
    "tenantclusters": f"{READ} create update patch delete deletecollection administer",
    "tenantaddons": f"{READ} create update patch delete deletecollection",
    "providerconfigs": f"{READ} create update patch delete",
    "secrets": f"{READ} create update patch delete",
}
# RBAC has no place for `all clusters but others'`: cluster-wide grants hold in namespaces, too.
MEMBER: Grants = {
    "addondefinitions": READ,
    "clustercreationpolicies": READ,
    "certificatesigningrequests": "create get",
}
TENANT: Grants = dict.fromkeys(("clusters", "machines", "nutanixmachines", "tenantcontrolplanes", "events"), READ)
BUTLER = [
    *(each.__resource__.plural for each in KINDS),
    "tenantclusters/scale",
    "tenantclusters/status",
    "tenantclusters/finalizers",
    "teams/status",
]
PLATFORM_VIEWER: Grants = {**dict.fromkeys(BUTLER, READ), "namespaces": READ, **TENANT}
PLATFORM_ADMIN: Grants = {
    **PLATFORM_VIEWER,
    **dict.fromkeys(BUTLER, f"{READ} create update patch delete deletecollection"),
    "tenantclusters": f"{READ} create update patch delete deletecollection administer",
    "certificatesigningrequests": "create get",
}
SECRETS: Grants = {"secrets": f"{READ} create update patch delete"}
EXPECTED: dict[str, dict[str, Grants]] = {
    "viewer": {"harbour": VIEWER, "own-1": TENANT},
    "operator": {"harbour": OPERATOR, "own-1": TENANT},
    "admin": {"harbour": ADMIN, "own-1": TENANT},
    "guest": {"own-1": TENANT},
    "stranger": {},
    "disabled": {},
    "platform-viewer": dict.fromkeys(PLACES, PLATFORM_VIEWER),
    "platform-admin": {
        **dict.fromkeys(PLACES, PLATFORM_ADMIN),
        "butler-system": {**PLATFORM_ADMIN, **SECRETS},
    },
    "disabled-platform-admin": {},
}
USERS: dict[str, dict[str, Any]] = {
    "disabled": {"disabled": True},
    "platform-viewer": {"platformRole": "viewer"},
    "platform-admin": {"isPlatformAdmin": True},
    "disabled-platform-admin": {"platformRole": "admin", "disabled": True},
}
MEMBERS = ("viewer", "operator", "admin", "guest")


@dataclass(frozen=True, slots=True)
class Ask:
    place: str
    group: str
    resource: str
    verb: str
    name: str = ""


def questions() -> Iterator[Ask]:
    for place in PLACES:
        for group, resource in RESOURCES:
            for verb in VERBS:
                yield Ask(place, group, resource, verb)


def expected(role: str, ask: Ask) -> bool:
    if ask.group == "" and ask.resource in ("users", "groups"):
        return False  # whom a user may impersonate; Butler's own users have the same plural
    held = EXPECTED[role].get(ask.place, {}).get(ask.resource, "")
    everywhere = MEMBER.get(ask.resource, "") if role in MEMBERS else ""
    return ask.verb in f"{held} {everywhere}".split()


async def allowed(p: Plane, user: str, ask: Ask) -> bool:
    resource, _, subresource = ask.resource.partition("/")
    attributes = {
        "namespace": ask.place,
        "group": ask.group,
        "resource": resource,
        "subresource": subresource,
        "verb": ask.verb,
        "name": ask.name,
    }
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    found = await p.client.create(
        {"apiVersion": "authorization.k8s.io/v1", "kind": REVIEW.kind, "spec": spec}, kind=REVIEW
    )
    return bool(found["status"]["allowed"])


def install(setup: Any) -> None:
    for make in (TeamReconciler, UserReconciler):
        setup.manager.add(make(setup.manager).controller)


@asynccontextmanager
async def teams() -> AsyncIterator[Plane]:
    """Team harbour with a member of each role, an environment with a guest, and a cluster; team dock with a cluster."""
    access = {"users": [{"name": each, "role": each} for each in ("viewer", "operator", "admin")]}
    access["users"].append({"name": "disabled", "role": "admin"})
    guest = {"name": "prod", "access": {"users": [{"name": "guest", "role": "operator"}]}}
    async with butler_plane(install, namespaces=("butler-system", "own-1", "theirs-1"), serve=True) as p:
        for name, more in USERS.items():
            user = butler("User", name, {"email": f"{name}@example.com", **more})
            await p.client.create(user, kind=User.__resource__)
        for name, spec in (("harbour", {"access": access, "environments": [guest]}), ("dock", {})):
            await p.client.create(butler("Team", name, spec), kind=Team.__resource__)
            await p.until(Team, Key("", name), ready)
        for namespace, name, where in (("harbour", "own", "own-1"), ("dock", "theirs", "theirs-1")):
            labels = {"labels": {f"{GROUP}/environment": "prod"}} if namespace == "harbour" else {}
            cluster = butler("TenantCluster", name, {}, namespace=namespace, **labels)
            await p.client.create(cluster, kind=TenantCluster.__resource__)
            status = MergePatch({"status": {"tenantNamespace": where}})
            await p.client.patch(TenantCluster.__resource__, Key(namespace, name), status, subresource="status")
        bindings = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
        await p.until(bindings, Key("own-1", "butler-team-viewer"), lambda obj: len(obj["subjects"]) == 4)
        clusterwide = Resource(bindings.group, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
        for name in ("butler-user-platform-viewer", "butler-user-platform-admin"):
            await p.until(clusterwide, Key("", name), lambda obj: True)
        await p.until(User, Key("", "platform-admin"), ready)
        yield p


def user_of(role: str) -> str:
    return f"{role}@example.com" if "platform" in role or role == "disabled" else role


@pytest.mark.timeout(300)
async def test_every_role_has_exactly_the_access_of_the_table() -> None:
    async with teams() as p:
        wrong = []
        for role in EXPECTED:
            for ask in questions():
                found = await allowed(p, user_of(role), ask)
                if found != expected(role, ask):
                    wrong.append(f"{role} {'may' if found else 'may not'} {ask}")
            await asyncio.sleep(0)
        assert not wrong, "\n".join(wrong[:40])


async def test_access_that_goes_by_name_reaches_one_object_alone() -> None:
    async with teams() as p:
        for role, resource, verb, name, place, expect in (
            ("viewer", "teams", "get", "harbour", CLUSTER, True),
            ("viewer", "teams", "get", "dock", CLUSTER, False),
            ("admin", "teams", "update", "harbour", CLUSTER, False),
            ("guest", "tenantclusters", "update", "own", "harbour", True),
            ("guest", "tenantclusters", "delete", "own", "harbour", False),
            ("guest", "tenantclusters", "get", "other", "harbour", False),
            ("guest", "tenantclusters", "get", "theirs", "dock", False),
            ("stranger", "teams", "get", "harbour", CLUSTER, False),
        ):
            ask = Ask(place, GROUP, resource, verb, name)
            assert await allowed(p, user_of(role), ask) == expect, ask


async def test_requests_of_members_are_judged_like_the_table() -> None:
    """The same by requests over HTTP, each member with a client certificate."""
    clusters, secrets = TenantCluster.__resource__, Resource("", "v1", "Secret", "secrets")
    made = butler("TenantCluster", "new", {}, namespace="harbour")
    group = "system:authenticated"
    async with (
        teams() as p,
        p.http("operator", group) as operator,
        p.http("viewer", group) as viewer,
        p.http("admin", group) as admin,
    ):
        with pytest.raises(Forbidden):
            await viewer.create(made, kind=clusters)
        await operator.create(made, kind=clusters)
        with pytest.raises(Forbidden):
            await operator.delete(clusters, Key("harbour", "new"))
        with pytest.raises(Forbidden):
            await operator.list(secrets, Query(namespace="harbour"))
        await admin.delete(clusters, Key("harbour", "new"))
        await admin.list(secrets, Query(namespace="harbour"))
        for each in (operator, viewer, admin):
            with pytest.raises(Forbidden):
                await each.list(clusters, Query(namespace="dock"))
            with pytest.raises(Forbidden):
                await each.list(NAMESPACE, Query())
