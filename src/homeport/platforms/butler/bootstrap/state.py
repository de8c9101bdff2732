"""What a management cluster is, from its objects: conditions, phase, machines. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import MachineRequest
from homeport.api.butler.v1alpha1.clusterbootstrap import BootstrapMachine
from homeport.api.meta import Unstructured
from homeport.machinery import condition
from homeport.platforms.butler.bootstrap.plan import MachinePlan
from homeport.platforms.butler.tenant.state import Finding

PROVIDER = "ProviderReady"
IMAGE = "ImageReady"
MACHINES = "MachinesReady"
TALOS = "TalosConfigured"
CONTROL_PLANE = "ControlPlaneReady"
NODES = "NodesReady"
ADDONS = "AddonsReady"
PLATFORM = "PlatformInstalled"
PIVOTED = "Pivoted"
READY = "Ready"

PENDING, PROVISIONING, CONFIGURING = "Pending", "ProvisioningMachines", "ConfiguringTalos"
STARTING, INSTALLING, PIVOTING = "BootstrappingCluster", "InstallingAddons", "Pivoting"
DONE, FAILED, DELETING = "Ready", "Failed", "Deleting"

# The phase in which a condition is worked for, in this order.
_STEPS = (
    (PROVIDER, PENDING),
    (IMAGE, PENDING),
    (MACHINES, PROVISIONING),
    (TALOS, CONFIGURING),
    (CONTROL_PLANE, STARTING),
)
_SHOWN = 5


def phase_of(true: Mapping[str, bool], *, deleting: bool, failed: bool, pivoting: bool, before: str) -> str:
    """`true`: which conditions are True. `before`: a cluster that was installed once does not look new again."""
    if deleting:
        return DELETING
    if pivoting:
        return DONE if true.get(PIVOTED) else PIVOTING
    if true.get(READY):
        return DONE
    if failed:
        return FAILED
    if before in (DONE, INSTALLING):
        return INSTALLING
    return next((phase for kind, phase in _STEPS if not true.get(kind)), INSTALLING)


def machines_ready(plans: Sequence[MachinePlan], found: Mapping[str, MachineRequest]) -> Finding:
    """Machines that run and have an address."""
    waiting = [each for each in plans if not runs(found.get(each.name))]
    if not waiting:
        return Finding(MACHINES)
    head = f"{len(plans) - len(waiting)} of {len(plans)} machines run"
    lines = [_machine_line(each.name, found.get(each.name)) for each in waiting[:_SHOWN]]
    failed = any(each.status.phase == FAILED for each in found.values())
    return Finding(MACHINES, "MachineFailed" if failed else "WaitingForMachines", "\n".join([head, *lines]))


def runs(request: MachineRequest | None) -> bool:
    """A machine whose provider does not answer at the moment still has its address."""
    return request is not None and bool(request.status.ip_address)


def _machine_line(name: str, request: MachineRequest | None) -> str:
    if request is None:
        return f"{name}: not created yet"
    found = condition.find(request.status.conditions, "Ready") or {}
    said = found.get("message") or found.get("reason") or "not started"
    return f"{name}: {request.status.phase or 'Pending'}: {said}"


def nodes_ready(plans: Sequence[MachinePlan], nodes: Mapping[str, Unstructured]) -> Finding:
    absent = [each.name for each in plans if each.name not in nodes]
    idle = [each.name for each in plans if each.name in nodes and not node_ready(nodes[each.name])]
    if not absent and not idle:
        return Finding(NODES)
    head = f"{len(plans) - len(absent) - len(idle)} of {len(plans)} Nodes are ready"
    lines = [f"{name} has not joined yet" for name in absent[:_SHOWN]]
    lines += [f"{name}: {_why(nodes[name])}" for name in idle[:_SHOWN]]
    return Finding(NODES, "WaitingForNodes", "\n".join([head, *lines]))


def node_ready(node: Unstructured | None) -> bool:
    if node is None:
        return False
    return condition.is_true((node.get("status") or {}).get("conditions") or [], "Ready")


def _why(node: Unstructured) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    found: Mapping[str, Any] = condition.find(conditions, "Ready") or {}
    return str(found.get("message") or "not ready")


def machine_states(
    plans: Sequence[MachinePlan], found: Mapping[str, MachineRequest], nodes: Mapping[str, Unstructured]
) -> list[BootstrapMachine]:
    return [
        BootstrapMachine(
            name=each.name,
            role=each.role,
            phase=request.status.phase or "Pending" if (request := found.get(each.name)) is not None else "Pending",
            ip_address=request.status.ip_address if request is not None else "",
            talos_configured=each.name in nodes,
            ready=runs(request) and node_ready(nodes.get(each.name)),
        )
        for each in plans
    ]
