"""Which objects move, which also stay, and in which order they are created."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, MOVE_HIERARCHY_LABEL, MOVE_LABEL, PAUSED, STAYS_LABEL
from homeport.move import MoveRefused
from homeport.move.graph import Graph, Selection
from homeport.move.kind import MovedKind
from homeport.move.node import Node
from homeport.move.side import CONFIG_MAP, SECRET

CAPI = "cluster.x-k8s.io"


def kind(name: str, group: str = CAPI, *, namespaced: bool = True, **more: Any) -> MovedKind:
    return MovedKind(Resource(group, "v1beta2", name, name.lower() + "s", namespaced), **more)


CLUSTER = kind("Cluster", moves=True, hierarchy=True)
CLASS = kind("ClusterClass", moves=True, hierarchy=True)
MACHINE = kind("Machine")
POOL = kind("GlobalPool", "ipam", namespaced=False, moves=True, hierarchy=True)
DOMAIN = kind("FailureDomain", "infra", moves=True)
ADDON = kind("ClusterAddon", "addon", moves=True, hierarchy=True)
TENANT = kind("TenantCluster", "butler", moves=True, hierarchy=True)
SECRETS, CONFIG_MAPS = MovedKind(SECRET), MovedKind(CONFIG_MAP)


def node(of: MovedKind, name: str, *owners: str, space: str = "a", **more: Any) -> Node:
    """Owners by UID, which is `Kind/name`."""
    meta: dict[str, Any] = {"name": name, "uid": f"{of.resource.kind}/{name}", "resourceVersion": "1"}
    if of.resource.namespaced:
        meta["namespace"] = space
    if owners:
        meta["ownerReferences"] = [{"uid": each, "kind": each.partition("/")[0], "name": "x"} for each in owners]
    for field in ("labels", "annotations", "deletionTimestamp"):
        if field in more:
            meta[field] = more.pop(field)
    return Node(of, Unstructured({"metadata": meta, **more}))


def chosen(*nodes: Node, namespace: str = "") -> Selection:
    return Graph.build(nodes).selection(namespace)


def names(selection: Selection) -> set[str]:
    return {each.uid for each in selection.nodes}


def test_everything_that_a_cluster_owns_moves_and_nothing_else() -> None:
    found = chosen(
        node(CLUSTER, "one"),
        node(MACHINE, "m", "Cluster/one"),
        node(SECRETS, "bootstrap", "Machine/m"),
        node(SECRETS, "other"),
        node(CONFIG_MAPS, "kube-root-ca.crt"),
        node(MACHINE, "alone"),
    )
    assert names(found) == {"Cluster/one", "Machine/m", "Secret/bootstrap"}
    assert not found.kept
    assert [each.uid for each in found.left] == ["Machine/alone"]


@pytest.mark.parametrize("name", ["one-kubeconfig", "one-ca", "one-etcd", "one-sa", "one-apiserver-etcd-client"])
def test_secrets_of_a_cluster_are_found_by_their_name(name: str) -> None:
    assert f"Secret/{name}" in names(chosen(node(CLUSTER, "one"), node(SECRETS, name)))
    assert names(chosen(node(CLUSTER, "one"), node(SECRETS, name, space="b"))) == {"Cluster/one"}
    assert names(chosen(node(CLUSTER, "two"), node(SECRETS, name))) == {"Cluster/two"}


def test_secrets_and_config_maps_of_a_cluster_are_found_by_their_label() -> None:
    labels = {CLUSTER_NAME_LABEL: "one"}
    found = chosen(node(CLUSTER, "one"), node(SECRETS, "s", labels=labels), node(CONFIG_MAPS, "c", labels=labels))
    assert names(found) == {"Cluster/one", "Secret/s", "ConfigMap/c"}


def test_what_every_plane_creates_for_itself_stays_and_is_expected_of_the_target() -> None:
    own = node(CLASS, "class", labels={STAYS_LABEL: ""})
    found = chosen(own, node(CLUSTER, "one", spec={"topology": {"classRef": {"name": "class"}}}))
    assert names(found) == {"Cluster/one"}
    assert [(one.key.name, other.key.name) for one, other in found.presumed] == [("one", "class")]
    assert list(found.left) == []


@pytest.mark.parametrize("label", [MOVE_LABEL, MOVE_HIERARCHY_LABEL])
def test_objects_move_by_their_own_label(label: str) -> None:
    found = chosen(node(SECRETS, "s", labels={label: ""}), node(CONFIG_MAPS, "child", "Secret/s"))
    assert ("ConfigMap/child" in names(found)) == (label == MOVE_HIERARCHY_LABEL)
    assert "Secret/s" in names(found)


@pytest.mark.parametrize(
    "spec",
    [
        {"credentialsRef": {"name": "s"}},
        {"nutanix": {"credentialsRef": {"name": "s", "key": "kubeconfig"}}},
        {"prismCentral": {"credentialRef": {"kind": "Secret", "name": "s", "namespace": "a"}}},
        {"identitySecretName": "s"},
        {"files": [{"contentFrom": {"secret": {"name": "s", "key": "k"}}}]},
        {"valuesFrom": [{"kind": "Secret", "name": "s"}]},
    ],
)
def test_secrets_that_an_object_refers_to_move_with_it(spec: dict[str, Any]) -> None:
    assert "Secret/s" in names(chosen(node(TENANT, "t", spec=spec), node(SECRETS, "s")))


def test_a_secret_that_what_stays_refers_to_is_copied_and_stays() -> None:
    ref = {"credentialsRef": {"name": "s", "namespace": "a"}}
    moved, other = node(TENANT, "t", spec=ref), node(TENANT, "u", space="b", spec=ref)
    found = chosen(moved, other, node(SECRETS, "s"), namespace="a")
    assert names(found) == {"TenantCluster/t", "Secret/s"}
    assert found.kept == {"Secret/s"}
    assert chosen(moved, other, node(SECRETS, "s")).kept == frozenset()


def test_a_secret_that_belongs_to_something_else_is_left_to_it() -> None:
    spec = {"credentialsRef": {"name": "s"}}
    assert "Secret/s" not in names(chosen(node(TENANT, "t", spec=spec), node(SECRETS, "s", "Deployment/x")))


def test_tokens_of_service_accounts_never_move() -> None:
    token = node(SECRETS, "s", labels={MOVE_LABEL: ""}, type="kubernetes.io/service-account-token")
    assert names(chosen(token)) == set()


def test_one_namespace_moves_alone_and_leaves_what_is_shared() -> None:
    topology = {"topology": {"classRef": {"name": "small", "namespace": "b"}}}
    found = chosen(
        node(CLUSTER, "one", spec=topology),
        node(CLUSTER, "two", space="b"),
        node(CLASS, "small", space="b"),
        node(MACHINE, "template", "ClusterClass/small", space="b"),
        node(POOL, "range"),
        node(SECRETS, "of-pool", "GlobalPool/range", space="c"),
        node(DOMAIN, "d"),
        node(DOMAIN, "e", space="b"),
        namespace="a",
    )
    shared = {"ClusterClass/small", "Machine/template", "GlobalPool/range", "Secret/of-pool"}
    assert names(found) == {"Cluster/one", "FailureDomain/d", *shared}
    assert found.kept == shared
    assert {each.uid for each in found.roots()} == {"Cluster/one", "FailureDomain/d"}


def test_a_class_that_a_cluster_of_another_namespace_uses_stays_as_well() -> None:
    topology = {"topology": {"classRef": {"name": "small", "namespace": "a"}}}
    found = chosen(node(CLASS, "small"), node(CLUSTER, "two", space="b", spec=topology), namespace="a")
    assert found.kept == {"ClusterClass/small"}


def test_a_namespace_takes_along_those_that_its_objects_have_for_themselves() -> None:
    labels = {"butler/source-namespace": "a", "butler/source-name": "t"}
    nodes = [
        node(TENANT, "t"),
        node(CLUSTER, "one", space="t-123", labels=labels),
        node(MACHINE, "m", "Cluster/one", space="t-123"),
        node(SECRETS, "one-kubeconfig", space="t-123"),
        node(CLUSTER, "two", space="u-456", labels={**labels, "butler/source-name": "u"}),
    ]
    found = chosen(*nodes, namespace="a")
    assert names(found) == {"TenantCluster/t", "Cluster/one", "Machine/m", "Secret/one-kubeconfig"}
    assert not found.kept
    assert not found.torn
    assert [each.uid for each in found.groups()[0]] == ["TenantCluster/t"]
    alone = chosen(*nodes, namespace="t-123")
    assert alone.torn == ["Cluster t-123/one belongs to TenantCluster a/t"]


def test_owners_are_created_first_by_reference_and_by_name() -> None:
    found = chosen(
        node(SECRETS, "bootstrap", "Machine/m"),
        node(ADDON, "cni", spec={"clusterName": "one"}),
        node(MACHINE, "m", "Cluster/one"),
        node(SECRETS, "one-kubeconfig"),
        node(CLUSTER, "one", spec={"topology": {"class": "small"}}),
        node(CLASS, "small"),
    )
    assert [sorted(each.uid for each in group) for group in found.groups()] == [
        ["ClusterClass/small"],
        ["Cluster/one"],
        ["ClusterAddon/cni", "Machine/m", "Secret/one-kubeconfig"],
        ["Secret/bootstrap"],
    ]


def test_an_owner_that_does_not_move_delays_nothing() -> None:
    found = chosen(node(CLUSTER, "one", "Fleet/far"))
    assert [len(group) for group in found.groups()] == [1]


def test_a_circle_of_names_is_cut_and_a_circle_of_owners_is_refused() -> None:
    found = chosen(node(TENANT, "one", spec={"clusterName": "one"}), node(CLUSTER, "one", "TenantCluster/one"))
    assert [[each.uid for each in group] for group in found.groups()] == [["TenantCluster/one"], ["Cluster/one"]]
    circle = chosen(node(CLUSTER, "one", "Machine/m"), node(MACHINE, "m", "Cluster/one"))
    with pytest.raises(MoveRefused, match="owner references form a circle"):
        circle.groups()


def test_roots_are_paused_and_what_they_own_is_not() -> None:
    found = chosen(
        node(TENANT, "t"),
        node(CLUSTER, "one", "TenantCluster/t"),
        node(MACHINE, "m", "Cluster/one"),
        node(DOMAIN, "d", annotations={PAUSED: ""}),
        node(SECRETS, "s", labels={MOVE_LABEL: ""}),
    )
    assert {each.uid: each.paused for each in found.roots()} == {
        "TenantCluster/t": False,
        "Cluster/one": False,
        "FailureDomain/d": True,
    }
