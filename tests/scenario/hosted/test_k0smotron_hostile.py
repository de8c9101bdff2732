"""k0smotron's kinds in the hands of users who want what is not theirs, or who are not careful with names."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.k0smotron.v1beta2 import Cluster, JoinTokenRequest
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.k0smotron.grant import ALLOWED_NAMESPACES_ANNOTATION
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.hosted.k0smotron_stage import (
    CONFIG_MAP,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    Stage,
    kmc,
    request,
    stage,
)
from scenario.hosted.test_k0smotron_cluster import host_secret

OTHER = "other"
NAMESPACE_OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}}
ALLOW = {"metadata": {"annotations": {ALLOWED_NAMESPACES_ANNOTATION: f"x, {OTHER}"}}}


async def said(s: Stage, kind: Any, key: Key, reason: str, about: str = "Available") -> str:
    """The message with which an object reports this reason."""

    def reports(obj: Any) -> bool:
        return (condition.find(obj.status.conditions, about) or {}).get("reason") == reason

    found = await s.plane.until(kind, key, reports, 900, what=reason)
    return str((condition.find(found.status.conditions, about) or {}).get("message"))


def in_other(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "namespace": OTHER}}


@virtual
async def test_a_kubeconfig_of_another_namespace_is_used_only_if_it_allows_that() -> None:
    async with stage(host=True) as s:
        await s.have(NAMESPACE_OTHER)
        await s.have(host_secret())
        ref = {"kubeconfigRef": {"name": "host", "namespace": NAMESPACE}}
        await s.have(in_other(kmc(remoteHostCluster=ref)))
        text = await said(s, Cluster, Key(OTHER, "edge"), "NamespaceNotAllowed")
        assert text.startswith("Secret default/host of spec.remoteHostCluster.kubeconfigRef is in another namespace")
        assert await s.names(POD, s.host) == set()

        # a Secret that does not exist gives the same answer
        absent = {"kubeconfigRef": {"name": "absent", "namespace": NAMESPACE}}
        await s.have(in_other(kmc("probe", remoteHostCluster=absent)))
        assert "does not exist" not in await said(s, Cluster, Key(OTHER, "probe"), "NamespaceNotAllowed")
        # and what never ran anywhere can be deleted
        await s.client.delete(Cluster, Key(OTHER, "probe"))
        await s.plane.gone(Cluster, Key(OTHER, "probe"), 60)

        await s.client.patch(SECRET, Key(NAMESPACE, "host"), MergePatch(ALLOW))
        await s.plane.until(Cluster, Key(OTHER, "edge"), lambda each: each.status.ready_replicas == 1, 900)


@virtual
async def test_a_token_for_a_cluster_of_another_namespace_is_given_only_if_that_allows_it() -> None:
    async with stage() as s:
        await s.have(NAMESPACE_OTHER)
        await s.have(kmc())
        await s.available()
        body = request()
        body["apiVersion"] = "k0smotron.io/v1beta1"
        body["spec"] = {"clusterRef": {"name": "edge", "namespace": NAMESPACE}, "role": "controller"}
        await s.have(in_other(body))
        key = Key(OTHER, "join")
        text = await said(s, JoinTokenRequest, key, "NamespaceNotAllowed", "JoinTokenSecretCreated")
        assert f"set the annotation {ALLOWED_NAMESPACES_ANNOTATION}=other on it" in text
        assert await s.tokens() == set()

        await s.patch(Cluster, "edge", ALLOW)
        await said(s, JoinTokenRequest, key, "Created", "JoinTokenSecretCreated")
        assert len(await s.tokens()) == 1


@virtual
async def test_objects_of_somebody_else_with_our_names_are_neither_changed_nor_deleted() -> None:
    theirs = {"metadata": {"name": "kmc-edge-lb"}, "spec": {"ports": [{"port": 80}]}}
    async with stage() as s:
        await s.have({**theirs, "apiVersion": "v1", "kind": "Service"})
        await s.have(kmc())
        text = await said(s, Cluster, Key(NAMESPACE, "edge"), "OwnedByAnother")
        assert "Service default/kmc-edge-lb exists and belongs to something else" in text
        await s.client.delete(SERVICE, Key(NAMESPACE, "kmc-edge-lb"))

        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kmc-later-config"}, "data": {"a": "b"}}
        await s.have(config)
        await s.have(kmc("later"))
        assert "ConfigMap default/kmc-later-config" in await said(s, Cluster, Key(NAMESPACE, "later"), "OwnedByAnother")
        await s.delete(Cluster, "later")
        await s.plane.gone(Cluster, Key(NAMESPACE, "later"), 600)
        assert (await s.get(CONFIG_MAP, "kmc-later-config"))["data"] == {"a": "b"}

        await s.available()  # the first one goes on when the name is free


@virtual
async def test_two_clusters_whose_objects_would_have_one_name_do_not_share_it() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        before = await s.get(STATEFUL_SET, "kmc-edge-etcd")
        await s.have(kmc("edge-etcd"))  # its StatefulSet would be the other's etcd
        text = await said(s, Cluster, Key(NAMESPACE, "edge-etcd"), "OwnedByAnother")
        assert "StatefulSet default/kmc-edge-etcd" in text or "Service default/kmc-edge-etcd" in text
        after = await s.get(STATEFUL_SET, "kmc-edge-etcd")
        assert (after.uid, after["spec"]) == (before.uid, before["spec"])
        await s.delete(Cluster, "edge-etcd")
        await s.plane.gone(Cluster, Key(NAMESPACE, "edge-etcd"), 600)
        assert (await s.get(STATEFUL_SET, "kmc-edge-etcd")).uid == before.uid


@virtual
async def test_the_authority_and_the_kubeconfig_of_another_control_plane_are_not_used() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "their-control-plane", "controller": True}
    async with stage() as s:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "their-control-plane"}}
        await s.have(made)
        uid = (await s.get(CONFIG_MAP, "their-control-plane")).uid
        for name in ("edge-ca", "far-kubeconfig"):
            metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": [{**owner, "uid": uid}]}
            await s.client.create({"metadata": metadata, "data": {"value": "eA=="}}, kind=SECRET)
        await s.have(kmc(), kmc("far"))
        text = await said(s, Cluster, Key(NAMESPACE, "edge"), "CertificatesUnusable")
        assert "Secret default/edge-ca belongs to ConfigMap their-control-plane, another control plane" in text
        text = await said(s, Cluster, Key(NAMESPACE, "far"), "OwnedByAnother")
        assert "Secret default/far-kubeconfig is the kubeconfig of another cluster" in text


@virtual
async def test_a_name_that_can_not_be_a_service_is_refused() -> None:
    async with stage() as s:
        with pytest.raises(Invalid, match=r'metadata\.name: Invalid value: "edge\.one": must have lower case letters'):
            await s.have(kmc("edge.one"))
