"""Whether Machines may be made now, as far as the control plane is concerned. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from homeport.api.cluster.v1beta2 import Cluster, MachineSet
from homeport.capi import version as versions
from homeport.capi.contract import Contract, control_plane
from homeport.capi.name import BOOTSTRAP_GROUP, SKIP_PREFLIGHT_CHECKS

ALL = "All"
STABLE = "ControlPlaneIsStable"
KUBERNETES_SKEW = "KubernetesVersionSkew"
KUBEADM_SKEW = "KubeadmVersionSkew"
CONTROL_PLANE_SKEW = "ControlPlaneVersionSkew"
CHECKS = (ALL, KUBEADM_SKEW, KUBERNETES_SKEW, STABLE, CONTROL_PLANE_SKEW)

UPGRADE_STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
_MINORS = 3  # a kubelet may be so much older than the API server


class ControlPlane(NamedTuple):
    object: Mapping[str, Any]
    contract: Contract

    def __str__(self) -> str:
        return f"{self.object.get('kind', 'control plane')} {self.object['metadata']['name']}"


def parse_skipped(text: str) -> set[str]:
    return {part.strip() for part in text.split(",") if part.strip()}


def find_skipped(machine_set: MachineSet, bootstrap_template: Mapping[str, Any] | None) -> set[str]:
    """The set says it, or the template of its bootstrap configs does for all sets that use it."""
    text = machine_set.metadata.annotations.get(SKIP_PREFLIGHT_CHECKS, "")
    if not text and bootstrap_template is not None:
        annotations = (bootstrap_template.get("metadata") or {}).get("annotations") or {}
        text = annotations.get(SKIP_PREFLIGHT_CHECKS, "")
    return parse_skipped(text)


def find_failures(
    machine_set: MachineSet, cluster: Cluster, plane: ControlPlane | None, skipped: set[str]
) -> list[str]:
    """Why no Machine is made now; empty: nothing is in the way."""
    if plane is None or ALL in skipped:
        return []
    wanted = control_plane.version(plane.object)
    if not wanted:
        return []  # it does not count in versions: nothing can be compared
    found = [] if STABLE in skipped else [_stable(cluster, plane, wanted)]
    version = machine_set.spec.template.spec.version
    if version:
        if KUBERNETES_SKEW not in skipped:
            found.append(_kubernetes_skew(version, wanted))
        if KUBEADM_SKEW not in skipped:
            found.append(_kubeadm_skew(machine_set, version, wanted))
        if CONTROL_PLANE_SKEW not in skipped:
            found.append(_control_plane_skew(cluster, version, wanted))
    return [text for text in found if text]


def _stable(cluster: Cluster, plane: ControlPlane, wanted: str) -> str:
    goal = cluster.spec.topology.version
    step = cluster.metadata.annotations.get(UPGRADE_STEP, "")
    if goal and wanted not in (goal, step):
        return f"{plane} is about to be upgraded to {step or goal} ({STABLE})"
    if control_plane.is_provisioning(plane.object, plane.contract):
        return f"{plane} is not up yet ({STABLE})"
    if control_plane.is_upgrading(plane.object, plane.contract):
        return f"{plane} is being upgraded to {wanted} ({STABLE})"
    return ""


def _kubernetes_skew(version: str, wanted: str) -> str:
    ahead = versions.minor_distance(wanted, version)
    if ahead > 0:
        return f"version {version} is newer than the control plane's {wanted} ({KUBERNETES_SKEW})"
    if -ahead > _MINORS:
        text = f"version {version} is more than {_MINORS} minor versions older than the control plane's {wanted}"
        return f"{text} ({KUBERNETES_SKEW})"
    return ""


def _kubeadm_skew(machine_set: MachineSet, version: str, wanted: str) -> str:
    ref = machine_set.spec.template.spec.bootstrap.config_ref
    if ref is None or (ref.api_group, ref.kind) != (BOOTSTRAP_GROUP, "KubeadmConfigTemplate"):
        return ""
    if versions.minor_distance(version, wanted) == 0:
        return ""
    return f"kubeadm of {version} can't join a control plane of {wanted}: the minor versions differ ({KUBEADM_SKEW})"


def _control_plane_skew(cluster: Cluster, version: str, wanted: str) -> str:
    if not cluster.spec.topology.version or version == wanted:
        return ""
    return f"version {version} will be set to the control plane's {wanted} in a moment ({CONTROL_PLANE_SKEW})"
