"""Unhealthy Machines: who replaces them, how often, and when nobody does."""

from __future__ import annotations

import asyncio
from typing import Any

from capikit import generic, manifest
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineHealthCheck
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.protocol import Key, Query
from homeport.runtime.definition import establish
from homeport.runtime.testing import virtual
from scenario.capi.look import control_planes, message, says, workers

_WAITS = [{"type": "Ready", "status": each, "timeoutSeconds": 300} for each in ("Unknown", "False")]


def check(*, control_plane: bool = False, **more: Any) -> dict[str, Any]:
    match: dict[str, Any] = {"matchLabels": {"cluster.x-k8s.io/deployment-name": "one-md-0"}}
    if control_plane:
        match = {"matchExpressions": [{"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"}]}
    spec = {"clusterName": "one", "selector": match, "checks": {"unhealthyNodeConditions": _WAITS}, **more}
    return {
        "apiVersion": manifest.CLUSTER_API,
        "kind": "MachineHealthCheck",
        "metadata": {"name": "check", "namespace": "default"},
        "spec": spec,
    }


def crash(y: Yard, machine: Machine) -> None:
    (uid,) = [uid for uid, name in y.alive().items() if name == machine.metadata.name]
    y.fleet.powered_off(uid, crashed=True)


def test_too_many_unhealthy_machines_are_left_alone_and_that_is_said() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 4)
            await y.plane.have(check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": "25%"}}))
            await y.steady("one", 1, 4, "v1.30.0")
            sick = (await workers(y))[:2]
            for each in sick:
                crash(y, each)
            await y.until(MachineHealthCheck, "check", says("RemediationAllowed", status="False"), timeout=1200)
            await asyncio.sleep(3600)
            assert len(y.infra.created) == 5
            await y.patch(
                MachineHealthCheck,
                "check",
                {"spec": {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "50%"}}}},
            )
            for each in sick:
                await y.gone(Machine, each.metadata.name, timeout=1200)
            await y.steady("one", 1, 4, "v1.30.0")
            await y.plane.settle(quiet=60)
            assert len(y.infra.created) == 7

    run()


def test_a_machine_may_be_excluded_from_remediation_and_asked_for_by_hand() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 2)
            await y.plane.have(check())
            await y.steady("one", 1, 2, "v1.30.0")
            spared, well = await workers(y)
            mark = {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}}
            await y.patch(Machine, spared.metadata.name, mark)
            crash(y, spared)
            await asyncio.sleep(3600)
            assert len(y.infra.created) == 3
            ask = {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}}
            await y.patch(Machine, well.metadata.name, ask)
            await y.gone(Machine, well.metadata.name)
            unmark = {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": None}}}
            await y.patch(Machine, spared.metadata.name, unmark)
            await y.gone(Machine, spared.metadata.name, timeout=1200)
            await y.steady("one", 1, 2, "v1.30.0")

    run()


def test_control_plane_machines_that_never_come_up_are_replaced_so_often_and_no_more() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 3, 0)
            await y.steady("one", 3, 0, "v1.30.0")
            rules = {"maxRetry": 2, "retryPeriodSeconds": 60, "minHealthyPeriodSeconds": 36000}
            await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"remediation": rules}})
            never = check(control_plane=True)
            never["spec"]["checks"]["nodeStartupTimeoutSeconds"] = 300
            await y.plane.have(never)
            await y.plane.settle(quiet=30)
            y.infra.broken = True  # what is made from now on does not boot
            crash(y, (await control_planes(y))[0])
            deadline = y.clock.monotonic() + 6 * 3600
            while y.clock.monotonic() < deadline:
                await asyncio.sleep(60)
                if any("maxRetry" in message(m, "OwnerRemediated") for m in await control_planes(y)):
                    break
            else:
                raise AssertionError([message(m, "OwnerRemediated") for m in await control_planes(y)])
            made = len(y.infra.created)
            assert made == 3 + 1 + 2
            await asyncio.sleep(3600)
            assert len(y.infra.created) == made
            (workload,) = y.fleet.clusters()
            assert len(workload.etcd.members) == 2

    run()


REQUEST = Resource(generic.GROUP, "v1", "GenericRemediation", "genericremediations")
TEMPLATE = Resource(generic.GROUP, "v1", "GenericRemediationTemplate", "genericremediationtemplates")


def test_remediation_may_be_left_to_somebody_else() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await establish(y.client, *(generic.definition(each, "v1beta2") for each in (REQUEST, TEMPLATE)))
            template = {
                "apiVersion": f"{generic.GROUP}/v1",
                "kind": "GenericRemediationTemplate",
                "metadata": {"name": "reboot", "namespace": "default"},
                "spec": {"template": {"spec": {"how": "reboot"}}},
            }
            ref = {"apiVersion": f"{generic.GROUP}/v1", "kind": "GenericRemediationTemplate", "name": "reboot"}
            await y.plane.have(template, check(remediation={"templateRef": ref}))
            await y.create("one", 1, 2)
            await y.steady("one", 1, 2, "v1.30.0")
            sick = (await workers(y))[0]
            crash(y, sick)
            asked = await y.until(REQUEST, sick.metadata.name, lambda r: True, timeout=1200)
            assert asked["spec"] == {"how": "reboot"}
            await asyncio.sleep(1800)
            assert len((await y.client.list(REQUEST, Query(namespace="default"))).items) == 1
            assert len(y.infra.created) == 3
            (uid,) = [uid for uid, name in y.alive().items() if name == sick.metadata.name]
            reboot(y, uid)
            await y.gone(REQUEST, sick.metadata.name, timeout=1200)
            await y.steady("one", 1, 2, "v1.30.0")
            assert (await y.client.get(Machine, Key("default", sick.metadata.name))).metadata.uid == sick.metadata.uid

    run()


def reboot(y: Yard, uid: str) -> None:
    """What an external remediation does: the machine is powered on again."""
    y.infra.power_on(uid)


def test_the_cluster_says_which_machines_are_not_healthy() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 2)
            await y.plane.have(check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": 0}}))
            await y.steady("one", 1, 2, "v1.30.0")
            sick = (await workers(y))[0]
            crash(y, sick)
            found = await y.until(
                Cluster, "one", says("WorkerMachinesReady", sick.metadata.name, status="False"), timeout=1200
            )
            assert "Kubelet" in message(found, "WorkerMachinesReady") or "Node" in message(found, "WorkerMachinesReady")

    run()
