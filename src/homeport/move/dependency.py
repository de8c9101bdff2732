"""Objects that another one needs by name alone: no owner reference leads to them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from homeport.api.k0rdent.v1beta1 import GROUP as K0RDENT
from homeport.capi.name import CLUSTER_NAME_LABEL, GROUP, KUBECONFIG_SUFFIX
from homeport.capi.remote.pki import EXTERNAL_ETCD
from homeport.client.protocol import Key
from homeport.move.node import Node

_SECRET_SUFFIXES = (KUBECONFIG_SUFFIX, *(f"-{purpose}" for purpose in EXTERNAL_ETCD))
_RELEASE_LABEL = f"{K0RDENT}/template-release"  # on records of Helm: the ClusterDeployment
_K0RDENT_HOME = "kcm-system"  # where MultiClusterServices have their templates


class Place(NamedTuple):
    """One object, whatever version it is read in."""

    group: str
    kind: str
    key: Key


def dependencies(node: Node) -> list[Place]:
    """What has to exist first: classes of Clusters, Clusters of what names them, templates of k0rdent."""
    space = node.key.namespace
    if node.kind.is_cluster:
        return [Place(GROUP, "ClusterClass", key) for key in _class(node)]
    if node.kind.resource.group == K0RDENT:
        return list(_templates(node))
    names = [node.spec.get("clusterName")] if node.kind.custom else []
    found: list[Place] = []
    if not node.kind.custom and not node.obj.metadata.get("ownerReferences"):
        names.append(node.labels.get(CLUSTER_NAME_LABEL))
        if node.kind.resource.kind == "Secret":
            suffix = next((each for each in _SECRET_SUFFIXES if node.key.name.endswith(each)), "")
            names.append(node.key.name.removesuffix(suffix) if suffix else None)
            if release := node.labels.get(_RELEASE_LABEL):
                found.append(Place(K0RDENT, "ClusterDeployment", Key(space, release)))
    return [*found, *(Place(GROUP, "Cluster", Key(space, name)) for name in names if isinstance(name, str) and name)]


def _class(cluster: Node) -> list[Key]:
    topology = cluster.spec.get("topology") or {}
    ref = topology.get("classRef") or {}
    name = ref.get("name") or topology.get("class")
    space = ref.get("namespace") or topology.get("classNamespace") or cluster.key.namespace
    return [Key(space, name)] if name else []


def _templates(node: Node) -> Iterator[Place]:
    """The target refuses a ClusterDeployment whose templates it does not have."""
    kind, spec, space = node.kind.resource.kind, node.spec, node.key.namespace
    if kind == "ClusterDeployment":
        named = {"ClusterTemplate": spec.get("template"), "Credential": spec.get("credential")}
        named |= {"ClusterAuthentication": spec.get("clusterAuth"), "ClusterAuditPolicy": spec.get("auditPolicy")}
        yield from (Place(K0RDENT, each, Key(space, str(name))) for each, name in named.items() if name)
        yield from _services(spec.get("serviceSpec"), space)
    elif kind == "MultiClusterService":
        yield from _services(spec.get("serviceSpec"), _K0RDENT_HOME)


def _services(spec: Any, space: str) -> Iterator[Place]:
    services: Iterable[Any] = (spec or {}).get("services") or ()
    for each in services:
        for field, kind in (("template", "ServiceTemplate"), ("templateChain", "ServiceTemplateChain")):
            if name := each.get(field):
                yield Place(K0RDENT, kind, Key(space, str(name)))
