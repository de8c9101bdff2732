"""Rows of what makes pods: Deployments, sets, Jobs, and the budget for disrupting them."""

from __future__ import annotations

from datetime import datetime

from homeport.apiserver.kinds.age import age, between, human_duration, parse_time
from homeport.apiserver.kinds.printer.text import (
    NONE,
    UNSET,
    Cell,
    age_of,
    count,
    holds,
    labels,
    name_of,
    part,
    selector,
    template,
    text,
)
from homeport.apiserver.kinds.workload.autoscalerversion import convert
from homeport.apiserver.resource import Json


def _replicas(obj: Json) -> int:
    wanted = part(obj, "spec", "replicas")
    return 1 if wanted is None else int(wanted)


def deployment(obj: Json, now: datetime) -> list[Cell]:
    return [
        name_of(obj),
        f"{count(obj, 'status', 'readyReplicas')}/{_replicas(obj)}",
        count(obj, "status", "updatedReplicas"),
        count(obj, "status", "availableReplicas"),
        age_of(obj, now),
        *template(obj, "spec", "template"),
        selector(part(obj, "spec", "selector")),
    ]


def replica_set(obj: Json, now: datetime) -> list[Cell]:
    return [
        name_of(obj),
        _replicas(obj),
        count(obj, "status", "replicas"),
        count(obj, "status", "readyReplicas"),
        age_of(obj, now),
        *template(obj, "spec", "template"),
        selector(part(obj, "spec", "selector")),
    ]


def replication_controller(obj: Json, now: datetime) -> list[Cell]:
    """As a ReplicaSet, but for a selector that is plain labels."""
    return [*replica_set(obj, now)[:-1], selector({"matchLabels": part(obj, "spec", "selector") or {}})]


def stateful_set(obj: Json, now: datetime) -> list[Cell]:
    ready = f"{count(obj, 'status', 'readyReplicas')}/{_replicas(obj)}"
    return [name_of(obj), ready, age_of(obj, now), *template(obj, "spec", "template")]


def daemon_set(obj: Json, now: datetime) -> list[Cell]:
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(count(obj, "status", field) for field in fields),
        labels(part(obj, "spec", "template", "spec", "nodeSelector")),
        age_of(obj, now),
        *template(obj, "spec", "template"),
        selector(part(obj, "spec", "selector")),
    ]


_JOB_STATES = (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet",) * 2)


def _job_status(obj: Json) -> str:
    for kind in ("Complete", "Failed"):
        if holds(obj, kind):
            return kind
    if part(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((shown for kind, shown in _JOB_STATES if holds(obj, kind)), "Running")


def _completions(obj: Json) -> str:
    done = count(obj, "status", "succeeded")
    wanted = part(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = count(obj, "spec", "parallelism")
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(obj: Json, now: datetime) -> str:
    start, end = part(obj, "status", "startTime"), part(obj, "status", "completionTime")
    begun = parse_time(start)
    if begun is None:
        return ""
    return between(start, end) if end else human_duration((now - begun).total_seconds())


def job(obj: Json, now: datetime) -> list[Cell]:
    return [
        name_of(obj),
        _job_status(obj),
        _completions(obj),
        _duration(obj, now),
        age_of(obj, now),
        *template(obj, "spec", "template"),
        selector(part(obj, "spec", "selector")),
    ]


def cron_job(obj: Json, now: datetime) -> list[Cell]:
    last = part(obj, "status", "lastScheduleTime")
    suspend = part(obj, "spec", "suspend")
    return [
        name_of(obj),
        text(obj, "spec", "schedule"),
        text(obj, "spec", "timeZone", default=NONE),
        UNSET if suspend is None else str(suspend),
        count(obj, "status", "active"),
        age(last, now) if last else NONE,
        age_of(obj, now),
        *template(obj, "spec", "jobTemplate", "spec", "template"),
        selector(part(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def controller_revision(obj: Json, now: datetime) -> list[Cell]:
    owner = next((o for o in part(obj, "metadata", "ownerReferences") or () if o.get("controller")), None)
    return [name_of(obj), _owner(owner), count(obj, "revision"), age_of(obj, now)]


def _owner(owner: Json | None) -> str:
    if owner is None:
        return NONE
    group, slash, _ = owner.get("apiVersion", "").partition("/")
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name', '')}" if slash else f"{kind}/{owner.get('name', '')}"


def disruption_budget(obj: Json, now: datetime) -> list[Cell]:
    return [
        name_of(obj),
        text(obj, "spec", "minAvailable", default="N/A"),
        text(obj, "spec", "maxUnavailable", default="N/A"),
        count(obj, "status", "disruptionsAllowed"),
        age_of(obj, now),
    ]


def pod_template(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), *template(obj, "template"), labels(part(obj, "template", "metadata", "labels"))]


def autoscaler(obj: Json, now: datetime) -> list[Cell]:
    """In the words of v2: v1 has no room for most metrics."""
    obj = convert(obj, "v2")
    least = part(obj, "spec", "minReplicas")
    current = part(obj, "status", "currentMetrics") or ()
    metrics = part(obj, "spec", "metrics") or ()
    shown = [_metric(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    return [
        name_of(obj),
        f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}",
        _few(shown) if shown else NONE,
        UNSET if least is None else str(least),
        count(obj, "spec", "maxReplicas"),
        count(obj, "status", "currentReplicas"),
        age_of(obj, now),
    ]


def _few(shown: list[str]) -> str:
    first = ", ".join(shown[:2])
    return f"{first} + {len(shown) - 2} more..." if len(shown) > 2 else first


def _metric(metric: Json, reading: Json) -> str:
    kind = metric.get("type", "")
    field = kind[:1].lower() + kind[1:]
    source = metric.get(field)
    if source is None:
        return "<unknown type>"
    target, current = source.get("target") or {}, (reading.get(field) or {}).get("current") or {}
    if kind in ("Resource", "ContainerResource"):
        if target.get("averageValue") is not None:
            return f"{source.get('name')}: {current.get('averageValue', '<unknown>')}/{target['averageValue']}"
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        percent = "<unknown>" if used is None else f"{used}%"
        return f"{source.get('name')}: {percent}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if target.get("averageValue") is not None:
        average = f"{current.get('averageValue', '<unknown>')}/{target['averageValue']}"
        return average if kind == "Pods" else f"{average} (avg)"
    return f"{current.get('value', '<unknown>')}/{target.get('value')}"
