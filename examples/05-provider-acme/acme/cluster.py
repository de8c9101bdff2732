"""What a cluster needs from Acme besides its machines: nothing. So this only lists and removes machines of clusters."""

from __future__ import annotations

from collections.abc import Sequence

from acme.api import AcmeCluster, AcmeMachineTemplate
from acme.connection import AcmeSession
from acme.machine import CLUSTER_LABEL, MACHINE_LABEL, POWER
from homeport.infra.error import Missing, ProviderError, policy_of
from homeport.infra.preflight.check import CAPACITY, REFERENCES
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check, ClusterDriver, ClusterScope, Owned, Preflight
from homeport.runtime.outcome import Wait

Scope = ClusterScope[AcmeCluster, AcmeSession]


class AcmeClusterDriver(ClusterDriver[AcmeCluster, AcmeSession]):
    async def converge(self, scope: Scope) -> Wait | None:
        return None

    async def release(self, scope: Scope) -> Wait | None:
        return None

    async def list_owned(self, scope: Scope) -> Sequence[Owned]:
        found = await scope.session.client.machines(CLUSTER_LABEL, scope.infra.metadata.uid)
        return [
            Owned(
                id=each["id"],
                name=each["name"],
                uid=each["labels"].get(MACHINE_LABEL, ""),
                cluster_uid=each["labels"].get(CLUSTER_LABEL, ""),
                addresses=tuple(each["addresses"]),
                power=POWER.get(each["state"], "unknown"),
            )
            for each in found
            if each["state"] != "deleting"
        ]

    async def remove(self, scope: Scope, owned: Owned) -> None:
        try:
            await scope.session.client.delete_machine(owned.id)
        except Missing:
            return


class AcmePreflight(Preflight[AcmeSession]):
    """What can be found wrong before the first machine exists."""

    async def check_references(
        self, session: AcmeSession, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        checks = []
        for plan in plans:
            template: AcmeMachineTemplate = plan.template
            spec, where = template.spec.template.spec, f"AcmeMachineTemplate {template.metadata.name}"
            for collection, field, name in (("images", "image", spec.image), ("networks", "network", spec.network)):
                try:
                    await session.client.named(collection, name, f"{where}: spec.template.spec.{field}")
                except ProviderError as error:
                    checks.append(Check(REFERENCES, False, policy_of(error).reason, error.message))
        return checks

    async def check_capacity(self, session: AcmeSession, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        wanted = sum(
            plan.count * int(plan.template.spec.template.spec.memory.removesuffix("Gi"))
            for plan in plans
            if plan.template is not None
        )
        free = await session.client.free_memory()
        if wanted <= free:
            return [Check(CAPACITY, True)]
        text = f"the machines of the cluster need {wanted}Gi of memory, and Acme has {free}Gi free"
        return [Check(CAPACITY, False, "InsufficientCapacity", text)]
