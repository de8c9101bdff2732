"""What is reported about services: the state of each one from its ClusterAddon, and counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from homeport.addons.peers import is_ready
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import ServiceTemplate
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.api.k0rdent.v1beta1.service import ServiceState
from homeport.machinery import condition

DEPLOYED, PROVISIONING, FAILED = "Deployed", "Provisioning", "Failed"
PENDING, DELETING, DELETED = "Pending", "Deleting", "Deleted"
SHOWN = 5
# What waiting alone does not mend.
_FAILURES = frozenset(
    {
        "ReleaseFailed",
        "ObjectsFailed",
        "Timeout",
        "ChartNotAvailable",
        "ObjectNotOwned",
        "DriftRepeats",
        "InvalidValues",
        "InvalidTemplate",
        "InvalidManifest",
        "InvalidVersion",
        "InvalidCredentials",
        "SourceNotFound",
    }
)
_PHASES = {"Pending": PENDING, "Failed": FAILED, "Deleting": DELETING}


def type_of(template: ServiceTemplate | None) -> str:
    if template is not None and template.spec.kustomize is not None:
        return "Kustomize"
    return "Resource" if template is not None and template.spec.resources is not None else "Helm"


def judge(addon: ClusterAddon | None) -> tuple[str, str]:
    """State and message of a service, as its ClusterAddon reports."""
    if addon is None:
        return PENDING, "not installed yet"
    if is_ready(addon):
        return DEPLOYED, ""
    found = condition.find(addon.status.conditions, "Ready") or {}
    said = str(found.get("message") or "")
    if addon.metadata.deletion_timestamp:
        return DELETING, said
    if addon.status.observed_generation < addon.metadata.generation or not found:
        return PROVISIONING, ""
    if str(found.get("reason")) in _FAILURES:
        return FAILED, said or str(found.get("reason"))
    return _PHASES.get(addon.status.phase, PROVISIONING), said or str(found.get("reason") or "")


def render_state(
    service: ServiceWithValues,
    kind: str,
    state: str,
    message: str,
    addon: ClusterAddon | None,
    before: ServiceState | None,
    now: str,
) -> ServiceState:
    """`version` is what the cluster has: it changes when the service is deployed."""
    held = "" if before is None else before.version
    same = before is not None and before.state == state
    return ServiceState(
        type=kind,
        name=service.name,
        namespace=service.namespace,
        template=service.template,
        version=service.version if state == DEPLOYED else held,
        state=state,
        failure_message=message,
        last_state_transition_time=before.last_state_transition_time if same and before is not None else now,
        last_deployed_hash=addon.status.digest if addon is not None and state == DEPLOYED else "",
        conditions=list(addon.status.conditions) if addon is not None else [],
    )


def is_done(state: ServiceState) -> bool:
    return state.state in (DEPLOYED, DELETED)


def count(states: Iterable[ServiceState]) -> str:
    listed = list(states)
    return f"{sum(is_done(each) for each in listed)}/{len(listed)}"


def told(states: Sequence[ServiceState]) -> str:
    """What the services that are not deployed wait for, or why they failed."""
    open_ = [each for each in states if not is_done(each)]
    lines = [
        f"{each.namespace}/{each.name}: {each.state}"
        + (f": {_line(each.failure_message)}" if each.failure_message else "")
        for each in open_[:SHOWN]
    ]
    more = [f"... ({len(open_) - SHOWN} more)"] if len(open_) > SHOWN else []
    return "; ".join([*lines, *more])


def _line(text: str) -> str:
    return " ".join(text.split())


def summary(states: Sequence[ServiceState]) -> str:
    """`1/2: default/web: Failed: ...`; `2/2` if all are deployed."""
    said = told(states)
    return f"{count(states)}: {said}" if said else count(states)


def settled(states: Sequence[ServiceState], before: Iterable[ServiceState]) -> list[ServiceState]:
    """With the time at which each one came into its state."""
    known = by_place(before)
    made = []
    for each in states:
        held = known.get((each.namespace, each.name))
        if held is not None and held.state == each.state and held.last_state_transition_time:
            each = msgspec.structs.replace(each, last_state_transition_time=held.last_state_transition_time)
        made.append(each)
    return made


def by_place(states: Iterable[ServiceState]) -> Mapping[tuple[str, str], ServiceState]:
    return {(each.namespace, each.name): each for each in states}
