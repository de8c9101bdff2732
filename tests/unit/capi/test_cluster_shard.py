from __future__ import annotations

from typing import Any

import pytest

from homeport.api.addon.v1alpha1 import ClusterAddon, ClusterAddonSpec
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.cluster.v1beta2.machine import MachineSpec
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.meta import ObjectMeta, OwnerReference, Resource, Unstructured
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.capi.shard import cluster_shard, shard_of
from homeport.client.protocol import Key

SHOP = cluster_shard(Key("team", "shop"))


def meta(name: str, **more: Any) -> ObjectMeta:
    return ObjectMeta(namespace="team", name=name, **more)


OWNER = OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", name="shop", uid="u")
FOREIGN = OwnerReference(api_version="k0smotron.io/v1beta1", kind="Cluster", name="shop", uid="u")
LABEL = {"cluster.x-k8s.io/cluster-name": "shop"}


@pytest.mark.parametrize(
    "obj",
    [
        Cluster(metadata=meta("shop")),
        ClusterDeployment(metadata=meta("shop")),
        Machine(metadata=meta("shop-abc"), spec=MachineSpec(cluster_name="shop")),
        ClusterAddon(metadata=meta("dns"), spec=ClusterAddonSpec(cluster_name="shop")),
        NutanixMachine(metadata=meta("shop-abc", labels=LABEL)),
        NutanixCluster(metadata=meta("other-name", owner_references=[OWNER])),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_what_belongs_to_a_cluster_is_in_its_shard(obj: Any) -> None:
    assert shard_of(type(obj).__resource__, Key("team", obj.metadata.name), obj) == SHOP


def test_an_object_of_an_unknown_type_shows_its_cluster_too() -> None:
    kind = Resource("example.com", "v1", "Thing", "things")
    key = Key("team", "x")
    for part in (
        {"metadata": {"labels": LABEL}},
        {"spec": {"clusterName": "shop"}},
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "shop"}]
            }
        },
    ):
        assert shard_of(kind, key, Unstructured({"metadata": {}, **part})) == SHOP


def test_an_object_of_no_cluster_is_a_shard_of_its_own() -> None:
    found = NutanixCluster(metadata=meta("shop", owner_references=[FOREIGN]))
    shard = shard_of(NutanixCluster.__resource__, Key("team", "shop"), found)
    assert shard not in (SHOP, shard_of(NutanixCluster.__resource__, Key("team", "other"), None))
