"""The MachineSets of a MachineDeployment: how they are made, and what is handed down to those that exist. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import MachineDeployment, MachineSet
from homeport.api.meta import wire
from homeport.capi.name import (
    CLUSTER_NAME_LABEL,
    CONVERSION_DATA,
    DEPLOYMENT_NAME_LABEL,
    DESIRED_REPLICAS,
    DISABLE_MACHINE_CREATE,
    MAX_REPLICAS,
    PAUSED,
    REVISION,
    SET_FINALIZER,
    TEMPLATE_HASH_LABEL,
)
from homeport.capi.object.naming import MAX_NAME
from homeport.capi.object.ownership import owner_reference
from homeport.core.machinedeployment.revision import HISTORY, HISTORY_LIMIT, suffix, template_hash
from homeport.core.machineset.machine import IN_PLACE

# Annotations of a MachineDeployment that are about itself; the others are for its sets, too.
_OWN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        CONVERSION_DATA,
        DESIRED_REPLICAS,
        HISTORY,
        HISTORY_LIMIT,
        MAX_REPLICAS,
        PAUSED,
        REVISION,
    }
)


def set_name(deployment: MachineDeployment, revision: int) -> str:
    ending = suffix(deployment, revision)
    return f"{deployment.metadata.name[: MAX_NAME - len(ending) - 1]}-{ending}"


def new_set(deployment: MachineDeployment, revision: int, replicas: int, *, surge: int) -> dict[str, Any]:
    """A MachineSet for the template of today."""
    mark = {TEMPLATE_HASH_LABEL: template_hash(deployment, revision)}
    template: dict[str, Any] = wire(deployment.spec.template)
    template["metadata"] = _template_meta(deployment, mark)
    template["spec"]["clusterName"] = deployment.spec.cluster_name
    selector = dict(deployment.spec.selector)
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **mark}
    annotations = {**handed_annotations(deployment), REVISION: str(revision), **_sizes(deployment, surge)}
    name = set_name(deployment, revision)
    return _set(deployment, name, mark, annotations, template=template, selector=selector, replicas=replicas)


def intent(
    deployment: MachineDeployment,
    machine_set: MachineSet,
    *,
    replicas: int,
    surge: int,
    revision: int,
    history: str,
    current: bool,
) -> dict[str, Any]:
    """The desired state of an existing set: everything that was ever set on it, otherwise the server removes it."""
    held = machine_set.metadata.labels.get(TEMPLATE_HASH_LABEL)
    mark = {TEMPLATE_HASH_LABEL: held} if held else {}
    spec: dict[str, Any] = wire(machine_set.spec)
    wanted: dict[str, Any] = wire(deployment.spec.template.spec)
    kept = {name: value for name, value in spec["template"]["spec"].items() if name not in IN_PLACE}
    template = {
        "metadata": _template_meta(deployment, mark),
        "spec": kept | {name: wanted[name] for name in IN_PLACE if name in wanted},
    }
    annotations = handed_annotations(deployment)
    annotations |= {key: text for key, text in ((REVISION, str(revision or "")), (HISTORY, history)) if text}
    annotations |= _sizes(deployment, surge) if replicas or current else _known_sizes(machine_set)
    if not current and deployment.spec.rollout.strategy.type == "OnDelete":
        annotations[DISABLE_MACHINE_CREATE] = "true"  # what is deleted there is made by the new set
    made = _set(
        deployment,
        machine_set.metadata.name,
        mark,
        annotations,
        template=template,
        selector=machine_set.spec.selector,
        replicas=replicas,
    )
    # So that a set that is gone meanwhile is not made again.
    made["metadata"]["uid"] = machine_set.metadata.uid
    return made


def _known_sizes(machine_set: MachineSet) -> dict[str, str]:
    """Nobody scales a set that is kept to go back to: what it says stays, and costs no write."""
    known = machine_set.metadata.annotations
    return {key: known[key] for key in (DESIRED_REPLICAS, MAX_REPLICAS) if key in known}


def handed_annotations(deployment: MachineDeployment) -> dict[str, str]:
    return {key: text for key, text in deployment.metadata.annotations.items() if key not in _OWN}


def _template_meta(deployment: MachineDeployment, mark: dict[str, str]) -> dict[str, Any]:
    held = deployment.spec.template.metadata
    labels = {**held.labels, CLUSTER_NAME_LABEL: deployment.spec.cluster_name}
    labels |= {DEPLOYMENT_NAME_LABEL: deployment.metadata.name, **mark}
    return {"labels": labels, **({"annotations": dict(held.annotations)} if held.annotations else {})}


def _sizes(deployment: MachineDeployment, surge: int) -> dict[str, str]:
    replicas = deployment.spec.replicas or 0
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + surge)}


def _set(
    deployment: MachineDeployment,
    name: str,
    mark: dict[str, str],
    annotations: dict[str, str],
    *,
    template: dict[str, Any],
    selector: dict[str, Any],
    replicas: int,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "clusterName": deployment.spec.cluster_name,
        "replicas": replicas,
        "selector": selector,
        "template": template,
    }
    for field, value in (("deletion", deployment.spec.deletion), ("machineNaming", deployment.spec.machine_naming)):
        if written := wire(value):
            spec[field] = written
    resource = MachineSet.__resource__
    return {
        **resource.type_meta,
        "metadata": {
            "name": name,
            "namespace": deployment.metadata.namespace,
            "labels": _template_meta(deployment, mark)["labels"],
            "annotations": annotations,
            "finalizers": [SET_FINALIZER],
            "ownerReferences": [owner_reference(deployment, controller=True)],
        },
        "spec": spec,
    }


def digest(body: dict[str, Any]) -> str:
    """Stands for an intent: the same, and nothing has to be said."""
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
