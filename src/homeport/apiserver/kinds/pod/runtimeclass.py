"""RuntimeClass, and what it adds to the Pods that name it: overhead, a node selector and tolerations."""

from __future__ import annotations

import orjson

from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.kinds.amount import requirements
from homeport.apiserver.kinds.check import IMMUTABLE, Struct, dns_label, duplicate, invalid, labels, named, required
from homeport.apiserver.kinds.pod.rule import check_toleration
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import Cause, Forbidden
from homeport.store import Store

_BUCKET = "runtimeclasses.node.k8s.io"
_SAME = ("key", "operator", "value", "effect")


class RuntimeClass(Plain):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = list(requirements("overhead", {"limits": (obj.get("overhead") or {}).get("podFixed") or {}}))
        scheduling = obj.get("scheduling") or {}
        causes += labels("scheduling.nodeSelector", scheduling.get("nodeSelector"))
        found = scheduling.get("tolerations") or []
        for i, toleration in enumerate(found):
            causes += check_toleration(f"scheduling.tolerations[{i}]", toleration)
        for i, toleration in enumerate(found):
            if any(_same(toleration, other) for other in found[:i]):
                causes.append(duplicate(f"scheduling.tolerations[{i}]", _shown(toleration)))
        handler = obj.get("handler", "")
        causes += named("handler", handler, dns_label) if handler else [required("handler")]
        if old is not None and handler != old.get("handler", ""):
            causes.append(invalid("handler", None, IMMUTABLE))
        return causes


def _shown(toleration: Json) -> Struct:
    found = Struct({field.capitalize(): toleration.get(field, "") for field in _SAME})
    found["TolerationSeconds"] = toleration.get("tolerationSeconds")
    return found


def _same(one: Json, other: Json) -> bool:
    return all(one.get(field) == other.get(field) for field in _SAME)


class RuntimeClasses:
    """Admission of Pods."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object.get("spec") or {}
        name = spec.get("runtimeClassName")
        found = self._find(attributes, name) if name is not None else {}
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead is None:
            if spec.get("overhead") is not None:
                why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                raise _refused(attributes, why)
        elif spec.get("overhead") and spec["overhead"] != overhead:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _refused(attributes, why)
        else:
            spec["overhead"] = overhead
        if found.get("scheduling") is not None:
            _schedule(attributes, spec, found["scheduling"])

    def _find(self, attributes: Attributes, name: str) -> Json:
        record = self._store.get(_BUCKET, name)
        if record is None:
            raise _refused(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        found: Json = orjson.loads(record.value)
        return found


def _schedule(attributes: Attributes, spec: Json, scheduling: Json) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.setdefault(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = "
                f"{selector[key]}"
            )
            raise _refused(attributes, why)
    if selector:
        spec["nodeSelector"] = selector
    given = spec.get("tolerations") or []
    added = [each for each in scheduling.get("tolerations") or () if each not in given]
    if given or added:
        spec["tolerations"] = [*given, *added]


def _refused(attributes: Attributes, why: str) -> Forbidden:
    return refusal("", "pods", attributes.name, why)
