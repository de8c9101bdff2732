"""Definitions for clusters of others without our webhooks, where nothing converts: they serve the stored version alone.

Without a conversion webhook kube-apiserver serves what it stores under every version's name: a read and a write in
another version destroys the object. So there is only one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

# Templates whose change our admission refuses. Where that is not asked, kube-apiserver refuses it by a schema rule.
_IMMUTABLE = (
    "KubevirtClusterTemplate",
    "KubevirtMachineTemplate",
    "NutanixMachineTemplate",
    "NutanixClusterTemplate",
    "KubeadmControlPlaneTemplate",
    "K0sControlPlaneTemplate",
    "K0smotronControlPlaneTemplate",
    "StewardControlPlaneTemplate",
    "KamajiControlPlaneTemplate",
    "RemoteMachineTemplate",
    "RemoteClusterTemplate",
)


def stored_alone(definition: Mapping[str, Any]) -> dict[str, Any]:
    spec = definition["spec"]
    stored = [version for version in immutable(spec) if version["storage"]]
    served = {version["name"] for version in stored}
    meta = definition["metadata"]
    labels = {name: value for name, value in meta.get("labels", {}).items() if _names(name, value, served)}
    metadata = {**meta, **({"labels": labels} if labels else {})}
    return {**definition, "metadata": metadata, "spec": {**spec, "versions": stored}}


def immutable(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The versions of a definition; those of a template with a rule that keeps it as it is."""
    versions = list(spec["versions"])
    return [_immutable(each) for each in versions] if spec["names"]["kind"] in _IMMUTABLE else versions


def _immutable(version: dict[str, Any]) -> dict[str, Any]:
    version = copy.deepcopy(version)
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    template = properties["spec"]["properties"]["template"]["properties"]["spec"]
    message = "immutable: Machines may already use it; create a template with another name and refer to that"
    rules = template.setdefault("x-kubernetes-validations", [])
    rules.append({"rule": "self == oldSelf", "message": message, "reason": "FieldValueForbidden"})
    return version


def _names(label: str, value: str, served: set[str]) -> bool:
    """A label such as `cluster.x-k8s.io/v1beta1: v1beta1` says which versions keep to a contract."""
    is_contract = label.startswith("cluster.x-k8s.io/v1")
    return not is_contract or bool(served & set(value.split("_")))
