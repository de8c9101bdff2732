"""What a ClusterDeployment reports: its conditions, and Ready from all of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

TEMPLATE = "TemplateReady"
CHART = "HelmChartReady"
CREDENTIAL = "CredentialReady"
PREDECLARED = "PredeclaredSecretsExist"
AUTHENTICATION = "ClusterAuthenticationReady"
AUDIT = "ClusterAuditPolicyReady"
ADDRESSES = "ClusterIPAMClaimReady"
RELEASE = "HelmReleaseReady"
SUMMARY = "CAPIClusterSummary"
SERVICES = "ServicesInReadyState"
DELETING = "Deleting"
CLOUD = "CloudResourcesDeletedCondition"
PAUSED = "Paused"
DATA = "DataSourceReady"
RENAMED = "HelmChartNameChanged"  # for information
READY = "Ready"

SUCCEEDED, FAILED, PROGRESSING = "Succeeded", "Failed", "Progressing"
READY_MESSAGE = "Object is ready"
OPTIONAL = frozenset({ADDRESSES, AUTHENTICATION, AUDIT, RENAMED})  # reported only if the spec asks for it
# What the Cluster reports, in the order in which a cluster comes up.
_SUMMARISED = (
    "TopologyReconciled",
    "InfrastructureReady",
    "NetworkPluginReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "ControlPlaneMachinesReady",
    "WorkersAvailable",
    "WorkerMachinesReady",
    "RemoteConnectionProbe",
)
_PREFIX = re.compile(r"^(?:\w+: )?(?:[A-Z]\w+ [\w.-]+: (?:\* )?)*(?:\w+: )?")  # which condition of which object says so
_SUBJECT = re.compile(r"; (?=(?:Machine|[A-Z]\w+Template) [\w.-]+: )")
_STAGE = re.compile(r"(?:^|: )(BootstrapConfigReady|InfrastructureReady|NodeHealthy): ")  # of a Machine, in its order
_NEW_MACHINE = re.compile(r"\bMachine [\w.-]+: ")
_INFRASTRUCTURE = "waiting for the infrastructure of Cluster"
# What goes wrong while a cluster comes up is normal for this long.
PATIENCE_SECONDS = 1800.0
Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition of the ClusterDeployment. `error`: somebody has to change something, or it has lasted too long."""

    kind: str
    status: Truth = "True"
    reason: str = SUCCEEDED
    message: str = ""
    error: bool = False

    @property
    def good(self) -> bool:
        return self.status == "True"


def good(kind: str, message: str = "") -> Finding:
    return Finding(kind, message=message)


def failed(kind: str, message: str) -> Finding:
    return Finding(kind, "False", FAILED, message, error=True)


def progressing(kind: str, message: str) -> Finding:
    return Finding(kind, "False", PROGRESSING, message)


def unknown(kind: str, message: str = "") -> Finding:
    return Finding(kind, "Unknown", PROGRESSING, message)


def ready_of(findings: Sequence[Finding]) -> Finding:
    """Errors first, then what is still going on."""
    for level in (
        [each for each in findings if not each.good and each.error],
        [each for each in findings if each.status == "False"],
        [each for each in findings if each.status == "Unknown"],
    ):
        if level:
            # What is installed in a cluster waits for the cluster.
            causing = [each for each in level if each.kind != SERVICES] or level
            said = "; ".join(dict.fromkeys(each.message for each in causing if each.message))
            reason = FAILED if level[0].error else PROGRESSING
            return Finding(READY, "False", reason, said or level[0].kind, error=level[0].error)
    return Finding(READY, message=READY_MESSAGE)


def summary_of(cluster: Cluster, now: float, workers: int | None = None) -> Finding:
    """The conditions of the Cluster in one. What does not get better in half an hour is an error.

    `workers`: how many there should be; None if that is not known.
    """
    held = (condition.find(cluster.status.conditions, kind) for kind in _SUMMARISED)
    open_ = [each for each in held if each is not None and each.get("status") != "True"]
    if not open_:
        waits = _pending(cluster, workers)
        return progressing(SUMMARY, waits) if waits else good(SUMMARY, "The cluster is ready")
    messages = causes(open_)
    times = [parse_time(str(each["lastTransitionTime"])) for each in open_ if each.get("lastTransitionTime")]
    since = max(times, default=now)
    late = now - since > PATIENCE_SECONDS
    return Finding(SUMMARY, "False", FAILED if late else PROGRESSING, "; ".join(messages), error=late)


def _pending(cluster: Cluster, workers: int | None) -> str:
    """Conditions that are True may be older than the last change: what the Cluster does not report on yet."""
    generation = cluster.metadata.generation
    if not condition.find(cluster.status.conditions, "Available"):
        return "the Cluster has not reported yet"
    reconciled = condition.find(cluster.status.conditions, "TopologyReconciled") or {}
    if int(reconciled.get("observedGeneration") or 0) < generation or cluster.status.observed_generation < generation:
        return "the last change is being carried out"
    found = cluster.status.workers
    counts = (found.replicas, found.ready_replicas, found.up_to_date_replicas)
    if workers is not None and any((count or 0) != workers for count in counts):
        there, ready, new = (count or 0 for count in counts)
        return f"{workers} workers desired: {there} exist, {ready} are ready, {new} are up to date"
    return ""


_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


def nodes_of(nodes: Iterable[Mapping[str, Any]]) -> str:
    """What keeps Nodes from being used that the Cluster does not report; '' if there is nothing."""
    found = sorted(
        str(each["metadata"]["name"])
        for each in nodes
        if any(taint.get("key") == _UNINITIALIZED for taint in (each.get("spec") or {}).get("taints") or ())
    )
    if not found:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"{len(found)} Nodes have the taint {_UNINITIALIZED} ({', '.join(found[:3])}{more}), so that no Pods start: "
        "their cloud controller manager does not work. If the cluster has one of its own, such as the chart "
        "nutanix-cloud-controller-manager, give it credentials or remove it: Homeport runs one by default"
    )


def causes(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the conditions say, each cause once, without what only follows from another one."""
    kinds = {str(each["type"]) for each in conditions}
    said: list[str] = []
    seen: set[str] = set()
    for each in conditions:
        if _follows(str(each["type"]), kinds):
            continue
        fresh = []
        for piece in _first_stages(_pieces(str(each.get("message") or "").strip() or str(each.get("reason") or ""))):
            if _INFRASTRUCTURE in piece and "InfrastructureReady" in kinds and each["type"] != "InfrastructureReady":
                continue
            core = _PREFIX.sub("", piece)
            if core not in seen:
                fresh.append(piece)
            seen.add(core)
        if fresh:
            said.append(f"{each['type']}: {'; '.join(fresh)}")
    return said


def _follows(kind: str, others: set[str]) -> bool:
    """Whether the condition only repeats what one of the others says."""
    if kind == "RemoteConnectionProbe":
        return len(others) > 1
    if kind == "ControlPlaneInitialized":
        return bool(others & {"InfrastructureReady", "ControlPlaneAvailable", "ControlPlaneMachinesReady"})
    # Workers wait for the infrastructure and the control plane.
    workers = kind in ("WorkersAvailable", "WorkerMachinesReady")
    return workers and bool(others & {"InfrastructureReady", "ControlPlaneInitialized"})


def _first_stages(pieces: list[str]) -> list[str]:
    """A Machine without bootstrap data has no VM, and one without a VM has no Node: the first of these counts."""
    found, known = [], False
    for piece in pieces:
        known = known and _NEW_MACHINE.search(piece) is None
        stage = _STAGE.search(piece) is not None
        if not (stage and known):
            found.append(piece)
        known = known or stage
    return found


def _pieces(text: str) -> list[str]:
    """One for each line, Machine and template. A line that ends in a colon tells what those below it are about."""
    found, about = [], ""
    for line in text.splitlines():
        bare = line.strip().removeprefix("* ").strip()
        if bare.endswith(":"):
            about = f"{bare} "
        elif bare:
            found += [each.replace(": * ", ": ") for each in _SUBJECT.split(f"{about}{bare}")]
            about = ""  # told once
    return found or [text]


def addons_of(addons: Iterable[ClusterAddon], wanted: Sequence[str]) -> tuple[int, int, list[str]]:
    """How many of the ClusterAddons that the cluster gets are ready, how many there are, what the others wait for."""
    found = {each.metadata.name: each for each in addons}
    ready, said = 0, []
    for name in wanted:
        addon = found.get(name)
        held = condition.find(addon.status.conditions, "Ready") if addon is not None else None
        if held is not None and held.get("status") == "True":
            ready += 1
        else:
            why = str((held or {}).get("message") or "is not installed yet")
            said.append(f"{name}: {why}")
    return ready, len(wanted), said
