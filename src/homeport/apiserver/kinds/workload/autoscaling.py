"""HorizontalPodAutoscaler: stored as v2; v1 keeps what it has no fields for in annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from homeport.apiserver.kinds import decode
from homeport.apiserver.kinds.amount import resource_name
from homeport.apiserver.kinds.check import dns_label, forbidden, invalid, named, not_negative, required, unsupported
from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.name import path_segment
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

V1, V2 = "autoscaling/v1", "autoscaling/v2"
_DEFINITION = "io.k8s.api.autoscaling.{}.HorizontalPodAutoscaler"
_MARK = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOUR = f"{_MARK}metrics", f"{_MARK}behavior"
_CURRENT, _CONDITIONS = f"{_MARK}current-metrics", f"{_MARK}conditions"
_OF_SPEC, _OF_STATUS = (_METRICS, _BEHAVIOUR), (_CURRENT, _CONDITIONS)
_CPU_PERCENT = 80
# Name of the source, and under which names v1 keeps the parts of its metric.
_SOURCES = {
    "Object": "object", "Pods": "pods", "Resource": "resource", "External": "external",
    "ContainerResource": "containerResource",
}  # fmt: skip
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
_RULE = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_SHORT = ("kind", "name", "apiVersion")
_POPULATE = "must populate information for the given metric source"


# -- conversion ------------------------------------------------------------------------------------------------


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
        _METRICS: [_old(metric, "target", _old_source) for metric in metrics if not _is_cpu(metric)],
        _CURRENT: [_old(metric, "current", _old_reading) for metric in current],
        _BEHAVIOUR: {_capital(name): _capitals(behaviour.get(name)) for name in _RULES} if behaviour else None,
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
        metrics.append(_cpu(_CPU_PERCENT if percent is None else percent))
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


def _cpu(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    percent = (resource.get("target") or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and percent is not None


def _others(obj: Json) -> dict[str, str]:
    given = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in given.items() if key not in (*_OF_SPEC, *_OF_STATUS)}


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


def _old(metric: Json, part: str, make: Callable[[str, Json, Json], Json]) -> Json:
    found: Json = {"type": metric.get("type", "")}
    for name in _SOURCES.values():
        if (source := metric.get(name)) is not None:
            made = make(name, source, source.get(part) or {})
            found[name] = {key: value for key, value in made.items() if value is not None}
    return found


def _old_source(name: str, source: Json, target: Json) -> Json:
    metric = source.get("metric") or {}
    average, percent = target.get("averageValue"), target.get("averageUtilization")
    if name == "object":
        return {
            "target": _reference(source.get("describedObject") or {}),
            "metricName": metric.get("name", ""),
            "targetValue": target.get("value", "0"),
            "selector": metric.get("selector"),
            "averageValue": average,
        }
    if name == "pods":
        return {
            "metricName": metric.get("name", ""),
            "targetAverageValue": average or "0",
            "selector": metric.get("selector"),
        }
    if name == "external":
        return {
            "metricName": metric.get("name", ""),
            "metricSelector": metric.get("selector"),
            "targetValue": target.get("value"),
            "targetAverageValue": average,
        }
    return {
        "name": source.get("name", ""),
        "targetAverageUtilization": percent,
        "targetAverageValue": average,
        "container": source.get("container"),
    }


def _old_reading(name: str, source: Json, current: Json) -> Json:
    metric = source.get("metric") or {}
    value, average = current.get("value"), current.get("averageValue")
    if name == "object":
        return {
            "target": _reference(source.get("describedObject") or {}),
            "metricName": metric.get("name", ""),
            "currentValue": value or "0",
            "selector": metric.get("selector"),
            "averageValue": average,
        }
    if name == "pods":
        return {
            "metricName": metric.get("name", ""),
            "currentAverageValue": average or "0",
            "selector": metric.get("selector"),
        }
    if name == "external":
        return {
            "metricName": metric.get("name", ""),
            "metricSelector": metric.get("selector"),
            "currentValue": value or "0",
            "currentAverageValue": average,
        }
    return {
        "name": source.get("name", ""),
        "currentAverageUtilization": current.get("averageUtilization"),
        "currentAverageValue": average or "0",
        "container": source.get("container"),
    }


def _reference(found: Json) -> Json:
    return {key: found[key] for key in _SHORT if found.get(key)}


def _new(metric: Json, part: str, make: Callable[[str, Json], Json]) -> Json:
    found: Json = {"type": metric.get("type", "")}
    for name in _SOURCES.values():
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


# -- behaviour -------------------------------------------------------------------------------------------------


class HorizontalPodAutoscaler(WithStatus):
    def begin(self, obj: Json) -> None:
        super().begin(obj)
        _hold(obj, {"metadata": {}}, _OF_STATUS)

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        spec.setdefault("minReplicas", 1)
        if obj.get("apiVersion") == V1:
            # Through the other version: it sees what the annotations say, and drops what is no use to it.
            again = to_v1(to_v2(obj))
            obj.update(metadata=again["metadata"], spec=again["spec"], status=again["status"])
            return
        if not spec.get("metrics"):
            spec["metrics"] = [_cpu(_CPU_PERCENT)]
        if spec.get("behavior") is not None:
            for direction, rules in _RULES.items():
                given = spec["behavior"].get(direction) or {}
                spec["behavior"][direction] = orjson.loads(orjson.dumps(rules | given))

    def prepare_update(self, obj: Json, old: Json) -> None:
        if obj.get("apiVersion") == V1:
            _hold(obj, old, _OF_STATUS)
            if to_v2(obj)["spec"] != to_v2(old)["spec"]:
                obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        """In the words of v2, whichever version the writer used: v1's annotations have no fields to name."""
        spec = convert(obj, "v2")["spec"]
        before = None if old is None else convert(old, "v2")["spec"]
        least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
        causes = list(_between(least, most))
        causes += _target(spec.get("scaleTargetRef") or {}, None if before is None else before.get("scaleTargetRef"))
        metrics = spec.get("metrics") or []
        for i, metric in enumerate(metrics):
            causes += _metric(f"spec.metrics[{i}]", metric)
        if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
            detail = "must specify at least one Object or External metric to support scaling to zero replicas"
            causes.append(forbidden("spec.metrics", detail))
        for direction in _RULES:
            rules = (spec.get("behavior") or {}).get(direction)
            if rules is not None:
                causes += _rules(f"spec.behavior.{direction}", rules)
        return [*causes, *_bounds(least, most)]


class Status:
    def prepare(self, obj: Json, old: Json) -> None:
        if obj.get("apiVersion") == V1:
            _hold(obj, old, _OF_SPEC)

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        status = obj.get("status") or {}
        counts = ("currentReplicas", "desiredReplicas")
        return [cause for name in counts for cause in not_negative(f"status.{name}", status.get(name))]


def _hold(obj: Json, old: Json, annotations: tuple[str, ...]) -> None:
    given, before = (dict(found["metadata"].get("annotations") or {}) for found in (obj, old))
    for key in annotations:
        given.pop(key, None)
    given |= {key: before[key] for key in annotations if key in before}
    if given:
        obj["metadata"]["annotations"] = given
    else:
        obj["metadata"].pop("annotations", None)


def _policy(kind: str, value: int) -> Json:
    return {"type": kind, "value": value, "periodSeconds": 15}


_RULES: dict[str, Json] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_policy("Pods", 4), _policy("Percent", 100)],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_policy("Percent", 100)]},
}


def _between(least: int, most: int) -> Iterator[Cause]:
    if most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _bounds(least: int, most: int) -> Iterator[Cause]:
    if least < 0:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 0")
    if most == 0:
        yield required("spec.maxReplicas")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")


def _target(found: Json, old: Json | None) -> Iterator[Cause]:
    same = old is not None and all(found.get(key) == old.get(key) for key in ("apiVersion", "kind"))
    grouped = not same and found.get("kind") != "ReplicationController"
    yield from _object("spec.scaleTargetRef", found, grouped=grouped, checked=not same)


def _object(field: str, found: Json, *, grouped: bool, checked: bool = True) -> Iterator[Cause]:
    for name in ("kind", "name"):
        if found.get(name):
            yield from named(f"{field}.{name}", found[name], path_segment)
        else:
            yield required(f"{field}.{name}")
    version = found.get("apiVersion", "")
    if version.count("/") > 1 and checked:
        yield invalid(f"{field}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif grouped and "/" not in version:
        yield invalid(f"{field}.apiVersion", version, "apiVersion must specify API group")


def _metric(field: str, metric: Json) -> Iterator[Cause]:
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{field}.type", "must specify a metric source type")
    if kind not in _TYPES:
        yield unsupported(f"{field}.type", kind, _TYPES)
    order = ("object", "external", "pods", "resource", "containerResource")
    given = [name for name in order if metric.get(name) is not None]
    for name in given[:1]:
        yield from _source(f"{field}.{name}", name, metric[name])
    expected = _SOURCES.get(kind)
    if expected is not None and expected not in given:
        yield required(f"{field}.{expected}", _POPULATE)
    if len(given) != 1:
        for name in given:
            if name != expected:
                yield forbidden(f"{field}.{name}", "must populate the given metric source only")


def _source(field: str, name: str, source: Json) -> Iterator[Cause]:
    target = source.get("target") or {}
    value, average = target.get("value"), target.get("averageValue")
    percent = target.get("averageUtilization")
    if name in ("resource", "containerResource"):
        yield from _resource(field, name, source)
        yield from _goal(f"{field}.target", target)
        if percent is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            yield required(f"{field}.target.averageUtilization", detail)
        if percent is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            yield forbidden(f"{field}.target.averageValue", detail)
        return
    if name == "object":
        yield from _object(f"{field}.describedObject", source.get("describedObject") or {}, grouped=False)
    metric = (source.get("metric") or {}).get("name", "")
    if metric:
        yield from named(f"{field}.metric.name", metric, path_segment)
    else:
        yield required(f"{field}.metric.name", "must specify a metric name")
    yield from _goal(f"{field}.target", target)
    subfield = f"{field}.target.averageValue"
    if name == "pods":
        if average is None:
            yield required(subfield, "must specify a positive target averageValue")
    elif value is None and average is None:
        per_pod = "must set either a target value for metric or a per-pod target"
        yield required(subfield, per_pod if name == "external" else "must set either a target value or averageValue")
    elif name == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{field}.target.value", detail)


def _resource(field: str, name: str, source: Json) -> Iterator[Cause]:
    if not source.get("name"):
        yield required(f"{field}.name", "must specify a resource name")
    elif name == "containerResource":
        yield from resource_name(f"{field}.name", source["name"])
    if name == "containerResource":
        if source.get("container"):
            yield from named(f"{field}.container", source["container"], dns_label)
        else:
            yield required(f"{field}.container", "must specify a container")


def _goal(field: str, target: Json) -> Iterator[Cause]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{field}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid(f"{field}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and parse_quantity(str(target[name])).amount <= 0:
            yield invalid(f"{field}.{name}", str(target[name]), "must be positive")
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        yield invalid(f"{field}.averageUtilization", percent, "must be greater than 0")


def _rules(field: str, rules: Json) -> Iterator[Cause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid(f"{field}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid(f"{field}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    choices = ("Disabled", "Max", "Min")
    if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in choices:
        yield unsupported(f"{field}.selectPolicy", rules["selectPolicy"], choices)
    if not rules.get("policies"):
        yield required(f"{field}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.get("policies") or ()):
        subfield, seconds = f"{field}.policies[{i}]", policy.get("periodSeconds", 0)
        if policy.get("type", "") not in ("Percent", "Pods"):
            yield unsupported(f"{subfield}.type", policy.get("type", ""), ("Percent", "Pods"))
        if policy.get("value", 0) <= 0:
            yield invalid(f"{subfield}.value", policy.get("value", 0), "must be greater than zero")
        if seconds <= 0:
            yield invalid(f"{subfield}.periodSeconds", seconds, "must be greater than zero")
        if seconds > 1800:
            yield invalid(f"{subfield}.periodSeconds", seconds, "must be less than or equal to 1800")
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse_quantity(str(tolerance)).amount < 0:
        yield invalid(f"{field}.tolerance", str(tolerance), "must be greater than or equal to 0")
