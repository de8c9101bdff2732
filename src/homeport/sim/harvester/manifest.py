"""The world as objects of the API server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import orjson

from homeport.api.meta import Resource
from homeport.runtime.clock import rfc3339
from homeport.sim.harvester.kind import (
    CLUSTER_NETWORK,
    DEPLOYMENT,
    IMAGE,
    KEY_PAIR,
    NAD,
    NAMESPACE,
    NODE,
    SETTING,
    STORAGE_CLASS,
    Json,
)
from homeport.sim.harvester.world import Node, VmNetwork, WorldFile, WorldImage, WorldKeyPair, WorldStorageClass

SYSTEM = "harvester-system"
# Older releases called the Deployment after the chart's release; people and guides use both names.
DEPLOYMENTS = ("harvester", "harvester-harvester")
NETWORK_GROUP = "network.harvesterhci.io"

Entry = tuple[Json, Resource]


def objects(world: WorldFile, now: float) -> Iterator[Entry]:
    """In an order in which they can be created. Status comes with them; images are imported separately."""
    for name in ("cattle-system", SYSTEM, "longhorn-system", *sorted(_namespaces(world))):
        yield {"metadata": {"name": name}}, NAMESPACE
    for node in world.nodes:
        yield _node(world, node, now), NODE
    for storage_class in world.storage_classes:
        yield _storage_class(storage_class), STORAGE_CLASS
    if not world.harvester:
        return
    for name, value in sorted({"server-version": world.version, **world.settings}.items()):
        yield _setting(name, value, now), SETTING
    for network in world.cluster_networks:
        yield _cluster_network(network.name, now), CLUSTER_NETWORK
    for each in world.networks:
        yield _network(world, each), NAD
    for key_pair in world.key_pairs:
        yield _key_pair(key_pair, now), KEY_PAIR
    for name in DEPLOYMENTS:
        yield deployment(name, world, now), DEPLOYMENT


def _namespaces(world: WorldFile) -> set[str]:
    named = {each.namespace for group in (world.networks, world.images, world.key_pairs) for each in group}
    return named - {"default", "kube-system", "kube-public", "kube-node-lease"}


def _node(world: WorldFile, node: Node, now: float) -> Json:
    resources = {
        "cpu": str(node.cpus),
        "memory": f"{node.memory_bytes // 1024}Ki",
        "pods": str(node.pods),
        "ephemeral-storage": "1000Gi",
        "devices.kubevirt.io/kvm": "1k",
    }
    addresses = [{"type": "InternalIP", "address": node.address}, {"type": "Hostname", "address": node.name}]
    return {
        "metadata": {"name": node.name, "labels": _node_labels(world, node)},
        "spec": {"providerID": f"rke2://{node.name}"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": addresses,
            "conditions": [_node_ready(rfc3339(now))],
            "nodeInfo": _node_info(world, node),
        },
    }


def _node_labels(world: WorldFile, node: Node) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "harvesterhci.io/managed": "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubevirt.io/schedulable": "true",
        "node-role.kubernetes.io/control-plane": "true",
        "node-role.kubernetes.io/etcd": "true",
        **{
            f"{NETWORK_GROUP}/{each.name}": "true"
            for each in world.cluster_networks
            if not each.nodes or node.name in each.nodes
        },
        **({"topology.kubernetes.io/zone": node.zone} if node.zone else {}),
        **node.labels,
    }


def _node_ready(stamp: str) -> Json:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }


def _node_info(world: WorldFile, node: Node) -> Json:
    return {
        "architecture": "amd64",
        "bootID": "",
        "containerRuntimeVersion": "containerd://2.1.5",
        "kernelVersion": "6.4.0-150600.23.73-default",
        "kubeProxyVersion": "",
        "kubeletVersion": f"{world.kubernetes}+rke2r1",
        "machineID": hashlib.md5(node.name.encode(), usedforsecurity=False).hexdigest(),
        "operatingSystem": "linux",
        "osImage": f"Harvester {world.version}",
        "systemUUID": "",
    }


def _storage_class(each: WorldStorageClass) -> Json:
    default = {"storageclass.kubernetes.io/is-default-class": "true"} if each.default else {}
    return {
        "metadata": {"name": each.name, "annotations": default},
        "provisioner": each.provisioner,
        "parameters": each.parameters,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def _setting(name: str, value: str, now: float) -> Json:
    # The version is a fact that the server writes; the others are defaults that an administrator may override.
    which = {"value": value} if name == "server-version" else {"default": value}
    condition = {"type": "configured", "status": "True", "lastUpdateTime": rfc3339(now)}
    return {"metadata": {"name": name}, **which, "status": {"conditions": [condition]}}


def _cluster_network(name: str, now: float) -> Json:
    condition = {"type": "ready", "status": "True", "lastUpdateTime": rfc3339(now)}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def _network(world: WorldFile, each: VmNetwork) -> Json:
    config = {
        "cniVersion": "0.3.1",
        "name": each.name,
        "type": "bridge",
        "bridge": f"{each.cluster_network}-br",
        "promiscMode": True,
        "vlan": each.vlan,
        "ipam": {},
    }
    vlan = next((vlan for vlan in world.vlans if vlan.id == each.vlan), None)
    annotations = {}
    if vlan is not None and vlan.subnet and vlan.gateway:
        connectivity = "true" if vlan.trunked and vlan.dhcp else "DHCP failed"
        route = {"mode": "auto", "cidr": vlan.subnet, "gateway": vlan.gateway, "connectivity": connectivity}
        annotations = {f"{NETWORK_GROUP}/route": orjson.dumps(route).decode()}
    return {
        "metadata": {
            "name": each.name,
            "namespace": each.namespace,
            "labels": {
                f"{NETWORK_GROUP}/clusternetwork": each.cluster_network,
                f"{NETWORK_GROUP}/ready": "true",
                f"{NETWORK_GROUP}/type": "L2VlanNetwork" if each.vlan else "UntaggedNetwork",
                f"{NETWORK_GROUP}/vlan-id": str(each.vlan),
            },
            "annotations": annotations,
        },
        "spec": {"config": orjson.dumps(config).decode()},
    }


def _key_pair(each: WorldKeyPair, now: float) -> Json:
    return {
        "metadata": {"name": each.name, "namespace": each.namespace},
        "spec": {"publicKey": each.public_key},
        "status": {
            "fingerPrint": fingerprint(each.public_key),
            "conditions": [{"type": "validated", "status": "True", "lastUpdateTime": rfc3339(now)}],
        },
    }


def fingerprint(public_key: str) -> str:
    """In MD5, as Harvester shows it. Raises ValueError for what is not an OpenSSH public key."""
    parts = public_key.split()
    if len(parts) < 2:
        raise ValueError("ssh: no key found")
    blob = base64.b64decode(parts[1], validate=True)
    length = int.from_bytes(blob[:4], "big")
    if blob[4 : 4 + length] != parts[0].encode():
        raise ValueError("ssh: no key found")
    digest = hashlib.md5(blob, usedforsecurity=False).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def image(each: WorldImage) -> Entry:
    spec = {
        "displayName": each.display_name or each.name,
        "sourceType": "download" if each.url else "upload",
        "url": each.url,
        "retry": 3,
    }
    labels = {"harvesterhci.io/os-type": each.os} if each.os else {}
    return {"metadata": {"name": each.name, "namespace": each.namespace, "labels": labels}, "spec": spec}, IMAGE


def deployment(name: str, world: WorldFile, now: float) -> Json:
    labels = {"app.kubernetes.io/name": "harvester", "app.kubernetes.io/instance": name}
    stamp = rfc3339(now)
    conditions = [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]
    more = {"lastTransitionTime": stamp, "lastUpdateTime": stamp, "message": ""}
    return {
        "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "apiserver", "image": f"rancher/harvester:{world.version}"}]},
            },
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "conditions": [{**each, **more} for each in conditions],
        },
    }


def deployment_pod(name: str, world: WorldFile) -> Json:
    """The Pod in which `kubectl logs` finds what a Deployment writes."""
    made = deployment(name, world, 0.0)
    node = world.nodes[0].name if world.nodes else "harvester"
    return {
        "metadata": {
            "name": f"{name}-0",
            "namespace": SYSTEM,
            "labels": made["spec"]["template"]["metadata"]["labels"],
        },
        "spec": {**made["spec"]["template"]["spec"], "nodeName": node, "automountServiceAccountToken": False},
    }
