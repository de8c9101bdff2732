"""Changes of generated objects that a user asks for in `spec.patches`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from homeport.api.k0smotron.v1beta2 import ComponentPatch
from homeport.apiserver.kinds.load import definitions
from homeport.hosted.k0smotron.name import COMPONENT_LABEL
from homeport.machinery import yaml
from homeport.machinery.patch import PatchError, json_patch, merge_patch
from homeport.machinery.schema import Schema
from homeport.machinery.strategic import strategic_merge

Json = dict[str, Any]

_FIXED = ("apiVersion", "kind")
_DEFINITIONS = {
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "CronJob": "io.k8s.api.batch.v1.CronJob",
    "Ingress": "io.k8s.api.networking.v1.Ingress",
    "Secret": "io.k8s.api.core.v1.Secret",
    "Service": "io.k8s.api.core.v1.Service",
    "StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
}


class PatchFailed(Exception):
    """An entry of spec.patches can't be applied; says which and why."""


@cache
def _schema(kind: str) -> Schema | None:
    name = _DEFINITIONS.get(kind)
    return Schema({"$ref": f"#/components/schemas/{name}"}, definitions()) if name else None


def apply_patches(obj: Json, patches: Sequence[ComponentPatch]) -> Json:
    """The object with the patches for its kind and component, in their order. Its name and owner stay."""
    component = (obj["metadata"].get("labels") or {}).get(COMPONENT_LABEL, "")
    made = obj
    for number, each in enumerate(patches):
        if (each.target.kind, each.target.component) == (obj["kind"], component):
            made = _patched(made, number, each)
    if made is obj:
        return obj
    kept = {name: obj["metadata"][name] for name in ("name", "namespace", "ownerReferences")}
    metadata = {**(made.get("metadata") or {}), **kept}
    return {**made, **{name: obj[name] for name in _FIXED}, "metadata": metadata}


def _patched(obj: Json, number: int, patch: ComponentPatch) -> Json:
    try:
        content = yaml.load(patch.patch.content)
        match patch.patch.type:
            case "json":
                result = json_patch(obj, content)
            case "strategic":
                result = strategic_merge(obj, content, _schema(str(obj["kind"])))
            case _:
                result = merge_patch(obj, content)
    except (PatchError, yaml.YamlError) as error:
        name = f"{obj['kind']} {obj['metadata']['name']}"
        raise PatchFailed(f"spec.patches[{number}] can't be applied to {name}: {error}") from None
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise PatchFailed(f"spec.patches[{number}] leaves no object of {obj['kind']} {obj['metadata']['name']}")
    return result
