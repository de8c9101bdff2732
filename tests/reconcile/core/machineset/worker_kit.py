"""A plane with MachineSets and MachineDeployments, and a stand-in for whatever makes a Machine run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachineSet
from homeport.api.meta import Resource
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.protocol import Key, MergePatch, Query
from homeport.core import machinedeployment, machinehealthcheck, machineset
from homeport.core.machine.uptodate import up_to_date
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import Plane, plane

GROUP = "provider.example.com"
INFRA = Resource(GROUP, "v1", "FakeMachine", "fakemachines")
INFRA_TEMPLATE = Resource(GROUP, "v1", "FakeMachineTemplate", "fakemachinetemplates")
CONFIG = Resource(GROUP, "v1", "FakeConfig", "fakeconfigs")
CONFIG_TEMPLATE = Resource(GROUP, "v1", "FakeConfigTemplate", "fakeconfigtemplates")
PLANE = Resource(GROUP, "v1", "FakeControlPlane", "fakecontrolplanes")
REMEDIATION = Resource(GROUP, "v1", "FakeRemediation", "fakeremediations")
REMEDIATION_TEMPLATE = Resource(GROUP, "v1", "FakeRemediationTemplate", "fakeremediationtemplates")
KINDS = (INFRA, INFRA_TEMPLATE, CONFIG, CONFIG_TEMPLATE, PLANE, REMEDIATION, REMEDIATION_TEMPLATE)

API = "cluster.x-k8s.io/v1beta2"


def definition(kind: Resource) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified, "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def ref(kind: Resource, name: str) -> dict[str, str]:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def template(kind: Resource, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"template": {"spec": spec or {"size": "small"}}},
    }


def cluster(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Cluster",
        "metadata": {"name": "c1"},
        "spec": {"infrastructureRef": ref(INFRA, "c1"), **spec},
        "status": {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}},
    }


def machine_template(version: str = "v1.30.0", infra: str = "small", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"pool": "a"}},
        "spec": {
            "clusterName": "c1",
            "version": version,
            "bootstrap": {"configRef": ref(CONFIG_TEMPLATE, "config")},
            "infrastructureRef": ref(INFRA_TEMPLATE, infra),
            **spec,
        },
    }


def machine_set(replicas: int = 1, name: str = "ms", **parts: Any) -> dict[str, Any]:
    spec = {
        "clusterName": "c1",
        "replicas": replicas,
        "selector": {"matchLabels": {"pool": "a"}},
        "template": machine_template(),
        **parts.pop("spec", {}),
    }
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": API, "kind": "MachineSet", "metadata": metadata, "spec": spec, **parts}


def machine_deployment(replicas: int = 3, **parts: Any) -> dict[str, Any]:
    spec = {
        "clusterName": "c1",
        "replicas": replicas,
        "selector": {"matchLabels": {"pool": "a"}},
        "template": machine_template(),
        **parts.pop("spec", {}),
    }
    metadata = {"name": "md", **parts.pop("metadata", {})}
    return {"apiVersion": API, "kind": "MachineDeployment", "metadata": metadata, "spec": spec}


BASICS = (
    template(CONFIG_TEMPLATE, "config"),
    template(INFRA_TEMPLATE, "small"),
    template(INFRA_TEMPLATE, "large", size="large"),
)
MD = Key("default", "md")
MS = Key("default", "ms")


class Runner:
    """Machines become available after a while, and go when they are deleted. `broken` ones never work."""

    def __init__(self, p: Plane, seconds: float, broken: Callable[[Machine], bool]) -> None:
        self._client = p.manager.client
        self._clock = p.clock
        self._machines = p.manager.informers.get(Machine).cache
        self._sets = p.manager.informers.get(MachineSet).cache
        self._deployments = p.manager.informers.get(MachineDeployment).cache
        self._seconds = seconds
        self._broken = broken
        self._since: dict[str, float] = {}

    async def reconcile(self, key: Key) -> Wait | None:
        machine = self._machines.get(key)
        if machine is None:
            return None
        now = self._clock.now()
        deleting = bool(machine.metadata.deletion_timestamp)
        since = self._since.setdefault(f"{machine.metadata.uid}{deleting}", now)
        if now - since < self._seconds:
            return Wait("Waiting", after=self._seconds - (now - since), quiet=True)
        if deleting:
            if machine.metadata.finalizers:
                await self._client.patch(Machine, key, MergePatch({"metadata": {"finalizers": None}}))
            return None
        works = "False" if self._broken(machine) else "True"
        conditions = machine.status.conditions
        for kind in ("Ready", "Available", "NodeHealthy"):
            conditions = condition.put(conditions, kind, works, kind, "", now=rfc3339(now))  # type: ignore[arg-type]
        owner = machine.metadata.owner_references[0] if machine.metadata.owner_references else None
        found = self._sets.get(Key(key.namespace, owner.name)) if owner else None
        up = up_to_date(machine, found, self._deployments.get(MD), now)
        if up is not None:
            conditions = condition.put(conditions, "UpToDate", up.status, up.reason, up.message, now=rfc3339(now))
        if conditions != machine.status.conditions:
            patch = {
                "metadata": {"resourceVersion": machine.metadata.resource_version},
                "status": {"conditions": conditions, "nodeRef": {"name": key.name}},
            }
            await self._client.patch(Machine, key, MergePatch(patch), subresource="status")
        return None


class Workers:
    def __init__(self, p: Plane, capi: Capi) -> None:
        self.p = p
        self.capi = capi
        self.client = p.client

    async def machines(self) -> list[Machine]:
        page = await self.client.list(Machine, Query(namespace="default"))
        return list(page.items)

    async def sets(self) -> list[MachineSet]:
        page = await self.client.list(MachineSet, Query(namespace="default"))
        return sorted(page.items, key=lambda s: int(s.metadata.annotations.get(REVISION, "0")))

    async def patch(self, kind: Any, key: Key, **body: Any) -> Any:
        return await self.client.patch(kind, key, MergePatch(body))

    async def deployment(self) -> MachineDeployment:
        return await self.client.get(MachineDeployment, MD)


REVISION = "machinedeployment.clusters.x-k8s.io/revision"


@asynccontextmanager
async def workers(
    *objects: Mapping[str, Any],
    seconds: float = 10.0,
    broken: Callable[[Machine], bool] = lambda m: False,
    machine_kind: bool = True,
) -> AsyncIterator[Workers]:
    """MachineSets, MachineDeployments and health checks run; the basics are there before `objects`."""
    crds = [*definitions(), *(definition(kind) for kind in KINDS)]
    async with plane(crds=crds) as p:
        capi = Capi.make(p.manager)
        machineset.install(p.manager, capi)
        machinedeployment.install(p.manager, capi)
        machinehealthcheck.install(p.manager, capi)
        if machine_kind:
            runner = Runner(p, seconds, broken)
            runner_controller = Controller("runner", Machine, runner, clock=p.clock)

            def of_deployment(_: Any) -> list[Key]:
                return list(p.manager.informers.get(Machine).cache.known_keys())

            runner_controller.map(MachineDeployment, of_deployment)
            p.manager.add(runner_controller)
        await p.have(*BASICS)
        await p.have(*objects)
        await p.start()
        try:
            yield Workers(p, capi)
        finally:
            await p.stop()
            await capi.remotes.close()


def said(obj: Any, kind: str) -> tuple[str, str, str]:
    found = condition.find(obj.status.conditions, kind)
    assert found is not None, f"no condition {kind}: {[c['type'] for c in obj.status.conditions]}"
    return found["status"], found["reason"], found["message"]
