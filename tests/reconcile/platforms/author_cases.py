"""What members of a team and administrators of the platform may write, for every API server that checks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import MachineRequest, ProviderConfig, Team, TenantAddon, TenantCluster
from homeport.api.meta import Unstructured
from homeport.client.errors import Forbidden
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.platforms.butler.team.binding import cluster_roles
from homeport.platforms.butler.team.role import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SECRETS_ROLE,
    platform_role,
    team_role,
)
from reconcile.platforms.butler_kit import NAMESPACE, butler

RBAC = "rbac.authorization.k8s.io"
FINALIZER = "butler.butlerlabs.dev/tenantcluster"
ENVIRONMENT = "butler.butlerlabs.dev/environment"
As = Callable[[str], Client]
KINDS: dict[str, Any] = {
    each.__resource__.kind: each.__resource__ for each in (TenantCluster, TenantAddon, ProviderConfig, MachineRequest)
}


async def prepare(root: Client) -> None:
    """Namespace harbour with an operator and an admin, and an administrator of the platform."""
    for name in ("harbour", "butler-system"):
        space: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await root.create(Unstructured(space), kind=NAMESPACE)
    for each in cluster_roles():
        await root.create(Unstructured(each), kind=CLUSTER_ROLE)
    for user, role, namespace in (
        ("operator", team_role("operator"), "harbour"),
        ("admin", team_role("admin"), "harbour"),
        ("platform", SECRETS_ROLE, "butler-system"),
        ("platform", platform_role("admin"), ""),
    ):
        kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
        meta = {"name": f"{user}-{role}", **({"namespace": namespace} if namespace else {})}
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        subjects = [{"kind": "User", "name": user, "apiGroup": RBAC}]
        body: dict[str, Any] = {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind.kind,
            "metadata": meta,
            "roleRef": ref,
            "subjects": subjects,
        }
        await root.create(Unstructured(body), kind=kind)


def cluster(name: str, spec: dict[str, Any] | None = None, **meta: Any) -> Unstructured:
    return butler("TenantCluster", name, spec or {}, namespace="harbour", **meta)


async def may(client: Client, body: Unstructured) -> None:
    await client.create(body, kind=KINDS[body["kind"]])


async def may_not(client: Client, body: Unstructured, words: str) -> None:
    with pytest.raises(Forbidden, match=words):
        await client.create(body, kind=KINDS[body["kind"]])


async def patch(client: Client, kind: Any, name: str, body: dict[str, Any]) -> None:
    await client.patch(kind.__resource__, Key("harbour", name), MergePatch(body))


async def check_owners(as_: As) -> None:
    """Whoever could add an owner that does not exist would have the cluster deleted by the garbage collector."""
    await may(as_("operator"), cluster("owned"))
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-000000000000"}
    body = {"metadata": {"ownerReferences": [ref]}}
    with pytest.raises(Forbidden, match="only somebody who may delete it"):
        await patch(as_("operator"), TenantCluster, "owned", body)
    await patch(as_("operator"), TenantCluster, "owned", {"metadata": {"labels": {"a": "b"}}})
    await as_("admin").patch(TenantCluster.__resource__, Key("harbour", "owned"), MergePatch(body), Write(dry_run=True))
    await as_("admin").delete(TenantCluster.__resource__, Key("harbour", "owned"))


async def check_finalizers(as_: As) -> None:
    await may(as_("admin"), cluster("kept", finalizers=[FINALIZER, "example.com/own"]))
    for user in ("operator", "admin"):
        with pytest.raises(Forbidden, match="all that belongs to the object is gone"):
            await patch(as_(user), TenantCluster, "kept", {"metadata": {"finalizers": ["example.com/own"]}})
    # Everything else about finalizers is theirs.
    await patch(as_("operator"), TenantCluster, "kept", {"metadata": {"finalizers": [FINALIZER]}})
    await as_("admin").delete(TenantCluster.__resource__, Key("harbour", "kept"))
    with pytest.raises(Forbidden):
        await patch(as_("admin"), TenantCluster, "kept", {"metadata": {"finalizers": None}})
    await patch(as_("platform"), TenantCluster, "kept", {"metadata": {"finalizers": None}})
    # Objects without a namespace, too: an administrator may remove their finalizers.
    kind, key = Team.__resource__, Key("", "kept")
    await as_("platform").create(butler("Team", "kept", {}, finalizers=["butler.butlerlabs.dev/team"]), kind=kind)
    await as_("platform").patch(kind, key, MergePatch({"metadata": {"finalizers": None}}))
    await as_("platform").delete(kind, key)


async def check_clusters(as_: As) -> None:
    operator, admin = as_("operator"), as_("admin")
    key = {"machineTemplate": {"os": {"sshAuthorizedKey": "ssh-ed25519 AAAA"}}}
    image = {"machineTemplate": {"os": {"talos": {"installerImage": "charts.example.com/mine:1"}}}}
    powers: list[dict[str, Any]] = [
        {"workers": key},
        {"workers": image},
        {"workerPools": [{"name": "gpu", **key}]},
        {"addons": {"cni": {"provider": "cilium", "values": {"extraConfig": {"a": "b"}}}}},
        {"addons": {"gitops": {"provider": "fluxcd", "repository": {"url": "https://git.example.com/mine"}}}},
    ]
    for number, spec in enumerate(powers):
        await may_not(operator, cluster(f"power-{number}", spec), "administer")
        await may(admin, cluster(f"power-{number}", spec))
        await patch(operator, TenantCluster, f"power-{number}", {"spec": {"kubernetesVersion": "v1.34.2"}})
    await may(operator, cluster("plain", {"workers": {"replicas": 2}, "addons": {"cni": {"provider": "cilium"}}}))
    await patch(operator, TenantCluster, "plain", {"spec": {"workers": {"replicas": 3}}})
    with pytest.raises(Forbidden, match="administer"):
        await patch(operator, TenantCluster, "plain", {"spec": {"workers": key}})
    other = {"machineTemplate": {"os": {"sshAuthorizedKey": "ssh-ed25519 BBBB"}}}
    with pytest.raises(Forbidden, match="administer"):
        await patch(operator, TenantCluster, "power-0", {"spec": {"workers": other}})
    # Administrators of an environment have all rights in its clusters.
    with pytest.raises(Forbidden, match="administer"):
        await patch(operator, TenantCluster, "plain", {"metadata": {"labels": {ENVIRONMENT: "dev"}}})
    await patch(admin, TenantCluster, "plain", {"metadata": {"labels": {ENVIRONMENT: "dev"}}})


async def check_addons(as_: As) -> None:
    operator, admin = as_("operator"), as_("admin")

    def addon(name: str, **spec: Any) -> Unstructured:
        return butler("TenantAddon", name, {"clusterRef": {"name": "plain"}, **spec}, namespace="harbour")

    helm = {"repository": "https://charts.example.com", "chart": "mine"}
    await may(operator, addon("listed", addon="metrics-server"))
    await may_not(operator, addon("own", helm=helm, version="1.0.0"), "administer")
    await may_not(operator, addon("valued", addon="metrics-server", values={"extra": []}), "administer")
    with pytest.raises(Forbidden, match="administer"):
        await patch(operator, TenantAddon, "listed", {"spec": {"values": {"extra": ["object"]}}})
    await may(admin, addon("own", helm=helm, version="1.0.0"))
    await patch(operator, TenantAddon, "own", {"spec": {"version": "1.0.1", "paused": True}})
    for change in ({"clusterRef": {"name": "other"}}, {"helm": {"chart": "theirs"}}, {"values": {"a": "b"}}):
        with pytest.raises(Forbidden, match="administer"):
            await patch(operator, TenantAddon, "own", {"spec": change})
    await operator.delete(TenantAddon.__resource__, Key("harbour", "own"))


async def check_secrets(as_: As) -> None:
    platform, admin = as_("platform"), as_("admin")

    def config(name: str, namespace: str, ref: dict[str, str], **more: Any) -> Unstructured:
        part = {"credentialsRef": ref, "prismCentral": {"address": "pc.example.com"}}
        return butler("ProviderConfig", name, {"type": "nutanix", "nutanix": part, **more}, namespace=namespace)

    await may(platform, config("own", "butler-system", {"name": "site"}))
    await may(admin, config("theirs", "harbour", {"name": "site"}))
    stolen = {"name": "token", "namespace": "kube-system"}
    for namespace in ("butler-system", "harbour"):
        await may_not(platform, config("stolen", namespace, stolen), "may read")
    await may_not(platform, config("stolen", "harbour", {"name": "site"}), "may read")
    outer = {"type": "nutanix", "credentialsRef": stolen, "nutanix": {"prismCentral": {"address": "pc.example.com"}}}
    await may_not(platform, butler("ProviderConfig", "outer", outer, namespace="butler-system"), "may read")
    # Nor is the address beside a Secret theirs to change.
    elsewhere = {"nutanix": {"prismCentral": {"address": "evil.example.com"}}}
    with pytest.raises(Forbidden, match="may read"):
        await patch(platform, ProviderConfig, "theirs", {"spec": elsewhere})
    await patch(platform, ProviderConfig, "theirs", {"metadata": {"labels": {"seen": "yes"}}})
    request = {
        "providerRef": {"name": "own"},
        "machineName": "m",
        "cpu": 1,
        "memoryMB": 2048,
        "diskGB": 20,
        "role": "worker",
    }
    stolen_data = {**request, "userDataSecretRef": stolen}
    await may_not(platform, butler("MachineRequest", "m", stolen_data, namespace="butler-system"), "may read")
    own_data = {**request, "userDataSecretRef": {"name": "site"}}
    await may(platform, butler("MachineRequest", "m", own_data, namespace="butler-system"))


CHECKS = (check_owners, check_finalizers, check_clusters, check_addons, check_secrets)
