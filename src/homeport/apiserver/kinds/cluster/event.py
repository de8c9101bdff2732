"""Events: one stored object under two groups. The core form is stored; events.k8s.io renames its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.apiserver.kinds.check import immutable, invalid, label_key, named, required
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

CORE, NEW = "v1", "events.k8s.io/v1"
# Field of the core form > field of events.k8s.io.
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK = {new: core for core, new in _RENAMED.items()}
# What one form leaves out when it is empty and the other always writes.
_OMITTED_IN_NEW = ("reportingController", "reportingInstance", "regarding")
_WRITTEN_IN_CORE: Json = {"reportingComponent": "", "reportingInstance": "", "involvedObject": {}}
_NOTE_LIMIT = 1024
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
FIELDS = (*(f"involvedObject.{part}" for part in _REFERENCE), "reason", "reportingComponent", "source", "type")
NEW_FIELDS = (*(f"regarding.{part}" for part in _REFERENCE), "reason", "reportingController", "type")


def to_new(obj: Json) -> Json:
    """A core Event as events.k8s.io shows it."""
    result = {_RENAMED.get(field, field): value for field, value in obj.items()}
    result["apiVersion"] = NEW
    for field in _OMITTED_IN_NEW:
        if not result.get(field):
            result.pop(field, None)
    return result


def to_core(obj: Json) -> Json:
    result = {_BACK.get(field, field): value for field, value in obj.items()}
    result["apiVersion"] = CORE
    for field, empty in _WRITTEN_IN_CORE.items():
        if result.get(field) is None:
            result[field] = dict(empty) if isinstance(empty, dict) else empty
    return result


def convert(obj: Json, version: str) -> Json:
    """For events.k8s.io, which is stored in the core form: `core` is that form, everything else its own."""
    if version == STORED:
        return to_core(obj)
    return to_new(obj) if obj.get("apiVersion") == CORE else obj


# The name of the version that events.k8s.io is stored in. No request can name it.
STORED = "core"


class Event(Plain):
    def __init__(self, *, new: bool = False) -> None:
        self._new = new

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        core = to_core(obj) if self._new else obj
        causes = list(self._checked(core))
        if self._new and old is not None:
            causes += self._changed(obj, old)
        return causes

    def _checked(self, obj: Json) -> Iterator[Cause]:
        meta, about = obj["metadata"], obj.get("involvedObject") or {}
        namespace = about.get("namespace", "")
        if not self._new and not obj.get("eventTime"):
            # Events about cluster-wide objects are kept in `default`.
            if namespace != meta.get("namespace") and (namespace or meta.get("namespace") != "default"):
                yield invalid("involvedObject.namespace", namespace, "does not match event.namespace")
            return
        if not obj.get("eventTime"):
            yield required("eventTime")
            if obj.get("type", "") not in ("Normal", "Warning"):
                yield invalid("type", "", f"has invalid value: {obj.get('type', '')}")
            return
        yield from self._complete(obj)

    def _complete(self, obj: Json) -> Iterator[Cause]:
        """What an event with an eventTime has to say."""
        reporter = "reportingController" if self._new else "reportingComponent"
        controller = obj.get("reportingComponent", "")
        if not controller:
            yield required(reporter)
        yield from named(reporter, controller, label_key)
        for field in ("reportingInstance", "action", "reason"):
            if not obj.get(field):
                yield required(field)
        if len(obj.get("message", "")) > _NOTE_LIMIT:
            yield invalid("message", "", f"can have at most {_NOTE_LIMIT} characters")
        if self._new:
            if obj.get("type", "") not in ("Normal", "Warning"):
                yield invalid("type", "", f"has invalid value: {obj.get('type', '')}")
            if obj.get("count"):
                yield invalid("count", "", "needs to be unset")

    def _changed(self, obj: Json, old: Json) -> Iterator[Cause]:
        for field in (
            "eventTime",
            "reportingController",
            "reportingInstance",
            "action",
            "reason",
            "regarding",
            "related",
        ):
            yield from immutable(field, obj.get(field), old.get(field))
        for field in ("note", "type"):
            yield from immutable(field, obj.get(field), old.get(field))

    def fields(self, obj: Json) -> Mapping[str, str]:
        """Field selectors look at the stored form, whichever group was asked."""
        about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
        found = {}
        for part in _REFERENCE:
            found[f"involvedObject.{part}"] = found[f"regarding.{part}"] = about.get(part, "")
        reporter = obj.get("reportingComponent", "")
        found["reportingComponent"] = found["reportingController"] = reporter
        found["source"] = source.get("component") or reporter
        found["reason"], found["type"] = obj.get("reason", ""), obj.get("type", "")
        return found
