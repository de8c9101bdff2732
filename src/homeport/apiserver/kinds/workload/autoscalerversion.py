"""Conversion of HorizontalPodAutoscalers between v1 and v2. v1 keeps what it has no fields for in annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from homeport.apiserver.kinds import decode
from homeport.apiserver.resource import Json

V1, V2 = "autoscaling/v1", "autoscaling/v2"
CPU_PERCENT = 80
# Type of a metric > the field that holds its source.
SOURCES = {
    "Object": "object", "Pods": "pods", "Resource": "resource", "External": "external",
    "ContainerResource": "containerResource",
}  # fmt: skip
_DEFINITION = "io.k8s.api.autoscaling.{}.HorizontalPodAutoscaler"
_MARK = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOUR = f"{_MARK}metrics", f"{_MARK}behavior"
_CURRENT, _CONDITIONS = f"{_MARK}current-metrics", f"{_MARK}conditions"
OF_SPEC, OF_STATUS = (_METRICS, _BEHAVIOUR), (_CURRENT, _CONDITIONS)  # annotations of v1
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
_DIRECTIONS = ("scaleUp", "scaleDown")
_RULE = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_SHORT = ("kind", "name", "apiVersion")


def convert(obj: Json, version: str) -> Json:
    if obj.get("apiVersion") == f"autoscaling/{version}":
        return obj
    found: Json = orjson.loads(orjson.dumps(to_v2(obj) if version == "v2" else to_v1(obj)))
    decode.read(_DEFINITION.format(version), found)  # the versions differ in what they leave out
    decode.fill(_DEFINITION.format(version), found)
    return found


def to_v1(obj: Json) -> Json:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behaviour = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None) or []
    percents = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu(metric)]
    if percents:
        spec["targetCPUUtilizationPercentage"] = percents[0]
    for metric in current:
        used = (metric.get("resource") or {}).get("current") or {}
        if metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu":
            if used.get("averageUtilization") is not None:
                status["currentCPUUtilizationPercentage"] = used["averageUtilization"]
    kept: dict[str, Any] = {
        _METRICS: [_old(metric, "target") for metric in metrics if not _is_cpu(metric)],
        _CURRENT: [_old(metric, "current") for metric in current],
        _BEHAVIOUR: {_capital(name): _capitals(behaviour.get(name)) for name in _DIRECTIONS} if behaviour else None,
        _CONDITIONS: [{key: found.get(key) for key in _CONDITION if key in found} for found in conditions],
    }
    annotations = _others(obj) | {key: orjson.dumps(value).decode() for key, value in kept.items() if value}
    return {**obj, "apiVersion": V1, "metadata": _annotated(obj, annotations), "spec": spec, "status": status}


def to_v2(obj: Json) -> Json:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    used = status.pop("currentCPUUtilizationPercentage", None)
    metrics = [_new(metric, "target", _new_source) for metric in _kept(obj, _METRICS)]
    if percent is not None or not metrics:
        metrics.append(cpu_metric(CPU_PERCENT if percent is None else percent))
    spec["metrics"] = metrics
    behaviour = _lowered(_kept(obj, _BEHAVIOUR, {}))
    if behaviour:
        spec["behavior"] = behaviour
    readings = [_new(metric, "current", _new_reading) for metric in _kept(obj, _CURRENT)]
    if not readings and used is not None:
        readings = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    if readings:
        status["currentMetrics"] = readings
    if conditions := _kept(obj, _CONDITIONS):
        status["conditions"] = conditions
    return {**obj, "apiVersion": V2, "metadata": _annotated(obj, _others(obj)), "spec": spec, "status": status}


def cpu_metric(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    percent = (resource.get("target") or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and percent is not None


def _others(obj: Json) -> dict[str, str]:
    given = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in given.items() if key not in (*OF_SPEC, *OF_STATUS)}


def _annotated(obj: Json, annotations: dict[str, str]) -> Json:
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**meta, "annotations": annotations} if annotations else meta


def _kept(obj: Json, annotation: str, default: Any = ()) -> Any:
    """What an annotation holds. A user may write anything into it: what can't be read counts as absent."""
    text = (obj["metadata"].get("annotations") or {}).get(annotation, "")
    try:
        found = orjson.loads(text) if text else default
    except orjson.JSONDecodeError:
        return default
    if isinstance(default, dict):
        return found if isinstance(found, dict) else default
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else default


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _capitals(rules: Json | None) -> Json | None:
    """As Go writes a type without JSON names: every field, in its order."""
    if rules is None:
        return None
    found = {_capital(name): rules.get(name) for name in _RULE}
    found["Policies"] = [{_capital(key): value for key, value in policy.items()} for policy in rules["policies"]]
    return found


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key[:1].lower() + key[1:]: _lowered(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item is not None}
    return [_lowered(item) for item in value] if isinstance(value, list) else value


def _old(metric: Json, part: str) -> Json:
    """A metric in the form that annotations have. `part` is "target" or "current"; fields have it as prefix."""
    found: Json = {"type": metric.get("type", "")}
    for name in SOURCES.values():
        if (source := metric.get(name)) is not None:
            fields = _old_fields(name, source, part)
            found[name] = {key: value for key, value in fields.items() if value is not None}
    return found


def _old_fields(name: str, source: Json, part: str) -> Json:
    metric, numbers = source.get("metric") or {}, source.get(part) or {}
    value, average = numbers.get("value"), numbers.get("averageValue")
    zero = "0" if part == "current" else None  # a reading without a number is 0; a target is left out
    shared = {"metricName": metric.get("name", "")}
    if name == "object":
        reference = {"target": _reference(source.get("describedObject") or {})}
        selected = {f"{part}Value": value or "0", "selector": metric.get("selector"), "averageValue": average}
        return reference | shared | selected
    if name == "pods":
        return shared | {f"{part}AverageValue": average or "0", "selector": metric.get("selector")}
    if name == "external":
        values = {f"{part}Value": value or zero, f"{part}AverageValue": average}
        return shared | {"metricSelector": metric.get("selector")} | values
    return {
        "name": source.get("name", ""),
        f"{part}AverageUtilization": numbers.get("averageUtilization"),
        f"{part}AverageValue": average or zero,
        "container": source.get("container"),
    }


def _reference(found: Json) -> Json:
    return {key: found[key] for key in _SHORT if found.get(key)}


def _new(metric: Json, part: str, make: Callable[[str, Json], Json]) -> Json:
    found: Json = {"type": metric.get("type", "")}
    for name in SOURCES.values():
        source = metric.get(name)
        if not isinstance(source, dict):
            continue
        made: Json = {part: {key: value for key, value in make(name, source).items() if value is not None}}
        if name in ("resource", "containerResource"):
            made |= {key: source[key] for key in ("name", "container") if source.get(key)}
        else:
            selector = source.get("metricSelector" if name == "external" else "selector")
            made["metric"] = {"name": source.get("metricName", "")} | ({"selector": selector} if selector else {})
            if name == "object":
                made["describedObject"] = _reference(source.get("target") or {})
        found[name] = made
    return found


def _new_source(name: str, source: Json) -> Json:
    value, average = source.get("targetValue"), source.get("targetAverageValue")
    percent = source.get("targetAverageUtilization")
    if name == "object":
        average = source.get("averageValue")
        if average is not None and value == "0":
            value = None
        return {"type": "Value" if average is None else "AverageValue", "value": value, "averageValue": average}
    if name == "external":
        return {"type": "AverageValue" if value is None else "Value", "value": value, "averageValue": average}
    if name == "pods":
        return {"type": "AverageValue", "averageValue": average or "0"}
    kind = "AverageValue" if percent is None else "Utilization"
    return {"type": kind, "averageValue": average, "averageUtilization": percent}


def _new_reading(name: str, source: Json) -> Json:
    average = source.get("averageValue" if name == "object" else "currentAverageValue")
    if name in ("object", "external"):
        return {"value": source.get("currentValue", "0"), "averageValue": average}
    return {"averageValue": average or "0", "averageUtilization": source.get("currentAverageUtilization")}
