"""What a topology sets on a control plane, by the contract: the writing half of `contract.control_plane`.

All functions change the object that is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.capi.contract import Contract
from homeport.machinery.gvk import parse_api_version

Json = dict[str, Any]

# How long the steps of a deletion may take: the name of each in the old contract.
_TIMEOUTS = {
    "nodeDrainTimeoutSeconds": "nodeDrainTimeout",
    "nodeVolumeDetachTimeoutSeconds": "nodeVolumeDetachTimeout",
    "nodeDeletionTimeoutSeconds": "nodeDeletionTimeout",
}
# Control planes that promise the new contract and have kept the old reference.
_OLD_REFERENCE = ("K0sControlPlane",)


def put(obj: Json, path: Sequence[str], value: object) -> None:
    *above, last = path
    for name in above:
        below = obj.get(name)
        if not isinstance(below, dict):
            below = obj[name] = {}
        obj = below
    obj[last] = value


def version(control_plane: Json, value: str) -> None:
    put(control_plane, ("spec", "version"), value)


def replicas(control_plane: Json, value: int) -> None:
    put(control_plane, ("spec", "replicas"), value)


def rollout_after(control_plane: Json, contract: Contract, value: str) -> None:
    put(control_plane, ("spec", "rolloutAfter") if contract == "v1beta1" else ("spec", "rollout", "after"), value)


def infrastructure_ref(control_plane: Json, contract: Contract, template: Mapping[str, Any], name: str) -> None:
    """The template of its machines."""
    kind, api_version = str(template["kind"]), str(template["apiVersion"])
    if contract == "v1beta1" or control_plane.get("kind") in _OLD_REFERENCE:
        namespace = control_plane["metadata"]["namespace"]
        ref = {"apiVersion": api_version, "kind": kind, "name": name, "namespace": namespace}
        put(control_plane, ("spec", "machineTemplate", "infrastructureRef"), ref)
    else:
        ref = {"apiGroup": parse_api_version(api_version).group, "kind": kind, "name": name}
        put(control_plane, ("spec", "machineTemplate", "spec", "infrastructureRef"), ref)


def machine_metadata(control_plane: Json, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    """What is given comes over what the template has."""
    held = ((control_plane.get("spec") or {}).get("machineTemplate") or {}).get("metadata") or {}
    made = {
        "labels": {**(held.get("labels") or {}), **labels},
        "annotations": {**(held.get("annotations") or {}), **annotations},
    }
    put(control_plane, ("spec", "machineTemplate", "metadata"), {key: value for key, value in made.items() if value})


def deletion(control_plane: Json, contract: Contract, seconds: Mapping[str, int]) -> None:
    """`seconds` by the names of the new contract."""
    for name, value in seconds.items():
        if contract == "v1beta1":
            put(control_plane, ("spec", "machineTemplate", _TIMEOUTS[name]), f"{value}s")
        else:
            put(control_plane, ("spec", "machineTemplate", "spec", "deletion", name), value)


def machine_list(control_plane: Json, contract: Contract, name: str, values: Sequence[Any]) -> None:
    """`readinessGates` and `taints`."""
    above = ("spec", "machineTemplate") if contract == "v1beta1" else ("spec", "machineTemplate", "spec")
    put(control_plane, (*above, name), list(values))


def drop_empty_endpoint(obj: Json) -> None:
    """An endpoint that templates have by default, and that says nothing, must not overwrite what a provider found."""
    held = (obj.get("spec") or {}).get("controlPlaneEndpoint")
    if not isinstance(held, dict):
        return
    kept = {key: value for key, value in held.items() if not (key in ("host", "port") and not value)}
    if kept:
        obj["spec"]["controlPlaneEndpoint"] = kept
    else:
        del obj["spec"]["controlPlaneEndpoint"]
