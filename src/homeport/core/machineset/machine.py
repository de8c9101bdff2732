"""The Machines of a MachineSet: how they are made, and what is carried over to those that live. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Machine, MachineSet
from homeport.api.meta import wire
from homeport.capi.name import (
    CLUSTER_NAME_LABEL,
    DEPLOYMENT_NAME_LABEL,
    MACHINE_FINALIZER,
    SET_NAME_LABEL,
    label_value,
)
from homeport.capi.object import naming
from homeport.capi.object.ownership import owner_reference

# What a living Machine takes over from its set's template.
IN_PLACE = ("deletion", "minReadySeconds", "readinessGates", "taints")
# What it keeps as it was made: to change one of these is a rollout.
KEPT = ("clusterName", "version", "failureDomain", "infrastructureRef")


def machine_name(machine_set: MachineSet) -> str:
    template = machine_set.spec.machine_naming.template or naming.SET_TEMPLATE
    values = {"machineSet.name": machine_set.metadata.name, "cluster.name": machine_set.spec.cluster_name}
    return naming.render(template, values)


def labels_of(machine_set: MachineSet) -> dict[str, str]:
    found = dict(machine_set.spec.template.metadata.labels)
    found[CLUSTER_NAME_LABEL] = machine_set.spec.cluster_name
    found[SET_NAME_LABEL] = label_value(machine_set.metadata.name)
    deployment = machine_set.metadata.labels.get(DEPLOYMENT_NAME_LABEL)
    if deployment is not None:
        found[DEPLOYMENT_NAME_LABEL] = deployment
    return found


def annotations_of(machine_set: MachineSet) -> dict[str, str]:
    return dict(machine_set.spec.template.metadata.annotations)


def new_machine(
    machine_set: MachineSet,
    name: str,
    *,
    bootstrap: Mapping[str, Any] | None,
    infrastructure: Mapping[str, Any],
) -> dict[str, Any]:
    """The Machine to be made; `bootstrap` and `infrastructure` are references to what was made for it."""
    spec: dict[str, Any] = wire(machine_set.spec.template.spec)
    spec.pop("providerID", None)
    spec["clusterName"] = machine_set.spec.cluster_name
    if bootstrap is not None:
        spec["bootstrap"] = {"configRef": dict(bootstrap)}
    spec["infrastructureRef"] = dict(infrastructure)
    return _machine(machine_set, name, spec)


def intent(machine_set: MachineSet, machine: Machine) -> dict[str, Any]:
    """Desired state of a Machine, as its set applies it: everything that was ever set, otherwise it is removed."""
    spec: dict[str, Any] = wire(machine.spec)
    template: dict[str, Any] = wire(machine_set.spec.template.spec)
    wanted = {name: spec[name] for name in KEPT if name in spec}
    held = spec.get("bootstrap") or {}
    # With a configRef the name of the secret is the Machine's own business.
    wanted["bootstrap"] = {"configRef": held["configRef"]} if "configRef" in held else held
    wanted |= {name: template[name] for name in IN_PLACE if name in template}
    made = _machine(machine_set, machine.metadata.name, wanted)
    # So that a Machine that is gone meanwhile is not made again.
    made["metadata"]["uid"] = machine.metadata.uid
    return made


def _machine(machine_set: MachineSet, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "name": name,
        "namespace": machine_set.metadata.namespace,
        "labels": labels_of(machine_set),
        "finalizers": [MACHINE_FINALIZER],
        "ownerReferences": [owner_reference(machine_set, controller=True)],
    }
    if found := annotations_of(machine_set):
        meta["annotations"] = found
    resource = Machine.__resource__
    return {**resource.type_meta, "metadata": meta, "spec": spec}


def carried(machine_set: MachineSet) -> str:
    """Stands for everything that living Machines take over: another value, another intent."""
    template: dict[str, Any] = wire(machine_set.spec.template.spec)
    values = [labels_of(machine_set), annotations_of(machine_set), {name: template.get(name) for name in IN_PLACE}]
    return hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()


def holds(machine: Machine, machine_set: MachineSet) -> bool:
    """Whether a Machine has all that is carried over. What was taken away since can't be seen on it."""
    meta = machine.metadata
    if any(meta.labels.get(key) != value for key, value in labels_of(machine_set).items()):
        return False
    if any(meta.annotations.get(key) != value for key, value in annotations_of(machine_set).items()):
        return False
    spec: dict[str, Any] = wire(machine.spec)
    template: dict[str, Any] = wire(machine_set.spec.template.spec)
    return all(_covers(spec.get(name), template.get(name)) for name in IN_PLACE)


def _covers(held: Any, wanted: Any) -> bool:
    """Admission may have filled in more than was asked for."""
    if isinstance(wanted, Mapping):
        return isinstance(held, Mapping) and all(_covers(held.get(key), value) for key, value in wanted.items())
    return wanted is None or bool(held == wanted)


def timeouts_patch(machine_set: MachineSet, machine: Machine) -> dict[str, Any]:
    """For a Machine being deleted only how long it may take counts: so a stuck drain can be given an end."""
    wanted: dict[str, Any] = wire(machine_set.spec.template.spec.deletion)
    held: dict[str, Any] = wire(machine.spec.deletion)
    changed = {name: value for name, value in wanted.items() if held.get(name) != value}
    return {"metadata": {"uid": machine.metadata.uid}, "spec": {"deletion": changed}} if changed else {}
