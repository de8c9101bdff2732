"""MachineHealthChecks on a real API and a workload cluster with Nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineHealthCheck
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import shared_pki, versions, virtual
from reconcile.core.machineset.worker_kit import (
    INFRA,
    MD,
    REMEDIATION,
    REMEDIATION_TEMPLATE,
    Workers,
    cluster,
    machine_deployment,
    ref,
    said,
    template,
    workers,
)

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
CLUSTER = Key("default", "c1")
MHC = Key("default", "mhc")
START = "2026-01-01T00:00:00Z"


def health_check(**spec: Any) -> dict[str, Any]:
    checks = {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "mhc"},
        "spec": {"clusterName": "c1", "selector": {"matchLabels": {"pool": "a"}}, "checks": checks, **spec},
    }


def machine(name: str, **meta: Any) -> dict[str, Any]:
    labels = {"pool": "a", "cluster.x-k8s.io/cluster-name": "c1"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "labels": labels, **meta},
        "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": ref(INFRA, name)},
        "status": {"nodeRef": {"name": name}},
    }


class Checked:
    """Machines with Nodes of their names."""

    def __init__(self, w: Workers, workload: Any) -> None:
        self.w = w
        self.workload = workload

    async def node(self, name: str, status: str = "True") -> None:
        ready = {"type": "Ready", "status": status, "reason": "Test", "message": ""}
        ready["lastTransitionTime"] = rfc3339(self.w.p.clock.now())
        key = Key("", name)
        try:
            await self.workload.get(NODE, key)
        except NotFound:
            await self.workload.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, kind=NODE)
        await self.workload.patch(NODE, key, MergePatch({"status": {"conditions": [ready]}}), subresource="status")

    async def machine(self, name: str) -> Machine:
        return await self.w.client.get(Machine, Key("default", name))

    async def until_marked(self, name: str, timeout: float = 900) -> Machine:
        def marked(m: Machine) -> bool:
            return any(c["type"] == "HealthCheckSucceeded" and c["status"] == "False" for c in m.status.conditions)

        found: Machine = await self.w.p.until(Machine, Key("default", name), marked, timeout)
        return found

    async def check(self) -> MachineHealthCheck:
        return await self.w.client.get(MachineHealthCheck, MHC)


@asynccontextmanager
async def checked(*names: str, spec: dict[str, Any] | None = None, **machines: Any) -> AsyncIterator[Checked]:
    objects = [machine(name, **machines.get(name, {})) for name in names]
    async with workers(cluster(), *objects, machine_kind=False) as w:
        server = await EmbeddedServer.open(None, shared_pki(), clock=w.p.clock.now)
        try:
            made = Checked(w, server.client(field_manager="user"))
            for name in names:
                await made.node(name)
            await w.capi.remotes.attach(CLUSTER, made.workload)
            await w.p.have(health_check(**(spec or {})))
            yield made
        finally:
            await w.p.stop()
            await w.capi.remotes.close()
            await server.close(drain_seconds=0.1)


@virtual
async def test_healthy_machines_are_marked_so_and_counted() -> None:
    async with checked("a", "b") as c:
        await c.w.p.until(MachineHealthCheck, MHC, lambda h: h.status.current_healthy == 2, 60)
        found = await c.check()
        assert (found.status.expected_machines, found.status.targets) == (2, ["a", "b"])
        assert [r.kind for r in found.metadata.owner_references] == ["Cluster"]
        assert said(found, "RemediationAllowed")[0] == "True"
        assert said(await c.machine("a"), "HealthCheckSucceeded")[0] == "True"
        await c.w.p.settle()
        before = versions(c.w.p)
        await asyncio.sleep(3600)
        assert versions(c.w.p) == before


@virtual
async def test_a_machine_is_marked_at_the_very_second_its_time_is_up() -> None:
    async with checked("a", "b") as c:
        await c.w.p.settle()
        await c.node("a", "Unknown")
        began = c.w.p.clock.now()
        found = await c.until_marked("a")
        assert 299 <= c.w.p.clock.now() - began <= 301
        assert said(found, "HealthCheckSucceeded")[1] == "UnhealthyNode"
        assert said(found, "OwnerRemediated")[:2] == ("False", "WaitingForRemediation")
        await c.node("a", "True")
        await c.w.p.until(MachineHealthCheck, MHC, lambda h: h.status.current_healthy == 2, 60)
        assert not any(each["type"] == "OwnerRemediated" for each in (await c.machine("a")).status.conditions)


@virtual
async def test_a_deleted_node_is_noticed_at_once() -> None:
    async with checked("a") as c:
        await c.w.p.settle()
        await c.workload.delete(NODE, Key("", "a"))
        found = await c.until_marked("a", 10)
        assert said(found, "HealthCheckSucceeded")[1] == "NodeDeleted"


@virtual
async def test_too_many_unhealthy_machines_are_left_alone() -> None:
    limit = {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}}
    async with checked("a", "b", "c", spec=limit) as c:
        await c.w.p.settle()
        for name in ("a", "b"):
            await c.workload.delete(NODE, Key("", name))
        await c.until_marked("a", 10)
        await c.until_marked("b", 10)
        await c.w.p.settle()
        found = await c.check()
        assert said(found, "RemediationAllowed")[:2] == ("False", "TooManyUnhealthy")
        assert found.status.remediations_allowed == 0
        marks = [each["type"] for each in (await c.machine("b")).status.conditions]
        assert "OwnerRemediated" not in marks


@virtual
async def test_machines_that_are_to_be_left_alone_are_no_targets() -> None:
    skip = {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}
    paused = {"annotations": {"cluster.x-k8s.io/paused": ""}}
    async with checked("a", "b", "c", b=skip, c=paused) as c:
        await c.w.p.until(MachineHealthCheck, MHC, lambda h: h.status.targets == ["a"], 60)


@virtual
async def test_others_are_asked_to_heal_and_notified_when_it_is_over() -> None:
    where = {"apiVersion": "provider.example.com/v1", "kind": "FakeRemediationTemplate", "name": "heal"}
    async with checked("a", spec={"remediation": {"templateRef": where}}) as c:
        await c.w.p.settle()
        await c.workload.delete(NODE, Key("", "a"))
        found = await c.until_marked("a", 10)
        assert said(found, "ExternallyRemediated")[1] == "RemediationTemplateNotFound"
        await c.w.p.have(template(REMEDIATION_TEMPLATE, "heal", how="gently"))
        await asyncio.sleep(31)
        request = await c.w.client.get(REMEDIATION, Key("default", "a"))
        assert request["spec"] == {"how": "gently"}
        assert request.metadata["ownerReferences"][0]["kind"] == "Machine"
        assert said(await c.machine("a"), "ExternallyRemediated")[1] == "WaitingForRemediation"
        await c.node("a")
        await c.w.p.gone(REMEDIATION, Key("default", "a"), 10)
        await c.w.p.settle()
        assert not any(each["type"] == "ExternallyRemediated" for each in (await c.machine("a")).status.conditions)


@virtual
async def test_an_unhealthy_machine_of_a_deployment_is_replaced() -> None:
    spec = {
        "checks": {"nodeStartupTimeoutSeconds": 30},
        "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": 2}},
    }
    async with workers(cluster(), machine_deployment(2), health_check(**spec)) as w:
        server = await EmbeddedServer.open(None, shared_pki(), clock=w.p.clock.now)
        try:
            await w.p.until(type(await w.deployment()), MD, lambda d: d.status.available_replicas == 2, 120)
            made = Checked(w, server.client(field_manager="user"))
            sick, well = (m.metadata.name for m in await w.machines())
            await made.node(well)
            await w.capi.remotes.attach(CLUSTER, made.workload)
            await w.p.gone(Machine, Key("default", sick), 300)
            assert well in {m.metadata.name for m in await w.machines()}
        finally:
            await w.p.stop()
            await w.capi.remotes.close()
            await server.close(drain_seconds=0.1)
