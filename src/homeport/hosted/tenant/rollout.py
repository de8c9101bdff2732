"""How far a Deployment is, and which state a control plane is in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.capi import version as versions
from homeport.machinery import condition


def is_rolled_out(deployment: Mapping[str, Any]) -> bool:
    """All Pods are of the newest template and available, and no old one is left."""
    spec, status, meta = (deployment.get(each) or {} for each in ("spec", "status", "metadata"))
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < int(meta.get("generation") or 0):
        return False
    counts = [int(status.get(each) or 0) for each in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3


def is_available(deployment: Mapping[str, Any]) -> bool:
    """At least one API server serves."""
    return int((deployment.get("status") or {}).get("availableReplicas") or 0) > 0


def progress(deployment: Mapping[str, Any]) -> str:
    """What a rollout waits for, in words."""
    spec, status, meta = (deployment.get(each) or {} for each in ("spec", "status", "metadata"))
    wanted, available = int(spec.get("replicas", 1)), int(status.get("availableReplicas") or 0)
    updated, all_ = int(status.get("updatedReplicas") or 0), int(status.get("replicas") or 0)
    where = f"Deployment {meta.get('namespace', '')}/{meta.get('name', '')}"
    text = f"{where}: {min(updated, wanted)} of {wanted} Pods are up to date, {available} available"
    if all_ > updated:
        text += f", {all_ - updated} old remaining"
    failed = condition.find(status.get("conditions") or [], "ReplicaFailure")
    if failed is not None and failed.get("status") == "True":
        text += f": {failed.get('message', '')}"
    return text


def refuse_version(installed: str, wanted: str) -> str:
    """Why a control plane can't go from one version to another; '' if it can. Both are valid versions."""
    if not installed:
        return ""
    old, new = versions.parse(installed), versions.parse(wanted)
    if new.key < old.key:
        return f"version {wanted} is older than the installed version {installed}: a downgrade is not possible"
    if new.major != old.major or new.minor > old.minor + 1:
        return (
            f"version {wanted} skips a minor version after the installed version {installed}: upgrade to "
            f"v{old.major}.{old.minor + 1} first"
        )
    return ""


def state_of(
    *, installed: str, wanted: str, replicas: int, rolled_out: bool, available: bool, migrating: bool, limited: bool
) -> str:
    """`status.kubernetesResources.version.status`."""
    if migrating:
        return "Migrating"
    if replicas == 0:
        return "Sleeping"
    if not installed:
        return "Provisioning"
    if not versions.same(installed, wanted):
        return "Upgrading"
    if not available:
        return "NotReady"
    return "WriteLimited" if limited else "Ready"
