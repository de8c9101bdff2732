"""The requests to Acme that a machine's life is made of. `homeport.infra.machine.driver` decides when to send which."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from acme.api import AcmeCluster, AcmeMachine
from acme.client import job_error
from acme.connection import VENDOR, AcmeSession
from homeport.infra.error import ProviderError
from homeport.infra.machine.driver import own_addresses, require_user_data
from homeport.infra.protocol import Instance, Instances, MachineScope, Operation, Power
from homeport.infra.vendor.task import Poller, Task

Json = dict[str, Any]
Scope = MachineScope[AcmeCluster, AcmeMachine, AcmeSession]

# Labels of machines: the UIDs of the AcmeMachine and of the AcmeCluster that they were created for.
MACHINE_LABEL = "homeport-machine"
CLUSTER_LABEL = "homeport-cluster"
POWER: dict[str, Power] = {"creating": "off", "stopped": "off", "running": "on", "deleting": "changing"}


class AcmeInstances(Instances[AcmeCluster, AcmeMachine, AcmeSession, Json]):
    vendor = VENDOR

    async def get(self, scope: Scope, id: str, *, fresh: bool = False) -> Instance | None:
        found = await scope.session.client.machine(id)
        return None if found is None else _instance(scope, found)

    async def find(self, scope: Scope) -> Sequence[Instance]:
        return [_instance(scope, each) for each in await scope.session.client.machines(MACHINE_LABEL, scope.uid)]

    async def prepare(self, scope: Scope) -> Json:
        require_user_data(scope)
        spec, client = scope.infra.spec, scope.session.client
        labels = {MACHINE_LABEL: scope.uid}
        if scope.infra_cluster is not None:
            labels[CLUSTER_LABEL] = scope.infra_cluster.metadata.uid
        return {
            "name": scope.name,
            "image": (await client.named("images", spec.image, "spec.image"))["id"],
            "network": (await client.named("networks", spec.network, "spec.network"))["id"],
            "cpus": spec.cpus,
            "memoryGiB": int(spec.memory.removesuffix("Gi")),
            "userData": b64encode(scope.user_data).decode(),
            "labels": labels,
        }

    async def create(self, scope: Scope, prepared: Json, request_id: str) -> str:
        return await scope.session.client.create_machine(prepared, request_id)

    async def power_on(self, scope: Scope, instance: Instance) -> str:
        await scope.session.client.start_machine(instance.id)
        return ""  # Acme has no job for this

    async def delete(self, scope: Scope, instance: Instance) -> str:
        return await scope.session.client.delete_machine(instance.id)

    def tasks(self, scope: Scope) -> Poller:
        return scope.session.tasks

    def failure(self, scope: Scope, operation: Operation, task: Task, what: str) -> ProviderError:
        return job_error(task, what)


def _instance(scope: Scope, found: Json) -> Instance:
    return Instance(
        id=found["id"],
        provider_id=f"acme://{found['id']}",
        name=found["name"],
        power=POWER.get(found["state"], "unknown"),
        addresses=own_addresses(scope, found["addresses"], found["name"]),
        uid=found["labels"].get(MACHINE_LABEL, ""),
        complete=found["state"] != "creating",
        deleting=found["state"] == "deleting",
    )
