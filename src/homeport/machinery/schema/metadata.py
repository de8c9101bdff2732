"""Metadata as every object has it: its shape, and the rules for metadata inside an embedded object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.explain import Explainer
from homeport.machinery.schema.name import dns_label, dns_label_1035, label_key, label_value, path_segment
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.violation import Violation

_STRING: Final = {"type": "string"}
_BOOL: Final = {"type": "boolean"}
_INT64: Final = {"type": "integer", "format": "int64"}
_TIME: Final = {"type": "string", "format": "date-time"}
_STRINGS: Final = {"type": "object", "additionalProperties": _STRING}
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

OBJECT_META: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "generateName": _STRING,
        "namespace": _STRING,
        "selfLink": _STRING,
        "uid": _STRING,
        "resourceVersion": _STRING,
        "generation": _INT64,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _INT64,
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "apiVersion": _STRING,
                    "kind": _STRING,
                    "name": _STRING,
                    "uid": _STRING,
                    "controller": _BOOL,
                    "blockOwnerDeletion": _BOOL,
                },
            },
        },
        "finalizers": {"type": "array", "items": _STRING},
        "managedFields": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "manager": _STRING,
                    "operation": _STRING,
                    "apiVersion": _STRING,
                    "time": _TIME,
                    "fieldsType": _STRING,
                    "fieldsV1": _ANYTHING,
                    "subresource": _STRING,
                },
            },
        },
    },
}

OBJECT_META_SCHEMA: Final = Schema(OBJECT_META)


def embedded_object(obj: dict[str, Any], path: str) -> Iterator[Violation]:
    """What is wrong with the parts of an embedded object that make it an object."""
    for field in ("apiVersion", "kind"):
        if field not in obj:
            yield v.required(f"{path}.{field}")
        elif not isinstance(obj[field], str):
            yield v.invalid(f"{path}.{field}", obj[field], "must be a string")
        elif not obj[field]:
            yield v.invalid(f"{path}.{field}", "", "must not be empty")
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        yield v.invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    if isinstance(kind, str) and kind and (wrong := dns_label_1035(kind.lower())):
        yield v.invalid(f"{path}.kind", kind, "may have mixed case, but should otherwise match: " + ",".join(wrong))
    if obj.get("metadata") is not None:
        yield from _embedded_metadata(obj["metadata"], f"{path}.metadata")


def _embedded_metadata(meta: Any, path: str) -> Iterator[Violation]:
    malformed = Explainer(OBJECT_META_SCHEMA, within=path).explain(meta)
    if malformed:
        yield from malformed
        return
    for field in ("generateName", "name"):
        for wrong in path_segment(meta.get(field, "")):
            yield v.invalid(f"{path}.{field}", meta[field], wrong)
    for wrong in dns_label(meta["namespace"]) if meta.get("namespace") else ():
        yield v.invalid(f"{path}.namespace", meta["namespace"], wrong)
    for key, value in (meta.get("labels") or {}).items():
        for wrong in label_key(key):
            yield v.invalid(f"{path}.labels", key, wrong)
        for wrong in label_value(value):
            yield v.invalid(f"{path}.labels", value, wrong)
    for key in meta.get("annotations") or {}:
        for wrong in label_key(key.lower()):
            yield v.invalid(f"{path}.annotations", key, wrong)
    for finalizer in meta.get("finalizers") or ():
        for wrong in label_key(finalizer):
            yield v.invalid(f"{path}.finalizers", finalizer, wrong)
    for index, owner in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield v.required(f"{path}.ownerReferences[{index}].{field}", "must not be empty")
