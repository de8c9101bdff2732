"""Unhealthy Machines: who replaces them, how often, and when nobody does."""

from __future__ import annotations

import asyncio
from typing import Any

from capikit import generic, manifest
from capikit.harness import Harness, harness
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


def crash(h: Harness, machine: Machine) -> None:
    (uid,) = [uid for uid, name in h.alive().items() if name == machine.metadata.name]
    h.fleet.powered_off(uid, crashed=True)


def test_too_many_unhealthy_machines_are_left_alone_and_that_is_said() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 4)
            await h.plane.have(check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": "25%"}}))
            await h.steady("one", 1, 4, "v1.30.0")
            sick = (await workers(h))[:2]
            for each in sick:
                crash(h, each)
            await h.until(MachineHealthCheck, "check", says("RemediationAllowed", status="False"), timeout=1200)
            await asyncio.sleep(3600)
            assert len(h.infra.created) == 5
            await h.patch(
                MachineHealthCheck,
                "check",
                {"spec": {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "50%"}}}},
            )
            for each in sick:
                await h.gone(Machine, each.metadata.name, timeout=1200)
            await h.steady("one", 1, 4, "v1.30.0")
            await h.plane.settle(quiet=60)
            assert len(h.infra.created) == 7

    run()


def test_a_machine_may_be_excluded_from_remediation_and_asked_for_by_hand() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.plane.have(check())
            await h.steady("one", 1, 2, "v1.30.0")
            spared, well = await workers(h)
            mark = {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}}
            await h.patch(Machine, spared.metadata.name, mark)
            crash(h, spared)
            await asyncio.sleep(3600)
            assert len(h.infra.created) == 3
            ask = {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}}
            await h.patch(Machine, well.metadata.name, ask)
            await h.gone(Machine, well.metadata.name)
            unmark = {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": None}}}
            await h.patch(Machine, spared.metadata.name, unmark)
            await h.gone(Machine, spared.metadata.name, timeout=1200)
            await h.steady("one", 1, 2, "v1.30.0")

    run()


def test_control_plane_machines_that_never_come_up_are_replaced_so_often_and_no_more() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 0)
            await h.steady("one", 3, 0, "v1.30.0")
            rules = {"maxRetry": 2, "retryPeriodSeconds": 60, "minHealthyPeriodSeconds": 36000}
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"remediation": rules}})
            never = check(control_plane=True)
            never["spec"]["checks"]["nodeStartupTimeoutSeconds"] = 300
            await h.plane.have(never)
            await h.plane.settle(quiet=30)
            h.infra.broken = True  # what is made from now on does not boot
            crash(h, (await control_planes(h))[0])
            deadline = h.clock.monotonic() + 6 * 3600
            while h.clock.monotonic() < deadline:
                await asyncio.sleep(60)
                if any("maxRetry" in message(m, "OwnerRemediated") for m in await control_planes(h)):
                    break
            else:
                raise AssertionError([message(m, "OwnerRemediated") for m in await control_planes(h)])
            made = len(h.infra.created)
            assert made == 3 + 1 + 2
            await asyncio.sleep(3600)
            assert len(h.infra.created) == made
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 2

    run()


REQUEST = Resource(generic.GROUP, "v1", "GenericRemediation", "genericremediations")
TEMPLATE = Resource(generic.GROUP, "v1", "GenericRemediationTemplate", "genericremediationtemplates")


def test_remediation_may_be_left_to_somebody_else() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await establish(h.client, *(generic.definition(each, "v1beta2") for each in (REQUEST, TEMPLATE)))
            template = {
                "apiVersion": f"{generic.GROUP}/v1",
                "kind": "GenericRemediationTemplate",
                "metadata": {"name": "reboot", "namespace": "default"},
                "spec": {"template": {"spec": {"how": "reboot"}}},
            }
            ref = {"apiVersion": f"{generic.GROUP}/v1", "kind": "GenericRemediationTemplate", "name": "reboot"}
            await h.plane.have(template, check(remediation={"templateRef": ref}))
            await h.create("one", 1, 2)
            await h.steady("one", 1, 2, "v1.30.0")
            sick = (await workers(h))[0]
            crash(h, sick)
            asked = await h.until(REQUEST, sick.metadata.name, lambda r: True, timeout=1200)
            assert asked["spec"] == {"how": "reboot"}
            await asyncio.sleep(1800)
            assert len((await h.client.list(REQUEST, Query(namespace="default"))).items) == 1
            assert len(h.infra.created) == 3
            (uid,) = [uid for uid, name in h.alive().items() if name == sick.metadata.name]
            reboot(h, uid)
            await h.gone(REQUEST, sick.metadata.name, timeout=1200)
            await h.steady("one", 1, 2, "v1.30.0")
            assert (await h.client.get(Machine, Key("default", sick.metadata.name))).metadata.uid == sick.metadata.uid

    run()


def reboot(h: Harness, uid: str) -> None:
    """What an external remediation does: the machine is powered on again."""
    h.infra.power_on(uid)


def test_the_cluster_says_which_machines_are_not_healthy() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.plane.have(check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": 0}}))
            await h.steady("one", 1, 2, "v1.30.0")
            sick = (await workers(h))[0]
            crash(h, sick)
            found = await h.until(
                Cluster, "one", says("WorkerMachinesReady", sick.metadata.name, status="False"), timeout=1200
            )
            assert "Kubelet" in message(found, "WorkerMachinesReady") or "Node" in message(found, "WorkerMachinesReady")

    run()
