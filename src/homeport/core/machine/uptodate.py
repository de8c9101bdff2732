"""Whether a Machine is what its MachineDeployment asks for today. Pure.

Compared are the templates of the MachineSet and of the MachineDeployment, which is what rollouts go by. What is
carried over to living Machines (labels, annotations, timeouts, gates, taints) never makes one outdated.
"""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachineSet, MachineSpec
from homeport.capi.name import REVISION, TEMPLATE_SUFFIX, UPDATE_IN_PROGRESS, Reason
from homeport.capi.version import is_at
from homeport.core.verdict import Verdict
from homeport.runtime.clock import parse_time


def up_to_date(
    machine: Machine, machine_set: MachineSet | None, deployment: MachineDeployment | None, now: float
) -> Verdict | None:
    """None: unknown here; the Machine's owner sets the condition."""
    if machine_set is None or deployment is None:
        return None
    wrong = differences(machine_set.spec.template.spec, deployment.spec.template.spec)
    after = deployment.spec.rollout.after
    created = machine_set.metadata.creation_timestamp
    if after and created and parse_time(after) <= now and parse_time(created) < parse_time(after):
        wrong.append(f"spec.rollout.after of MachineDeployment {deployment.metadata.name} has passed")
    if wrong:
        return Verdict("False", Reason.NOT_UP_TO_DATE, "\n".join(f"* {each}" for each in wrong))
    if UPDATE_IN_PROGRESS in machine.metadata.annotations:
        return Verdict("False", Reason.UPDATING, "* it is being updated in place")
    kubelet = machine.status.node_info.kubelet_version
    if kubelet and machine.spec.version and not is_at(kubelet, machine.spec.version):
        return Verdict("False", Reason.UPDATING, f"* the kubelet is {kubelet}, {machine.spec.version} is desired")
    return Verdict("True", Reason.UP_TO_DATE)


def differences(current: MachineSpec, wanted: MachineSpec) -> list[str]:
    found: list[str] = []
    if current.version != wanted.version:
        found.append(f"Version {current.version}, {wanted.version} required")
    if current.bootstrap != wanted.bootstrap:
        kind = current.bootstrap.config_ref.kind if current.bootstrap.config_ref else "spec.bootstrap.dataSecretName"
        found.append(f"{kind.removesuffix(TEMPLATE_SUFFIX)} is not up-to-date")
    if current.infrastructure_ref != wanted.infrastructure_ref:
        kind = current.infrastructure_ref.kind if current.infrastructure_ref else "spec.infrastructureRef"
        found.append(f"{kind.removesuffix(TEMPLATE_SUFFIX)} is not up-to-date")
    if current.failure_domain != wanted.failure_domain:
        found.append(f"Failure domain {current.failure_domain}, {wanted.failure_domain} required")
    return found


def outdated(machine_set: MachineSet | None, deployment: MachineDeployment | None) -> bool:
    """The Node is better left alone by new work: its Machine belongs to an older revision."""
    if machine_set is None or deployment is None:
        return False
    return _revision(machine_set) < _revision(deployment)


def _revision(obj: MachineSet | MachineDeployment) -> int:
    text = obj.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdigit() else 0
