"""Whether an object is ready, from the object alone: rolled out, established, bound, complete, or by its conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Health:
    """`failed`: it does not become ready by waiting. Reason and message tell what an object that is not ready lacks."""

    ready: bool
    reason: str = ""
    message: str = ""
    failed: bool = False


READY = Health(True)


def health(obj: Object) -> Health:
    """Judge one object as the server returned it. A kind that has no rule of its own is judged by its conditions."""
    if _metadata(obj).get("deletionTimestamp"):
        return _waits("Terminating", f"{_name(obj)} is being deleted")
    kind = str(obj.get("kind", ""))
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    rule = _RULES.get((group, kind))
    if rule is None:
        return _of_conditions(obj)
    return rule(obj)


def _metadata(obj: Object) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def _spec(obj: Object) -> Mapping[str, Any]:
    return obj.get("spec") or {}


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


def _name(obj: Object) -> str:
    metadata = _metadata(obj)
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind', 'object')} {place}{metadata.get('name', '')}"


def _waits(reason: str, message: str) -> Health:
    return Health(False, reason, message)


def _fails(reason: str, message: str) -> Health:
    return Health(False, reason, message, failed=True)


def _number(values: Mapping[str, Any], field: str, default: int = 0) -> int:
    value = values.get(field)
    return default if value is None else int(value)


def _condition(obj: Object, name: str) -> Mapping[str, Any]:
    conditions = _status(obj).get("conditions")
    if isinstance(conditions, list):
        for condition in conditions:
            if isinstance(condition, Mapping) and condition.get("type") == name:
                return condition
    return {}


def _holds(obj: Object, name: str) -> bool:
    return _condition(obj, name).get("status") == "True"


def _text(condition: Mapping[str, Any], default: str) -> str:
    return str(condition.get("message") or condition.get("reason") or default)


def _unobserved(obj: Object) -> Health | None:
    """Not ready while the status describes an older generation."""
    generation = _number(_metadata(obj), "generation")
    observed = _number(_status(obj), "observedGeneration")
    if observed >= generation:
        return None
    return _waits("GenerationNotObserved", f"the controller of {_name(obj)} has not seen its latest change")


def _replicas_wait(obj: Object, count: int, wanted: int, state: str) -> Health:
    return _waits("RollingOut", f"{_name(obj)}: {count} of {wanted} replicas {state}")


def _deployment(obj: Object) -> Health:
    spec, status = _spec(obj), _status(obj)
    if spec.get("paused"):
        return READY  # Nobody rolls it out until it is resumed; Helm does not wait for it either.
    if late := _unobserved(obj):
        return late
    progressing = _condition(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return _fails("ProgressDeadlineExceeded", f"{_name(obj)}: {_text(progressing, 'deadline exceeded')}")
    wanted = _number(spec, "replicas", 1)
    updated = _number(status, "updatedReplicas")
    if updated < wanted:
        return _replicas_wait(obj, updated, wanted, "updated")
    old = _number(status, "replicas") - updated
    if old > 0:
        return _waits("RollingOut", f"{_name(obj)}: {old} old replica{'s' if old > 1 else ''} remaining")
    available = _number(status, "availableReplicas")
    return READY if available >= wanted else _replicas_wait(obj, available, wanted, "available")


def _stateful_set(obj: Object) -> Health:
    spec, status = _spec(obj), _status(obj)
    if late := _unobserved(obj):
        return late
    wanted = _number(spec, "replicas", 1)
    ready = _number(status, "readyReplicas")
    if ready < wanted:
        return _replicas_wait(obj, ready, wanted, "ready")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return READY
    to_update = max(0, wanted - _number(strategy.get("rollingUpdate") or {}, "partition"))
    updated = _number(status, "updatedReplicas")
    if updated < to_update:
        return _replicas_wait(obj, updated, to_update, "updated")
    return READY


def _daemon_set(obj: Object) -> Health:
    spec, status = _spec(obj), _status(obj)
    if late := _unobserved(obj):
        return late
    wanted = _number(status, "desiredNumberScheduled")
    if (spec.get("updateStrategy") or {}).get("type") != "OnDelete":
        updated = _number(status, "updatedNumberScheduled")
        if updated < wanted:
            return _replicas_wait(obj, updated, wanted, "updated")
    available = _number(status, "numberAvailable")
    return READY if available >= wanted else _replicas_wait(obj, available, wanted, "available")


def _replica_set(obj: Object) -> Health:
    if late := _unobserved(obj):
        return late
    wanted, ready = _number(_spec(obj), "replicas", 1), _number(_status(obj), "readyReplicas")
    return READY if ready >= wanted else _replicas_wait(obj, ready, wanted, "ready")


def _job(obj: Object) -> Health:
    if _holds(obj, "Complete"):
        return READY
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True":
        return _fails("JobFailed", f"{_name(obj)} failed: {_text(failed, 'no reason was given')}")
    if _spec(obj).get("suspend"):
        return _waits("JobSuspended", f"{_name(obj)} is suspended")
    return _waits("JobRunning", f"{_name(obj)} is not complete")


def _pod(obj: Object) -> Health:
    phase = _status(obj).get("phase")
    if phase == "Succeeded":
        return READY
    if phase == "Failed":
        return _fails("PodFailed", f"{_name(obj)} failed: {_text(_status(obj), 'no reason was given')}")
    ready = _condition(obj, "Ready")
    if ready.get("status") == "True":
        return READY
    return _waits("PodNotReady", f"{_name(obj)}: {_text(ready, f'its phase is {phase or UNSET}')}")


def _claim(obj: Object) -> Health:
    phase = _status(obj).get("phase")
    if phase == "Bound":
        return READY
    if phase == "Lost":
        return _fails("VolumeLost", f"{_name(obj)} lost its volume")
    return _waits("VolumeNotBound", f"{_name(obj)} is not bound to a volume; its phase is {phase or UNSET}")


def _service(obj: Object) -> Health:
    spec = _spec(obj)
    if spec.get("type") != "LoadBalancer" or spec.get("externalIPs"):
        return READY
    balancer = _status(obj).get("loadBalancer") or {}
    if balancer.get("ingress"):
        return READY
    return _waits("NoLoadBalancerAddress", f"{_name(obj)} has no load balancer address")


def _definition(obj: Object) -> Health:
    if _holds(obj, "Established"):
        return READY
    accepted = _condition(obj, "NamesAccepted")
    if accepted.get("status") == "False":
        return _fails("NamesNotAccepted", f"{_name(obj)}: {_text(accepted, 'its names are taken')}")
    return _waits("NotEstablished", f"{_name(obj)} is not established")


def _api_service(obj: Object) -> Health:
    available = _condition(obj, "Available")
    if available.get("status") == "True":
        return READY
    return _waits("APINotAvailable", f"{_name(obj)}: {_text(available, 'not available')}")


def _namespace(obj: Object) -> Health:
    phase = _status(obj).get("phase", "Active")
    return READY if phase == "Active" else _waits("Terminating", f"{_name(obj)}: its phase is {phase}")


def _of_conditions(obj: Object) -> Health:
    """Conditions as most controllers write them; an object with none of them is ready when it exists."""
    if "observedGeneration" in _status(obj) and (late := _unobserved(obj)):
        return late
    stalled = _condition(obj, "Stalled")
    if stalled.get("status") == "True":
        return _fails(str(stalled.get("reason") or "Stalled"), f"{_name(obj)}: {_text(stalled, 'stalled')}")
    reconciling = _condition(obj, "Reconciling")
    if reconciling.get("status") == "True":
        reason = str(reconciling.get("reason") or "Reconciling")
        return _waits(reason, f"{_name(obj)}: {_text(reconciling, 'reconciling')}")
    for name in ("Ready", "Available"):
        condition = _condition(obj, name)
        if not condition:
            continue
        if condition.get("status") == "True":
            return READY
        reason = str(condition.get("reason") or f"Not{name}")
        return _waits(reason, f"{_name(obj)}: {_text(condition, f'condition {name} is not True')}")
    return READY


def _always(obj: Object) -> Health:
    return READY


UNSET = "not set"
_RULES: dict[tuple[str, str], Callable[[Object], Health]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "ReplicationController"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("", "Namespace"): _namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    # Their conditions describe what they govern, not themselves.
    ("policy", "PodDisruptionBudget"): _always,
    ("autoscaling", "HorizontalPodAutoscaler"): _always,
}
