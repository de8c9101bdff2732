"""Reads all that one loop over a topology goes by."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.api.cluster.v1beta2 import (
    Cluster,
    ClusterClass,
    ContractRef,
    Machine,
    MachineDeployment,
    MachineHealthCheck,
)
from homeport.api.cluster.v1beta2.template import ClusterClassTemplateReference, MachineDeploymentClass
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.contract import control_plane
from homeport.capi.name import (
    BEFORE_UPGRADE_HOOK_PREFIX,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
)
from homeport.client.protocol import Key
from homeport.core.index import by_cluster
from homeport.core.machineset.preflight import UPGRADE_STEP
from homeport.core.topology import upgrade
from homeport.core.topology.current import Current, CurrentDeployment
from homeport.core.topology.desired import worker
from homeport.core.topology.desired.blueprint import (
    Blueprint,
    DeploymentBlueprint,
    Missing,
    Template,
    TopologyError,
    resource_of,
)
from homeport.core.topology.desired.cluster import concurrency
from homeport.core.topology.source import Source
from homeport.runtime.cache import key_of


class Observer:
    def __init__(self, capi: Capi, source: Source) -> None:
        self._source = source
        informers = capi.manager.informers
        self._machines = by_cluster(informers.get(Machine).cache)
        self._deployments = by_cluster(informers.get(MachineDeployment).cache)
        self._checks = informers.get(MachineHealthCheck).cache

    # -- the class -----------------------------------------------------------------------------------------------

    async def blueprint(self, cluster: Cluster, given: ClusterClass) -> Blueprint:
        """Raises TopologyError when something is missing."""
        key, spec = key_of(cluster), given.spec
        infrastructure = await self._template(given, "spec.infrastructure", spec.infrastructure.template_ref, key)
        plane = await self._template(given, "spec.controlPlane", spec.control_plane.template_ref, key)
        self._source.contract(infrastructure.instance_kind, key)
        machines = spec.control_plane.machine_infrastructure.template_ref
        classes = {each.class_: each for each in spec.workers.machine_deployments}
        return Blueprint(
            given,
            infrastructure,
            plane,
            self._source.contract(plane.instance_kind, key),
            await self._template(given, "spec.controlPlane.machineInfrastructure", machines, key) if machines else None,
            {
                each.class_: await self._deployment_class(given, classes, each.class_, each.name, key)
                for each in cluster.spec.topology.workers.machine_deployments
            },
        )

    async def _deployment_class(
        self, given: ClusterClass, classes: Mapping[str, MachineDeploymentClass], which: str, name: str, asker: Key
    ) -> DeploymentBlueprint:
        found = classes.get(which)
        if found is None:
            known = ", ".join(classes) or "none"
            raise TopologyError(
                f"spec.topology.workers.machineDeployments[{name}].class: ClusterClass {given.metadata.name} has no "
                f"class {which!r} of machine deployments; it has: {known}"
            )
        where = f"spec.workers.machineDeployments[{which}]"
        return DeploymentBlueprint(
            found,
            await self._template(given, f"{where}.bootstrap", found.bootstrap.template_ref, asker),
            await self._template(given, f"{where}.infrastructure", found.infrastructure.template_ref, asker),
        )

    async def _template(
        self, given: ClusterClass, where: str, ref: ClusterClassTemplateReference | None, asker: Key
    ) -> Template:
        if ref is None:
            raise TopologyError(f"ClusterClass {given.metadata.name}: {where}.templateRef is not set")
        resource = resource_of(ref)
        self._source.contract(resource, asker)
        found = await self._source.get(resource, Key(given.metadata.namespace, ref.name), asker)
        if found is None:
            raise Missing(
                f"ClusterClass {given.metadata.name}: {where}.templateRef: {ref.kind} {ref.name} does not exist in "
                f"namespace {given.metadata.namespace}"
            )
        return Template(resource, found)

    # -- what there is -------------------------------------------------------------------------------------------

    async def current(self, cluster: Cluster, blueprint: Blueprint) -> Current:
        """Raises TopologyError when what there is does not go with the class."""
        key, spec = key_of(cluster), cluster.spec
        infrastructure = await self._referred(spec.infrastructure_ref, blueprint.infrastructure.instance_kind, key)
        plane = await self._referred(spec.control_plane_ref, blueprint.control_plane.instance_kind, key)
        machines = None
        if plane is not None and blueprint.machines is not None:
            ref = control_plane.infrastructure_ref(plane, blueprint.contract) or {}
            wanted = blueprint.machines.resource.kind
            if ref and ref.get("kind") != wanted:
                raise TopologyError(
                    f"{plane['kind']} {plane.name} has {ref.get('kind')} {ref.get('name')}, but its class uses "
                    f"{wanted}: choose a class whose control plane has machines of the same kind"
                )
            machines = await self._copy(blueprint.machines, str(ref.get("name") or ""), key)
        check = self._checks.get(Key(key.namespace, plane.name)) if plane is not None else None
        return Current(infrastructure, plane, machines, check, await self._current_deployments(cluster, blueprint))

    async def _referred(self, ref: ContractRef | None, made: Resource, asker: Key) -> Unstructured | None:
        if ref is None:
            return None
        if (ref.api_group, ref.kind) != (made.group, made.kind):
            raise TopologyError(
                f"the Cluster has {ref.kind} {ref.name} of group {ref.api_group}, but its class uses {made.kind} of "
                f"group {made.group}: the kinds of a Cluster are immutable, choose a class with {ref.kind}"
            )
        found = await self._source.get(made, Key(asker.namespace, ref.name), asker)
        if found is not None and TOPOLOGY_OWNED_LABEL not in (found.metadata.get("labels") or {}):
            raise TopologyError(
                f"{ref.kind} {ref.name} was not created for a topology: to let the class manage it, set the label "
                f"{TOPOLOGY_OWNED_LABEL}"
            )
        return found

    async def _copy(self, template: Template, name: str, asker: Key) -> Unstructured | None:
        return await self._source.get(template.resource, Key(asker.namespace, name), asker) if name else None

    async def _current_deployments(self, cluster: Cluster, blueprint: Blueprint) -> dict[str, CurrentDeployment]:
        key = key_of(cluster)
        classes = {each.name: each.class_ for each in cluster.spec.topology.workers.machine_deployments}
        machines: dict[str, list[Machine]] = {}
        for machine in self._machines(key):
            machines.setdefault(machine.metadata.labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL, ""), []).append(machine)
        found: dict[str, CurrentDeployment] = {}
        for each in self._deployments(key):
            labels = each.metadata.labels
            name = labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL, "")
            if TOPOLOGY_OWNED_LABEL not in labels or not name:
                continue
            if name in found:
                other = found[name].object.metadata.name
                raise TopologyError(
                    f"MachineDeployments {other} and {each.metadata.name} both have the label "
                    f"{TOPOLOGY_DEPLOYMENT_NAME_LABEL}={name}: delete one of them"
                )
            ours = blueprint.deployments.get(classes.get(name, ""))
            check = self._checks.get(key_of(each))
            found[name] = CurrentDeployment(
                each, *await self._templates_of(each, ours, key), check, machines.get(name, ())
            )
        return found

    async def _templates_of(
        self, deployment: MachineDeployment, ours: DeploymentBlueprint | None, asker: Key
    ) -> tuple[Unstructured | None, Unstructured | None]:
        """None for one of another kind: it can't become what is wanted."""
        machine = deployment.spec.template.spec
        if ours is None or deployment.metadata.deletion_timestamp:
            return None, None
        ref = machine.infrastructure_ref
        if ref is not None and (ref.api_group, ref.kind) != ours.infrastructure.kind:
            raise TopologyError(
                f"MachineDeployment {deployment.metadata.name} has {ref.kind} {ref.name}, but its class uses "
                f"{ours.infrastructure.resource.kind}: choose a class of machine deployments with the same kind"
            )
        pairs = ((ours.bootstrap, machine.bootstrap.config_ref), (ours.infrastructure, ref))
        bootstrap, infrastructure = [
            await self._copy(template, which.name, asker)
            if which is not None and (which.api_group, which.kind) == template.kind
            else None
            for template, which in pairs
        ]
        return bootstrap, infrastructure


def observed(cluster: Cluster, blueprint: Blueprint, current: Current) -> upgrade.Observed:
    """What decides about versions."""
    topology = cluster.spec.topology
    wanted = topology.workers.machine_deployments
    there = {name: each for name, each in current.deployments.items() if not each.going}
    return upgrade.Observed(
        goal=topology.version,
        plane=_plane(current, blueprint, topology.version),
        groups=[
            upgrade.Group(
                each.name,
                there[each.name].object.spec.template.spec.version or topology.version,
                upgrading=there[each.name].upgrading,
                deferred=worker.is_deferred(wanted, each.name),
                machines=[m.spec.version for m in there[each.name].machines if m.spec.version],
            )
            for each in wanted
            if each.name in there
        ],
        new=[each.name for each in wanted if each.name not in current.deployments],
        known=blueprint.cluster_class.spec.kubernetes_versions,
        concurrency=concurrency(cluster),
        hooks=sorted(a for a in cluster.metadata.annotations if a.startswith(BEFORE_UPGRADE_HOOK_PREFIX)),
        begun=bool(cluster.metadata.annotations.get(UPGRADE_STEP)),
    )


def _plane(current: Current, blueprint: Blueprint, goal: str) -> upgrade.Plane | None:
    obj, contract = current.control_plane, blueprint.contract
    if obj is None:
        return None
    return upgrade.Plane(
        control_plane.version(obj) or goal,
        control_plane.is_provisioning(obj, contract),
        control_plane.is_upgrading(obj, contract),
        [each.version for each in control_plane.status_versions(obj, contract)],
    )
