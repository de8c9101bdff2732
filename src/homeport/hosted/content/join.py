"""What kubeadm join needs: cluster-info, who may join and read what, the kubeadm and kubelet configuration."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from typing import Any

from homeport.hosted.content.inputs import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    PUBLIC,
    ROLE,
    SYSTEM,
    ContentInputs,
    Item,
    binding,
    group,
    item,
    rule,
    user,
)
from homeport.machinery import yaml
from homeport.machinery.patch import json_patch

BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token"
NODES = "system:nodes"
ADMINS = "kubeadm:cluster-admins"


def render_join(inputs: ContentInputs) -> Iterator[Item]:
    yield from _cluster_info(inputs)
    yield from _bootstrap_access()
    yield from _configuration(inputs)
    yield binding(ADMINS, "cluster-admin", group(ADMINS))


def _cluster_info(inputs: ContentInputs) -> Iterator[Item]:
    """Readable by everybody: an address and a CA. kube-controller-manager adds a signature for each bootstrap token."""
    info: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "",
                "cluster": {
                    "certificate-authority-data": base64.b64encode(inputs.ca).decode(),
                    "server": inputs.server,
                },
            }
        ],
        "contexts": None,
        "current-context": "",
        "preferences": {},
        "users": None,
    }
    name = "kubeadm:bootstrap-signer-clusterinfo"
    yield item(CONFIG_MAP, "cluster-info", PUBLIC, data={"kubeconfig": yaml.dump(info)})
    yield item(ROLE, name, PUBLIC, rules=[rule([""], ["configmaps"], ["get"], ["cluster-info"])])
    yield binding(name, name, user("system:anonymous"), namespace=PUBLIC, cluster_role=False)


def _bootstrap_access() -> Iterator[Item]:
    certificates = "certificates.k8s.io"
    client = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
    renewal = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    yield item(
        CLUSTER_ROLE, client, rules=[rule([certificates], ["certificatesigningrequests/nodeclient"], ["create"])]
    )
    yield item(
        CLUSTER_ROLE, renewal, rules=[rule([certificates], ["certificatesigningrequests/selfnodeclient"], ["create"])]
    )
    yield binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group(BOOTSTRAPPERS))
    yield binding("kubeadm:node-autoapprove-bootstrap", client, group(BOOTSTRAPPERS))
    yield binding("kubeadm:node-autoapprove-certificate-rotation", renewal, group(NODES))
    yield item(CLUSTER_ROLE, "kubeadm:get-nodes", rules=[rule([""], ["nodes"], ["get"])])
    yield binding("kubeadm:get-nodes", "kubeadm:get-nodes", group(BOOTSTRAPPERS))


def _configuration(inputs: ContentInputs) -> Iterator[Item]:
    readers = (group(BOOTSTRAPPERS), group(NODES))
    yield item(
        CONFIG_MAP, "kubeadm-config", SYSTEM, data={"ClusterConfiguration": yaml.dump(cluster_configuration(inputs))}
    )
    yield item(CONFIG_MAP, "kubelet-config", SYSTEM, data={"kubelet": yaml.dump(kubelet_configuration(inputs))})
    for role, name in (
        ("kubeadm:nodes-kubeadm-config", "kubeadm-config"),
        ("kubeadm:kubelet-config", "kubelet-config"),
    ):
        yield item(ROLE, role, SYSTEM, rules=[rule([""], ["configmaps"], ["get"], [name])])
        yield binding(role, role, *readers, namespace=SYSTEM, cluster_role=False)


def cluster_configuration(inputs: ContentInputs) -> dict[str, Any]:
    """In the newest API that the kubeadm of this version reads."""
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4" if inputs.minor >= 31 else "kubeadm.k8s.io/v1beta3",
        "kind": "ClusterConfiguration",
        "clusterName": inputs.name,
        "controlPlaneEndpoint": str(inputs.endpoint),
        "kubernetesVersion": inputs.version,
        "imageRepository": inputs.registry,
        "certificatesDir": "/etc/kubernetes/pki",
        "networking": {
            "dnsDomain": inputs.domain,
            "podSubnet": inputs.pod_cidr,
            "serviceSubnet": inputs.service_cidr,
        },
    }


def kubelet_configuration(inputs: ContentInputs) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": inputs.cgroup_driver or "systemd",
        "clusterDNS": inputs.dns_addresses,
        "clusterDomain": inputs.domain,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
    }
    patched: dict[str, Any] = json_patch(copy.deepcopy(found), list(inputs.kubelet_patches))
    return patched
