"""harvester_config.json: the configuration of the cloud controller manager of a cluster on Harvester or KubeVirt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.infra.document import flag_at, object_at, parse_document
from homeport.infra.error import Misconfigured
from homeport.machinery import yaml

FILE = "harvester_config.json"


@dataclass(frozen=True, slots=True)
class CloudConfig:
    cluster: str  # value of the label cluster.x-k8s.io/cluster-name on its VMs
    namespaces: tuple[str, ...]  # where its VMs are; the first is that of its load balancers
    secret: str  # with the key kubeconfig; '': VMs are in the cluster that the manager reads Secrets from
    secret_namespace: str
    virtual: str = ""  # the address of the control plane endpoint: not an address of any Node
    cluster_uid: str = ""  # of the KubevirtCluster
    cluster_namespace: str = ""  # of the Cluster: those of other namespaces may have its name
    balances: bool = True  # makes load balancers for Services
    ipam: str = "pool"
    ip_pool: str = ""  # '': Harvester chooses one
    complete: bool = True  # False: some Nodes are VMs of another infrastructure cluster
    pools: Mapping[str, str] = field(default_factory=dict)


def parse_config(text: str, namespace: str) -> CloudConfig:
    """Raises Misconfigured naming the field. `namespace`: that of a Secret without one."""
    found = parse_document(text, FILE)
    here = "kubeconfigSecret" in found and found["kubeconfigSecret"] is None  # not forgotten: said
    secret = object_at(found, "kubeconfigSecret")
    balancers = object_at(found, "loadBalancers")
    return CloudConfig(
        cluster=_text(found, "clusterName"),
        namespaces=_names(found, "namespaces"),
        secret="" if here else _text(secret, "name", "kubeconfigSecret."),
        secret_namespace=str(secret.get("namespace") or namespace),
        virtual=str(found.get("controlPlaneAddress") or ""),
        cluster_uid=str(found.get("clusterUID") or ""),
        cluster_namespace=str(found.get("clusterNamespace") or ""),
        balances=flag_at(balancers, "enabled", default=True),
        ipam=str(balancers.get("ipam") or "pool"),
        ip_pool=str(balancers.get("ipPool") or ""),
        complete=flag_at(found, "complete", default=True),
        pools={name: str(pool) for name, pool in object_at(found, "addressPools").items()},
    )


def render_config(config: CloudConfig) -> str:
    made: dict[str, Any] = {
        "clusterName": config.cluster,
        "namespaces": list(config.namespaces),
        "kubeconfigSecret": ({"name": config.secret, "namespace": config.secret_namespace} if config.secret else None),
    }
    balancers: dict[str, Any] = (
        {"ipam": config.ipam, "ipPool": config.ip_pool} if config.balances else {"enabled": False}
    )
    made["loadBalancers"] = balancers
    if config.cluster_uid:
        made["clusterUID"] = config.cluster_uid
    if config.cluster_namespace:
        made["clusterNamespace"] = config.cluster_namespace
    if config.virtual:
        made["controlPlaneAddress"] = config.virtual
    if not config.complete:
        made["complete"] = False
    if config.pools:
        made["addressPools"] = dict(config.pools)
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def reduced(content: bytes) -> str:
    """The current context of a kubeconfig that was parsed before, and nothing else: other credentials stay here."""
    found = yaml.load(content)
    context = _named(found.get("contexts"), str(found.get("current-context") or ""))
    inner = context.get("context") or {}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [_named(found.get("clusters"), str(inner.get("cluster") or ""))],
            "users": [_named(found.get("users"), str(inner.get("user") or ""))],
            "contexts": [context],
            "current-context": found.get("current-context"),
        }
    )


def _named(found: Any, name: str) -> Mapping[str, Any]:
    return next((each for each in found or () if str(each.get("name") or "") == name), {})


def _text(found: Mapping[str, Any], name: str, inside: str = "") -> str:
    value = found.get(name)
    if not value or not isinstance(value, str):
        raise Misconfigured(f"{inside}{name}: is required, and must be a string")
    return value


def _names(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value: Sequence[Any] = found.get(name) or ()
    if not value or not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise Misconfigured(f"{name}: is required: the namespaces of the VMs, a list of names")
    return tuple(value)
