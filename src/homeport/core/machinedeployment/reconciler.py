"""MachineDeployment: one MachineSet per revision of its template, and Machines moved from the old ones to the new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.capi import name
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import controller_of, ensure_owner, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.unreadable import SET, await_readable
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key
from homeport.core.index import by_cluster
from homeport.core.machinedeployment import intent, revision
from homeport.core.machinedeployment.plan import Action, Create, Promote, Remove, Scale, complete, plan
from homeport.core.machinedeployment.scope import DeploymentScope
from homeport.core.machineset import member
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Terminal, Wait, sooner
from homeport.runtime.reconciler import Phase

log = structlog.get_logger(__name__)

MANAGER = "capi-machinedeployment"
_BLOCKED = " is blocked: "


class DeploymentReconciler(CapiReconciler[MachineDeployment, DeploymentScope]):
    controller_name = "machinedeployment"
    kind = MachineDeployment
    field_manager = MANAGER
    condition = name.Condition.AVAILABLE
    finalizer = name.DEPLOYMENT_FINALIZER

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(manager)
        self.sets = manager.informers.get(MachineSet).cache
        self._machines = manager.informers.get(Machine).cache
        self._clusters = manager.informers.get(Cluster).cache
        member.add_indexes(self._machines)
        member.add_indexes(self.sets)
        self.of_cluster = by_cluster(self.objects)
        # By uid of the set: what was applied last, and the generation that it made. Another one is somebody else's.
        self._applied: dict[str, tuple[str, int]] = {}

    def load(self, obj: MachineDeployment) -> DeploymentScope:
        return DeploymentScope(obj, self._clusters.get(Key(obj.metadata.namespace, obj.spec.cluster_name)))

    def cluster_of(self, scope: DeploymentScope) -> Cluster | None:
        return scope.cluster

    def phases(self, scope: DeploymentScope) -> Sequence[Phase[DeploymentScope]]:
        return [self._release, self.drop_finalizer] if scope.deleting else [self._converge]

    def next_look(self, scope: DeploymentScope, wait: Wait | None) -> Wait | None:
        return sooner(super().next_look(scope, wait), self._rollout_timer(scope.object))

    async def _converge(self, scope: DeploymentScope) -> Wait | None:
        if scope.cluster is None:
            # The Cluster's coming wakes us.
            return Wait("WaitingForCluster", f"Cluster {scope.object.spec.cluster_name} does not exist")
        await self._adopt(scope)
        self._observe(scope)
        if scope.seen.trouble:
            raise Terminal("InvalidConfiguration", scope.seen.trouble)
        if scope.object.spec.replicas is None:
            return Wait(name.Reason.WAITING_FOR_REPLICAS_SET, "spec.replicas is not set")
        unreadable = await_readable(self.informers, scope.key.namespace, SET)
        if unreadable is not None:
            scope.seen.blocked.append(unreadable.message)
            return unreadable
        return await self._roll_out(scope)

    # -- reading -----------------------------------------------------------------------------------------------

    async def _adopt(self, scope: DeploymentScope) -> None:
        deployment = scope.object
        selector = from_label_selector(deployment.spec.selector)
        orphans = () if selector.empty else self.sets.by(member.ORPHAN, scope.key.namespace)
        owner = owner_reference(deployment, controller=True)
        for each in orphans:
            mine = each.spec.cluster_name == deployment.spec.cluster_name and selector.matches(each.metadata.labels)
            if mine and not each.metadata.deletion_timestamp:
                scope.sets[each.metadata.name] = await ensure_owner(
                    self.client, MachineSet, each, owner, self._write, without=[(name.GROUP, "Cluster")]
                )

    def _observe(self, scope: DeploymentScope) -> None:
        for each in self.sets.by(member.OWNER, scope.object.metadata.uid):
            scope.sets.setdefault(each.metadata.name, each)
        scope.machines = {each: member.owned(self._machines, found) for each, found in scope.sets.items()}
        scope.seen.machines = [machine for found in scope.machines.values() for machine in found]
        for each in scope.sets.values():
            said = condition.find(each.status.conditions, name.Condition.SCALING_UP)
            if said is not None and said["status"] == "True" and _BLOCKED in said["message"]:
                scope.seen.blocked.append(said["message"].partition(_BLOCKED)[2])

    # -- rolling out -------------------------------------------------------------------------------------------

    async def _roll_out(self, scope: DeploymentScope) -> Wait | None:
        current = revision.find_current(scope.sets.values(), scope.object, self.clock.now())
        observed = scope.observed(current)
        actions = plan(observed)
        fresh = scope.machines[current.metadata.name] if current is not None else []
        scope.seen.current = {machine.metadata.name for machine in fresh}
        await self._hold_deployment(scope, current, actions)
        await self._converge_sets(scope, current, actions)
        for action in actions:
            if isinstance(action, Create):
                await self._create(scope, action)
            elif isinstance(action, Remove):
                await self._remove(scope, action.name)
        if complete(observed):
            return None
        return self._await_rollout(scope)

    async def _hold_deployment(
        self, scope: DeploymentScope, current: MachineSet | None, actions: Sequence[Action]
    ) -> None:
        """Everything that is to be written on the object itself, in one patch."""
        deployment, cluster = scope.object, scope.cluster
        assert cluster is not None
        numbers = [action.revision for action in actions if isinstance(action, Create | Promote)]
        number = numbers[0] if numbers else revision.revision_of(current) if current is not None else 0
        written = await ensure_owner(
            self.client,
            MachineDeployment,
            deployment,
            owner_reference(cluster),
            self._write,
            labels={name.CLUSTER_NAME_LABEL: deployment.spec.cluster_name},
            annotations={name.REVISION: str(number)} if number else {},
            finalizers=[name.DEPLOYMENT_FINALIZER],
        )
        scope.update_metadata(written)

    async def _converge_sets(
        self, scope: DeploymentScope, current: MachineSet | None, actions: Sequence[Action]
    ) -> None:
        """Scales, and hands down what changed without a rollout: one write per set, and none where nothing changed."""
        scales = {action.name: action for action in actions if isinstance(action, Scale)}
        promoted = {action.name: action.revision for action in actions if isinstance(action, Promote)}
        removed = {action.name for action in actions if isinstance(action, Remove)}
        ordered = sorted(
            scope.sets, key=lambda each: (each not in scales, list(scales).index(each) if each in scales else 0)
        )
        for each in ordered:
            found = scope.sets[each]
            if found.metadata.deletion_timestamp or each in removed:
                continue
            scale = scales.get(each)
            body = intent.intent(
                scope.object,
                found,
                replicas=scale.replicas if scale is not None else found.spec.replicas or 0,
                surge=scope.surge,
                revision=promoted.get(each) or revision.revision_of(found),
                history=revision.history_text(found)
                if each in promoted
                else found.metadata.annotations.get(revision.HISTORY, ""),
                current=current is not None and each == current.metadata.name,
            )
            await self._apply(found, body)
            if scale is not None:
                self._record_scaled(scope, found, scale)

    async def _apply(self, found: MachineSet, body: dict[str, Any]) -> None:
        mark, uid = _mark(body), found.metadata.uid
        if self._applied.get(uid) == (mark, found.metadata.generation):
            return
        try:
            made = await self.client.apply(body, self._write, kind=MachineSet.__resource__, force=True)
        except NotFound:
            self._applied.pop(uid, None)
            return
        self._applied[uid] = (mark, made.metadata["generation"])

    async def _create(self, scope: DeploymentScope, action: Create) -> None:
        body = intent.new_set(scope.object, action.revision, action.replicas, surge=scope.surge)
        where = Key(scope.key.namespace, body["metadata"]["name"])
        try:
            await self.client.get(MachineSet, where)
        except NotFound:
            made = await self.client.apply(body, self._write, kind=MachineSet.__resource__, force=True)
        else:
            raise Conflict(f"MachineSet {where} already exists, but is not in the cache yet")
        self._applied[made.uid] = (_mark(body), made.metadata["generation"])
        scope.sets[where.name] = msgspec.convert(made, MachineSet)
        scope.machines[where.name] = []
        text = f"created MachineSet {where.name} for revision {action.revision} with {action.replicas} replicas"
        self.recorder.record(scope.object, "SuccessfulCreate", text)

    async def _remove(self, scope: DeploymentScope, which: str) -> None:
        found = scope.sets[which]
        self._applied.pop(found.metadata.uid, None)
        try:
            await self.client.delete(MachineSet, key_of(found), uid=found.metadata.uid)
        except NotFound:
            return
        log.info("an old MachineSet was deleted", set=which, revision=revision.revision_of(found))

    def _record_scaled(self, scope: DeploymentScope, found: MachineSet, scale: Scale) -> None:
        text = f"scaled MachineSet {scale.name} from {found.spec.replicas or 0} to {scale.replicas}: {scale.why}"
        self.recorder.record(scope.object, "SuccessfulScale", text)

    def _await_rollout(self, scope: DeploymentScope) -> Wait:
        """Machines and MachineSets wake us."""
        spec, machines = scope.object.spec, scope.seen.machines or []
        if scope.seen.blocked:
            return Wait("ScalingUpBlocked", scope.seen.blocked[0])
        if spec.paused:
            return Wait(
                "RolloutPaused", "spec.paused is true: changes of the template wait, changes of replicas do not"
            )
        if spec.rollout.strategy.type == "OnDelete":
            return Wait("WaitingForMachines", "old Machines are replaced when they are deleted")
        return Wait(
            "WaitingForMachines", f"{len(machines)} Machines exist, {spec.replicas} desired; not all are available"
        )

    def _rollout_timer(self, deployment: MachineDeployment) -> Wait | None:
        after = deployment.spec.rollout.after
        left = parse_time(after) - self.clock.now() if after else 0.0
        return Wait("WaitingForRolloutTime", after=left, quiet=True) if left > 0 else None

    # -- going -------------------------------------------------------------------------------------------------

    async def _release(self, scope: DeploymentScope) -> Wait | None:
        self._observe(scope)
        for each in scope.sets.values():
            if not each.metadata.deletion_timestamp:
                await self._remove(scope, each.metadata.name)
        if scope.sets:
            left = ", ".join(sorted(scope.sets))
            return Wait("WaitingForMachineSetsDeletion", f"MachineSets left: {left}")
        return await_readable(self.informers, scope.key.namespace, SET)


def _mark(body: dict[str, Any]) -> str:
    """Without the uid, which a set has only after it was made."""
    meta = {key: value for key, value in body["metadata"].items() if key != "uid"}
    return intent.digest({**body, "metadata": meta})


def deployment_of(machine_set: MachineSet | None) -> list[Key]:
    found = controller_of(machine_set) if machine_set is not None else None
    if found is None or machine_set is None or found["kind"] != "MachineDeployment":
        return []
    return [Key(machine_set.metadata.namespace, found["name"])]
