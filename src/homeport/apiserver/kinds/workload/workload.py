"""Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, ControllerRevision and PodTemplate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.apiserver.kinds.check import (
    Struct,
    at_most_all,
    dns_label,
    forbidden,
    immutable,
    invalid,
    label_key,
    label_selector,
    labels,
    named,
    not_negative,
    required,
    selector_is_empty,
    share,
    unsupported,
)
from homeport.apiserver.kinds.cluster.storage import claim_spec, default_claim
from homeport.apiserver.kinds.pod.rule import pod_spec
from homeport.apiserver.kinds.pod.security import annotated_seccomp
from homeport.apiserver.kinds.pod.spec import default_template
from homeport.apiserver.kinds.strategy import Plain, WithStatus
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.selector import SelectorError, from_label_selector

_GENERATION = "deprecated.daemonset.template.generation"


def template(field: str, found: Json, old: Json | None) -> Iterator[Cause]:
    """What is wrong with a template of Pods. One that was stored under older rules stays as it is."""
    if found == old:
        return
    meta = found.get("metadata") or {}
    yield from labels(f"{field}.labels", meta.get("labels"))
    for key in meta.get("annotations") or ():
        yield from named(f"{field}.annotations", key.lower(), label_key)
    spec = found.get("spec") or {}
    yield from pod_spec(f"{field}.spec", spec)
    yield from annotated_seccomp(f"{field}.spec", meta.get("annotations") or {}, spec)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{field}.spec.ephemeralContainers", detail)


def _selected(spec: Json, old: Json | None, *, about: str, flaw: str) -> Iterator[Cause]:
    """The selector of a workload, and the template whose Pods it has to select. The words for both are the kind's."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from label_selector("spec.selector", selector)
        if selector_is_empty(selector):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {about}")
    if not parses(selector):
        yield invalid("spec.selector", selector, flaw)
        return
    if selector is None or not selector_is_empty(selector):
        yield from mismatch(selector, spec["template"])
    yield from template("spec.template", spec["template"], None if old is None else old["spec"].get("template"))


def parses(selector: Json | None) -> bool:
    try:
        from_label_selector(selector)
    except SelectorError:
        return False
    return True


def mismatch(selector: Json | None, found: Json) -> Iterator[Cause]:
    given = (found.get("metadata") or {}).get("labels")
    if not parses(selector):
        return
    if selector is None or not from_label_selector(selector).matches(given or {}):
        field = "spec.template.metadata.labels"
        yield invalid(field, given, "`selector` does not match template `labels`")


def _always(spec: Json, kind: str) -> Iterator[Cause]:
    pods = spec["template"].get("spec") or {}
    if pods.get("restartPolicy") != "Always":
        yield unsupported("spec.template.spec.restartPolicy", pods.get("restartPolicy", ""), ("Always",))
    if pods.get("activeDeadlineSeconds") is not None:
        field = "spec.template.spec.activeDeadlineSeconds"
        yield forbidden(field, f"activeDeadlineSeconds in {kind} is not Supported")


def _strategy_of(strategy: Json) -> Struct:
    return Struct(Type=strategy["type"], RollingUpdate=strategy.get("rollingUpdate"))


def _is_zero(value: int | str | None) -> bool:
    return value in (None, 0, "0%")


class _Workload(WithStatus):
    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        default_template(spec.setdefault("template", {}))


class Deployment(_Workload):
    def default(self, obj: Json) -> None:
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = spec["strategy"] = spec.get("strategy") or {}
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(not_negative("spec.replicas", spec["replicas"]))
        causes += _selected(spec, old, about="deployment", flaw="invalid label selector")
        causes += _always(spec, "ReplicaSet")
        causes += self._strategy(spec["strategy"])
        for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            causes += not_negative(f"spec.{field}", spec.get(field))
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            causes.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        if old is not None:
            causes += immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))
        return causes

    def _strategy(self, strategy: Json) -> Iterator[Cause]:
        rolling = strategy.get("rollingUpdate") or {}
        if strategy["type"] == "Recreate":
            if "rollingUpdate" in strategy:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden("spec.strategy.rollingUpdate", detail)
        elif strategy["type"] == "RollingUpdate":
            field = "spec.strategy.rollingUpdate"
            yield from share(f"{field}.maxUnavailable", rolling["maxUnavailable"])
            yield from share(f"{field}.maxSurge", rolling["maxSurge"])
            if _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
                detail = "may not be 0 when `maxSurge` is 0"
                yield invalid(f"{field}.maxUnavailable", rolling["maxUnavailable"], detail)
            yield from at_most_all(f"{field}.maxUnavailable", rolling["maxUnavailable"])
        else:
            yield unsupported("spec.strategy", _strategy_of(strategy), ("Recreate", "RollingUpdate"))

    def prepare_update(self, obj: Json, old: Json) -> None:
        # Annotations are copied to ReplicaSets: a change of them is work for the controller as well.
        now, before = (found["metadata"].get("annotations") or {} for found in (obj, old))
        if now != before:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class ReplicaSet(_Workload):
    def default(self, obj: Json) -> None:
        super().default(obj)
        obj["spec"].setdefault("replicas", 1)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(not_negative("spec.replicas", spec["replicas"]))
        causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        causes += _selected(spec, old, about="deployment", flaw="invalid label selector")
        causes += _always(spec, "ReplicaSet")
        if old is not None:
            causes += immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))
        return causes


class ReplicationController(WithStatus):
    """What ReplicaSets were before Deployments: its selector is plain labels, which may be left to the template."""

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        spec.setdefault("replicas", 1)
        found = spec.get("template")
        if found is None:
            return
        default_template(found)
        given = (found.get("metadata") or {}).get("labels")
        if given and not spec.get("selector"):
            spec["selector"] = dict(given)
        if given and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(given)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(not_negative("spec.replicas", spec["replicas"]))
        causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        if not spec.get("selector"):
            causes.append(required("spec.selector"))
        if spec.get("template") is None:
            return [*causes, required("spec.template")]
        if spec.get("selector"):
            causes += mismatch({"matchLabels": spec["selector"]}, spec["template"])
        before = None if old is None else old["spec"].get("template")
        causes += template("spec.template", spec["template"], before)
        causes += _always(spec, "ReplicationController")
        return causes


class StatefulSet(_Workload):
    def default(self, obj: Json) -> None:
        super().default(obj)
        spec = obj["spec"]
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec["updateStrategy"] = spec.get("updateStrategy") or {}
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
            strategy["rollingUpdate"].setdefault("partition", 0)
            strategy["rollingUpdate"].setdefault("maxUnavailable", 1)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            retention[field] = retention.get(field) or "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
            default_claim(claim)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes: list[Cause] = []
        policy = spec["podManagementPolicy"]
        if policy not in ("OrderedReady", "Parallel"):
            causes.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        causes += self._strategy(spec["updateStrategy"])
        for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            causes += claim_spec(f"spec.volumeClaimTemplates[{i}].spec", claim.get("spec") or {})
        for field in ("replicas", "minReadySeconds"):
            causes += not_negative(f"spec.{field}", spec.get(field))
        if spec.get("serviceName"):
            causes += named("spec.serviceName", spec["serviceName"], dns_label)
        before = None if old is None else {"spec": {"template": self._with_claims(old["spec"])}}
        causes += _selected({**spec, "template": self._with_claims(spec)}, before, about="statefulset", flaw="")
        causes += _always(spec, "StatefulSet")
        if old is not None:
            for field in ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"):
                causes += immutable(f"spec.{field}", spec.get(field), old["spec"].get(field))
        return causes

    def _strategy(self, strategy: Json) -> Iterator[Cause]:
        kind, rolling = strategy["type"], strategy.get("rollingUpdate")
        if kind == "OnDelete":
            if rolling is not None:
                detail = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid("spec.updateStrategy.rollingUpdate", rolling, detail)
        elif kind == "RollingUpdate":
            if rolling is not None:
                yield from not_negative("spec.updateStrategy.rollingUpdate.partition", rolling.get("partition"))
                field, down = "spec.updateStrategy.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable")
                yield from share(field, down)
                yield from at_most_all(field, down)
        else:
            yield invalid("spec.updateStrategy", _strategy_of(strategy), "must be 'RollingUpdate' or 'OnDelete'")

    def _with_claims(self, spec: Json) -> Json:
        """The template with the volumes that the claims will be, which its containers may mount."""
        found: Json = spec["template"]
        claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
        if not claims:
            return found
        pods = found.get("spec") or {}
        volumes: list[Any] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        volumes += [volume for volume in pods.get("volumes") or () if volume.get("name") not in claims]
        return {**found, "spec": {**pods, "volumes": volumes}}


class DaemonSet(_Workload):
    def begin(self, obj: Json) -> None:
        super().begin(obj)
        self._mark(obj, 1)

    def prepare_update(self, obj: Json, old: Json) -> None:
        annotations = old["metadata"].get("annotations") or {}
        before = int(annotations.get(_GENERATION, "1")) if annotations.get(_GENERATION, "1").isdigit() else 1
        changed = (obj.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
        self._mark(obj, before + 1 if changed else before)

    def _mark(self, obj: Json, generation: int) -> None:
        meta = obj["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), _GENERATION: str(generation)}

    def default(self, obj: Json) -> None:
        super().default(obj)
        meta, spec = obj["metadata"], obj["spec"]
        if _GENERATION not in (meta.get("annotations") or {}):
            self._mark(obj, 1)
        strategy = spec["updateStrategy"] = spec.get("updateStrategy") or {}
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))) if old else []
        causes += self._selector(spec)
        before = None if old is None else old["spec"].get("template")
        causes += template("spec.template", spec["template"], before)
        causes += _always(spec, "DaemonSet")
        causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        causes += self._strategy(spec["updateStrategy"])
        causes += not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        return causes

    def _selector(self, spec: Json) -> Iterator[Cause]:
        selector = spec.get("selector")
        yield from label_selector("spec.selector", selector)
        yield from mismatch(selector, spec["template"])
        if selector is not None and selector_is_empty(selector):
            yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")

    def _strategy(self, strategy: Json) -> Iterator[Cause]:
        if strategy["type"] == "OnDelete":
            return
        if strategy["type"] != "RollingUpdate":
            yield unsupported("spec.updateStrategy", _strategy_of(strategy), ("RollingUpdate", "OnDelete"))
            return
        field, rolling = "spec.updateStrategy.rollingUpdate", strategy["rollingUpdate"]
        down, surge = rolling["maxUnavailable"], rolling["maxSurge"]
        yield from share(f"{field}.maxUnavailable", down)
        yield from share(f"{field}.maxSurge", surge)
        yield from at_most_all(f"{field}.maxUnavailable", down)
        yield from at_most_all(f"{field}.maxSurge", surge)
        if not _is_zero(down) and not _is_zero(surge):
            yield invalid(f"{field}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
        elif _is_zero(down) and _is_zero(surge):
            yield required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")


class ControllerRevision(Plain):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = [] if obj.get("data") is not None else [required("data", "data is mandatory")]
        causes += not_negative("revision", obj.get("revision"))
        if old is not None and obj.get("data") != old.get("data"):
            causes.append(invalid("data", obj.get("data"), "field is immutable"))
        return causes


class PodTemplate(Plain):
    def default(self, obj: Json) -> None:
        default_template(obj.setdefault("template", {}))

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return list(template("template", obj["template"], None if old is None else old.get("template")))
