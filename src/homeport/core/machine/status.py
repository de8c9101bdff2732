"""A Machine's status, computed from what one loop has seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.contract import bootstrap, infra_machine
from homeport.capi.name import CERTIFICATES_EXPIRY, CONTROL_PLANE_LABEL, UPDATE_IN_PROGRESS, Condition, Reason
from homeport.capi.object import summary
from homeport.capi.object.joined import has_joined
from homeport.core.machine import health
from homeport.core.machine.observed import Observed
from homeport.core.machine.uptodate import up_to_date
from homeport.core.verdict import Verdict, deletion_verdict, mirrored, put_verdict
from homeport.machinery import condition
from homeport.machinery.reading import reads
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait

_LATE_SECONDS = 15 * 60.0
_DEFAULT_GATES = (
    Condition.DELETING,
    Condition.UPDATING,
    Condition.BOOTSTRAP_CONFIG_READY,
    Condition.INFRASTRUCTURE_READY,
    Condition.NODE_HEALTHY,
    Condition.HEALTH_CHECK_SUCCEEDED,
)
_GONE = (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST, Reason.NODE_DELETED, Reason.NODE_DOES_NOT_EXIST)


def report(machine: Machine, seen: Observed, now: float) -> Wait | None:
    """Writes the whole status. Gives a timer where it will change by the passing of time."""
    machine.status.deprecated.v1beta1.conditions = []  # others wrote them, whose cluster we look after now
    put_verdict(machine, Condition.BOOTSTRAP_CONFIG_READY, bootstrap_ready(machine, seen), now)
    put_verdict(machine, Condition.INFRASTRUCTURE_READY, infrastructure_ready(machine, seen), now)
    node = health.node_conditions(machine, seen, now)
    if node is not None:
        put_verdict(machine, Condition.NODE_READY, node[0], now)
        put_verdict(machine, Condition.NODE_HEALTHY, node[1], now)
    put_verdict(machine, Condition.DELETING, deletion_verdict(machine, seen), now)
    put_verdict(machine, Condition.UPDATING, updating(machine), now)
    current = up_to_date(machine, seen.machine_set, seen.deployment, now)
    if current is not None:
        put_verdict(machine, Condition.UP_TO_DATE, current, now)
    put_verdict(machine, Condition.READY, ready(machine, now), now)
    available, timer = _available(machine, now)
    put_verdict(machine, Condition.AVAILABLE, available, now)
    put_verdict(machine, Condition.PAUSED, Verdict("False", Reason.NOT_PAUSED), now)
    machine.status.conditions = summary.ordered(machine.status.conditions)
    _set_certificate_expiry(machine, seen)
    _set_phase(machine, now)
    if seen.trouble is None:
        machine.status.observed_generation = machine.metadata.generation
    return timer


def bootstrap_ready(machine: Machine, seen: Observed) -> Verdict:
    related = seen.bootstrap
    if related.ref is None:
        return Verdict("True", Reason.DATA_SECRET_PROVIDED)
    created = bool(machine.status.initialization.bootstrap_data_secret_created)
    if related.object is not None:
        said = bootstrap.ready(related.object, related.contract)
        return mirrored(said, related, fallback=created, waiting="has not created the bootstrap data yet")
    if related.trouble:
        return Verdict("False" if related.foreign else "Unknown", related.reason, related.trouble)
    if machine.metadata.deletion_timestamp and created:
        return Verdict("False", Reason.OBJECT_DELETED, f"{related} has been deleted")
    return Verdict("False", Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")


def infrastructure_ready(machine: Machine, seen: Observed) -> Verdict:
    related = seen.infrastructure
    provisioned = bool(machine.status.initialization.infrastructure_provisioned)
    if related.object is not None:
        said = infra_machine.ready(related.object, related.contract)
        return mirrored(said, related, fallback=provisioned, waiting="is not provisioned yet")
    if related.trouble:
        return Verdict("False" if related.foreign else "Unknown", related.reason, related.trouble)
    if not provisioned:
        return Verdict("False", Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")
    if machine.metadata.deletion_timestamp:
        return Verdict("False", Reason.OBJECT_DELETED, f"{related} has been deleted")
    return Verdict(
        "False",
        Reason.OBJECT_DELETED,
        f"{related} has been deleted, but the Machine still exists: delete the Machine to replace it",
    )


def updating(machine: Machine) -> Verdict:
    if UPDATE_IN_PROGRESS in machine.metadata.annotations:
        return Verdict("True", Reason.IN_PLACE_UPDATING, "it is being updated in place")
    return Verdict("False", Reason.NOT_UPDATING)


def ready(machine: Machine, now: float) -> Verdict:
    gates = machine.spec.readiness_gates
    negative = {Condition.DELETING, Condition.UPDATING}
    negative |= {gate.condition_type for gate in gates if gate.polarity == "Negative"}
    made = summary.summary(
        machine.status.conditions,
        Condition.READY,
        [*_DEFAULT_GATES, *(gate.condition_type for gate in gates)],
        reasons=summary.READY,
        optional=(Condition.HEALTH_CHECK_SUCCEEDED,),
        priority=_judge(negative, going=bool(machine.metadata.deletion_timestamp)),
        override=_short_deletion(machine, now),
    )
    return Verdict(made["status"], made["reason"], made["message"])


def _judge(negative: set[str], *, going: bool) -> summary.Judge:
    """While a Machine is being deleted, its objects may be gone already: that is not an error."""
    usual = summary.judge(*negative)

    def judged(found: Mapping[str, Any]) -> summary.Priority:
        if going and found["type"] != Condition.DELETING and found["reason"] in _GONE:
            return summary.Priority.INFO
        return usual(found)

    return judged


def _short_deletion(machine: Machine, now: float) -> dict[str, Mapping[str, Any]]:
    """A short message about the deletion: equal messages of many Machines are counted together."""
    found = condition.find(machine.status.conditions, Condition.DELETING)
    if not machine.metadata.deletion_timestamp or found is None:
        return {}
    late = now - parse_time(machine.metadata.deletion_timestamp) > _LATE_SECONDS
    text = f"being deleted{' for more than 15 minutes' if late else ''}: {found['reason']}"
    return {Condition.DELETING: {"message": text}}


def _available(machine: Machine, now: float) -> tuple[Verdict, Wait | None]:
    found = condition.find(machine.status.conditions, Condition.READY)
    if found is None or found["status"] != "True":
        return Verdict("False", Reason.NOT_READY), None
    left = (machine.spec.min_ready_seconds or 0) - (now - parse_time(found["lastTransitionTime"]))
    if left <= 0:
        return Verdict("True", Reason.AVAILABLE), None
    timer = Wait(Reason.WAITING_FOR_MIN_READY_SECONDS, "ready, but not for long enough yet", after=left, quiet=True)
    return Verdict("False", Reason.WAITING_FOR_MIN_READY_SECONDS), timer


def _set_certificate_expiry(machine: Machine, seen: Observed) -> None:
    if CONTROL_PLANE_LABEL not in machine.metadata.labels:
        return
    held = seen.bootstrap.object
    texts = [machine.metadata.annotations.get(CERTIFICATES_EXPIRY)]
    if held is not None:
        texts.append((held.metadata.get("annotations") or {}).get(CERTIFICATES_EXPIRY))
    machine.status.certificates_expiry_date = next((text for text in texts if text and _is_time(text)), None)


def _is_time(text: str) -> bool:
    return reads(parse_time, text)


def phase(machine: Machine) -> str:
    status = machine.status
    if machine.metadata.deletion_timestamp:
        return "Deleting"
    if condition.is_true(status.conditions, Condition.UPDATING):
        return "Updating"
    if has_joined(status.node_ref, status.conditions) and status.initialization.infrastructure_provisioned:
        return "Running"
    if machine.spec.provider_id:
        return "Provisioned"
    if status.initialization.bootstrap_data_secret_created and not status.initialization.infrastructure_provisioned:
        return "Provisioning"
    return status.phase or "Pending"


def _set_phase(machine: Machine, now: float) -> None:
    after = phase(machine)
    if after != machine.status.phase:
        machine.status.phase = after
        machine.status.last_updated = rfc3339(now)
