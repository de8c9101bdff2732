"""Carries out what was planned."""

from __future__ import annotations

import structlog

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.name import REMEDIATION_IN_PROGRESS, Condition, Reason
from homeport.capi.remote.pki import KeyPair
from homeport.client.protocol import Client, MergePatch, Write
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.creation import Maker
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.etcd.connection import Forwarder
from homeport.controlplane.kubeadm.etcd.inspector import EtcdError, Inspector
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation
from homeport.controlplane.kubeadm.plan.action import (
    Action,
    Create,
    Defer,
    Delete,
    ForgetRemediation,
    Hold,
    Recover,
    ReleaseHook,
    Remediate,
    RemoveMember,
)
from homeport.controlplane.kubeadm.scope import ControlPlaneScope, Owned
from homeport.controlplane.kubeadm.workload.upkeep import hold_cluster_configuration, hold_rights
from homeport.controlplane.removal import POLL_SECONDS, MachineRemover, awaits_deletion
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)


class Worker:
    def __init__(
        self,
        client: Client,
        write: Write,
        recorder: Recorder,
        maker: Maker,
        remover: MachineRemover,
        inspector: Inspector,
    ) -> None:
        self._client = client
        self._write = write
        self._recorder = recorder
        self._maker = maker
        self._remover = remover
        self._inspector = inspector

    async def carry_out(
        self, scope: ControlPlaneScope, observed: Observed, actions: list[Action], template: Unstructured | Wait
    ) -> Wait | None:
        scope.findings.actions = actions
        wait: Wait | None = None
        for action in actions:
            wait = await self._one(scope, observed, action, template) or wait
        return wait

    async def _one(
        self, scope: ControlPlaneScope, observed: Observed, action: Action, template: Unstructured | Wait
    ) -> Wait | None:
        match action:
            case Create():
                return await self._create(scope, action, template)
            case Delete(name):
                await self._hand_over(scope, observed, name, required=True)
                return await self._remover.delete(scope.machine(name), "the control plane is scaled down or rolled out")
            case Remediate():
                return await self._remediate(scope, observed, action)
            case Defer(name, reason, message):
                self._say_remediated(scope, name, reason, message)
                return Wait(reason, f"Machine {name} is unhealthy and stays for now: {message}", after=POLL_SECONDS)
            case Recover(name):
                scope.dropped.add(name)
            case ForgetRemediation():
                await self._note_remediation(scope, None)
            case RemoveMember(member, name):
                await self._remove_member(scope, observed, member, leaving="")
                text = f"etcd member {name or f'{member:x}'}, which has no Machine, was removed"
                self._recorder.record(scope.kcp, "EtcdMemberRemoved", text)
                return Wait("EtcdMemberRemoved", text, after=1.0)
            case ReleaseHook():
                return await self._release(scope, observed, action)
            case Hold(reason, message):
                return Wait(reason, message, after=POLL_SECONDS)
        return None

    # -- Machines ----------------------------------------------------------------------------------------------

    async def _create(self, scope: ControlPlaneScope, action: Create, template: Unstructured | Wait) -> Wait | None:
        if isinstance(template, Wait):
            scope.findings.blocked = template.message
            return template
        if not action.first:
            assert scope.remote is not None  # no Machine is added while the cluster can't be reached
            await hold_rights(scope.remote.client, scope.kcp.spec.version)
            await self.hold_configuration(scope)
        made = await self._maker.create(scope, template, action)
        scope.owned.append(Owned(made))
        scope.findings.made.add(made.metadata.name)
        if action.remediation is not None:
            await self._note_remediation(scope, None)
        log.info("machine created", machine=made.metadata.name, first=action.first, domain=action.domain)
        return Wait("WaitingForMachine", f"waiting for Machine {made.metadata.name} to come up", after=POLL_SECONDS)

    async def hold_configuration(self, scope: ControlPlaneScope) -> None:
        """Machines that join read the cluster's configuration: it has the version of the next one."""
        assert scope.remote is not None  # callers check it
        found, scope.configuration = scope.configuration, None  # good for one comparison: a write makes it old
        if await hold_cluster_configuration(scope.remote.client, scope.kcp, found):
            log.info("the kubeadm configuration of the cluster was updated", version=scope.kcp.spec.version)

    async def _remediate(self, scope: ControlPlaneScope, observed: Observed, action: Remediate) -> Wait:
        if not action.recorded:
            await self._note_remediation(scope, action.remediation)
        scope.findings.in_progress = action.remediation
        self._say_remediated(scope, action.machine, Reason.MACHINE_DELETING, "it is being deleted and replaced")
        await self._hand_over(scope, observed, action.machine, required=False)
        text = f"Machine {action.machine} is unhealthy and is replaced"
        self._recorder.record(scope.kcp, "Remediating", text, warning=True)
        return await self._remover.delete(scope.machine(action.machine), "it is unhealthy")

    def _say_remediated(self, scope: ControlPlaneScope, name: str, reason: str, message: str) -> None:
        said = DesiredCondition(Condition.OWNER_REMEDIATED, "False", reason, message)
        scope.findings.conditions.setdefault(name, []).append(said)

    async def _note_remediation(self, scope: ControlPlaneScope, remediation: Remediation | None) -> None:
        if remediation is None and REMEDIATION_IN_PROGRESS not in scope.kcp.metadata.annotations:
            return
        value = remediation.render() if remediation is not None else None
        patch = MergePatch({"metadata": {"annotations": {REMEDIATION_IN_PROGRESS: value}}})
        scope.update_metadata(await self._client.patch(KubeadmControlPlane, scope.key, patch, self._write))

    async def _release(self, scope: ControlPlaneScope, observed: Observed, action: ReleaseHook) -> Wait:
        name = action.machine
        if action.member:
            await self._hand_over(scope, observed, name, required=False)
            await self._remove_member(scope, observed, action.member, leaving=name)
        await self._remover.drop_hook(scope.machine(name))
        return awaits_deletion(name)

    # -- etcd --------------------------------------------------------------------------------------------------

    async def _remove_member(self, scope: ControlPlaneScope, observed: Observed, member: int, *, leaving: str) -> None:
        remote, authority = _etcd_access(scope)
        nodes = [machine.node for machine in _healthiest(observed) if machine.name != leaving]
        await self._inspector.remove_member(scope.cluster_key, remote, authority, nodes, member)
        log.info("etcd member removed", member=f"{member:x}", machine=leaving)

    async def _hand_over(self, scope: ControlPlaneScope, observed: Observed, name: str, *, required: bool) -> None:
        """The leader hands over before it goes: an election takes longer than that.

        `required` False: it goes anyhow, because it is ill; etcd then elects another by itself.
        """
        if not observed.etcd_managed or not observed.members:
            return
        machine = observed.machine(name)
        leader = next((each for each in observed.members if each.id == scope.seen.etcd.leader), None)
        if machine is None or leader is None or leader.name != machine.member:
            return
        remote, authority = _etcd_access(scope)
        try:
            await self._inspector.move_leader(
                scope.cluster_key, remote, authority, leader.name, _candidates(observed, name)
            )
        except EtcdError as problem:
            if required:
                raise
            log.info("the leadership could not be transferred", machine=name, error=str(problem))


def _etcd_access(scope: ControlPlaneScope) -> tuple[Forwarder, KeyPair]:
    authority = scope.certificates.get("etcd")
    if scope.remote is None or authority is None or not authority.key:
        raise EtcdError(
            f"etcd of cluster {scope.cluster_key} can't be reached: "
            + (scope.seen.down or f"Secret {scope.cluster_key.name}-etcd is missing or has no key: restore it")
        )
    return scope.remote, authority


def _healthiest(observed: Observed) -> list[MachineState]:
    with_node = [machine for machine in observed.machines if machine.node]
    return sorted(
        with_node, key=lambda each: (bool(each.etcd_problem), each.deleting, bool(each.problems), each.created)
    )


def _candidates(observed: Observed, leaving: str) -> list[Member]:
    """Up-to-date ones first: they won't go soon. Then the newest."""
    order = sorted(
        (each for each in observed.machines if each.name != leaving and not each.deleting and not each.etcd_problem),
        key=lambda each: (bool(each.outdated), -each.created, each.name),
    )
    by_name = {member.name: member for member in observed.members or () if not member.learner}
    return [by_name[each.member] for each in order if each.member in by_name]
