"""Brings what there is to what is desired, in an order in which it may end at any point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment, MachineHealthCheck, MachineSet
from homeport.api.meta import Resource
from homeport.capi import setter
from homeport.capi.capi import Capi
from homeport.capi.contract import control_plane
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.core.index import by_cluster
from homeport.core.machineset.preflight import UPGRADE_STEP
from homeport.core.topology import garbage
from homeport.core.topology.apply import MANAGER, Applier
from homeport.core.topology.current import Current, CurrentDeployment
from homeport.core.topology.desired import name, worker
from homeport.core.topology.desired.blueprint import Blueprint, Template, TopologyError
from homeport.core.topology.desired.clone import owned_labels
from homeport.core.topology.desired.cluster import Desired, DesiredDeployment
from homeport.core.topology.scope import TopologyScope
from homeport.core.topology.source import Source
from homeport.core.topology.upgrade import Plan
from homeport.machinery.gvk import parse_api_version
from homeport.runtime.cache import key_of

_DEPLOYMENT = MachineDeployment.__resource__
_CHECK = MachineHealthCheck.__resource__
_TOLD = 8  # so much is told in one event, which holds no more than 1024 characters

Json = dict[str, Any]


class Convergence:
    def __init__(self, capi: Capi, source: Source) -> None:
        manager = capi.manager
        self._client = manager.client
        self._recorder = manager.recorder
        self._source = source
        self._sets = by_cluster(manager.informers.get(MachineSet).cache)
        self._applier = Applier(manager.client)

    async def converge(
        self, scope: TopologyScope, blueprint: Blueprint, current: Current, plan: Plan, desired: Desired
    ) -> None:
        try:
            await self._converge(scope, blueprint, current, plan, desired)
        finally:
            for reason, texts in scope.news.items():
                more = f"; and {len(texts) - _TOLD} more" if len(texts) > _TOLD else ""
                self._recorder.record(scope.object, reason, "; ".join(texts[:_TOLD]) + more)

    async def _converge(
        self, scope: TopologyScope, blueprint: Blueprint, current: Current, plan: Plan, desired: Desired
    ) -> None:
        """The Cluster refers to its parts before they are made, under names that follow from it: whenever this ends,
        nothing is left that nobody knows of."""
        await self._hold_cluster(scope, plan, desired)
        infrastructure = (blueprint.infrastructure.instance_kind, desired.infrastructure, current.infrastructure)
        work: list[Callable[[], Awaitable[None]]] = [
            partial(self._hold, scope, *infrastructure),
            partial(self._hold_control_plane, scope, blueprint, current, plan, desired),
            *(
                partial(self._hold_deployment, scope, topology, wanted, current.deployments.get(topology), plan)
                for topology, wanted in desired.deployments.items()
                if topology not in plan.withheld
            ),
        ]
        refused: list[Exception] = []
        for each in work:
            try:
                await each()
            except (Invalid, TopologyError) as error:
                refused.append(error)  # the others have nothing to do with it
        for topology, there in current.deployments.items():
            if topology not in desired.deployments:
                await self._drop_deployment(scope, there)
        await self._drop_templates(scope, current, desired)
        if refused:
            raise refused[0]

    async def _hold_cluster(self, scope: TopologyScope, plan: Plan, desired: Desired) -> None:
        patch = cluster_patch(scope.object, plan.step, desired)
        if patch:
            write = Write(field_manager=MANAGER)
            scope.update_metadata(await self._client.patch(Cluster, scope.key, MergePatch(patch), write))

    async def _hold_control_plane(
        self, scope: TopologyScope, blueprint: Blueprint, current: Current, plan: Plan, desired: Desired
    ) -> None:
        await self._hold_check(scope, desired.check, current.check)
        if plan.plane_waits:  # it would be rolled out now, and once more with the version
            await self._hold_replicas(scope, blueprint, current, desired)
            return
        if blueprint.machines is not None and desired.machines is not None:
            await self._hold_template(scope, blueprint.machines, desired.machines, current.machines)
            setter.infrastructure_ref(
                desired.control_plane,
                blueprint.contract,
                desired.machines,
                desired.machines["metadata"]["name"],
            )
        await self._hold(scope, blueprint.control_plane.instance_kind, desired.control_plane, current.control_plane)

    async def _hold_replicas(
        self, scope: TopologyScope, blueprint: Blueprint, current: Current, desired: Desired
    ) -> None:
        """Their number is independent of the version."""
        there, wanted = current.control_plane, control_plane.replicas(desired.control_plane)
        if there is None or wanted is None or control_plane.replicas(there) == wanted:
            return
        resource, key = blueprint.control_plane.instance_kind, key_of(there)
        body = {"metadata": {"uid": there.uid}, "spec": {"replicas": wanted}}
        await self._client.patch(resource, key, MergePatch(body), Write(field_manager=MANAGER))
        self._note_event(scope, "TopologyUpdate", f"updated {resource.kind} {key.name}")

    async def _hold_deployment(
        self,
        scope: TopologyScope,
        topology: str,
        wanted: DesiredDeployment,
        current: CurrentDeployment | None,
        plan: Plan,
    ) -> None:
        if current is not None and current.going:
            return  # the next reconcile recreates it once it is gone
        await self._hold_check(scope, wanted.check, current.check if current else None)
        deployment = current.object if current else None
        if deployment is not None and topology in plan.waiting:
            worker.keep(wanted.object, deployment)  # it would be rolled out now, and once more with the version
        else:
            await self._hold_templates(scope, topology, wanted, current)
        if deployment is not None and "replicas" not in wanted.object["spec"]:
            if not self._applier.is_settled(_DEPLOYMENT, wanted.object, deployment):
                await self._applier.leave_replicas(_DEPLOYMENT, key_of(deployment))
        await self._hold(scope, _DEPLOYMENT, wanted.object, deployment)

    async def _hold_templates(
        self, scope: TopologyScope, topology: str, wanted: DesiredDeployment, current: CurrentDeployment | None
    ) -> None:
        for template, intent, there in (
            (wanted.blueprint.infrastructure, wanted.infrastructure, current.infrastructure if current else None),
            (wanted.blueprint.bootstrap, wanted.bootstrap, current.bootstrap if current else None),
        ):
            await self._hold_template(scope, template, intent, there, topology)
        worker.refer(wanted.object, wanted.bootstrap, wanted.infrastructure)

    # -- single objects ------------------------------------------------------------------------------------------

    async def _hold(self, scope: TopologyScope, resource: Resource, intent: Json, current: Any) -> None:
        held = await self._applier.hold(resource, intent, current)
        if held.new:
            self._note_event(scope, "TopologyCreate", f"created {resource.kind} {held.name}")
        elif held.changed:
            self._note_event(scope, "TopologyUpdate", f"updated {resource.kind} {held.name}")

    async def _hold_template(
        self, scope: TopologyScope, template: Template, intent: Json, current: Any, topology: str = ""
    ) -> None:
        """From here on the intent has the name of the template that is to be used."""
        resource, before = template.resource, str(intent["metadata"]["name"])
        successor = name.template(scope.object, topology or template.clone_name, intent["spec"])
        held = await self._applier.hold_template(resource, intent, current, successor)
        intent["metadata"]["name"] = held.name
        if held.name != before:
            self._note_event(scope, "TopologyCreate", f"created {resource.kind} {held.name} in the place of {before}")
        elif held.new:
            self._note_event(scope, "TopologyCreate", f"created {resource.kind} {held.name}")

    async def _hold_check(self, scope: TopologyScope, wanted: Json | None, current: MachineHealthCheck | None) -> None:
        if wanted is not None:
            await self._hold(scope, _CHECK, wanted, current)
        elif current is not None:
            await self._delete(scope, _CHECK, key_of(current), current.metadata.uid)

    # -- going ---------------------------------------------------------------------------------------------------

    async def _drop_deployment(self, scope: TopologyScope, there: CurrentDeployment) -> None:
        await self._hold_check(scope, None, there.check)
        if not there.going:
            await self._delete(scope, _DEPLOYMENT, key_of(there.object), there.object.metadata.uid)

    async def _drop_templates(self, scope: TopologyScope, current: Current, desired: Desired) -> None:
        """Nothing is looked up unless there is something that seems to be left."""
        cluster = scope.object
        used = garbage.used_as(desired.machines)
        for each in desired.deployments.values():
            used |= garbage.used_as(each.bootstrap, each.infrastructure)
        used |= garbage.used_by(each.object for each in current.deployments.values())
        used |= garbage.used_by(self._sets(scope.key))
        left = garbage.unused(cluster, self._source.copies(scope.key), used)
        if not left:
            return
        # A set that was made just now may be missing in the cache, and would be left without its templates.
        query = Query(namespace=scope.key.namespace, labels=f"{CLUSTER_NAME_LABEL}={cluster.metadata.name}")
        used |= garbage.used_by((await self._client.list(MachineSet, query)).items)
        for resource, obj in garbage.unused(cluster, left, used):
            await self._delete(scope, resource, key_of(obj), obj.uid)

    async def _delete(self, scope: TopologyScope, resource: Resource, key: Key, uid: str) -> None:
        self._applier.forget(resource, key)
        try:
            await self._client.delete(resource, key, uid=uid)
        except NotFound:
            return
        self._note_event(scope, "TopologyDelete", f"deleted {resource.kind} {key.name}")

    def _note_event(self, scope: TopologyScope, reason: str, text: str) -> None:
        """In one event for each reason, however much is done."""
        scope.news.setdefault(reason, []).append(text)


def cluster_patch(cluster: Cluster, step: str, desired: Desired) -> Json:
    """The merge patch of the Cluster itself; {} when all is as it should be."""
    meta = cluster.metadata
    metadata: Json = {}
    spec: Json = {}
    labels = {key: value for key, value in owned_labels(cluster).items() if meta.labels.get(key) != value}
    if labels:
        metadata["labels"] = labels
    if meta.annotations.get(UPGRADE_STEP, "") != step:
        metadata["annotations"] = {UPGRADE_STEP: step or None}
    if cluster.spec.infrastructure_ref is None:
        spec["infrastructureRef"] = _ref(desired.infrastructure)
    if cluster.spec.control_plane_ref is None:
        spec["controlPlaneRef"] = _ref(desired.control_plane)
    if not metadata and not spec:
        return {}
    state = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return {"metadata": {**metadata, **state}, **({"spec": spec} if spec else {})}


def _ref(obj: Json) -> Json:
    group = parse_api_version(obj["apiVersion"]).group
    return {"apiGroup": group, "kind": obj["kind"], "name": obj["metadata"]["name"]}
