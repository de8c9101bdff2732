"""The reconciler of every InfraCluster kind: preflight, what machines need, failure domains, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi import name as names
from homeport.capi.paused import is_paused
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.infra.error import ProviderError, delay_of, policy_of
from homeport.infra.protocol import Check, ClusterScope, FailureDomain, Provider, Session
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

BY_CLUSTER = "cluster"
_CHECK_AGAIN_SECONDS = 30.0


class ClusterReconciler(Reporting, Generic[C, M, S]):
    def __init__(self, manager: Manager, provider: Provider[C, M, S]) -> None:
        super().__init__(manager.client, manager.recorder, manager=f"homeport-{provider.name}", clock=manager.clock)
        self._provider = provider
        self._fence = manager.fence
        self._clusters = manager.informers.get(Cluster).cache
        self._infra = manager.informers.get(provider.cluster_kind).cache
        self._machines = manager.informers.get(provider.machine_kind).cache
        self._machines.add_index(BY_CLUSTER, _cluster_index)
        self._failures: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Wait | None:
        infra = self._infra.get(key)
        if infra is None:
            self._failures.pop(key, None)
            return None
        cluster = self._owner(infra)
        if is_paused(cluster, infra):
            return None
        scope = Scope(infra)
        return await self.reported(scope, self._guarded(scope, cluster))

    async def _guarded(self, scope: Scope[C], cluster: Cluster | None) -> Wait | None:
        try:
            work = self._release if scope.deleting else self._normal
            wait = await work(scope, cluster)
        except ProviderError as error:
            count = self._failures[scope.key] = self._failures.get(scope.key, 0) + 1
            return Wait(policy_of(error).reason, error.message, after=delay_of(error, count))
        self._failures.pop(scope.key, None)
        return wait

    # -- growing -----------------------------------------------------------------------------------------------

    async def _normal(self, scope: Scope[C], cluster: Cluster | None) -> Wait | None:
        if cluster is None:
            return Wait("WaitingForOwner", "no Cluster owns this object yet: name it in a Cluster's infrastructureRef")
        await self._hold_finalizer(scope)
        made = ClusterScope(cluster, scope.object, await self._provider.connector.connect(scope.object))
        if not _provisioned(scope.object):
            failed = self._report_checks(scope, await self._provider.cluster_driver.preflight(made))
            if failed is not None:
                return failed
        self._fence()
        wait = await self._provider.cluster_driver.converge(made)
        if wait is not None:
            return wait
        await self._publish(scope, made)
        return None

    def _report_checks(self, scope: Scope[C], checks: Sequence[Check]) -> Wait | None:
        """Each condition is the sum of its checks: all failures are told at once, not one at a time."""
        now = rfc3339(self.clock.now())
        failed: list[Check] = []
        for kind in dict.fromkeys(check.condition for check in checks):
            bad = [check for check in checks if check.condition == kind and not check.ok]
            failed += bad
            status: condition.Status = "False" if bad else "True"
            reason = bad[0].reason if bad else "Succeeded"
            scope.report(kind, status, reason, "; ".join(check.message for check in bad), now)
        if not failed:
            return None
        return Wait(failed[0].reason, "; ".join(check.message for check in failed), after=_CHECK_AGAIN_SECONDS)

    async def _publish(self, scope: Scope[C], made: ClusterScope[C, S]) -> None:
        await self._hold_endpoint(scope, await self._provider.cluster_driver.endpoint(made))
        status: Any = getattr(scope.object, "status", None)
        domains = await self._provider.cluster_driver.failure_domains(made)
        status.failure_domains = render_failure_domains(domains)
        status.ready = True
        status.initialization.provisioned = True

    async def _hold_endpoint(self, scope: Scope[C], endpoint: tuple[str, int] | None) -> None:
        spec: Any = getattr(scope.object, "spec", None)
        held = spec.control_plane_endpoint
        if endpoint is None or (held.host, held.port) == endpoint:
            return
        body = {
            "spec": {"controlPlaneEndpoint": {"host": endpoint[0], "port": endpoint[1]}},
            "metadata": {"uid": scope.object.metadata.uid},
        }
        written = await self.client.patch(self._provider.cluster_kind, scope.key, MergePatch(body), self._write)
        held.host, held.port = endpoint
        scope.wrote(written)

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def _release(self, scope: Scope[C], cluster: Cluster | None) -> Wait | None:
        if self._provider.cluster_finalizer not in scope.object.metadata.finalizers:
            return None
        name = cluster.metadata.name if cluster else scope.object.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
        left = self._machines.by(BY_CLUSTER, f"{scope.key.namespace}/{name}")
        if left:
            shown = ", ".join(sorted(each.metadata.name for each in left)[:3])
            return Wait("WaitingForMachines", f"{len(left)} machines of the cluster still exist ({shown})")
        if not _touched(scope.object):
            await self._drop_finalizer(scope)  # nothing was ever made: no credentials are needed to undo it
            return None
        session = await self._provider.connector.connect(scope.object)
        sharing = any(
            each.metadata.name == name and each.metadata.namespace != scope.key.namespace for each in self._clusters
        )
        made = ClusterScope(cluster or _named(name, scope.key.namespace), scope.object, session, sharing)
        self._fence()
        wait = await self._provider.cluster_driver.release(made)
        if wait is not None:
            return wait
        await self._drop_finalizer(scope)
        return None

    # -- the object itself -------------------------------------------------------------------------------------

    async def _hold_finalizer(self, scope: Scope[C]) -> None:
        held = scope.object.metadata.finalizers
        if self._provider.cluster_finalizer not in held:
            await self._write_finalizers(scope, [*held, self._provider.cluster_finalizer])

    async def _drop_finalizer(self, scope: Scope[C]) -> None:
        left = [each for each in scope.object.metadata.finalizers if each != self._provider.cluster_finalizer]
        try:
            await self._write_finalizers(scope, left)
        except NotFound:
            return

    async def _write_finalizers(self, scope: Scope[C], finalizers: list[str]) -> None:
        meta = scope.object.metadata
        body = {"metadata": {"finalizers": finalizers, "uid": meta.uid, "resourceVersion": meta.resource_version}}
        written = await self.client.patch(self._provider.cluster_kind, scope.key, MergePatch(body), self._write)
        scope.wrote(written)

    def _owner(self, infra: C) -> Cluster | None:
        for owner in infra.metadata.owner_references:
            if owner.kind == "Cluster" and owner.api_version.startswith(f"{Cluster.__resource__.group}/"):
                return self._clusters.get(Key(infra.metadata.namespace, owner.name))
        return None


def render_failure_domains(domains: Sequence[FailureDomain]) -> Any:
    """By name, as contract v1beta1 has them; the newer contract's readers take either form."""
    return {
        each.name: {
            "controlPlane": each.control_plane,
            **({"attributes": dict(each.attributes)} if each.attributes else {}),
        }
        for each in domains
    }


def _cluster_index(obj: Object) -> list[str]:
    name = obj.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    return [f"{obj.metadata.namespace}/{name}"] if name else []


def _provisioned(obj: Any) -> bool:
    return bool(obj.status.initialization.provisioned or obj.status.ready)


def _touched(obj: Any) -> bool:
    """Whether anything may have been made at the vendor."""
    return _provisioned(obj) or any(each.get("type") != "Ready" for each in obj.status.conditions)


def _named(name: str, namespace: str) -> Cluster:
    cluster = Cluster()
    cluster.metadata.name, cluster.metadata.namespace = name, namespace
    return cluster
