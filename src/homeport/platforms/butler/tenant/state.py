"""What a tenant cluster is, from its objects: conditions, phase, counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1.tenantcluster import ObservedAddon
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.capi.version import is_valid, same
from homeport.machinery import condition
from homeport.platforms.butler.tenant.name import ADDON_LABEL

INFRASTRUCTURE = "InfrastructureReady"
CONTROL_PLANE = "ControlPlaneReady"
WORKERS = "WorkersReady"
ADDONS = "AddonsReady"
PROVIDER = "ProviderReady"
ACCESS = "ProviderAccessGranted"
IMAGE = "ImageReady"
NETWORK = "NetworkReady"
QUOTA = "QuotaSatisfied"
READY = "Ready"

_SHOWN = 3
_ADDON_STATES = {
    "Pending": "Pending",
    "Installing": "Installing",
    "Upgrading": "Installing",
    "Installed": "Healthy",
    "Degraded": "Degraded",
    "Failed": "Failed",
    "Paused": "Pending",
    "Deleting": "Pending",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition. `reason` '': it is True. `fatal`: somebody has to change something before it can be."""

    kind: str
    reason: str = ""
    message: str = ""
    fatal: bool = True

    @property
    def good(self) -> bool:
        return not self.reason


def put_finding(obj: Any, finding: Finding, now: str) -> None:
    """Among the conditions of the object, besides Ready."""
    obj.status.conditions = condition.put(
        obj.status.conditions,
        finding.kind,
        "True" if finding.good else "False",
        finding.reason or finding.kind,
        finding.message,
        now=now,
        generation=obj.metadata.generation,
    )


def infrastructure_ready(cluster: Cluster) -> Finding:
    found = condition.find(cluster.status.conditions, "InfrastructureReady") or {}
    if found.get("status") == "True" or cluster.status.initialization.infrastructure_provisioned:
        return Finding(INFRASTRUCTURE)
    return Finding(INFRASTRUCTURE, _reason(found, "Provisioning"), _said(found, "the infrastructure is being prepared"))


def control_plane_ready(cluster: Cluster, version: str, observed: str) -> Finding:
    """`observed`: the version that the control plane serves."""
    found = condition.find(cluster.status.conditions, "ControlPlaneAvailable") or {}
    if found.get("status") != "True":
        why = _said(found, "the control plane is starting")
        return Finding(CONTROL_PLANE, _reason(found, "Provisioning"), why)
    if not at_version(observed, version):
        return Finding(
            CONTROL_PLANE, "Upgrading", f"the control plane serves {observed or 'no version yet'}: {version} is next"
        )
    return Finding(CONTROL_PLANE)


def at_version(observed: str, version: str) -> bool:
    return is_valid(observed) and same(observed, version)


def workers_ready(deployments: Sequence[MachineDeployment], wanted: int) -> Finding:
    """The message has what the Machines report: the cause is of use on the user's own object."""
    for each in deployments:
        spec, status = each.spec, each.status
        count = spec.replicas or 0
        current = (status.observed_generation or 0) >= each.metadata.generation
        ready, fresh, all_of_them = status.ready_replicas or 0, status.up_to_date_replicas or 0, status.replicas or 0
        if current and ready == fresh == all_of_them == count:
            continue
        reason = "RollingOut" if current and fresh < count and ready >= count > 0 else "WaitingForWorkers"
        head = f"{each.metadata.name}: {ready} of {count} workers are ready, {fresh} are up to date"
        found = condition.find(status.conditions, "MachinesReady") or {}
        cause = str(found.get("message") or "") if found.get("status") != "True" else ""
        return Finding(WORKERS, reason, "\n".join(filter(None, [head, cause])))
    if len(deployments) < wanted:
        return Finding(WORKERS, "Provisioning", "the workers are being created")
    return Finding(WORKERS)


def addons_ready(addons: Sequence[ClusterAddon], wanted: Sequence[str]) -> Finding:
    """`wanted`: names of the ClusterAddons."""
    known = {each.metadata.name: each for each in addons}
    missing = [name for name in wanted if name not in known]
    waiting = [each for name in wanted if (each := known.get(name)) is not None and not addon_ready(each)]
    leaving = [each for each in addons if each.metadata.name not in wanted]
    if not missing and not waiting and not leaving:
        return Finding(ADDONS)
    lines = [_addon_line(each) for each in waiting[:_SHOWN]]
    lines += [f"{each.metadata.name} is being removed" for each in leaving[:_SHOWN]]
    total = len(wanted)
    head = f"{total - len(missing) - len(waiting)} of {total} add-ons are ready"
    failed = any(each.status.phase == "Failed" for each in waiting)
    return Finding(ADDONS, "AddonFailed" if failed else "Installing", "\n".join([head, *lines]))


def addon_ready(addon: ClusterAddon) -> bool:
    current = addon.status.observed_generation >= addon.metadata.generation
    return current and condition.is_true(addon.status.conditions, "Ready") and not addon.metadata.deletion_timestamp


def _addon_line(addon: ClusterAddon) -> str:
    found = condition.find(addon.status.conditions, "Ready") or {}
    return f"{addon.spec.addon or addon.metadata.name}: {found.get('message') or found.get('reason') or 'not started'}"


def observed_addons(addons: Sequence[ClusterAddon]) -> list[ObservedAddon]:
    return [
        ObservedAddon(
            name=each.metadata.labels.get(ADDON_LABEL) or each.metadata.name,
            version=each.status.version or each.status.target_version,
            status=_ADDON_STATES.get(each.status.phase, "Pending"),
            managed_by="butler",
            message="" if addon_ready(each) else _addon_line(each),
        )
        for each in sorted(addons, key=lambda each: each.metadata.name)
    ]


def phase_of(findings: Mapping[str, bool], *, deleting: bool, failed: bool, created: bool, before: str) -> str:
    """`findings`: which conditions are True. `before`: a cluster that was Ready is Updating until it is so again."""
    if deleting:
        return "Deleting"
    if findings.get(READY):
        return "Ready"
    if failed:
        return "Failed"
    if before in ("Ready", "Updating"):
        return "Updating"
    if not created:
        return "Pending"
    return "Installing" if findings.get(CONTROL_PLANE) else "Provisioning"


def _reason(found: Mapping[str, Any], otherwise: str) -> str:
    return str(found.get("reason") or otherwise)


def _said(found: Mapping[str, Any], otherwise: str) -> str:
    return str(found.get("message") or otherwise)
