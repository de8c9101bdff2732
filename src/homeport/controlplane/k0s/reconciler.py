"""K0sControlPlane: the loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sControlPlane
from homeport.capi.capi import Capi
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.dynamic import follow
from homeport.capi.name import CONTROL_PLANE_LABEL, PRE_TERMINATE_KCP_CLEANUP, Condition
from homeport.capi.object.ownership import is_controlled_by
from homeport.capi.unreadable import MACHINE, made_from
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.controlplane.k0s import child
from homeport.controlplane.k0s.autopilot import PLAN
from homeport.controlplane.k0s.deletion import Deletion
from homeport.controlplane.k0s.desired import dynamic_config, etcd_managed, part
from homeport.controlplane.k0s.machine import Maker, machine_labels, template_ref
from homeport.controlplane.k0s.name import FINALIZER, MANAGER
from homeport.controlplane.k0s.observe import controller_health, observed_of, up_to_date
from homeport.controlplane.k0s.observed import Observed
from homeport.controlplane.k0s.plan import plan
from homeport.controlplane.k0s.scope import K0sPlaneScope, Owned
from homeport.controlplane.k0s.secret import Secrets
from homeport.controlplane.k0s.work import Worker
from homeport.controlplane.reconciler import PlaneReconciler, infrastructure_of
from homeport.controlplane.removal import POLL_SECONDS, MachineRemover
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

STABLE_SECONDS = 120.0  # how often a control plane without changes is looked at
_WATCHED = (child.CONTROL_NODE, child.ETCD_MEMBER, PLAN)


class K0sControlPlaneReconciler(PlaneReconciler[K0sControlPlane, K0sPlaneScope]):
    controller_name = "k0scontrolplane"
    kind = K0sControlPlane
    field_manager = MANAGER
    condition = Condition.AVAILABLE
    finalizer = FINALIZER

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(capi)
        self._capi = capi
        self._machines = manager.informers.get(Machine).cache
        self._configs = manager.informers.get(K0sControllerConfig).cache
        self._secrets = Secrets(capi, self.client, self._write)
        self._maker = Maker(capi, self.controller, self.client, self._write, self._configs, self._machines)
        remover = MachineRemover(self.client, self._write)
        self._worker = Worker(self._write, self.recorder, self._maker, remover)
        self._deletion = Deletion(capi, remover)
        self._handlers: dict[Key, Any] = {}  # by cluster: what k0s reports wakes its control plane

    def load(self, obj: K0sControlPlane) -> K0sPlaneScope:
        return K0sPlaneScope(obj, self._owning_cluster(obj), self.clock.now())

    def phases(self, scope: K0sPlaneScope) -> Sequence[Phase[K0sPlaneScope]]:
        if scope.deleting:
            return [*self._deletion.phases, self.drop_finalizer, self._forget_cluster]
        if scope.found_cluster is None:
            return [self._await_cluster]
        return [
            self.hold_finalizer,
            self._await_infrastructure,
            self._secrets.hold_certificates,
            self._await_endpoint,
            self._secrets.hold_kubeconfig,
            self._look,
            self._hold_machines,
            self._note_versions,
            self._hold_configuration,
            self._step,
        ]

    # -- phases ------------------------------------------------------------------------------------------------

    async def _forget_cluster(self, scope: K0sPlaneScope) -> Wait | None:
        if scope.found_cluster is not None:
            self._secrets.forget(scope.cluster_key)
            self._handlers.pop(scope.cluster_key, None)
        return None

    async def _look(self, scope: K0sPlaneScope) -> Wait | None:
        """The Machines, and what k0s reports inside the cluster."""
        scope.owned = await self._owned(scope)
        remote = self._capi.remotes.get(scope.cluster_key)
        if remote is None:
            scope.seen = child.Seen(down=self._capi.remotes.why(scope.cluster_key))
            return None
        scope.remote = remote
        names = [each.name for each in scope.owned]
        scope.seen = await child.look(remote, names, scope.now)
        if not scope.seen.down and scope.seen.nodes:
            scope.findings.initialized = True
            handler = self._handlers.setdefault(scope.cluster_key, partial(self._heard, scope.key))
            for kind in _WATCHED:
                if kind is not child.ETCD_MEMBER or etcd_managed(scope.plane):
                    remote.watch(kind, handler=handler)
        return None

    def _heard(self, key: Key, old: Any, new: Any) -> None:
        self.controller.wake(key)

    async def _owned(self, scope: K0sPlaneScope) -> list[Owned]:
        """Ours, with what was made for them; oldest first."""
        found = [
            each
            for each in self._machines.list(scope.key.namespace)
            if CONTROL_PLANE_LABEL in each.metadata.labels and is_controlled_by(each, scope.plane)
        ]
        found.sort(key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
        return [await self._with_parts(scope, machine) for machine in found]

    async def _with_parts(self, scope: K0sPlaneScope, machine: Machine) -> Owned:
        ref = machine.spec.bootstrap.config_ref
        config = None if ref is None else self._configs.get(Key(machine.metadata.namespace, ref.name))
        return Owned(machine, config, await infrastructure_of(self._capi, self.controller, scope.plane, machine))

    async def _hold_machines(self, scope: K0sPlaneScope) -> Wait | None:
        """Labels and annotations reach Machines that exist; and none goes without its member leaving etcd first."""
        labels = machine_labels(scope.plane, scope.cluster.metadata.name)
        annotations = {**scope.plane.spec.machine_template.metadata.annotations, PRE_TERMINATE_KCP_CLEANUP: ""}
        for owned in scope.owned:
            meta = owned.machine.metadata
            patch = {
                name: missing
                for name, wanted, have in (
                    ("labels", labels, meta.labels),
                    ("annotations", annotations, meta.annotations),
                )
                if (missing := {key: value for key, value in wanted.items() if have.get(key) != value})
            }
            if patch and not meta.deletion_timestamp:
                key = Key(scope.key.namespace, owned.name)
                await self.client.patch(Machine, key, MergePatch({"metadata": patch}), self._write)
        return None

    async def _note_versions(self, scope: K0sPlaneScope) -> Wait | None:
        """A Machine whose controller was upgraded in place says so."""
        for owned in scope.owned:
            node = scope.seen.nodes.get(owned.name)
            runs = "" if node is None else str((node.get("status") or {}).get("k0sVersion") or "")
            said = str(owned.machine.spec.version or "")
            if not (k0sversion.is_valid(runs) and k0sversion.is_valid(said)):
                continue
            if k0sversion.parse(runs) > k0sversion.parse(said):
                patch = MergePatch({"spec": {"version": str(k0sversion.parse(runs))}})
                await self.client.patch(Machine, Key(scope.key.namespace, owned.name), patch, self._write)
        return None

    async def _hold_configuration(self, scope: K0sPlaneScope) -> Wait | None:
        """Running controllers follow the ClusterConfig inside the cluster."""
        config = scope.seen.config
        if scope.remote is None or config is None:
            return None
        patch = follow(part(config, "spec"), dynamic_config(scope.plane))
        if patch is None:
            return None
        body = {"metadata": {"resourceVersion": config.resource_version}, "spec": patch}
        try:
            await scope.remote.client.patch(child.CLUSTER_CONFIG, child.CONFIG_KEY, MergePatch(body), self._write)
        except (Conflict, NotFound):
            scope.timer = Wait("Watching", after=1.0, quiet=True)
        return None

    async def _step(self, scope: K0sPlaneScope) -> Wait | None:
        """One step towards what is desired."""
        observed = observed_of(scope)
        unreadable = self._unreadable(scope)
        action = None if unreadable else plan(observed)
        scope.findings.observed, scope.findings.action = observed, action
        self._note_members(scope)
        await self._report_machines(scope, observed)
        if unreadable:
            return Wait("UnreadableObjects", unreadable, after=POLL_SECONDS)
        if action is None:
            return None
        template = await self._maker.template(scope)
        return await self._worker.carry_out(scope, observed, action, template)

    async def _report_machines(self, scope: K0sPlaneScope, observed: Observed) -> None:
        """Whether each Machine is as it would be made now, and how controllers without a Node are. A Machine that
        changed meanwhile is written in the next loop."""
        if observed.down:
            return  # what was known is still the best guess
        states = {each.name: each for each in observed.machines}
        for owned in scope.owned:
            meta, held = owned.machine.metadata, owned.machine.status.conditions
            if meta.deletion_timestamp or owned.name not in states:
                continue
            state = states[owned.name]
            wanted = held
            for kind, said in (
                (Condition.UP_TO_DATE, up_to_date(state, observed.version)),
                (Condition.CONTROLLER_HEALTHY, controller_health(scope, owned, up=observed.is_up(state))),
            ):
                if said is not None:
                    wanted = _with_condition(wanted, kind, said, rfc3339(scope.now), meta.generation)
            if wanted is held:
                continue
            found = {"uid": meta.uid, "resourceVersion": meta.resource_version}
            body = MergePatch({"metadata": found, "status": {"conditions": wanted}})
            try:
                key = Key(meta.namespace, meta.name)
                await self.client.patch(Machine, key, body, self._write, subresource="status")
            except (Conflict, NotFound):
                scope.timer = Wait("Watching", after=1.0, quiet=True)

    def _note_members(self, scope: K0sPlaneScope) -> None:
        """Those who remove machines without an object ask who is a member of etcd."""
        if not scope.seen.down and etcd_managed(scope.plane):
            joined = [each.name for each in scope.seen.members if each.joined]
            known = {*joined, *(scope.seen.addresses.get(each, "") for each in joined)}
            self._capi.members.note(scope.cluster_key, scope.now, known)

    def _unreadable(self, scope: K0sPlaneScope) -> str:
        kinds = [MACHINE, K0sControllerConfig.__resource__, *made_from(template_ref(scope.plane))]
        return self.informers.unreadable(scope.key.namespace, *kinds)

    def next_look(self, scope: K0sPlaneScope, wait: Wait | None) -> Wait | None:
        if wait is None and scope.found_cluster is not None and not scope.deleting:
            wait = Wait("Watching", "controllers are checked periodically", after=STABLE_SECONDS, quiet=True)
        return super().next_look(scope, wait)


def _with_condition(
    held: list[dict[str, Any]], kind: str, said: tuple[condition.Status, str, str], now: str, generation: int
) -> list[dict[str, Any]]:
    """The same list if it says so already."""
    known = condition.find(held, kind) or {}
    if (known.get("status"), known.get("reason"), known.get("message") or "") == said:
        return held
    return condition.put(held, kind, *said, now=now, generation=generation)
