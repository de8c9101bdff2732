"""KubeadmControlPlane: the loop."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi import version as versions
from homeport.capi.capi import Capi
from homeport.capi.name import KUBEADM_CONTROL_PLANE_FINALIZER, Condition
from homeport.capi.unreadable import MACHINE, made_from
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.adoption import Adoption
from homeport.controlplane.kubeadm.creation import BY_CONTROL_PLANE, Maker, control_plane_keys
from homeport.controlplane.kubeadm.deletion import Deletion
from homeport.controlplane.kubeadm.desired import etcd_managed
from homeport.controlplane.kubeadm.etcd.inspector import EtcdError, Inspector
from homeport.controlplane.kubeadm.observe.absence import Absence
from homeport.controlplane.kubeadm.observe.expiry import Expiry
from homeport.controlplane.kubeadm.observe.inspection import Inspection
from homeport.controlplane.kubeadm.observe.member import Members
from homeport.controlplane.kubeadm.observe.reader import machine_conditions, node_of, observed_of
from homeport.controlplane.kubeadm.plan.rollout import next_moment
from homeport.controlplane.kubeadm.plan.step import may_change, plan
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.kubeadm.secret import Secrets
from homeport.controlplane.kubeadm.sync import Sync
from homeport.controlplane.kubeadm.work import Worker
from homeport.controlplane.kubeadm.workload.addon import AddonError
from homeport.controlplane.kubeadm.workload.upkeep import UpkeepError, hold_coredns, hold_kube_proxy
from homeport.controlplane.reconciler import PlaneReconciler
from homeport.controlplane.removal import POLL_SECONDS, MachineRemover
from homeport.runtime.outcome import Wait, sooner
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Phase

log = structlog.get_logger(__name__)

MANAGER = "homeport-kubeadm-control-plane"
SETTLE_SECONDS = 2.0
UNANSWERED_SECONDS = 60.0
RETRY_SECONDS = 2.0  # while etcd is silent, and was not a moment ago
STABLE_SECONDS = 600.0  # etcd can't be watched: when all is well it is asked this often; its Pod tells more, and sooner

_TROUBLE = (EtcdError, UpkeepError, AddonError)


class KubeadmControlPlaneReconciler(PlaneReconciler[KubeadmControlPlane, ControlPlaneScope]):
    controller_name = "kubeadmcontrolplane"
    kind = KubeadmControlPlane
    field_manager = MANAGER
    condition = Condition.AVAILABLE
    finalizer = KUBEADM_CONTROL_PLANE_FINALIZER
    pace = Pace(SETTLE_SECONDS, settle=True)

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(capi)
        machines = manager.informers.get(Machine).cache
        configs = manager.informers.get(KubeadmConfig).cache
        configs.add_index(BY_CONTROL_PLANE, control_plane_keys)
        self._members = Members(capi, self.controller, machines, configs)
        self._secrets = Secrets(capi, self.client, self._write)
        self._maker = Maker(capi, self.controller, self.client, self._write, configs, machines)
        if capi.rehearsal is None:
            etcd = Inspector(self.clock)
            manager.job(etcd.run)
        else:
            etcd = capi.rehearsal.etcd
        self._inspection = Inspection(capi, etcd, self._wake)
        remover = MachineRemover(self.client, self._write)
        inspector = self._inspection.inspector
        self._worker = Worker(self.client, self._write, self.recorder, self._maker, remover, inspector)
        self._adoption = Adoption(self.client, self._write, self._members)
        self._sync = Sync(capi, self.client, self._write, machines)
        self._expiry = Expiry(self.client, self._write)
        self._absence = Absence(capi, self.controller, self.client, self._write)
        self._deletion = Deletion(capi, self._members, remover)
        self._unanswered: dict[Key, float] = {}  # since when etcd does not do what it is asked for

    def _wake(self, cluster: Key) -> None:
        key = self.key_of(cluster)
        if key is not None:
            self.controller.wake(key)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._unanswered.pop(key, None)

    def load(self, obj: KubeadmControlPlane) -> ControlPlaneScope:
        return ControlPlaneScope(obj, self._owning_cluster(obj), self.clock.now())

    def phases(self, scope: ControlPlaneScope) -> Sequence[Phase[ControlPlaneScope]]:
        if scope.found_cluster is None:
            release = [self._deletion.release_without_cluster, self.drop_finalizer]
            return release if scope.deleting else [self._await_cluster]
        if scope.deleting:
            return [*self._deletion.phases, self.drop_finalizer, self._forget_cluster]
        return [
            self.hold_finalizer,
            self._await_infrastructure,
            self._secrets.hold_certificates,
            self._await_endpoint,
            self._secrets.hold_kubeconfig,
            self._adoption.take,
            self._sync.hold,
            self._inspection.look,
            self._step,
            self._look_after,
            self._expiry.note,
        ]

    # -- phases ------------------------------------------------------------------------------------------------

    async def _forget_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        self._secrets.forget(scope.cluster_key)
        self._inspection.forget(scope.cluster_key)
        return None

    def _blocked(self, scope: ControlPlaneScope, wait: Wait) -> Wait:
        scope.findings.blocked = wait.message
        return wait

    async def _step(self, scope: ControlPlaneScope) -> Wait | None:
        """One step towards what is wanted."""
        await self._hold_configuration(scope)
        scope.unreadable = self._unreadable(scope)
        scope.gone = await self._absence.prove(scope, observed_of(scope))
        observed = observed_of(scope)
        actions = plan(observed)
        # What is about to change something must know how etcd is now, not how it was a moment ago.
        if may_change(actions) and scope.remote is not None and await self._inspection.refresh(scope):
            observed = observed_of(scope)
            actions = plan(observed)
        scope.findings.observed = observed
        scope.findings.in_progress = observed.in_progress
        for owned in scope.owned:
            state = observed.machine(owned.name)
            assert state is not None
            scope.findings.conditions[owned.name] = machine_conditions(scope, owned, state)
        template: Unstructured | Wait = await self._maker.template(scope)
        return await self._worker.carry_out(scope, observed, actions, template)

    def _unreadable(self, scope: ControlPlaneScope) -> str:
        template = scope.kcp.spec.machine_template.spec.infrastructure_ref
        kinds = [MACHINE, KubeadmConfig.__resource__, *made_from(template)]
        return self.informers.unreadable(scope.key.namespace, *kinds)

    async def _hold_configuration(self, scope: ControlPlaneScope) -> None:
        """An upgrade may be given up at any moment, and workers join when they like: the configuration follows at once.

        Machines that are about to join with another version read it first. Rights follow when a Machine is added.
        """
        if scope.remote is None or not scope.findings.initialized or self._inspection.is_kept(scope, "configuration"):
            return
        if any(_joins_otherwise(each.machine, scope) for each in scope.owned):
            return
        try:
            await self._worker.hold_configuration(scope)
        except (UpkeepError, ApiError) as error:
            log.info("the kubeadm configuration of the cluster could not be updated", error=str(error))
            return  # before a Machine is added it is tried again, and that fails aloud
        self._inspection.keep(scope, "configuration")

    async def _look_after(self, scope: ControlPlaneScope) -> Wait | None:
        """When no Machine is to change any more: what runs in the cluster follows."""
        if scope.remote is None or not scope.findings.initialized:
            return self._unreached(scope)
        if self._inspection.is_kept(scope, "add-ons"):
            return None
        client = scope.remote.client
        await hold_kube_proxy(client, scope.kcp)
        await hold_coredns(client, scope.kcp)
        self._inspection.keep(scope, "add-ons")
        return None

    def _unreached(self, scope: ControlPlaneScope) -> Wait:
        why = scope.seen.down or "the cluster is not initialized yet"
        if scope.findings.initialized:
            return Wait("WorkloadClusterUnreachable", why, after=POLL_SECONDS)
        first = next((each.name for each in scope.owned), "")
        text = f"waiting for Machine {first} to initialize the cluster: {why}"
        return Wait("WaitingForControlPlaneInitialized", text, after=POLL_SECONDS)

    # -- reporting ---------------------------------------------------------------------------------------------

    def expected(self, scope: ControlPlaneScope, error: Exception) -> Wait | None:
        """What may go wrong with a workload cluster is reported on the object, and tried again."""
        if not isinstance(error, _TROUBLE):
            return None
        scope.findings.failed = str(error)
        brief = isinstance(error, EtcdError) and self._is_brief(scope)
        return Wait(type(error).__name__, str(error), after=POLL_SECONDS, warning=not brief)

    def _is_brief(self, scope: ControlPlaneScope) -> bool:
        """That etcd can't be asked while a control plane goes is expected: the way to it may lead through the one that
        goes. Only when that lasts is it trouble."""
        return scope.now - self._unanswered.setdefault(scope.key, scope.now) < UNANSWERED_SECONDS

    async def _store(self, scope: ControlPlaneScope) -> None:
        await self._sync.report(scope)
        await super()._store(scope)

    def next_look(self, scope: ControlPlaneScope, wait: Wait | None) -> Wait | None:
        if wait is None or wait.reason != EtcdError.__name__:
            self._unanswered.pop(scope.key, None)
        if scope.found_cluster is not None and not scope.deleting:
            silent = self._is_silent(scope)
            self._inspection.attend(scope, closely=wait is not None or silent or _is_unwell(scope))
            wait = wait or self._watching(scope)
            if silent:
                wait = sooner(wait, Wait("Watching", after=RETRY_SECONDS, quiet=True))
        return super().next_look(scope, wait)

    def _watching(self, scope: ControlPlaneScope) -> Wait:
        moment = next_moment(scope.kcp, [each.machine for each in scope.owned], scope.now) or STABLE_SECONDS
        after = min(moment, POLL_SECONDS if _is_unwell(scope) else STABLE_SECONDS)
        return Wait("Watching", "etcd is checked periodically", after=after, quiet=True)

    def _is_silent(self, scope: ControlPlaneScope) -> bool:
        """It answered a moment ago and is expected to answer again soon: nobody tells us when."""
        silent = scope.remote is not None and scope.seen.etcd.members is None and etcd_managed(scope.kcp)
        return scope.findings.brief and scope.findings.initialized and (silent or bool(scope.findings.failed))


def _is_unwell(scope: ControlPlaneScope) -> bool:
    return any(not state.healthy for state in getattr(scope.findings.observed, "machines", ()))


def _joins_otherwise(machine: Machine, scope: ControlPlaneScope) -> bool:
    if machine.metadata.deletion_timestamp or not machine.spec.version or node_of(machine, scope.remote):
        return False
    return not versions.same(machine.spec.version, scope.kcp.spec.version)
