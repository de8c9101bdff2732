"""Rows of the cluster's own things: nodes, namespaces, events, access rules, definitions, plain data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from homeport.apiserver.kinds.age import UNKNOWN, age, human_duration
from homeport.apiserver.kinds.printer.text import NONE, Cell, age_of, condition, count, holds, name_of, part, text
from homeport.apiserver.resource import Json

_ROLE_PREFIX = "node-role.kubernetes.io/"


def named(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), age_of(obj, now)]


def created(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), part(obj, "metadata", "creationTimestamp")]


def config_map(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), count(obj, "data") + count(obj, "binaryData"), age_of(obj, now)]


def secret(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), text(obj, "type"), count(obj, "data"), age_of(obj, now)]


def namespace(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), text(obj, "status", "phase"), age_of(obj, now)]


def lease(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age_of(obj, now)]


def webhooks(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), count(obj, "webhooks"), age_of(obj, now)]


def _node_status(obj: Json) -> str:
    ready = condition(obj, "Ready")
    shown = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{shown},SchedulingDisabled" if part(obj, "spec", "unschedulable") else shown


def _node_roles(obj: Json) -> str:
    found = part(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in found if key.startswith(_ROLE_PREFIX)}
    if found.get("kubernetes.io/role"):
        roles.add(found["kubernetes.io/role"])
    return ",".join(sorted(role for role in roles if role)) or NONE


def _node_address(obj: Json, kind: str) -> str:
    addresses = part(obj, "status", "addresses") or ()
    return next((a.get("address", NONE) for a in addresses if a.get("type") == kind), NONE)


def node(obj: Json, now: datetime) -> list[Cell]:
    info = part(obj, "status", "nodeInfo") or {}
    return [
        name_of(obj),
        _node_status(obj),
        _node_roles(obj),
        age_of(obj, now),
        info.get("kubeletVersion", ""),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _either(obj: Json, old: str, new: str) -> Any:
    """The core group's name of a field, or that of events.k8s.io."""
    value = obj.get(old)
    return obj.get(new) if value is None else value


def _event_target(obj: Json) -> tuple[str, str]:
    target = _either(obj, "involvedObject", "regarding") or {}
    kind, name = target.get("kind", "").lower(), target.get("name", "")
    return (f"{kind}/{name}" if name else kind), target.get("fieldPath", "")


def _event_source(obj: Json) -> str:
    source = _either(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _either(obj, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _event_times(obj: Json, now: datetime) -> tuple[str, str, int]:
    """First seen, last seen, how often."""
    first = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime")
    last = _either(obj, "lastTimestamp", "deprecatedLastTimestamp") or first
    times = _either(obj, "count", "deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last, times = series.get("lastObservedTime"), series.get("count", times)
    return age(first, now), age(last, now), times


def event(obj: Json, now: datetime) -> list[Cell]:
    first, last, times = _event_times(obj, now)
    target, field = _event_target(obj)
    message = str(_either(obj, "message", "note") or "").strip()
    kind, reason = text(obj, "type"), text(obj, "reason")
    return [last, kind, reason, target, field, _event_source(obj), message, first, times, name_of(obj)]


def binding(obj: Json, now: datetime) -> list[Cell]:
    subjects = obj.get("subjects") or ()
    users = [s.get("name", "") for s in subjects if s.get("kind") == "User"]
    groups = [s.get("name", "") for s in subjects if s.get("kind") == "Group"]
    accounts = [f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount"]
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    return [name_of(obj), role, age_of(obj, now), *(", ".join(found) for found in (users, groups, accounts))]


def custom_resource_definition(obj: Json, now: datetime) -> list[Cell]:
    versions = [
        f"{version.get('name', '')}(storage)" if version.get("storage") else version.get("name", "")
        for version in part(obj, "spec", "versions") or ()
        if version.get("served")
    ]
    names = part(obj, "status", "acceptedNames") or part(obj, "spec", "names") or {}
    return [
        name_of(obj),
        text(obj, "spec", "scope"),
        ",".join(versions),
        part(obj, "metadata", "creationTimestamp"),
        text(obj, "spec", "group"),
        names.get("kind", ""),
        ",".join(names.get("shortNames") or ()),
        holds(obj, "Established"),
    ]


def api_service(obj: Json, now: datetime) -> list[Cell]:
    ref = part(obj, "spec", "service")
    available = condition(obj, "Available") or {}
    shown = available.get("status", "Unknown")
    if shown != "True" and available.get("reason"):
        shown = f"{shown} ({available['reason']})"
    service = f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else "Local"
    return [name_of(obj), service, shown, age_of(obj, now)]


def certificate_signing_request(obj: Json, now: datetime) -> list[Cell]:
    seconds = part(obj, "spec", "expirationSeconds")
    return [
        name_of(obj),
        age_of(obj, now),
        text(obj, "spec", "signerName"),
        text(obj, "spec", "username"),
        NONE if seconds is None else human_duration(seconds),
        _request_state(obj),
    ]


def _request_state(obj: Json) -> str:
    found = {c.get("type") for c in part(obj, "status", "conditions") or ()}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    if "Failed" in found:
        state += ",Failed"
    return f"{state},Issued" if part(obj, "status", "certificate") else state


def priority_class(obj: Json, now: datetime) -> list[Cell]:
    policy = text(obj, "preemptionPolicy", default="PreemptLowerPriority")
    return [name_of(obj), count(obj, "value"), bool(obj.get("globalDefault")), age_of(obj, now), policy]


def resource_quota(obj: Json, now: datetime) -> list[Cell]:
    hard, used = part(obj, "status", "hard") or {}, part(obj, "status", "used") or {}
    shown = {key: f"{key}: {used.get(key, '0')}/{hard[key]}" for key in sorted(hard)}
    requests = ", ".join(text for key, text in shown.items() if not key.startswith("limits."))
    limits = ", ".join(text for key, text in shown.items() if key.startswith("limits."))
    return [name_of(obj), requests, limits, age_of(obj, now)]


def runtime_class(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), text(obj, "handler"), age_of(obj, now)]
