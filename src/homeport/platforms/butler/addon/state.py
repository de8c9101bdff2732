"""What TenantAddons and ManagementAddons report, from their ClusterAddon. No I/O."""

from __future__ import annotations

from typing import Literal, NamedTuple

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1.addon import ManagementAddonStatus, TenantAddonStatus
from homeport.api.butler.v1alpha1.part import HelmReleaseStatus
from homeport.machinery import condition
from homeport.runtime.outcome import Wait

CLUSTER, DEPENDENCIES, INSTALLED, HEALTHY = "ClusterReady", "DependenciesMet", "Installed", "Healthy"
PENDING, DEGRADED, DELETING = "Pending", "Degraded", "Deleting"
_CLUSTER_REASONS = ("ClusterNotFound", "ClusterDeleting", "WaitingForCluster")
_DEPENDENCY_REASONS = ("DependencyNotFound", "WaitingForDependency", "DependencyCycle")
_PHASES = ("Installing", "Installed", "Upgrading", "Degraded", "Failed", "Deleting")
_FAILED = (
    "UnknownAddon",
    "InvalidConfiguration",
    "ValidationFailed",
    "DependencyCycle",
    "NameTaken",
    "NotAdmitted",
    "NotGuarded",
)


Status = TenantAddonStatus | ManagementAddonStatus


class Verdict(NamedTuple):
    kind: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def waiting_phase(status: Status, reason: str) -> str:
    """Of an add-on whose ClusterAddon could not be written."""
    if reason in _FAILED:
        return "Failed"
    return DEGRADED if status.installed_version else PENDING


def put_child(status: Status, child: ClusterAddon) -> None:
    held = child.status
    status.phase = held.phase if held.phase in _PHASES else waiting_phase(status, "")
    status.installed_version = held.version
    release = held.release
    status.helm_release = (
        HelmReleaseStatus(
            name=release.name,
            namespace=release.namespace,
            version=held.version,
            revision=release.revision,
            status=release.status,
        )
        if release.name
        else None
    )


def is_current(child: ClusterAddon) -> bool:
    return child.status.observed_generation >= child.metadata.generation


def wait_of(child: ClusterAddon) -> Wait | None:
    """None: it is installed as written, and works."""
    found = condition.find(child.status.conditions, "Ready") or {}
    if child.spec.paused:
        return Wait("Paused", "spec.paused is true: the add-on stays as it is")
    if not is_current(child) or not found:
        return Wait("Installing", "the add-on is about to be installed")
    if found.get("status") == "True" and child.status.phase != "Paused":
        return None
    message = str(found.get("message") or "")
    return Wait(str(found.get("reason") or "Installing"), message, warning=child.status.phase == "Failed")


def verdicts(child: ClusterAddon | None, wait: Wait | None) -> list[Verdict]:
    """The conditions besides Ready."""
    reason, message = (wait.reason, wait.message) if wait is not None else ("", "")
    cluster = reason not in _CLUSTER_REASONS
    dependencies = reason not in _DEPENDENCY_REASONS
    installed = condition.find(child.status.conditions, INSTALLED) if child is not None else None
    done = bool(installed and installed.get("status") == "True")
    phase = child.status.phase if child is not None else ""
    return [
        Verdict(CLUSTER, "True", "ClusterReady") if cluster else Verdict(CLUSTER, "False", reason, message),
        Verdict(DEPENDENCIES, "True", "DependenciesMet")
        if dependencies and cluster
        else Verdict(DEPENDENCIES, "Unknown" if dependencies else "False", reason, message),
        Verdict(INSTALLED, "True", "Installed")
        if done
        else Verdict(INSTALLED, "False", reason or "Installing", message),
        Verdict(HEALTHY, "True", "Healthy")
        if wait is None
        else Verdict(HEALTHY, "False" if phase in ("Degraded", "Failed") else "Unknown", reason, message),
    ]
