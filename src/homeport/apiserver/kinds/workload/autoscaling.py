"""HorizontalPodAutoscaler: defaults and validation. It is stored as v2."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from homeport.apiserver.kinds.amount import resource_name
from homeport.apiserver.kinds.check import dns_label, forbidden, invalid, named, not_negative, required, unsupported
from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.kinds.workload.autoscalerversion import (
    CPU_PERCENT,
    OF_SPEC,
    OF_STATUS,
    SOURCES,
    V1,
    convert,
    cpu_metric,
    to_v1,
    to_v2,
)
from homeport.apiserver.name import path_segment
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_POPULATE = "must populate information for the given metric source"


class HorizontalPodAutoscaler(WithStatus):
    def begin(self, obj: Json) -> None:
        super().begin(obj)
        _hold(obj, {"metadata": {}}, OF_STATUS)

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        spec.setdefault("minReplicas", 1)
        if obj.get("apiVersion") == V1:
            # Through the other version: it sees what the annotations say, and drops what is no use to it.
            again = to_v1(to_v2(obj))
            obj.update(metadata=again["metadata"], spec=again["spec"], status=again["status"])
            return
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_metric(CPU_PERCENT)]
        if spec.get("behavior") is not None:
            for direction, rules in _RULES.items():
                given = spec["behavior"].get(direction) or {}
                spec["behavior"][direction] = orjson.loads(orjson.dumps(rules | given))

    def prepare_update(self, obj: Json, old: Json) -> None:
        if obj.get("apiVersion") == V1:
            _hold(obj, old, OF_STATUS)
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
            _hold(obj, old, OF_SPEC)

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
    expected = SOURCES.get(kind)
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
