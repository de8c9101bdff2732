"""KubeadmControlPlane: the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi import version as versions
from homeport.capi.capi import Capi
from homeport.capi.name import KUBEADM_CONTROL_PLANE_FINALIZER, Condition
from homeport.capi.object.ownership import owner_of_kind
from homeport.capi.object.paused import is_paused, paused_condition
from homeport.capi.unreadable import MACHINE, made_from
from homeport.client.errors import ApiError, Conflict, NotFound, TooManyRequests
from homeport.client.protocol import Key, MergePatch, Write
from homeport.controlplane.kubeadm.absence import Absence
from homeport.controlplane.kubeadm.addon import AddonError
from homeport.controlplane.kubeadm.adoption import Adoption
from homeport.controlplane.kubeadm.creation import BY_CONTROL_PLANE, Maker, control_plane_keys
from homeport.controlplane.kubeadm.deletion import Deletion
from homeport.controlplane.kubeadm.desired import etcd_managed
from homeport.controlplane.kubeadm.etcd.inspector import EtcdError, Inspector
from homeport.controlplane.kubeadm.expiry import Expiry
from homeport.controlplane.kubeadm.inspection import Inspection
from homeport.controlplane.kubeadm.member import Members
from homeport.controlplane.kubeadm.observe import machine_conditions, node_of, observed_of
from homeport.controlplane.kubeadm.plan import plan
from homeport.controlplane.kubeadm.rollout import next_moment
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.kubeadm.secret import Secrets
from homeport.controlplane.kubeadm.status import fill, weight
from homeport.controlplane.kubeadm.sync import Sync
from homeport.controlplane.kubeadm.upkeep import UpkeepError, hold_coredns, hold_kube_proxy
from homeport.controlplane.kubeadm.work import POLL_SECONDS, Worker
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LeaseLost
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope, finish_write, run_phases

log = structlog.get_logger(__name__)

MANAGER = "homeport-kubeadm-control-plane"
SETTLE_SECONDS = 2.0
UNANSWERED_SECONDS = 60.0
RETRY_SECONDS = 2.0  # while etcd is silent, and was not a moment ago
STABLE_SECONDS = 120.0  # etcd can't be watched: when all is well it is asked this often

# What may go wrong with a workload cluster: told on the object, and tried again.
_TROUBLE = (EtcdError, UpkeepError, AddonError)


class KubeadmControlPlaneReconciler:
    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        self.client = manager.client
        self.clock = manager.clock
        self._capi = capi
        self._recorder = manager.recorder
        self._write = Write(field_manager=MANAGER)
        self._kcps = manager.informers.get(KubeadmControlPlane).cache
        self._clusters = manager.informers.get(Cluster).cache
        machines = manager.informers.get(Machine).cache
        configs = manager.informers.get(KubeadmConfig).cache
        configs.add_index(BY_CONTROL_PLANE, control_plane_keys)
        self._members = Members(capi, machines, configs)
        self._secrets = Secrets(capi, self.client, self._write)
        self._maker = Maker(capi, self.client, self._write, configs, machines)
        self._inspection = Inspection(capi, Inspector(self.clock))
        self._worker = Worker(self.client, self._write, self._recorder, self._maker, self._inspection.inspector)
        self._adoption = Adoption(self.client, self._write, self._members)
        self._sync = Sync(capi, self.client, self._write)
        self._expiry = Expiry(self.client, self._write)
        self._absence = Absence(capi, self.client, self._write)
        self._deletion = Deletion(capi, self.client, self._write, self._members, self._worker)
        self._told: dict[Key, str] = {}
        self._unanswered: dict[Key, float] = {}  # since when etcd does not do what it is asked for
        self._unsaid: dict[Key, float] = {}  # since when there is news that was not written

    def attach(self, controller: Controller) -> None:
        """The controller that is woken by what this loop comes to look at."""
        self._maker.controller = controller
        self._members.controller = controller
        self._absence.controller = controller
        self._inspection.wake = lambda cluster: self.wake(controller, cluster)

    def wake(self, controller: Controller, cluster: Key) -> None:
        key = self.key_of(cluster)
        if key is not None:
            controller.wake(key)

    def key_of(self, cluster: Key) -> Key | None:
        """The control plane of a cluster, if it is one of ours."""
        found = self._clusters.get(cluster)
        return None if found is None else control_plane_key(found)

    async def reconcile(self, key: Key) -> Wait | None:
        kcp = self._kcps.get(key)
        if kcp is None:
            self._told.pop(key, None)
            self._unanswered.pop(key, None)
            self._unsaid.pop(key, None)
            return None
        owner = owner_of_kind(kcp, Cluster.__resource__)
        cluster = self._clusters.get(Key(key.namespace, owner["name"])) if owner is not None else None
        if cluster is None:
            return await self._without_cluster(kcp, owner)
        scope = ControlPlaneScope(kcp, cluster, self.clock.now())
        self._note_paused(scope)
        if is_paused(cluster, kcp):
            await self._store(scope)
            return None
        phases = self._deletion.phases if scope.deleting else self._phases
        return await self._reported(scope, run_phases(scope, phases))

    async def _without_cluster(self, kcp: KubeadmControlPlane, owner: Mapping[str, Any] | None) -> Wait | None:
        """Before a Cluster adopts it, or after its Cluster was removed by force. It can always be deleted."""
        scope = Scope(kcp)
        held, now, generation = scope.object, rfc3339(self.clock.now()), kcp.metadata.generation
        held.status.conditions = paused_condition(held.status.conditions, None, held, now=now, generation=generation)
        if is_paused(None, kcp):
            await self._store(scope)
            return None
        if not scope.deleting:
            name = f"Cluster {owner['name']} does not exist" if owner is not None else "no Cluster refers to it"
            text = f"{name}: set spec.controlPlaneRef of a Cluster to this KubeadmControlPlane"
            scope.report(Condition.AVAILABLE, "False", "WaitingForCluster", text, now)
            await self._store(scope)
            return Wait("WaitingForCluster", text)
        wait = await self._deletion.without_cluster(kcp)
        if wait is not None:
            scope.report(Condition.DELETING, "True", wait.reason, wait.message, now)
            await self._store(scope)
        return wait

    @property
    def _phases(self) -> list[Phase[ControlPlaneScope]]:
        return [
            self._hold_finalizer,
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

    async def _hold_finalizer(self, scope: ControlPlaneScope) -> Wait | None:
        held = scope.kcp.metadata.finalizers
        if KUBEADM_CONTROL_PLANE_FINALIZER not in held:
            meta = scope.kcp.metadata
            patch = {
                "resourceVersion": meta.resource_version,
                "finalizers": [*held, KUBEADM_CONTROL_PLANE_FINALIZER],
            }
            body = MergePatch({"metadata": patch})
            scope.update_metadata(await self.client.patch(KubeadmControlPlane, scope.key, body, self._write))
        return None

    async def _await_infrastructure(self, scope: ControlPlaneScope) -> Wait | None:
        if scope.cluster.status.initialization.infrastructure_provisioned:
            return None
        text = f"waiting for the infrastructure of Cluster {scope.cluster.metadata.name} to be provisioned"
        scope.findings.blocked = text
        return Wait("WaitingForClusterInfrastructureReady", text)

    async def _await_endpoint(self, scope: ControlPlaneScope) -> Wait | None:
        endpoint = scope.cluster.spec.control_plane_endpoint
        if endpoint.host and endpoint.port:
            return None
        text = f"waiting for Cluster {scope.cluster.metadata.name} to get spec.controlPlaneEndpoint"
        scope.findings.blocked = text
        return Wait("WaitingForControlPlaneEndpoint", text)

    async def _step(self, scope: ControlPlaneScope) -> Wait | None:
        """One step towards what is wanted."""
        await self._hold_configuration(scope)
        scope.unreadable = self._unreadable(scope)
        scope.gone = await self._absence.prove(scope, observed_of(scope))
        observed = observed_of(scope)
        actions = plan(observed)
        # What is about to change something must know how etcd is now, not how it was a moment ago.
        if actions and scope.remote is not None and await self._inspection.refresh(scope):
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
        return self._capi.manager.informers.unreadable(scope.key.namespace, *kinds)

    async def _hold_configuration(self, scope: ControlPlaneScope) -> None:
        """An upgrade may be given up at any moment, and workers join when they like: the configuration follows at once.

        Machines that are about to join with another version read it first.
        """
        if scope.remote is None or not scope.findings.initialized or self._inspection.is_kept(scope, "configuration"):
            return
        if any(_joins_otherwise(each.machine, scope) for each in scope.owned):
            return
        try:
            await self._worker.prepare(scope)
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

    async def _reported(self, scope: ControlPlaneScope, work: Awaitable[Wait | None]) -> Wait | None:
        try:
            wait = await work
        except (asyncio.CancelledError, LeaseLost):
            raise
        except (Conflict, TooManyRequests):
            raise  # nothing is wrong with the object: the next loop comes in a moment
        except _TROUBLE as trouble:
            scope.findings.failed = str(trouble)
            wait = Wait(type(trouble).__name__, str(trouble), after=POLL_SECONDS)
        except Exception as error:
            scope.findings.failed = str(error) or type(error).__name__
            await self._report_quietly(scope)
            raise
        self._tell(scope, wait)
        await self._report(scope)
        return self._next(scope, wait)

    def _next(self, scope: ControlPlaneScope, wait: Wait | None) -> Wait | None:
        if scope.deleting:
            if wait is None:
                self._secrets.forget(scope.cluster_key)
                self._inspection.forget(scope.cluster_key)
            return wait
        if wait is None:
            unwell = any(not state.healthy for state in getattr(scope.findings.observed, "machines", ()))
            moment = next_moment(scope.kcp, [each.machine for each in scope.owned], scope.now) or STABLE_SECONDS
            after = min(moment, POLL_SECONDS if unwell else STABLE_SECONDS)
            wait = Wait("Watching", "etcd is checked periodically", after=after, quiet=True)
        if self._is_silent(scope):
            wait = replace(wait, after=min(RETRY_SECONDS, wait.after if wait.after is not None else RETRY_SECONDS))
        if scope.key in self._unsaid:
            left = self._unsaid[scope.key] + SETTLE_SECONDS - scope.now
            wait = replace(wait, after=min(left, wait.after if wait.after is not None else left))
        return wait

    def _is_silent(self, scope: ControlPlaneScope) -> bool:
        """It answered a moment ago and is expected to answer again soon: nobody tells us when."""
        silent = scope.remote is not None and scope.seen.etcd.members is None and etcd_managed(scope.kcp)
        return scope.findings.brief and scope.findings.initialized and (silent or bool(scope.findings.failed))

    def _tell(self, scope: ControlPlaneScope, wait: Wait | None) -> None:
        """Trouble becomes an event, once. That etcd can't be asked while a control plane goes is expected: the way to
        it may lead through the one that goes. Only when that lasts is it trouble."""
        said = scope.findings.failed
        if wait is not None and wait.reason == EtcdError.__name__:
            since = self._unanswered.setdefault(scope.key, scope.now)
            if scope.now - since < UNANSWERED_SECONDS:
                return
        else:
            self._unanswered.pop(scope.key, None)
        if said and self._told.get(scope.key) != said:
            self._recorder.record(scope.kcp, wait.reason if wait is not None else "Failed", said, warning=True)
        self._told[scope.key] = said

    async def _report_quietly(self, scope: ControlPlaneScope) -> None:
        try:
            await self._report(scope)
        except ApiError as error:
            log.info("status not written", error=str(error))

    async def _report(self, scope: ControlPlaneScope) -> None:
        scope.findings.machines = [each.machine for each in scope.owned]
        fill(scope.kcp, scope.findings)
        problems = [each for each in await self._sync.report(scope) if each is not None]
        if not self._withheld(scope):
            await self._store(scope)
        if problems:
            raise problems[0]

    def _withheld(self, scope: ControlPlaneScope) -> bool:
        """While Machines come up, what is said of them changes many times a second: only what lasts is written."""
        before = self._kcps.get(scope.key)
        # Nothing was said yet, and nothing has begun: that, too, often lasts no longer than a moment.
        waiting = before is not None and not before.status.conditions and bool(scope.findings.blocked)
        same = before is not None and (waiting or weight(before) == weight(scope.kcp))
        if scope.deleting or not same or not scope.status_patch():
            self._unsaid.pop(scope.key, None)
            return False
        since = self._unsaid.setdefault(scope.key, scope.now)
        if scope.now - since >= SETTLE_SECONDS:
            del self._unsaid[scope.key]
            return False
        return True

    def _note_paused(self, scope: ControlPlaneScope) -> None:
        status = scope.kcp.status
        status.conditions = paused_condition(
            status.conditions,
            scope.cluster,
            scope.kcp,
            now=rfc3339(scope.now),
            generation=scope.kcp.metadata.generation,
        )

    async def _store(self, scope: Scope[KubeadmControlPlane]) -> None:
        patch = scope.status_patch()
        if not patch:
            return
        write = self.client.patch(KubeadmControlPlane, scope.key, MergePatch(patch), self._write, subresource="status")
        try:
            await finish_write(write)
        except NotFound:
            log.debug("gone before its status was written", object=str(scope.key))


def _joins_otherwise(machine: Machine, scope: ControlPlaneScope) -> bool:
    if machine.metadata.deletion_timestamp or not machine.spec.version or node_of(machine, scope.remote):
        return False
    return not versions.same(machine.spec.version, scope.kcp.spec.version)


def control_plane_key(cluster: Cluster) -> Key | None:
    ref = cluster.spec.control_plane_ref
    kind = KubeadmControlPlane.__resource__
    if ref is None or (ref.api_group, ref.kind) != (kind.group, kind.kind):
        return None
    return Key(cluster.metadata.namespace, ref.name)
