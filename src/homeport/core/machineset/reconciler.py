"""MachineSet: keeps a number of equal Machines, hands changes of the template down to them, replaces the unhealthy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ContractRef, Machine, MachineDeployment, MachineSet
from homeport.api.meta import Unstructured
from homeport.capi import name
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import controller_of, ensure_owner, owner_of_kind, owner_reference, owners
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.resolution import NotInstalled, ResolvedResource
from homeport.capi.unreadable import MACHINE, await_readable, made_from
from homeport.client.absence import drop_object
from homeport.client.protocol import Key, MergePatch
from homeport.core.index import by_cluster, keys_of
from homeport.core.machineset import member, preflight, priority, remediation
from homeport.core.machineset.carry import Carry
from homeport.core.machineset.creation import Creation
from homeport.core.machineset.replica import listed
from homeport.core.machineset.scope import SetScope
from homeport.core.machineset.share import share_of
from homeport.core.related import Related, observe_related
from homeport.machinery import condition
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

MANAGER = "capi-machineset"
_CLUSTER = Cluster.__resource__


class SetReconciler(CapiReconciler[MachineSet, SetScope]):
    controller_name = "machineset"
    kind = MachineSet
    field_manager = MANAGER
    finalizer = name.SET_FINALIZER

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(manager)
        self.capi = capi
        self._machines = manager.informers.get(Machine).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._deployments = manager.informers.get(MachineDeployment).cache
        member.add_indexes(self._machines)
        self.of_cluster = by_cluster(self.objects)
        self._creation = Creation(capi, self._write)
        self._carry = Carry(capi, self._write)
        self._planes: set[ResolvedResource] = set()  # kinds of control planes that wake us

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._creation.forget(key)
        self._carry.forget(key)

    def load(self, obj: MachineSet) -> SetScope:
        return SetScope(obj, self._clusters.get(Key(obj.metadata.namespace, obj.spec.cluster_name)))

    def cluster_of(self, scope: SetScope) -> Cluster | None:
        return scope.cluster

    def phases(self, scope: SetScope) -> Sequence[Phase[SetScope]]:
        if scope.deleting:
            return [self._observe_machines, self._release, self.drop_finalizer]
        return [self._observe_machines, self._converge]

    async def _observe_machines(self, scope: SetScope) -> Wait | None:
        scope.machines = member.owned(self._machines, scope.object)
        scope.unreadable = self._await_readable(scope)
        return None

    async def _converge(self, scope: SetScope) -> Wait | None:
        if scope.cluster is None:
            # The Cluster's coming wakes us.
            return Wait("WaitingForCluster", f"Cluster {scope.object.spec.cluster_name} does not exist")
        await self._hold_set(scope)
        await self._adopt(scope)
        await self._observe_templates(scope)
        await self._carry.run(scope)
        blocked = await self._preflight(scope)
        await self._remediate(scope, blocked)
        return await self._converge_replicas(scope, blocked)

    def _await_readable(self, scope: SetScope) -> Wait | None:
        spec = scope.object.spec.template.spec
        parts = made_from(spec.bootstrap.config_ref, spec.infrastructure_ref)
        return await_readable(self.capi.manager.informers, scope.key.namespace, MACHINE, *parts)

    # -- taking hold -------------------------------------------------------------------------------------------

    async def _hold_set(self, scope: SetScope) -> None:
        machine_set, cluster = scope.object, scope.cluster
        assert cluster is not None
        found = controller_of(machine_set)
        if found is not None and found["kind"] == "MachineDeployment":
            scope.deployment = self._deployments.get(Key(scope.key.namespace, found["name"]))
            owner: dict[str, Any] = found
        else:
            owner = owner_reference(cluster)
        written = await ensure_owner(
            self.client,
            MachineSet,
            machine_set,
            owner,
            self._write,
            labels={name.CLUSTER_NAME_LABEL: machine_set.spec.cluster_name},
            finalizers=[name.SET_FINALIZER],
        )
        scope.update_metadata(written)

    async def _adopt(self, scope: SetScope) -> None:
        assert scope.machines is not None
        owner = owner_reference(scope.object, controller=True)
        for machine in member.adoptable(self._machines, scope.object):
            # What stood alone belonged to the Cluster; from now on it does so through its set.
            without = [(name.GROUP, "Cluster")]
            taken = await ensure_owner(self.client, Machine, machine, owner, self._write, without=without)
            self.recorder.record(scope.object, "SuccessfulAdopt", f"adopted Machine {machine.metadata.name}")
            scope.machines.append(taken)

    async def _observe_templates(self, scope: SetScope) -> None:
        spec = scope.object.spec.template.spec
        scope.bootstrap = await self._observe(scope, spec.bootstrap.config_ref)
        scope.infrastructure = await self._observe(scope, spec.infrastructure_ref)
        for related in (scope.bootstrap, scope.infrastructure):
            await self._hold_template(scope, related)

    async def _observe(self, scope: SetScope, ref: ContractRef | None) -> Related:
        kind = MachineSet.__resource__
        return await observe_related(self.capi, ref, scope.key, watcher=self.controller, owner_kind=kind)

    async def _hold_template(self, scope: SetScope, related: Related) -> None:
        """Templates go with the Cluster that uses them, unless they belong to a ClusterClass, too."""
        template = related.object
        if template is None or related.resource is None or related.deleting or scope.cluster is None:
            return
        if any(owner["kind"] == "ClusterClass" for owner in owners(template)):
            return
        wanted = owner_reference(scope.cluster)
        held = owner_of_kind(template, _CLUSTER)
        if held is not None and held["name"] == wanted["name"] and held["uid"] == wanted["uid"]:
            return
        related.object = await ensure_owner(self.client, related.resource, template, wanted, self._write)

    # -- may Machines be made? ---------------------------------------------------------------------------------

    async def _preflight(self, scope: SetScope) -> list[str]:
        """Asked for only when a Machine is to be made: it needs the control plane."""
        assert scope.machines is not None
        assert scope.cluster is not None
        if len(scope.machines) >= scope.wanted and not remediation.candidates(scope.machines):
            return []
        if scope.unreadable is not None:
            return [scope.unreadable.message]
        skipped = preflight.find_skipped(scope.object, scope.bootstrap.object)
        if preflight.ALL in skipped:
            return []
        try:
            plane = await self._observe_plane(scope.cluster)
            return preflight.find_failures(scope.object, scope.cluster, plane, skipped)
        except (NotInstalled, ValueError) as error:
            return [str(error)]

    async def _observe_plane(self, cluster: Cluster) -> preflight.ControlPlane | None:
        ref = cluster.spec.control_plane_ref
        if ref is None:
            return None
        found = await self.capi.externals.find(
            ref, cluster.metadata.namespace, watcher=self.controller, owner_kind=MachineSet.__resource__
        )
        if found is None:
            raise ValueError(f"control plane {ref.kind} {ref.name} does not exist")
        plane, served = found
        if served not in self._planes:
            self._planes.add(served)
            self.controller.watch(served.resource, self._waiting_for_plane)
        return preflight.ControlPlane(plane, served.contract)

    def _waiting_for_plane(self, plane: Unstructured) -> Iterable[Key]:
        """The sets of its Cluster that wait for something, which may be this control plane."""
        owner = owner_of_kind(plane, _CLUSTER)
        if owner is None:
            return []
        keys = keys_of(self.of_cluster(Key(plane.namespace, owner["name"])))
        return [key for key in keys if key in self.controller.waits]

    # -- Machines ----------------------------------------------------------------------------------------------

    async def _remediate(self, scope: SetScope, blocked: list[str]) -> None:
        assert scope.machines is not None
        limit, text = self._in_flight(scope)
        actions = remediation.plan(
            scope.machines, outdated=self._outdated(scope), limit=limit, limit_text=text, blocked=blocked
        )
        for action in actions:
            match action:
                case remediation.Clear(machine):
                    kept = condition.drop(machine.status.conditions, name.Condition.OWNER_REMEDIATED)
                    await self._set_conditions(scope, machine, kept)
                case remediation.Defer(machine, reason, message):
                    await self._set_owner_remediated(scope, machine, reason, message)
                case remediation.Replace(machine):
                    # First said, then done: a Machine being deleted is not looked at again.
                    await self._set_owner_remediated(
                        scope, machine, name.Reason.MACHINE_DELETING, "the Machine is being deleted"
                    )
                    await self._delete(scope, [machine], why="it is unhealthy")

    def _outdated(self, scope: SetScope) -> bool:
        """Of a MachineDeployment only the current set replaces: the others are about to go."""
        if scope.deployment is None:
            return False
        wanted = scope.deployment.metadata.annotations.get(name.REVISION, "")
        return wanted != scope.object.metadata.annotations.get(name.REVISION, "")

    def _in_flight(self, scope: SetScope) -> tuple[int | None, str]:
        most = scope.deployment.spec.remediation.max_in_flight if scope.deployment is not None else None
        if most is None or scope.deployment is None:
            return None, ""
        replicas = scope.deployment.spec.replicas
        return share_of(most, 1 if replicas is None else replicas, up=True), str(most)

    async def _set_owner_remediated(self, scope: SetScope, machine: Machine, reason: str, message: str) -> None:
        known = condition.find(machine.status.conditions, name.Condition.OWNER_REMEDIATED)
        if known is not None and (known["status"], known["reason"], known["message"]) == ("False", reason, message):
            return
        changed = condition.put(
            machine.status.conditions,
            name.Condition.OWNER_REMEDIATED,
            "False",
            reason,
            message,
            now=rfc3339(self.clock.now()),
            generation=machine.metadata.generation,
        )
        await self._set_conditions(scope, machine, changed)

    async def _set_conditions(self, scope: SetScope, machine: Machine, conditions: list[condition.Condition]) -> None:
        meta = machine.metadata
        patch = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"conditions": conditions},
        }
        written = await self.client.patch(
            Machine, key_of(machine), MergePatch(patch), self._write, subresource="status"
        )
        assert scope.machines is not None
        scope.machines[scope.machines.index(machine)] = written

    async def _converge_replicas(self, scope: SetScope, blocked: list[str]) -> Wait | None:
        assert scope.machines is not None
        if scope.object.spec.replicas is None:
            return Wait(name.Reason.WAITING_FOR_REPLICAS_SET, "spec.replicas is not set")
        surplus = len(scope.machines) - scope.wanted
        if surplus > 0:
            if scope.unreadable is None:
                await self._creation.sweep(scope)
            order = scope.object.spec.deletion.order
            picked = priority.pick(scope.machines, surplus, order, self.clock.now())
            await self._delete(scope, picked, why="there are too many")
        elif surplus < 0:
            return await self._grow(scope, -surplus, blocked)
        return None

    async def _grow(self, scope: SetScope, missing: int, blocked: list[str]) -> Wait | None:
        if scope.object.metadata.annotations.get(name.DISABLE_MACHINE_CREATE) == "true":
            scope.blocked = [f"the annotation {name.DISABLE_MACHINE_CREATE} is true"]
            return None  # the MachineDeployment that set it scales the set itself
        scope.blocked = blocked
        if scope.unreadable is not None:
            return scope.unreadable
        if blocked:
            # The control plane and the Cluster wake us.
            return Wait("PreflightChecksFailed", "; ".join(blocked))
        for related in (scope.bootstrap, scope.infrastructure):
            if related.trouble or related.missing:
                return Wait("TemplateNotFound", related.trouble or f"{related} does not exist")
        assert scope.machines is not None
        made = await self._creation.create(scope, missing)
        scope.machines += made
        names = listed(m.metadata.name for m in made)
        self.recorder.record(scope.object, "SuccessfulCreate", f"created {_machines(len(made))}: {names}")
        return None

    async def _delete(self, scope: SetScope, machines: Iterable[Machine], *, why: str) -> None:
        alive = [m for m in machines if not m.metadata.deletion_timestamp]
        for machine in alive:
            await drop_object(self.client, Machine, key_of(machine), uid=machine.metadata.uid)
        if alive:
            names = listed(m.metadata.name for m in alive)
            self.recorder.record(scope.object, "SuccessfulDelete", f"deleted {_machines(len(alive))}, {why}: {names}")

    # -- going -------------------------------------------------------------------------------------------------

    async def _release(self, scope: SetScope) -> Wait | None:
        assert scope.machines is not None
        await self._carry.run(scope)  # a drain that is stuck can still be given an end
        await self._delete(scope, scope.machines, why="their MachineSet is being deleted")
        if scope.machines:
            names = listed(m.metadata.name for m in scope.machines)
            return Wait("WaitingForMachinesDeletion", f"{_machines(len(scope.machines))} left: {names}")
        return scope.unreadable


def _machines(count: int) -> str:
    return f"{count} Machine{'' if count == 1 else 's'}"
