"""What a Cluster's topology asks for, as objects to apply. Pure.

Templates of the class are patched with the variables of the Cluster; objects are made from what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.cluster.v1beta2.topology import MachineDeploymentTopology
from homeport.capi.name import TOPOLOGY_UPGRADE_CONCURRENCY
from homeport.capi.object.naming import TemplateError
from homeport.core.topology.current import Current, CurrentDeployment
from homeport.core.topology.desired import controlplane, name, worker
from homeport.core.topology.desired.blueprint import Blueprint, DeploymentBlueprint, Template, TopologyError
from homeport.core.topology.desired.clone import object_from, template_from
from homeport.core.topology.patch.patch import PatchError, Subject, patched
from homeport.core.topology.upgrade import Plan
from homeport.core.topology.variable import builtin
from homeport.core.topology.variable.variable import defaulted, definitions, effective, invalid

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DesiredDeployment:
    blueprint: DeploymentBlueprint
    object: Json
    bootstrap: Json
    infrastructure: Json
    check: Json | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    infrastructure: Json
    control_plane: Json
    machines: Json | None = None  # the template of the control plane's machines
    check: Json | None = None
    deployments: Mapping[str, DesiredDeployment] = field(default_factory=dict)  # by their name in the topology


@dataclass(frozen=True, slots=True)
class Values:
    """The variables of a Cluster, with the defaults of its class."""

    common: Sequence[Json]
    control_plane: Sequence[Json] = ()
    deployments: Mapping[str, Sequence[Json]] = field(default_factory=dict)

    def of(self, overrides: Iterable[Json], known: Json) -> dict[str, Any]:
        return {**effective(self.common, list(overrides)), "builtin": known}


def find_values(cluster: Cluster, blueprint: Blueprint) -> Values:
    """Raises TopologyError when a value does not suit the class."""
    topology, known = cluster.spec.topology, definitions(blueprint.cluster_class)
    path = "spec.topology"
    common = defaulted(topology.variables, known)
    faults = invalid(common, known, path=f"{path}.variables")
    plane = defaulted(topology.control_plane.variables.overrides, known, overrides=True)
    faults += invalid(plane, known, path=f"{path}.controlPlane.variables.overrides", overrides=True)
    groups = {}
    for each in topology.workers.machine_deployments:
        groups[each.name] = defaulted(each.variables.overrides, known, overrides=True)
        where = f"{path}.workers.machineDeployments[{each.name}].variables.overrides"
        faults += invalid(groups[each.name], known, path=where, overrides=True)
    if faults:
        raise TopologyError("; ".join(f"{where}: {what}" for where, what in faults))
    return Values(common, plane, groups)


def desire(cluster: Cluster, blueprint: Blueprint, current: Current, plan: Plan, values: Values) -> Desired:
    """Raises TopologyError."""
    try:
        return _Renderer(cluster, blueprint, current, plan, values).render()
    except PatchError as error:
        raise TopologyError(f"ClusterClass {blueprint.cluster_class.metadata.name}: {error}") from error
    except TemplateError as error:
        raise TopologyError(
            f"ClusterClass {blueprint.cluster_class.metadata.name}: a naming template: {error}"
        ) from error


@dataclass(slots=True)
class _Renderer:
    cluster: Cluster
    blueprint: Blueprint
    current: Current
    plan: Plan
    values: Values

    def render(self) -> Desired:
        return Desired(
            infrastructure=self._infrastructure(),
            **self._control_plane(),
            deployments={
                each.name: self._deployment(each, self.current.deployments.get(each.name))
                for each in self.cluster.spec.topology.workers.machine_deployments
            },
        )

    def _patched(self, *subjects: Subject) -> list[Json]:
        return patched(self.blueprint.cluster_class.spec.patches, subjects)

    def _infrastructure(self) -> Json:
        cluster, given = self.cluster, self.blueprint.infrastructure
        ref = cluster.spec.infrastructure_ref
        template = self.blueprint.cluster_class.spec.infrastructure.naming.template
        values = self.values.of((), builtin.cluster_builtin(cluster))
        (patched,) = self._patched(Subject(given.object, "infrastructureCluster", values=values))
        return object_from(patched, cluster, ref.name if ref is not None else name.infrastructure(cluster, template))

    def _control_plane(self) -> Any:
        cluster, blueprint = self.cluster, self.blueprint
        drafted = controlplane.draft(cluster, blueprint, self.plan.plane)
        machines = _named(controlplane.machines_name(cluster, blueprint, self.current)) if blueprint.machines else None
        known = builtin.control_plane_builtin(cluster, drafted, machine_template=machines)
        values = self.values.of(self.values.control_plane, known)
        templates = [each for each in (blueprint.control_plane, blueprint.machines) if each is not None]
        plane, *rest = self._patched(*(Subject(each.object, "controlPlane", values=values) for each in templates))
        copied = template_from(rest[0], cluster, machines["metadata"]["name"]) if rest and machines else None
        return {
            "control_plane": controlplane.finished(cluster, blueprint, drafted, plane, copied),
            "machines": copied,
            "check": controlplane.check(cluster, blueprint, drafted["metadata"]["name"]),
        }

    def _deployment(self, topology: MachineDeploymentTopology, current: CurrentDeployment | None) -> DesiredDeployment:
        cluster, blueprint = self.cluster, self.blueprint.deployments[topology.class_]
        version = self.plan.groups.get(topology.name, self.cluster.spec.topology.version)
        deployment = worker.deployment(cluster, topology, blueprint, current, version)
        machine = current.object.spec.template.spec if current is not None else None
        names = [
            worker.template_name(cluster, topology.name, template, ref)
            for template, ref in (
                (blueprint.bootstrap, machine.bootstrap.config_ref if machine else None),
                (blueprint.infrastructure, machine.infrastructure_ref if machine else None),
            )
        ]
        known = builtin.machine_deployment_builtin(
            cluster, topology, deployment, bootstrap=_named(names[0]), infrastructure=_named(names[1])
        )
        values = self.values.of(self.values.deployments.get(topology.name, ()), known)
        results = self._patched(
            *(_subject(each, topology.class_, values) for each in (blueprint.bootstrap, blueprint.infrastructure))
        )
        label = worker.own_label(topology)
        bootstrap, infrastructure = (
            template_from(result, cluster, named, label) for result, named in zip(results, names, strict=True)
        )
        worker.refer(deployment, bootstrap, infrastructure)
        check = worker.check(cluster, topology, blueprint, deployment["metadata"]["name"])
        return DesiredDeployment(blueprint, deployment, bootstrap, infrastructure, check)


def _subject(template: Template, class_name: str, values: Mapping[str, Any]) -> Subject:
    return Subject(template.object, "machineDeployment", class_name, values)


def _named(text: str) -> Json:
    return {"metadata": {"name": text}}


def concurrency(cluster: Cluster) -> int:
    """How many MachineDeployments may be upgraded at the same time."""
    text = cluster.metadata.annotations.get(TOPOLOGY_UPGRADE_CONCURRENCY, "")
    return max(1, int(text)) if text.isdigit() else 1
