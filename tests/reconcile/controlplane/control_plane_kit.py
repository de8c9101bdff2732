"""A management plane with one Cluster and its control plane, reconciled step by step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from capikit import generic
from homeport import controlplane
from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.controlplane.kubeadm.observe.inspection import STATIC_PODS
from homeport.controlplane.kubeadm.reconciler import KubeadmControlPlaneReconciler
from homeport.runtime.testing import Plane, Reconciled, plane, shared_pki

KEY = Key("default", "one-cp")
CLUSTER = Key("default", "one")
SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
CLUSTER_API = "cluster.x-k8s.io/v1beta2"
ROLE = "node-role.kubernetes.io/control-plane"
EXTERNAL = {
    "etcd": {
        "external": {
            "endpoints": ["https://10.0.0.9:2379"],
            "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
            "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
        }
    }
}


def cluster(*, provisioned: bool = True, endpoint: bool = True, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": CLUSTER_API,
        "kind": "Cluster",
        "metadata": {"name": "one"},
        "spec": {
            "controlPlaneRef": {
                "apiGroup": "controlplane.cluster.x-k8s.io",
                "kind": "KubeadmControlPlane",
                "name": "one-cp",
            },
            **({"controlPlaneEndpoint": {"host": "10.0.0.100", "port": 6443}} if endpoint else {}),
            **spec,
        },
    }
    if provisioned:
        made["status"] = {"initialization": {"infrastructureProvisioned": True}}
    return made


def control_plane(status: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "one-cp", "finalizers": ["kubeadm.controlplane.cluster.x-k8s.io"]},
        "spec": {
            "replicas": 1,
            "version": "v1.30.2",
            "machineTemplate": {
                "spec": {
                    "infrastructureRef": {
                        "apiGroup": generic.GROUP,
                        "kind": "GenericMachineTemplate",
                        "name": "small",
                    }
                }
            },
            **spec,
        },
    }
    if status is not None:
        made["status"] = dict(status)
    return made


def template(name: str = "small") -> dict[str, Any]:
    return {
        "apiVersion": generic.TEMPLATE.api_version,
        "kind": "GenericMachineTemplate",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"size": name}}},
    }


_KINDS = {"Cluster", "Machine", "MachineDeployment", "MachinePool", "KubeadmConfig", "KubeadmControlPlane"}
INITIALIZED = {"initialization": {"controlPlaneInitialized": True}}


@dataclass
class Kit:
    plane: Plane
    capi: Capi
    reconciler: KubeadmControlPlaneReconciler
    reachable: Client | None = None

    async def connect(self) -> None:
        assert self.reachable is not None
        await self.capi.remotes.attach(CLUSTER, self.reachable)

    async def see(self, kind: Resource, key: Key, predicate: Callable[[Any], bool]) -> None:
        """Returns when the watch of the workload cluster shows it."""
        remote = self.capi.remotes.get(CLUSTER)
        if remote is None:
            return
        cache = remote.nodes if kind is NODE else remote.watch(POD, STATIC_PODS)
        while (found := cache.get(key)) is None or not predicate(found):
            await cache.news(key=key)

    @property
    def client(self) -> Client:
        return self.plane.client

    async def have(self, *objects: dict[str, Any]) -> list[Any]:
        return await self.plane.have(*objects)

    async def start(self, *objects: dict[str, Any]) -> KubeadmControlPlane:
        """The objects, and the Cluster as owner of the control plane."""
        await self.have(*objects)
        owner = await self.client.get(self.plane.resource(cluster()), CLUSTER)
        reference = {
            "apiVersion": CLUSTER_API,
            "kind": "Cluster",
            "name": "one",
            "uid": owner.uid,
            "controller": True,
        }
        body = MergePatch({"metadata": {"ownerReferences": [reference]}})
        return await self.client.patch(KubeadmControlPlane, KEY, body)

    async def reconcile(self) -> Reconciled:
        return await self.plane.reconcile(self.reconciler, KEY)

    async def machines(self) -> list[Machine]:
        return list((await self.client.list(Machine, Query(namespace="default"))).items)

    async def configs(self) -> list[KubeadmConfig]:
        return list((await self.client.list(KubeadmConfig, Query(namespace="default"))).items)

    async def infra(self) -> list[Unstructured]:
        return list((await self.client.list(generic.MACHINE, Query(namespace="default"))).items)

    async def secrets(self) -> dict[str, Unstructured]:
        return {each.name: each for each in (await self.client.list(SECRET, Query(namespace="default"))).items}

    async def kcp(self) -> KubeadmControlPlane:
        return await self.client.get(KubeadmControlPlane, KEY)

    async def said(self) -> dict[str, Any]:
        return {each["type"]: each for each in (await self.kcp()).status.conditions}

    async def mark(self, machine: Machine, **status: Any) -> None:
        key = Key("default", machine.metadata.name)
        await self.client.patch(Machine, key, MergePatch({"status": status}), subresource="status")


@asynccontextmanager
async def kit() -> AsyncIterator[Kit]:
    needed = [each for each in definitions() if each["spec"]["names"]["kind"] in _KINDS]
    async with plane(crds=[*needed, *generic.definitions()]) as p:
        capi = Capi.make(p.manager)
        yield Kit(p, capi, controlplane.install(p.manager, capi))


@asynccontextmanager
async def workload(kit: Kit, *, version: str = "v1.30.2") -> AsyncIterator[Client]:
    """A workload cluster that was initialised, reachable without a network."""
    server = await EmbeddedServer.open(None, shared_pki(), clock=kit.plane.clock.now)
    try:
        client = server.client(field_manager="kubeadm")
        configuration = {
            "apiVersion": "kubeadm.k8s.io/v1beta3",
            "kind": "ClusterConfiguration",
            "kubernetesVersion": version,
            "clusterName": "one",
            "etcd": EXTERNAL["etcd"],
        }
        data = {"ClusterConfiguration": yaml.safe_dump(configuration)}
        body = {"metadata": {"name": "kubeadm-config", "namespace": "kube-system"}, "data": data}
        await client.create(body, kind=CONFIG_MAP)
        await client.create(kube_proxy(version), kind=DAEMON_SET)
        kit.reachable = server.client(field_manager="homeport")
        yield client
    finally:
        await kit.capi.remotes.close()
        await server.close(drain_seconds=0.1)


def kube_proxy(version: str) -> dict[str, Any]:
    labels = {"k8s-app": "kube-proxy"}
    container = {"name": "kube-proxy", "image": f"registry.k8s.io/kube-proxy:{version}"}
    return {
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def join(kit: Kit, client: Client, machine: Machine) -> None:
    """The machine's Node and static Pods, all of them well."""
    name = machine.metadata.name
    taints = [{"key": ROLE, "effect": "NoSchedule"}]
    node = {
        "metadata": {"name": name, "labels": {ROLE: ""}},
        "spec": {"providerID": f"generic://{name}", "taints": taints},
    }
    await client.create(node, kind=NODE)
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]
    await client.patch(NODE, Key("", name), MergePatch({"status": {"conditions": ready}}), subresource="status")
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        pod = {
            "metadata": {
                "name": f"{component}-{name}",
                "namespace": "kube-system",
                "labels": {"component": component, "tier": "control-plane"},
            },
            "spec": {"nodeName": name, "containers": [{"name": component, "image": "x"}]},
        }
        await client.create(pod, kind=POD)
        status = {"status": {"phase": "Running", "conditions": ready}}
        where = Key("kube-system", f"{component}-{name}")
        await client.patch(POD, where, MergePatch(status), subresource="status")
        await kit.see(POD, where, lambda pod: (pod.get("status") or {}).get("phase") == "Running")
    await kit.see(NODE, Key("", name), lambda node: bool((node.get("status") or {}).get("conditions")))
    key = Key("default", name)
    await kit.client.patch(Machine, key, MergePatch({"spec": {"providerID": f"generic://{name}"}}))
    await kit.mark(machine, nodeRef={"name": name})
