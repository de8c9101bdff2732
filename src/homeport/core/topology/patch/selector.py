"""Which templates the definition of a patch is for."""

from __future__ import annotations

from typing import Literal

from homeport.api.cluster.v1beta2.patch import PatchSelector, PatchSelectorMatch

Role = Literal["infrastructureCluster", "controlPlane", "machineDeployment", "machinePool"]


def selects(selector: PatchSelector, *, api_version: str, kind: str, role: Role, class_name: str = "") -> bool:
    """`class_name` is that of the deployment or pool whose template it is."""
    if (selector.api_version, selector.kind) != (api_version, kind):
        return False
    wanted = selector.match_resources
    if role == "infrastructureCluster":
        return bool(wanted.infrastructure_cluster)
    if role == "controlPlane":
        return bool(wanted.control_plane)
    return any(named(pattern, class_name) for pattern in patterns(wanted, role))


def patterns(wanted: PatchSelectorMatch, role: Role) -> list[str]:
    """Names of classes, in which a `*` may lead or trail."""
    classes = wanted.machine_deployment_class if role == "machineDeployment" else wanted.machine_pool_class
    return [] if classes is None else classes.names


def named(pattern: str, class_name: str) -> bool:
    if pattern.startswith("*") and class_name.endswith(pattern.removeprefix("*")):
        return True
    if pattern.endswith("*") and class_name.startswith(pattern.removesuffix("*")):
        return True
    return pattern == class_name
