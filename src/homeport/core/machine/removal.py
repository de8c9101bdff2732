"""The deletion of a Machine, step by step, as far as it goes now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from homeport.api.cluster.v1beta2 import Machine, MachineDrainRule
from homeport.capi.capi import Capi
from homeport.capi.contract import conditions
from homeport.capi.name import PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX, Reason
from homeport.capi.object.paused import why_not_deleted
from homeport.capi.remote.remotes import Remote
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import ApiError, NotFound, Timeout, Unauthorized, Unavailable
from homeport.client.protocol import Key, Write
from homeport.core.machine import deletion, drain, volume
from homeport.core.machine.follow import Followers
from homeport.core.machine.scope import MachineScope
from homeport.core.machine.workload import Workload, delete_node
from homeport.core.related import Related
from homeport.machinery.condition import find
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

_FOLLOWED_SECONDS = 20.0  # a safety net: what can change is watched
_UNFOLLOWED_SECONDS = 5.0
_UNREACHABLE_SECONDS = 2.0  # Pods of a dead Node count as gone by time alone
_NODE_SECONDS = 2.0  # between attempts to delete a Node: nothing tells when its server answers again
_PASSING = (Unavailable, Timeout, Unauthorized)


class Removal:
    def __init__(
        self, capi: Capi, of_cluster: Callable[[Key], Sequence[Machine]], write: Write, followers: Followers
    ) -> None:
        self._capi = capi
        self._client = capi.manager.client
        self._clock = capi.manager.clock
        self._of_cluster = of_cluster
        self._write = write
        self._rules = capi.manager.informers.get(MachineDrainRule).cache
        self.followers = followers

    def forget(self, key: Key) -> None:
        self.followers.end(key)

    async def run(self, scope: MachineScope) -> Wait | None:
        """What is waited for now; None: everything is gone."""
        stays = await self._why_node_stays(scope)
        if stays:
            log.debug("the Node is left alone", machine=str(scope.key), why=stays)
        else:
            wait = await self._clear_node(scope)
            if wait is not None:
                return wait
        self.followers.end(scope.key)
        return (
            deletion.await_hooks(scope.object, PRE_TERMINATE_HOOK_PREFIX, self._clock.now(), scope.seen.cluster)
            or await self._release(scope, scope.seen.infrastructure, Reason.WAITING_FOR_INFRASTRUCTURE_DELETION)
            or await self._release(scope, scope.seen.bootstrap, Reason.WAITING_FOR_BOOTSTRAP_DELETION)
            or (None if stays else await self._drop_node(scope))
        )

    async def _why_node_stays(self, scope: MachineScope) -> str:
        others = [m for m in self._of_cluster(scope.cluster_key) if not m.metadata.deletion_timestamp]
        return deletion.why_node_stays(scope.object, scope.seen.cluster, await self._control_plane(scope), others)

    async def _control_plane(self, scope: MachineScope) -> Related:
        """Read when it is asked for: that is once or twice in the life of a Machine."""
        cluster = scope.seen.cluster
        related = Related(None if cluster is None else cluster.spec.control_plane_ref)
        if related.ref is None or scope.object.status.node_ref is None:
            return related
        try:
            related.resource, related.contract = self._capi.contracts.resolve(related.ref)
            key = Key(scope.key.namespace, related.ref.name)
            related.object = await self._client.get(related.resource, key)
        except (NotInstalled, NotFound) as error:
            log.info("the Cluster's control plane object can't be read", machine=str(scope.key), error=str(error))
        return related

    # -- the Node ----------------------------------------------------------------------------------------------

    async def _clear_node(self, scope: MachineScope) -> Wait | None:
        """Hooks, Pods, volumes."""
        machine, now = scope.object, self._clock.now()
        wait = deletion.await_hooks(machine, PRE_DRAIN_HOOK_PREFIX, now, scope.seen.cluster)
        if wait is not None:
            return wait
        if deletion.drains(machine, scope.seen, now):
            times = machine.status.deletion
            times.node_drain_start_time = times.node_drain_start_time or rfc3339(now)
            left = deletion.left(times.node_drain_start_time, machine.spec.deletion.node_drain_timeout_seconds, now)
            wait = await self._in_workload(scope, Reason.DRAINING_NODE, "draining", left, self._drain)
            if wait is not None:
                return wait
        if deletion.awaits_volumes(machine, scope.seen, now):
            times = machine.status.deletion
            since = times.wait_for_node_volume_detach_start_time or rfc3339(now)
            times.wait_for_node_volume_detach_start_time = since
            left = deletion.left(since, machine.spec.deletion.node_volume_detach_timeout_seconds, now)
            return await self._in_workload(
                scope, Reason.WAITING_FOR_VOLUME_DETACH, "detaching volumes of", left, self._await_volumes
            )
        return None

    async def _in_workload(
        self,
        scope: MachineScope,
        reason: str,
        doing: str,
        left: float | None,
        step: Callable[[MachineScope, Workload], Awaitable[str]],
    ) -> Wait | None:
        ref = scope.object.status.node_ref
        assert ref is not None
        head = f"{doing} Node {ref.name}"
        remote = self._capi.remotes.get(scope.cluster_key)
        if remote is None:  # its coming wakes us
            why = self._capi.remotes.why(scope.cluster_key)
            return Wait(reason, f"{head}: no connection to the workload cluster: {why}", after=left)
        node = remote.nodes.get(Key("", ref.name))
        if node is None:
            return None  # somebody has deleted it: there is nothing to save
        followed = self.followers.begin(scope.key, remote.client, ref.name)
        try:
            text = await step(scope, Workload(remote.client, node))
        except _PASSING as error:
            return Wait(reason, f"{head}: {error}", after=deletion.soonest(left, _UNFOLLOWED_SECONDS))
        if not text:
            return None
        pause = _FOLLOWED_SECONDS if followed else _UNFOLLOWED_SECONDS
        if drain.unreachable(node):
            pause = _UNREACHABLE_SECONDS
        return Wait(reason, f"{head}: {text}", after=deletion.soonest(left, pause))

    async def _drain(self, scope: MachineScope, work: Workload) -> str:
        await work.cordon()
        plan = await work.plan(self._matching_rules(scope), self._clock.now())
        if plan.done:
            return ""
        going, refused = await work.evict(plan.evict)
        return drain.explain(plan, refused, going)

    async def _await_volumes(self, scope: MachineScope, work: Workload) -> str:
        names = await work.volumes(self._matching_rules(scope), self._clock.now())
        return volume.explain(names) if names else ""

    def _matching_rules(self, scope: MachineScope) -> list[MachineDrainRule]:
        cluster = scope.seen.cluster
        assert cluster is not None
        return drain.matching_rules(self._rules.list(scope.key.namespace), scope.object, cluster)

    async def _drop_node(self, scope: MachineScope) -> Wait | None:
        """After the machine is gone, or its kubelet would register it again."""
        ref = scope.object.status.node_ref
        assert ref is not None
        remote = self._capi.remotes.get(scope.cluster_key)
        trouble = await self._delete_node(remote, ref.name) if remote is not None else ""
        if remote is None:
            trouble = self._capi.remotes.why(scope.cluster_key) or "no connection to the workload cluster"
        if not trouble:
            return None
        left = deletion.node_deletion_left(scope.object, self._clock.now())
        if left == 0.0:
            self._capi.manager.recorder.record(
                scope.object, "FailedDeleteNode", f"Node {ref.name} is left behind: {trouble}", warning=True
            )
            return None
        return Wait(
            Reason.DELETING_NODE, f"deleting Node {ref.name}: {trouble}", after=deletion.soonest(left, _NODE_SECONDS)
        )

    async def _delete_node(self, remote: Remote, name: str) -> str:
        if Key("", name) not in remote.nodes:
            return ""
        try:
            await delete_node(remote.client, name)
        except ApiError as error:
            return str(error)
        return ""

    # -- our own objects ---------------------------------------------------------------------------------------

    async def _release(self, scope: MachineScope, related: Related, reason: str) -> Wait | None:
        """Deletes an object that belongs to the Machine; its absence is observed, never assumed."""
        if related.nothing_to_delete:
            return None
        if related.object is None or related.resource is None:
            return Wait(reason, f"waiting for {related} to be deleted: {related.trouble}", after=_UNFOLLOWED_SECONDS)
        if not related.deleting:
            try:
                await self._client.delete(related.resource, key_of(related.object), uid=related.object.uid)
            except NotFound:
                return Wait(reason, f"{related} has been deleted; waiting for the cache", after=_UNFOLLOWED_SECONDS)
        said = find(conditions(related.object), "Ready")
        text = str(said["message"]) if said is not None and said["status"] != "True" else ""
        text = why_not_deleted(related.object) or text
        held = related.object.metadata.get("finalizers") or []
        return Wait(reason, f"waiting for {related} to be deleted{_because(text, held)}")


def _because(message: str, finalizers: Sequence[str]) -> str:
    if message:
        return f": {message}"
    return f" (held by {', '.join(finalizers)})" if finalizers else ""
