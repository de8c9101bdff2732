"""A class of a provider that exists for its contract alone, a Cluster of it, and single loops over its topology."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from homeport import core
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, MachineDeployment, MachineHealthCheck
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.protocol import Key, MergePatch, Query
from homeport.core.topology.reconciler import TopologyReconciler
from homeport.machinery import condition
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, Reconciled, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks

GROUP = "provider.example.com"
INFRA = Resource(GROUP, "v1", "FakeCluster", "fakeclusters")
PLANE = Resource(GROUP, "v1", "FakeControlPlane", "fakecontrolplanes")
MACHINE = Resource(GROUP, "v1", "FakeMachineTemplate", "fakemachinetemplates")
CONFIG = Resource(GROUP, "v1", "FakeConfigTemplate", "fakeconfigtemplates")
OTHER = Resource(GROUP, "v1", "OtherConfigTemplate", "otherconfigtemplates")
INFRA_TEMPLATE = Resource(GROUP, "v1", "FakeClusterTemplate", "fakeclustertemplates")
PLANE_TEMPLATE = Resource(GROUP, "v1", "FakeControlPlaneTemplate", "fakecontrolplanetemplates")
KINDS = (INFRA, PLANE, MACHINE, CONFIG, OTHER, INFRA_TEMPLATE, PLANE_TEMPLATE)
COPIES = (MACHINE, CONFIG, OTHER)

C = Key("default", "c")
OWNED = "topology.cluster.x-k8s.io/owned"
NAME = "topology.cluster.x-k8s.io/deployment-name"
STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# A server that fills in: templates of machines get a disk that nobody asked for.
DISK = {
    "type": "object",
    "properties": {
        "template": {
            "type": "object",
            "properties": {
                "spec": {**ANYTHING, "properties": {"disk": {"type": "string", "default": "20Gi"}}},
                "metadata": ANYTHING,
            },
        }
    },
}


def definition(kind: Resource, contract: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": DISK if kind == MACHINE else ANYTHING, "status": ANYTHING}}
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


def template(kind: Resource, name: str, spec: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
    body = {"template": {"spec": dict(spec)}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **meta}, "spec": body}


def templates() -> list[dict[str, Any]]:
    return [
        template(INFRA_TEMPLATE, "k", {"controlPlaneEndpoint": {"host": "", "port": 0}, "network": "blue"}),
        template(PLANE_TEMPLATE, "k", {"machineTemplate": {"metadata": {"labels": {"from": "template"}}}}),
        template(MACHINE, "k-cp", {"cores": 2}, labels={"kept": "yes"}),
        template(MACHINE, "k-md", {"cores": 2}),
        template(CONFIG, "k-md", {"join": True}),
    ]


def _ref(kind: Resource, name: str) -> dict[str, Any]:
    return {"templateRef": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}}


def cluster_class(name: str = "k", **spec: Any) -> dict[str, Any]:
    """A class that puts the variable `cores` into the templates of machines. `spec` replaces parts of it."""
    worker = {"class": "w", "bootstrap": _ref(CONFIG, "k-md"), "infrastructure": _ref(MACHINE, "k-md")}
    body: dict[str, Any] = {
        "infrastructure": _ref(INFRA_TEMPLATE, "k"),
        "controlPlane": {**_ref(PLANE_TEMPLATE, "k"), "machineInfrastructure": _ref(MACHINE, "k-cp")},
        "workers": {"machineDeployments": [worker]},
        "variables": [
            {"name": "cores", "required": False, "schema": {"openAPIV3Schema": {"type": "integer", "default": 2}}}
        ],
        "patches": [{"name": "cores", "definitions": [_cores({"controlPlane": True}), _cores(WORKERS)]}],
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": name},
        "spec": {key: value for key, value in {**body, **spec}.items() if value is not None},
    }


WORKERS = {"machineDeploymentClass": {"names": ["w"]}}


def _cores(where: Mapping[str, Any]) -> dict[str, Any]:
    step = {"op": "add", "path": "/spec/template/spec/cores", "valueFrom": {"variable": "cores"}}
    selector = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "matchResources": dict(where)}
    return {"selector": selector, "jsonPatches": [step]}


def workers(*names: str, **more: Any) -> dict[str, Any]:
    return {"machineDeployments": [{"class": "w", "name": name, "replicas": 2, **more} for name in names]}


def cluster(**topology: Any) -> dict[str, Any]:
    held = {"classRef": {"name": "k"}, "version": "v1.30.0", "controlPlane": {"replicas": 3}, "workers": workers("a")}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c"},
        "spec": {"topology": {key: value for key, value in {**held, **topology}.items() if value is not None}},
    }


class Bench:
    """Single loops, and what they leave behind."""

    def __init__(self, p: Plane) -> None:
        self.p = p
        self.client = p.client
        self.reconciler = self.fresh(p.manager)

    def fresh(self, manager: Manager) -> TopologyReconciler:
        """One that remembers nothing."""
        made = TopologyReconciler(Capi.make(manager))
        manager.add(made.controller)
        return made

    async def loop(self, key: Key = C) -> tuple[Reconciled, Cluster]:
        outcome = await self.p.reconcile(self.reconciler, key)
        assert outcome.error is None, repr(outcome.error)
        return outcome, await self.client.get(Cluster, key)

    async def settled(self) -> Cluster:
        """Loops until one has nothing to write."""
        for _ in range(6):
            outcome, found = await self.loop()
            if not outcome.written:
                return found
        raise AssertionError(f"it writes again and again: {outcome.written}")

    async def edit(self, change: Callable[[dict[str, Any]], Any], key: Key = C) -> None:
        """Changes spec.topology as a user does."""
        found = await self.client.get(Cluster.__resource__, key)
        topology = copy.deepcopy(found["spec"]["topology"])
        change(topology)
        gone = {name: None for name in found["spec"]["topology"] if name not in topology}
        await self.client.patch(Cluster, key, MergePatch({"spec": {"topology": {**topology, **gone}}}))

    async def class_edit(self, change: Callable[[dict[str, Any]], Any], name: str = "k") -> None:
        found = await self.client.get(ClusterClass.__resource__, Key("default", name))
        change(found["spec"])
        await self.client.patch(ClusterClass, Key("default", name), MergePatch({"spec": found["spec"]}))
        await self.class_ready(name)

    async def class_ready(self, name: str = "k", namespace: str = "default") -> None:
        """Plays the controller of classes."""
        key = Key(namespace, name)
        found = await self.client.get(ClusterClass, key)
        said = {"type": "VariablesReady", "status": "True", "reason": "VariablesReady", "message": ""}
        said["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"observedGeneration": found.metadata.generation, "conditions": [said]}
        await self.client.patch(ClusterClass, key, MergePatch({"status": status}), subresource="status")

    async def say(self, kind: Any, name: str, **parts: Any) -> None:
        """Plays a provider or a user."""
        key, status = Key("default", name), parts.pop("status", None)
        if parts:
            await self.client.patch(kind, key, MergePatch(parts))
        if status is not None:
            await self.client.patch(kind, key, MergePatch({"status": status}), subresource="status")

    async def up(self, version: str = "v1.30.0") -> None:
        """The control plane runs this version."""
        made = await self.plane()
        await self.say(PLANE, made.name, status={"version": version, "versions": [{"version": version, "replicas": 3}]})

    # -- looking -------------------------------------------------------------------------------------------------

    async def cluster(self) -> Cluster:
        return await self.client.get(Cluster, C)

    async def plane(self) -> Unstructured:
        ref = (await self.cluster()).spec.control_plane_ref
        assert ref is not None
        return await self.client.get(PLANE, Key("default", ref.name))

    async def infra(self) -> Unstructured:
        ref = (await self.cluster()).spec.infrastructure_ref
        assert ref is not None
        return await self.client.get(INFRA, Key("default", ref.name))

    async def deployments(self) -> dict[str, MachineDeployment]:
        found = (await self.client.list(MachineDeployment, Query(namespace="default"))).items
        return {each.metadata.labels[NAME]: each for each in found}

    async def checks(self) -> dict[str, MachineHealthCheck]:
        found = (await self.client.list(MachineHealthCheck, Query(namespace="default"))).items
        return {each.metadata.name: each for each in found}

    async def copies(self, kind: Resource) -> dict[str, Unstructured]:
        """Those that were made for the Cluster."""
        found = (await self.client.list(kind, Query(namespace="default", labels=OWNED))).items
        return {each.name: each for each in found}

    async def everything(self) -> set[tuple[str, str]]:
        """All that a topology makes, by kind and name."""
        made: set[tuple[str, str]] = set()
        for kind in (INFRA, PLANE, *COPIES, MachineDeployment.__resource__, MachineHealthCheck.__resource__):
            made |= {(kind.kind, name) for name in await self.copies(kind)}
        return made


def said(found: Cluster) -> tuple[str, str, str]:
    told = condition.find(found.status.conditions, "TopologyReconciled")
    assert told is not None, f"nothing is said of the topology: {found.status.conditions}"
    return told["status"], told["reason"], told["message"]


def core_of(obj: Mapping[str, Any]) -> Any:
    return obj["spec"]["template"]["spec"]


@asynccontextmanager
async def bench(*objects: Mapping[str, Any], contract: str = "v1beta2", ready: bool = True) -> AsyncIterator[Bench]:
    """`objects` in the place of the usual class and Cluster."""
    hooks = Hooks()
    ours = [each for each in definitions() if each["spec"]["group"] == "cluster.x-k8s.io"]
    async with plane(crds=[*ours, *(definition(kind, contract) for kind in KINDS)]) as p:
        core.register(hooks, p.client)
        install_hooks(hooks, p.server)
        made = Bench(p)
        await p.have(*templates(), *(objects or (cluster_class(), cluster())))
        if ready:
            for each in (await p.client.list(ClusterClass, Query())).items:
                await made.class_ready(each.metadata.name, each.metadata.namespace)
        yield made
