"""A drain goes on when something happens in the workload cluster, not when a timer says so."""

from __future__ import annotations

import base64

from homeport.api.cluster.v1beta2 import Machine
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.protocol import Key, MergePatch
from homeport.core import machine as machines
from homeport.machinery import condition
from homeport.runtime.testing import plane, shared_pki, virtual
from reconcile.core.machine.test_machine_deletion import POD, going, pod
from reconcile.core.provider import C1, INFRA_MACHINE, KINDS, M1, NODE, definition, node


def _draining(found: Machine) -> bool:
    said = condition.find(found.status.conditions, "Deleting")
    return said is not None and said["reason"] == "DrainingNode" and "shutting down" in said["message"]


def _past_drain(found: Machine) -> bool:
    said = condition.find(found.status.conditions, "Deleting")
    return said is not None and said["reason"] == "WaitingForInfrastructureDeletion"


@virtual
async def test_a_pod_that_is_gone_lets_the_machine_go_at_once() -> None:
    server = await EmbeddedServer.open(None, shared_pki())
    workload = server.client(field_manager="user")
    crds = [*definitions(), *(definition(kind, "v1beta2") for kind in KINDS)]
    made = node()
    await workload.create(made, kind=NODE)
    await workload.patch(NODE, Key("", "n1"), MergePatch({"status": made["status"]}), subresource="status")
    given = pod("slow", metadata={"namespace": "default", "finalizers": ["example.com/slow"]})
    await workload.create(given, kind=POD)
    async with plane(crds=crds) as p:
        capi = Capi.make(p.manager, connect=lambda content, proxy: server.client())
        machines.install(p.manager, capi)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{C1.name}-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": C1.name}},
            "data": {"value": base64.b64encode(b"{}").decode()},
        }
        await p.have(*going(), secret)
        await p.start()
        await p.client.delete(Machine, M1)
        await p.until(Machine, M1, _draining, what="draining")
        await p.settle(quiet=30)  # long after everything has been looked at
        begun = p.clock.monotonic()
        await workload.patch(POD, Key("default", "slow"), MergePatch({"metadata": {"finalizers": None}}))
        await workload.delete(POD, Key("default", "slow"), grace_seconds=0)
        await p.until(Machine, M1, _past_drain, what="going on")
        assert p.clock.monotonic() - begun < 2.0
        assert (await p.client.get(INFRA_MACHINE, M1)).metadata["deletionTimestamp"]
    await server.close(drain_seconds=0.1)
