"""The vendor's own cloud controller manager, brought by a ClusterResourceSet: simulated Nodes are initialised by it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.ccm.deploy import MANAGED
from homeport.ccm.manifest import DEPLOYMENT, NAME
from homeport.ccm.node import UNINITIALIZED
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import LEASE
from scenario.ccm.cloud import nodes, workload
from scenario.nutanix import manifest
from scenario.nutanix.cni import LABEL, Json, delivered
from scenario.nutanix.site import nutanix_site

CLUSTER = "one"
MANAGER = "vendor-cloud-controller-manager"
_RBAC = "rbac.authorization.k8s.io"


def _named(api_version: str, kind: str, name: str, **more: Any) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        # Templates put a namespace on objects of the whole cluster, too.
        "metadata": {"name": name, "namespace": "kube-system"},
        **more,
    }


def manager() -> list[Json]:
    """Written for the test: what matters is the file it reads, where that is mounted, and what its account may do."""
    central = {
        "address": manifest.ADDRESS,
        "port": 9440,
        "insecure": False,
        "credentialRef": {"kind": "secret", "name": "prism", "namespace": "kube-system"},
        "additionalTrustBundle": {"kind": "ConfigMap", "name": "trust", "namespace": "kube-system"},
    }
    config = {"prismCentral": central, "topologyDiscovery": {"type": "Prism"}, "ignoredNodeIPs": ["10.0.0.100"]}
    rules = [
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    ]
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": "your-password"}}}]
    pod = {
        "hostNetwork": True,
        "serviceAccountName": "vendor",
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": "manager",
                "image": "registry.example.com/vendor/controller:1",
                "args": ["--leader-elect=true", "--cloud-config=/etc/cloud/nutanix_config.json"],
                "volumeMounts": [{"name": "config", "mountPath": "/etc/cloud", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "vendor-config"}}],
    }
    labels = {"app": "vendor"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    subject = {"kind": "ServiceAccount", "name": "vendor", "namespace": "kube-system"}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "vendor"}
    return [
        _named("v1", "ConfigMap", "trust", binaryData={"ca.crt": ""}),
        _named("v1", "ServiceAccount", "vendor"),
        _named("v1", "ConfigMap", "vendor-config", data={"nutanix_config.json": json.dumps(config)}),
        _named("v1", "Secret", "prism", stringData={"credentials": json.dumps(listed)}),
        _named(f"{_RBAC}/v1", "ClusterRole", "vendor", rules=rules),
        _named(f"{_RBAC}/v1", "ClusterRoleBinding", "vendor", roleRef=role, subjects=[subject]),
        _named("apps/v1", "Deployment", MANAGER, spec=spec),
    ]


def cluster_objects(**annotations: str) -> list[Json]:
    objects = manifest.cluster_objects(CLUSTER, 1, 1, "10.0.0.100")
    for each in objects:
        if each["kind"] == "Cluster":
            each["metadata"] |= {"labels": {LABEL: "vendor"}, "annotations": annotations}
    return [*delivered("vendor", manager()), *objects]


@virtual
async def test_nodes_are_initialised_by_a_manager_of_the_vendor() -> None:
    async with nutanix_site() as site:
        await site.have(*cluster_objects(**{MANAGED: "false"}))
        await site.running(CLUSTER, 1, 1)
        for node in (await nodes(site)).values():
            assert UNINITIALIZED not in {each["key"] for each in node["spec"].get("taints") or ()}
            assert node["spec"]["providerID"].startswith("nutanix://")
        lease = await workload(site).client().get(LEASE, Key("kube-system", "cloud-controller-manager"))
        assert str(lease["spec"]["holderIdentity"]).startswith(MANAGER)
        with pytest.raises(NotFound):
            await workload(site).client().get(DEPLOYMENT, Key("kube-system", NAME))
