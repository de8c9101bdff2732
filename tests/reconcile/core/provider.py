"""Kinds of a provider that exist for its contract alone, and objects that refer to them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.protocol import Key, MergePatch
from homeport.core.cluster.reconciler import ClusterReconciler
from homeport.core.machine.reconciler import MachineReconciler
from homeport.machinery import condition
from homeport.runtime.testing import Plane, Reconciled, plane, shared_pki

GROUP = "provider.example.com"
INFRA_CLUSTER = Resource(GROUP, "v1", "FakeCluster", "fakeclusters")
INFRA_MACHINE = Resource(GROUP, "v1", "FakeMachine", "fakemachines")
BOOTSTRAP = Resource(GROUP, "v1", "FakeConfig", "fakeconfigs")
CONTROL_PLANE = Resource(GROUP, "v1", "FakeControlPlane", "fakecontrolplanes")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
KINDS = (INFRA_CLUSTER, INFRA_MACHINE, BOOTSTRAP, CONTROL_PLANE)
C1 = Key("default", "c1")
M1 = Key("default", "m1")


def definition(kind: Resource, contract: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified, "labels": {f"cluster.x-k8s.io/{contract}": kind.version}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()},
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def ref(kind: Resource, name: str) -> dict[str, str]:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def foreign(kind: Resource, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **parts}


def cluster(**parts: Any) -> dict[str, Any]:
    """A Cluster with both references; `spec` and `metadata` are merged in, `status` is taken."""
    spec = {"infrastructureRef": ref(INFRA_CLUSTER, "c1"), "controlPlaneRef": ref(CONTROL_PLANE, "c1")}
    spec |= parts.pop("spec", {})
    metadata = {"name": "c1", "finalizers": ["cluster.cluster.x-k8s.io"], **parts.pop("metadata", {})}
    spec = {name: value for name, value in spec.items() if value is not None}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": spec, **parts}


PROVISIONED = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}


def machine(name: str = "m1", **parts: Any) -> dict[str, Any]:
    spec = {
        "clusterName": "c1",
        "version": "v1.30.0",
        "bootstrap": {"configRef": ref(BOOTSTRAP, name)},
        "infrastructureRef": ref(INFRA_MACHINE, name),
    } | parts.pop("spec", {})
    extra = parts.pop("metadata", {})
    metadata = {
        "name": name,
        "finalizers": ["machine.cluster.x-k8s.io"],
        **extra,
        "labels": {"cluster.x-k8s.io/cluster-name": "c1", **extra.get("labels", {})},
    }
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": metadata, "spec": spec, **parts}


def node(name: str = "n1", **parts: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]
    conditions += [{"type": t, "status": "False", "reason": "Fine", "message": ""} for t in PRESSURES]
    status = {"conditions": conditions, "nodeInfo": NODE_INFO} | parts.pop("status", {})
    spec = {"providerID": "fake://m1", **parts.pop("spec", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **parts.pop("metadata", {})},
        "spec": spec,
        "status": status,
    }


PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
NODE_INFO = {
    "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "containerd://1.7", "kernelVersion": "6.1",
    "kubeProxyVersion": "v1.30.0", "kubeletVersion": "v1.30.0", "machineID": "m", "operatingSystem": "linux",
    "osImage": "Debian", "systemUUID": "u",
}  # fmt: skip


class World:
    """A plane, the reconcilers under test on it, and a workload cluster that may be attached."""

    def __init__(self, p: Plane) -> None:
        self.p = p
        self.client = p.client
        self.capi = Capi.make(p.manager)
        self.machines = MachineReconciler(self.capi, paced=False)
        self.clusters = ClusterReconciler(self.capi, paced=False)
        p.manager.add(self.machines.controller)
        p.manager.add(self.clusters.controller)
        self.workload: Any = None
        self._server: EmbeddedServer | None = None

    async def machine(self, key: Key = M1) -> tuple[Reconciled, Machine]:
        outcome = await self.p.reconcile(self.machines, key)
        return outcome, await self.client.get(Machine, key)

    async def cluster(self, key: Key = C1) -> tuple[Reconciled, Cluster]:
        outcome = await self.p.reconcile(self.clusters, key)
        return outcome, await self.client.get(Cluster, key)

    async def connect(self, *objects: Mapping[str, Any], cluster: Key = C1) -> Any:
        """Opens a workload cluster with these objects in it."""
        self._server = await EmbeddedServer.open(None, shared_pki(), clock=self.p.clock.now)
        self.workload = self._server.client(field_manager="user")
        for each in objects:
            await self.give(each)
        await self.capi.remotes.attach(cluster, self.workload)
        return self.workload

    async def give(self, obj: Mapping[str, Any]) -> Any:
        assert self._server is not None
        kind = _served(self._server, obj)
        body = {**obj, "metadata": {**obj["metadata"]}}
        if kind.namespaced:
            body["metadata"].setdefault("namespace", "default")
        made = await self.workload.create(body, kind=kind)
        if "status" in obj:
            key = Key(made.namespace, made.name)
            made = await self.workload.patch(kind, key, MergePatch({"status": obj["status"]}), subresource="status")
        return made

    async def say(self, kind: Resource, key: Key, **parts: Any) -> None:
        """Plays the provider."""
        status = parts.pop("status", None)
        if parts:
            await self.client.patch(kind, key, MergePatch(parts))
        if status is not None:
            await self.client.patch(kind, key, MergePatch({"status": status}), subresource="status")

    async def close(self) -> None:
        await self.capi.remotes.close()
        if self._server is not None:
            await self._server.close(drain_seconds=0.1)


def _served(server: EmbeddedServer, obj: Mapping[str, Any]) -> Resource:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    for served in server.catalog:
        if served.group == group and served.kind == obj["kind"] and version in served.versions:
            return served.versions[version].resource
    raise LookupError(f"{obj['kind']} is not served")


@asynccontextmanager
async def world(*objects: Mapping[str, Any], contract: str = "v1beta2") -> AsyncIterator[World]:
    crds = [*definitions(), *(definition(kind, contract) for kind in KINDS)]
    async with plane(crds=crds) as p:
        made = World(p)
        try:
            await p.have(*objects)
            yield made
        finally:
            with contextlib.suppress(Exception):
                await made.close()


def said(obj: Any, kind: str) -> tuple[str, str, str]:
    found = condition.find(obj.status.conditions, kind)
    assert found is not None, f"no condition {kind}: {[c['type'] for c in obj.status.conditions]}"
    return found["status"], found["reason"], found["message"]


def owners(obj: Any) -> list[tuple[str, str, bool]]:
    refs = obj.metadata.get("ownerReferences") or ()
    return [(r["kind"], r["name"], bool(r.get("controller"))) for r in refs]
